"""Carry out operator actions for a viewer: first the dry run, then what it has shown, then its entry in the history.

The action goes to the REST API as the viewer, never as the console: the API decides by the viewer's role, and its
history names the viewer. The console keeps no plan: a page sends back the one that it has shown, and the API refuses it
if something has changed since.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request

from maestropy.aio import clock
from maestropy.console.pages import remedies
from maestropy.console.pages.work_page import entry_model
from maestropy.console.picture import Picture
from maestropy.console.sessions import Gate, Refused, Viewer
from maestropy.sdk import errors
from maestropy.sdk.actions import ActionWork, OperatorAction
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.history import HistoryEntry
from maestropy.untrusted.printable import escape

_MOST_BODY: Final = 8192
_MOST_WORKS: Final = 100
_MOST_ENTRIES: Final = 20
_STATUSES: Final[tuple[tuple[type[errors.MaestroError], HTTPStatus], ...]] = (
    (errors.Invalid, HTTPStatus.BAD_REQUEST),
    (errors.Conflict, HTTPStatus.CONFLICT),
    (errors.AlreadyExists, HTTPStatus.CONFLICT),
    (errors.NotFound, HTTPStatus.NOT_FOUND),
    (errors.Unauthorized, HTTPStatus.FORBIDDEN),
    (errors.Forbidden, HTTPStatus.FORBIDDEN),
    (errors.Unsupported, HTTPStatus.NOT_IMPLEMENTED),
)
"""What an error of the API is for the page. None is 401: the viewer is signed in to the console all the same."""
_KINDS: Final[Mapping[str, str]] = {
    "resend": "work.resent",
    "resync": "consumer.resynced",
    "pause": "consumer.paused",
    "resume": "consumer.resumed",
    "adopt": "consumer.adopted",
    "retire-release": "consumer.retired",
    "retire-delete": "consumer.retired",
    "sweep": "database.swept",
}
_UNCERTAIN: Final = "It is not known whether it was done: look at the history before you try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks for an action."""

    viewer: Viewer
    token: str
    """The bearer token of the viewer; empty where there is no login."""
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAccess:
    """How a console acts for its viewers."""

    client: Callable[[Actor], AbstractAsyncContextManager[AsyncMaestro]]
    """Opens the REST API as a viewer."""
    requested_by: str
    """Who the console says it is, for the history; proves nothing."""


def with_token_of(client: AsyncMaestro, *, requested_by: str) -> ActionAccess:
    """Return actions with the token of one client: who can open the console acts as the operator who started it."""
    return ActionAccess(client=lambda _: nullcontext(client), requested_by=requested_by)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page asks for: an action on a work or a consumer."""

    action: remedies.Name
    target: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    plan: Annotated[str, msgspec.Meta(max_length=320)] = ""
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""
    name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    """The name that the viewer has typed, of an action that cannot be taken back."""


_decode = msgspec.json.Decoder(Asked).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPages:
    """Answers the pages that show and carry out actions."""

    picture: Picture
    gate: Gate
    access: ActionAccess | None = None
    """None: the console changes nothing."""

    def availability(self, viewer: Viewer) -> dict[str, Any]:
        """Return which actions a viewer may use, or why there are none."""
        return remedies.availability(self.picture, is_allowed=self.access is not None, role=self.role(viewer))

    def role(self, viewer: Viewer) -> str:
        """Return the role of a viewer; that of the console's own token is known when all history could be read."""
        source = self.picture.source
        return viewer.role or ("admin" if source.history == "yes" and not source.problem else "")

    async def plan(self, request: Request) -> dict[str, Any]:
        """Return what an action would do, by a dry run of the API."""
        asked, access, actor = await self._asked(request)
        async with access.client(actor) as client:
            operation = _Operation(client, asked, requested_by=access.requested_by)
            await self._check_role(operation, asked, actor.viewer)
            planned = await _translated(operation.plan())
        return {**_model(planned), "needsName": remedies.ACTIONS[asked.action].needs_name}

    async def perform(self, request: Request) -> dict[str, Any]:
        """Carry out what a dry run has shown; return what was done, and its entry in the history."""
        asked, access, actor = await self._asked(request)
        async with access.client(actor) as client:
            operation = _Operation(client, asked, requested_by=access.requested_by)
            await self._check_role(operation, asked, actor.viewer)
            if remedies.ACTIONS[asked.action].needs_name and asked.name != asked.target:
                named = f"Type the name {escape(asked.target)} to confirm; nothing was done."
                raise Refused(HTTPStatus.BAD_REQUEST, named)
            done = await _translated(operation.perform(), may_be_done=True)
            entry = await operation.entry() if done.is_change else None
        return {**_model(done), "entry": entry_model(entry) if entry is not None else None}

    async def _asked(self, request: Request) -> tuple[Asked, ActionAccess, Actor]:
        if self.access is None:
            raise Refused(HTTPStatus.FORBIDDEN, "This console is read-only: it was started without --allow-actions.")
        viewer: Viewer = request.state.viewer
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BODY:
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body has more than {_MOST_BODY} bytes.")
        try:
            asked = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"The request is wrong: {escape(str(error))}.") from error
        if asked.target in (".", "..") or not asked.target.isprintable() or {"/", "\\"} & set(asked.target):
            # Before it is part of the path of a request.
            raise Refused(HTTPStatus.BAD_REQUEST, f"There is no such consumer or work: {escape(asked.target)}.")
        address = request.client.host if request.client is not None else ""
        return asked, self.access, Actor(viewer=viewer, token=self.gate.token(request), address=address)

    async def _check_role(self, operation: "_Operation", asked: Asked, viewer: Viewer) -> None:
        """Raise `Refused` for a role that is too low, after the API has refused it too: its history has the attempt."""
        allowed = self.availability(viewer)
        if allowed["can"].get(asked.action, {"isAllowed": True})["isAllowed"]:
            return
        await operation.attempt()
        needed = remedies.ACTIONS[asked.action].role
        has = f", and you have {allowed['role']}" if allowed["role"] else ""
        raise Refused(HTTPStatus.FORBIDDEN, f"The action {asked.action} needs the role {needed}{has}.")


