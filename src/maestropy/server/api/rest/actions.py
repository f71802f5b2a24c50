"""Handle REST requests for operator actions; `?dryRun=All` returns what an action would do and writes nothing.

Pauses are no part of a consumer in the REST API, because Go clients reject lists whose items have unknown keys.
"""

import difflib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from maestropy.server.api.rest import representations
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import asked_actions, bodies, error_catalogue, routing
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.controllers.operator_actions import ActionRequest
from maestropy.server.decide.actions import sweep
from maestropy.server.decide.actions.plans import Plan, Refusal
from maestropy.store import actions, consumers
from maestropy.transport import peer_identity

_encode = msgspec.json.Encoder(order="sorted").encode
_UNAUTHENTICATED: Final = "unauthenticated"
_SUGGESTED: Final = 3


class ActionHandlers:
    """Handlers of `/sweep`, `/delivery-pauses`, and actions under `/consumers/{id}` and `/resource-bundles/{id}`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps

    async def pauses(self, request: Request) -> ASGIApp:
        """Return all pauses; those of consumers that it shares to a client limited to sources."""
        found = await actions.pauses(self._deps.database, sources=routing.client(request).sources)
        items = [
            _encode(
                {
                    "consumer_name": pause.consumer,
                    "kind": "DeliveryPause",
                    "paused_at": msgspec.Raw(representations.timestamp(pause.paused_at)),
                    "paused_by": pause.paused_by,
                    "reason": pause.reason,
                }
            )
            for pause in found
        ]
        body = representations.whole_list(items, kind="DeliveryPauseList", page=1, total=len(items))
        return representations.response(body)

    async def resend(self, request: Request) -> ASGIApp:
        """Send a resource bundle to its agent again."""
        asked = self._asked(request, await bodies.action(request))
        key, sources = request.path_params["id"], routing.client(request).sources
        plan = None if "\0" in key else await self._deps.actions.resend(key, asked, sources=sources)
        if plan is None:
            raise rest_errors.RestError(
                error_catalogue.NOT_FOUND,
                f"Resource with id='{rest_errors.shorten(key)}' not found; its ID is that of GET /resource-bundles, "
                "not the name of the work",
            )
        return _answer(plan, is_dry_run=asked.is_dry_run)

    async def resync(self, request: Request) -> ASGIApp:
        """Send all works of a consumer again and resync with its agent."""
        if routing.client(request).sources is not None:
            reason = (
                f"{error_catalogue.UNAUTHORIZED.reason}: the token is limited to sources, which share the consumers"
            )
            raise rest_errors.RestError(error_catalogue.UNAUTHORIZED, reason)
        return await self._on_consumer(request, self._deps.actions.resync)

    async def pause(self, request: Request) -> ASGIApp:
        """Pause the delivery to a consumer."""
        return await self._on_consumer(request, self._deps.actions.pause)

    async def resume(self, request: Request) -> ASGIApp:
        """Resume the delivery to a consumer."""
        return await self._on_consumer(request, self._deps.actions.resume)

    async def retire(self, request: Request) -> ASGIApp:
        """Release or delete the works of a dead consumer."""
        body = await bodies.retirement(request)
        asked = self._asked(request, body)
        _check_plan(body.plan, asked)
        key = request.path_params["id"]
        plan = None if "\0" in key else await self._deps.actions.retire(key, asked, fate=body.works, pin=body.plan)
        return _answer(await self._known(plan, key), is_dry_run=asked.is_dry_run)

    async def sweep(self, request: Request) -> ASGIApp:
        """Remove rows that belong to nothing."""
        body = await bodies.sweep(request)
        asked = self._asked(request, body)
        _check_plan(body.plan, asked)
        classes = frozenset(body.classes or sweep.CLASSES)
        plan = await self._deps.actions.sweep(asked, classes=classes, pin=body.plan)
        return _answer(plan, is_dry_run=asked.is_dry_run)

    async def _on_consumer(
        self, request: Request, act: Callable[[str, ActionRequest], Awaitable[Plan | None]]
    ) -> ASGIApp:
        asked = self._asked(request, await bodies.action(request))
        key = request.path_params["id"]
        plan = None if "\0" in key else await act(key, asked)
        return _answer(await self._known(plan, key), is_dry_run=asked.is_dry_run)

    def _asked(self, request: Request, body: bodies.ActionBody) -> ActionRequest:
        return ActionRequest(
            requester=routing.requester(request.scope),
            by=requested_by(request, body.requested_by),
            operation_id=routing.operation_id(request),
            reason=body.reason,
            requested_by=body.requested_by,
            is_dry_run=asked_actions.of(request.scope).is_dry_run,
        )

    async def _known(self, plan: Plan | Refusal | None, key: str) -> Plan | Refusal:
        """Return the plan; raises an error with the most similar names if there is no such consumer."""
        if plan is not None:
            return plan
        async with self._deps.database.connection() as connection:
            names = await consumers.names(connection)
        similar = difflib.get_close_matches(key, names, n=_SUGGESTED)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else "; maestro consumer list shows them all"
        raise rest_errors.RestError(
            error_catalogue.NOT_FOUND, f"There is no consumer with the ID or name '{rest_errors.shorten(key)}'{hint}"
        )


def requested_by(request: Request, name: str) -> str:
    """Return who asks for an action in one text: the user, the address, and who the client says it is."""
    identity = routing.client(request).identity
    host, _ = request.scope.get("client") or ("", 0)
    user = _UNAUTHENTICATED if identity is peer_identity.ANONYMOUS else identity.user
    return f"{user} from {host}" + (f" ({name})" if name else "")


def plan_body(plan: Plan, *, is_dry_run: bool) -> bytes:
    """Return the JSON of a plan."""
    body: dict[str, Any] = {
        "action": plan.action,
        "changes": plan.is_change,
        "consumer_name": plan.consumer,
        "dry_run": is_dry_run,
        "effects": plan.effects,
        "kind": "OperatorAction",
        "plan": plan.pin,
        "warnings": plan.warnings,
        "work_count": plan.work_count,
        "works": [
            {"deleting": work.is_deleting, "id": work.id, "name": work.name, "version": work.version}
            for work in plan.works
        ],
    }
    return _encode(body)


def _answer(plan: Plan | Refusal, *, is_dry_run: bool) -> ASGIApp:
    if isinstance(plan, Refusal):
        raise rest_errors.RestError(error_catalogue.CONFLICT, plan.reason)
    return representations.response(plan_body(plan, is_dry_run=is_dry_run))


def _check_plan(plan: str, asked: ActionRequest) -> None:
    if not plan and not asked.is_dry_run:
        raise rest_errors.RestError(
            error_catalogue.CONFLICT,
            "plan is missing: send the plan of a dry run (dryRun=All), which says what happens",
        )
