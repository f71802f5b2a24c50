"""Handle REST requests for data-safety holds: list them, show the works of one, adopt the database.

A hold is not part of a consumer in the REST API, because Go clients reject lists whose items have unknown keys.
"""

from datetime import datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import RestPhrase
from maestropy.server.api.rest import actions, representations
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import asked_actions, bodies, error_catalogue, routing
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.decide.actions import adoption as adoptions
from maestropy.server.decide.actions.plans import Plan
from maestropy.server.decide.history import kinds
from maestropy.store import consumers, data_safety, rows

_encode = msgspec.json.Encoder(order="sorted").encode


class DataSafetyHandlers:
    """Handlers of `/data-safety-holds`, `/consumers/{id}/data-safety-hold` and its adoption."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps

    async def page(self, request: Request) -> ASGIApp:
        """Return all holds, without the names of their works; those of its own works to a client limited to sources."""
        sources = routing.client(request).sources
        if sources is None:
            rows = await data_safety.holds(self._deps.database)
        else:
            rows = await data_safety.holds_of_sources(self._deps.database, sources)
        items = [_hold(row, has_works=False) for row in rows]
        body = representations.whole_list(items, kind="DataSafetyHoldList", page=1, total=len(items))
        return representations.response(body)

    async def get(self, request: Request) -> ASGIApp:
        """Return the hold of a consumer with the names of its works."""
        row, _ = await self._held(request)
        return representations.response(_hold(row, has_works=True))

    async def adopt(self, request: Request) -> ASGIApp:
        """Record that this database decides about the held works; the agent learns it with its next spec resync."""
        adoption = await bodies.adoption(request)
        row, consumer = await self._held(request)
        by = actions.requested_by(request, adoption.requested_by)
        now = self._deps.clock.now()
        pinned_id = _pinned_id(row)
        if asked_actions.of(request.scope).is_dry_run:
            return representations.response(actions.plan_body(_plan(row), is_dry_run=True))
        entry = self._entry(request, consumer_id=request.path_params["id"], row=row, adoption=adoption, now=now)
        if adoption.hold_id != pinned_id or not await data_safety.adopt(
            self._deps.database, row, by=by, now=now, entry=entry
        ):
            raise rest_errors.RestError(
                error_catalogue.CONFLICT,
                f"The hold of consumer {consumer} is not {rest_errors.shorten(adoption.hold_id)} any more (its reason, "
                "database or works have changed), or is adopted already; review it again and adopt what it is now: "
                f"maestro consumer adopt {consumer} --dry-run",
            )
        fields = {
            LogKey.OP_ID: routing.operation_id(request),
            LogKey.CONSUMER: consumer,
            LogKey.HOLD_ID: row.id,
            LogKey.COUNT: row.work_count,
            LogKey.REASON: f"{row.reason}, by {by}{f': {adoption.reason}' if adoption.reason else ''}",
        }
        self._deps.journal.warning(RestPhrase.ADOPTED, fields)
        self._deps.request_resync(consumer)
        body = {
            "adopted_at": msgspec.Raw(representations.timestamp(now)),
            "adopted_by": by,
            "consumer_name": consumer,
            "hold_id": pinned_id,
            "kind": "DataSafetyAdoption",
            "work_count": row.work_count,
        }
        return representations.response(_encode(body), status=201)

    def _entry(
        self,
        request: Request,
        *,
        consumer_id: str,
        row: data_safety.HoldRow,
        adoption: bodies.Adoption,
        now: datetime,
    ) -> rows.HistoryEntry | None:
        if not self._deps.history.is_enabled:
            return None
        members = {
            "hold_id": kinds.short(row.id),
            "reason": kinds.short(row.reason),
            "works": row.work_count,
            "requested_by": kinds.short(adoption.requested_by),
            "operator_reason": kinds.short(adoption.reason),
        }
        return rows.HistoryEntry(
            kind=kinds.CONSUMER_ADOPTED,
            at=now,
            subject_id=consumer_id,
            consumer=row.consumer,
            requester=routing.requester(request.scope),
            operation_id=routing.operation_id(request),
            detail=kinds.detail(members),
        )

    async def _held(self, request: Request) -> tuple[data_safety.HoldRow, str]:
        key = request.path_params["id"]
        consumer = None if "\0" in key else await consumers.get(self._deps.database, key)
        if consumer is None:
            raise routing.not_found("Consumer", key)
        sources = routing.client(request).sources
        row = await self._hold_of(consumer.name, sources=sources)
        if row is None and sources is not None:
            # Whether the consumer exists is none of its business.
            raise routing.not_found("Consumer", key)
        if row is None:
            raise rest_errors.RestError(
                error_catalogue.NOT_FOUND, f"Consumer {consumer.name} has no data-safety hold: its agent keeps nothing"
            )
        return row, consumer.name

    async def _hold_of(self, consumer: str, *, sources: frozenset[str] | None) -> data_safety.HoldRow | None:
        if sources is None:
            return await data_safety.hold_of(self._deps.database, consumer)
        rows = await data_safety.holds_of_sources(self._deps.database, sources, consumer=consumer)
        return next(iter(rows), None)


def _plan(row: data_safety.HoldRow) -> Plan:
    return adoptions.plan(
        row.consumer,
        why=f"{row.reason}: {row.message}",
        work_count=row.work_count,
        works=row.works,
        absent_works=row.absent_works,
        pin=_pinned_id(row),
    )


def _pinned_id(row: data_safety.HoldRow) -> str:
    """Return the ID of a hold with a digest: agents keep the ID of a hold whose reason, database or works change."""
    return f"{row.id}.{row.digest}"


def _hold(row: data_safety.HoldRow, *, has_works: bool) -> bytes:
    body: dict[str, Any] = {
        "consumer_name": row.consumer,
        "database_id": row.database_id,
        "id": _pinned_id(row),
        "kind": "DataSafetyHold",
        "message": row.message,
        "reason": row.reason,
        "since": msgspec.Raw(representations.timestamp(row.since)),
        "work_count": row.work_count,
    }
    works = {"absent_works": list(row.absent_works), "works": list(row.works)} if has_works else {}
    if row.pending_count:
        body["pending_evictions"] = _pending_evictions(row, has_works=has_works)
    return _encode({**body, **works})


def _pending_evictions(row: data_safety.HoldRow, *, has_works: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"work_count": row.pending_count}
    for name, time in (("since", row.pending_since), ("deadline", row.pending_deadline)):
        if time is not None:
            body[name] = msgspec.Raw(representations.timestamp(time))
    return {**body, "works": list(row.pending_works)} if has_works else body
