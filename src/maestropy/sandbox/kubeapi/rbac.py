"""May this user do that? Answers from the Role and Binding objects in the store, as the RBAC authorizer would.

Pure over what it is given to read; keeps nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maestropy.sandbox.kubeapi.store import Resource, Stored

Json = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
Select = Callable[[Resource, str], list[Stored]]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def is_almighty(self) -> bool:
        """Whether no rule applies."""
        return "system:masters" in self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be done: something to a resource, or to a bare path."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    namespace: str = ""
    name: str = ""
    path: str = ""


def service_account(namespace: str, name: str) -> User:
    """Return the user a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name=f"system:serviceaccount:{namespace}:{name}", groups=groups)


def allows(user: User, question: Question, select: Select) -> str | None:
    """Return why `user` may do it, or nothing."""
    if user.is_almighty:
        return "the user is in the group system:masters"
    for rule, source in rules_for(user, question.namespace, select):
        if covers(rule, question):
            return f"RBAC: allowed by {source}"
    return None


def rules_for(user: User, namespace: str, select: Select) -> Iterator[tuple[Json, str]]:
    """Yield the rules that hold for `user`, cluster-wide and in `namespace`, with the binding each comes from."""
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
    where = namespace if role.get("kind") == "Role" else ""
    for stored in select(resource, where):
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


def covers(rule: Mapping[str, Any], question: Question) -> bool:
    """Whether one rule permits what is asked."""
    if not _has(rule.get("verbs"), question.verb):
        return False
    if question.path:
        urls = rule.get("nonResourceURLs") or []
        return any(url == question.path or (url.endswith("*") and question.path.startswith(url[:-1])) for url in urls)
    names = rule.get("resourceNames")
    if names and question.name not in names:
        return False
    return _has(rule.get("apiGroups"), question.group) and _has_resource(rule, question.resource)


def _has(values: Iterable[str] | None, value: str) -> bool:
    present = values or ()
    return "*" in present or value in present


def _has_resource(rule: Mapping[str, Any], resource: str) -> bool:
    resources = rule.get("resources") or []
    _, slash, subresource = resource.partition("/")
    return _has(resources, resource) or (bool(slash) and f"*/{subresource}" in resources)


def may_grant(user: User, rules: Iterable[Json], namespace: str, select: Select) -> bool:
    """Whether `user` holds everything `rules` would give to others."""
    held = [rule for rule, _ in rules_for(user, namespace, select)]
    return user.is_almighty or all(
        any(covers(mine, question) for mine in held) for rule in rules for question in _questions(rule)
    )


def _questions(rule: Mapping[str, Any]) -> Iterator[Question]:
    for verb in rule.get("verbs") or []:
        for path in rule.get("nonResourceURLs") or []:
            yield Question(verb=verb, path=path)
        for group in rule.get("apiGroups") or []:
            for resource in rule.get("resources") or []:
                question = Question(verb=verb, group=group, resource=resource)
                for name in rule.get("resourceNames") or [""]:
                    yield replace(question, name=name)
