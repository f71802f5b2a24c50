"""Authenticate bearer tokens, impersonate users, and authorize every request by RBAC."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.access import rbac
from maestropy.sandbox.kubeapi.access.rbac import AccessAttributes, User
from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.request_paths import RequestInfo
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage.store import ObjectStore

Json = dict[str, Any]
ADMIN = User(name="sandbox-admin", groups=("system:masters", "system:authenticated"))
_ROLE_PLURALS = ("roles", "clusterroles")
_BINDING_PLURALS = ("rolebindings", "clusterrolebindings")


class AccessControl:
    """The tokens of the cluster and the users they authenticate."""

    def __init__(self, store: ObjectStore, *, admin_token: str) -> None:
        self._store = store
        self._users = {admin_token: ADMIN} if admin_token else {}
        self._open = not admin_token

    def add(self, token: str, user: User) -> None:
        """Authenticate `token` as `user`."""
        self._users[token] = user

    def user_of(self, token: str) -> User | None:
        """Return the user that a token authenticates."""
        return self._users.get(token)

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request, or raise 401."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self._users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None and self._open and not token:
            user = ADMIN
        if user is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return self._impersonated(user, headers)

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("impersonate-user")
        if not name:
            return user
        parts = name.split(":")
        is_account = parts[:2] == ["system", "serviceaccount"] and len(parts) == 4
        attributes = AccessAttributes(verb="impersonate", resource="users", name=name)
        if is_account:
            attributes = AccessAttributes(
                verb="impersonate", resource="serviceaccounts", namespace=parts[2], name=parts[3]
            )
        if not rbac.allows(user, attributes, self._store.select):
            kind = ServedKind(group="", version="v1", kind="", plural=attributes.resource)
            raise errors.forbidden(kind, attributes.name, _denial(user, attributes))
        groups = headers.get("impersonate-group")
        if is_account and not groups:
            return rbac.service_account(parts[2], parts[3])
        return User(name=name, groups=(*(groups.split(",") if groups else ()), "system:authenticated"))

    def authorize(self, user: User, info: RequestInfo) -> None:
        """Raise 403 if RBAC does not allow the request."""
        if user.is_superuser:
            return
        below = f"/{info.subresource}" if info.subresource else ""
        attributes = AccessAttributes(
            verb=info.verb,
            group=info.group,
            resource=f"{info.resource}{below}",
            namespace=info.namespace,
            name=info.name,
        )
        if not rbac.allows(user, attributes, self._store.select):
            kind = ServedKind(group=info.group, version=info.version, kind="", plural=info.resource)
            raise errors.forbidden(kind, info.name, _denial(user, attributes))

    def check_escalation(self, user: User, kind: ServedKind, obj: Json) -> None:
        """Raise 403 for a role or binding that grants more than its writer holds."""
        if user.is_superuser or kind.group != rbac.GROUP:
            return
        namespace = obj["metadata"].get("namespace", "")
        name = obj["metadata"].get("name", "")
        if kind.plural in _ROLE_PLURALS:
            rules, verb = obj.get("rules") or [], "escalate"
            attributes = AccessAttributes(
                verb=verb, group=rbac.GROUP, resource=kind.plural, namespace=namespace, name=name
            )
        elif kind.plural in _BINDING_PLURALS:
            role = obj.get("roleRef") or {}
            rules = rbac.rules_of(role, namespace, self._store.select)
            plural = "roles" if role.get("kind") == "Role" else "clusterroles"
            attributes = AccessAttributes(
                verb="bind", group=rbac.GROUP, resource=plural, namespace=namespace, name=role.get("name", "")
            )
        else:
            return
        if rbac.allows(user, attributes, self._store.select):
            return
        if (
            attributes.verb == "bind"
            and self._store.get((rbac.GROUP, attributes.resource), *_role_key(attributes)) is None
        ):
            role_kind = ServedKind(group=rbac.GROUP, version="v1", kind="", plural=attributes.resource)
            raise errors.not_found(role_kind, attributes.name)
        if not rbac.may_grant(user, rules, namespace, self._store.select):
            writer = f'user "{user.name}" (groups={list(user.groups)})'
            why = f"{writer} is attempting to grant RBAC permissions not currently held"
            raise errors.forbidden(kind, name, why)


def _role_key(role: AccessAttributes) -> tuple[str, str]:
    return (role.namespace if role.resource == "roles" else "", role.name)


def _denial(user: User, attributes: AccessAttributes) -> str:
    scope = f' in the namespace "{attributes.namespace}"' if attributes.namespace else " at the cluster scope"
    return (
        f'User "{user.name}" cannot {attributes.verb} resource "{attributes.resource}" '
        f'in API group "{attributes.group}"{scope}'
    )