class _Operation:
    """One action through the client of a viewer."""

    def __init__(self, client: AsyncMaestro, asked: Asked, *, requested_by: str) -> None:
        self._client = client
        self._asked = asked
        self._requested_by = requested_by
        self._operation_id = clock.new_id()

    async def plan(self) -> OperatorAction:
        """Ask for the dry run."""
        if self._asked.action == "adopt":
            return await self._adoption()
        return await self._call(dry_run=True)

    async def attempt(self) -> None:
        """Ask for the dry run of an action that the viewer may not use."""
        # Whatever the API says, the viewer is refused; that is why only the dry run is asked for.
        with contextlib.suppress(errors.MaestroError):
            if self._asked.action == "adopt":
                # Without reading the hold, which the consumer may not have: the role is checked first.
                await self._client.consumers.adoption_plan(
                    self._asked.target,
                    hold_id=self._asked.plan,
                    requested_by=self._requested_by,
                    operation_id=self._operation_id,
                )
            else:
                await self._call(dry_run=True)

    async def perform(self) -> OperatorAction:
        """Ask for the action."""
        asked = self._asked
        if asked.action != "adopt":
            return await self._call(dry_run=False)
        planned = await self._adoption()
        # The hold that was shown, not the one of this moment: the server refuses another.
        await self._client.consumers.adopt(
            asked.target,
            hold_id=asked.plan,
            reason=asked.reason,
            requested_by=self._requested_by,
            operation_id=self._operation_id,
        )
        return replace(planned, is_dry_run=False)

    async def entry(self) -> HistoryEntry | None:
        """Return the entry of the action; None if the server keeps no history, or the viewer may not read it."""
        try:
            async with aclosing(self._entries()) as found:
                async for entry in found:
                    if entry.operation_id == self._operation_id:
                        return entry
        except errors.MaestroError:
            # The action is done; that its entry cannot be read now is no failure of it.
            return None
        return None

    def _entries(self) -> AsyncGenerator[HistoryEntry, None]:
        kind, target = _KINDS[self._asked.action], self._asked.target
        if self._asked.action == "resend":
            return self._client.resource_bundles.history(target, kinds=kind, newest_first=True, limit=_MOST_ENTRIES)
        if self._asked.action == "sweep":
            return self._client.history(kinds=kind, newest_first=True, limit=_MOST_ENTRIES)
        return self._client.consumers.history(target, kinds=kind, newest_first=True, limit=_MOST_ENTRIES)

    async def _call(self, *, dry_run: bool) -> OperatorAction:
        asked, consumers = self._asked, self._client.consumers
        options: dict[str, Any] = {
            "reason": asked.reason,
            "requested_by": self._requested_by,
            "dry_run": dry_run,
            "operation_id": self._operation_id,
        }
        match asked.action:
            case "resend":
                return await self._client.resource_bundles.resend(asked.target, **options)
            case "resync":
                return await consumers.resync(asked.target, **options)
            case "pause":
                return await consumers.pause(asked.target, **options)
            case "resume":
                return await consumers.resume(asked.target, **options)
            case "retire-release":
                return await consumers.retire(asked.target, works="release", plan=asked.plan, **options)
            case "retire-delete":
                return await consumers.retire(asked.target, works="delete", plan=asked.plan, **options)
            case _:
                return await consumers.sweep(plan=asked.plan, **options)

    async def _adoption(self) -> OperatorAction:
        """Return the dry run of an adoption, with the works of the hold."""
        target = self._asked.target
        hold = await self._client.consumers.hold(target)
        if hold is None:
            raise errors.Conflict(f"consumer {target} has no data-safety hold any more; there is nothing to adopt")
        planned = await self._client.consumers.adoption_plan(
            target, hold_id=hold.id, requested_by=self._requested_by, operation_id=self._operation_id
        )
        absent = frozenset(hold.absent_works)
        works = (ActionWork(id=work, name="", version=0, is_deleting=work in absent) for work in hold.works)
        return replace(planned, works=tuple(works)[:_MOST_WORKS])


def _model(action: OperatorAction) -> dict[str, Any]:
    return {
        "action": action.action,
        "consumer": escape(action.consumer),
        "isChange": action.is_change,
        "effects": [escape(text) for text in action.effects],
        "warnings": [escape(text) for text in action.warnings],
        "works": [
            {"id": escape(work.id), "name": escape(work.name), "version": work.version, "isDeleting": work.is_deleting}
            for work in action.works[:_MOST_WORKS]
        ],
        "workCount": action.work_count,
        "plan": action.plan,
    }


async def _translated(call: Awaitable[OperatorAction], *, may_be_done: bool = False) -> OperatorAction:
    """Return what the API answers; raises `Refused` with its words."""
    try:
        return await call
    except errors.MaestroError as error:
        known = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
        uncertain = f" {_UNCERTAIN}" if may_be_done and known is None and error.was_sent else ""
        operation = f" (operation id {error.operation_id})" if error.operation_id else ""
        reason = escape(error.reason).rstrip(".")
        raise Refused(known or HTTPStatus.BAD_GATEWAY, f"{reason}{operation}.{uncertain}") from error
