"""Who asks, and may they? Bearer tokens, impersonation, and the check of every request of an ordinary user."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi import problems, rbac
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.paths import Call
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.rbac import Question, User
from maestropy.sandbox.kubeapi.store import Store

Json = dict[str, Any]
ADMIN = User(name="sandbox-admin", groups=("system:masters", "system:authenticated"))
_ROLE_PLURALS = ("roles", "clusterroles")
_BINDING_PLURALS = ("rolebindings", "clusterrolebindings")


class Access:
    """The tokens of the cluster and the rights behind them."""

    def __init__(self, store: Store, *, admin_token: str) -> None:
        self._store = store
        self._users = {admin_token: ADMIN} if admin_token else {}
        self._open = not admin_token

    def add(self, token: str, user: User) -> None:
        """Let `token` speak for `user`."""
        self._users[token] = user

    def who_has(self, token: str) -> User | None:
        """Return the user a token speaks for."""
        return self._users.get(token)

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Return who sends a request, or refuse."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self._users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None and self._open and not token:
            user = ADMIN
        if user is None:
            raise Problem(401, "Unauthorized", "Unauthorized")
        return self._impersonated(user, headers)

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("impersonate-user")
        if not name:
            return user
        parts = name.split(":")
        is_account = parts[:2] == ["system", "serviceaccount"] and len(parts) == 4
        question = Question(verb="impersonate", resource="users", name=name)
        if is_account:
            question = Question(verb="impersonate", resource="serviceaccounts", namespace=parts[2], name=parts[3])
        if not rbac.allows(user, question, self._store.select):
            kind = Kind(group="", version="v1", kind="", plural=question.resource)
            raise problems.forbidden(kind, question.name, _refusal(user, question))
        groups = headers.get("impersonate-group")
        if is_account and not groups:
            return rbac.service_account(parts[2], parts[3])
        return User(name=name, groups=(*(groups.split(",") if groups else ()), "system:authenticated"))

    def check(self, user: User, call: Call) -> None:
        """Refuse a call its user has no right to."""
        if user.is_almighty:
            return
        below = f"/{call.subresource}" if call.subresource else ""
        question = Question(
            verb=call.verb,
            group=call.group,
            resource=f"{call.resource}{below}",
            namespace=call.namespace,
            name=call.name,
        )
        if not rbac.allows(user, question, self._store.select):
            kind = Kind(group=call.group, version=call.version, kind="", plural=call.resource)
            raise problems.forbidden(kind, call.name, _refusal(user, question))

    def check_escalation(self, user: User, kind: Kind, obj: Json) -> None:
        """Refuse a role or binding that gives more than its writer has."""
        if user.is_almighty or kind.group != rbac.GROUP:
            return
        namespace = obj["metadata"].get("namespace", "")
        name = obj["metadata"].get("name", "")
        if kind.plural in _ROLE_PLURALS:
            rules, verb = obj.get("rules") or [], "escalate"
            question = Question(verb=verb, group=rbac.GROUP, resource=kind.plural, namespace=namespace, name=name)
        elif kind.plural in _BINDING_PLURALS:
            role = obj.get("roleRef") or {}
            rules = rbac.rules_of(role, namespace, self._store.select)
            plural = "roles" if role.get("kind") == "Role" else "clusterroles"
            question = Question(
                verb="bind", group=rbac.GROUP, resource=plural, namespace=namespace, name=role.get("name", "")
            )
        else:
            return
        if rbac.allows(user, question, self._store.select):
            return
        if question.verb == "bind" and self._store.get((rbac.GROUP, question.resource), *_home(question)) is None:
            role_kind = Kind(group=rbac.GROUP, version="v1", kind="", plural=question.resource)
            raise problems.not_found(role_kind, question.name)
        if not rbac.may_grant(user, rules, namespace, self._store.select):
            who = f'user "{user.name}" (groups={list(user.groups)})'
            why = f"{who} is attempting to grant RBAC permissions not currently held"
            raise problems.forbidden(kind, name, why)


def _home(role: Question) -> tuple[str, str]:
    return (role.namespace if role.resource == "roles" else "", role.name)


def _refusal(user: User, question: Question) -> str:
    where = f' in the namespace "{question.namespace}"' if question.namespace else " at the cluster scope"
    return (
        f'User "{user.name}" cannot {question.verb} resource "{question.resource}" '
        f'in API group "{question.group}"{where}'
    )
