"""Authorize by RBAC: evaluate the roles and bindings in the store for a user and the attributes of a request.

Pure over the objects that `select` returns; caches nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maestropy.sandbox.kubeapi.storage.store import Resource, StoredObject

Json = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
Select = Callable[[Resource, str], list[StoredObject]]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def is_superuser(self) -> bool:
        """Whether RBAC does not apply, because the user is in system:masters."""
        return "system:masters" in self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessAttributes:
    """Attributes of a request to authorize: of a resource, or of a non-resource path."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    namespace: str = ""
    name: str = ""
    path: str = ""


def service_account(namespace: str, name: str) -> User:
    """Return the user of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name=f"system:serviceaccount:{namespace}:{name}", groups=groups)


def allows(user: User, attributes: AccessAttributes, select: Select) -> str | None:
    """Return the reason why RBAC allows the request; None if it does not."""
    if user.is_superuser:
        return "the user is in the group system:masters"
    for rule, source in rules_for(user, attributes.namespace, select):
        if covers(rule, attributes):
            return f"RBAC: allowed by {source}"
    return None


def rules_for(user: User, namespace: str, select: Select) -> Iterator[tuple[Json, str]]:
    """Yield the rules that apply to `user`, cluster-wide and in `namespace`, with the binding each comes from."""
    for stored in select((GROUP, "clusterrolebindings"), ""):
        if _binds(stored.obj, user):
            role = stored.obj["roleRef"]
            text = f'ClusterRoleBinding "{stored.name}" of ClusterRole "{role["name"]}" to {user.name}'
            yield from ((rule, text) for rule in rules_of(role, "", select))
    if not namespace:
        return
    for stored in select((GROUP, "rolebindings"), namespace):
        if _binds(stored.obj, user):
            role = stored.obj["roleRef"]
            text = f'RoleBinding "{stored.name}/{namespace}" of {role["kind"]} "{role["name"]}" to {user.name}'
            yield from ((rule, text) for rule in rules_of(role, namespace, select))


def rules_of(role: Mapping[str, Any], namespace: str, select: Select) -> list[Json]:
    """Return the rules of the role a binding refers to; none if it does not exist."""
    resource = (GROUP, "roles") if role.get("kind") == "Role" else (GROUP, "clusterroles")
    role_namespace = namespace if role.get("kind") == "Role" else ""
    for stored in select(resource, role_namespace):
        if stored.name == role.get("name"):
            return list(stored.obj.get("rules") or [])
    return []


def _binds(binding: Json, user: User) -> bool:
    home = binding["metadata"].get("namespace", "")
    return any(_is_subject(subject, user, home) for subject in binding.get("subjects") or [])


def _is_subject(subject: Mapping[str, Any], user: User, home: str) -> bool:
    match subject.get("kind"):
        case "User":
            return subject.get("name") == user.name
        case "Group":
            return subject.get("name") in user.groups
        case "ServiceAccount":
            return user.name == f"system:serviceaccount:{subject.get('namespace') or home}:{subject.get('name')}"
    return False


def covers(rule: Mapping[str, Any], attributes: AccessAttributes) -> bool:
    """Whether one rule allows the request."""
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        urls = rule.get("nonResourceURLs") or []
        return any(
            url == attributes.path or (url.endswith("*") and attributes.path.startswith(url[:-1])) for url in urls
        )
    names = rule.get("resourceNames")
    if names and attributes.name not in names:
        return False
    return _has(rule.get("apiGroups"), attributes.group) and _has_resource(rule, attributes.resource)


def _has(values: Iterable[str] | None, value: str) -> bool:
    present = values or ()
    return "*" in present or value in present


def _has_resource(rule: Mapping[str, Any], resource: str) -> bool:
    resources = rule.get("resources") or []
    _, slash, subresource = resource.partition("/")
    return _has(resources, resource) or (bool(slash) and f"*/{subresource}" in resources)


def may_grant(user: User, rules: Iterable[Json], namespace: str, select: Select) -> bool:
    """Whether `user` holds every permission that `rules` grant."""
    own_rules = [rule for rule, _ in rules_for(user, namespace, select)]
    return user.is_superuser or all(
        any(covers(own_rule, attributes) for own_rule in own_rules)
        for rule in rules
        for attributes in _attributes_of(rule)
    )


def _attributes_of(rule: Mapping[str, Any]) -> Iterator[AccessAttributes]:
    for verb in rule.get("verbs") or []:
        for path in rule.get("nonResourceURLs") or []:
            yield AccessAttributes(verb=verb, path=path)
        for group in rule.get("apiGroups") or []:
            for resource in rule.get("resources") or []:
                attributes = AccessAttributes(verb=verb, group=group, resource=resource)
                for name in rule.get("resourceNames") or [""]:
                    yield replace(attributes, name=name)
