"""Handle REST requests for the history: of a work, of a consumer, and of everything.

Pages follow each other by time and ID. A client that is limited to sources sees the entries of their works only.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import ASGIApp

from maestropy.server.api.rest import continuation, representations
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import error_catalogue, routing
from maestropy.server.api.rest.http import errors as rest_errors
from maestropy.server.decide.history import kinds
from maestropy.store.history import history_entries
from maestropy.store.lists import resource_lists
from maestropy.store.lists.keyset import Position
from maestropy.store.search import ColumnType, OrderKey
from maestropy.store.search.columns import Column
from maestropy.wire import errors, timestamps

DEFAULT_SIZE: Final = 100
MAX_SIZE: Final = 1000
_KEYS: Final = (
    OrderKey(column=Column(name="at", sql="at", type=ColumnType.TIMESTAMPTZ)),
    OrderKey(column=Column(name="id", sql="id", type=ColumnType.BIGINT)),
)
_ORDERS: Final = ("asc", "desc")
_encode = msgspec.json.Encoder(order="sorted").encode


class HistoryHandlers:
    """Handlers of `/history`, `/resource-bundles/{id}/history` and `/consumers/{id}/history`."""

    def __init__(self, deps: RestDependencies) -> None:
        self._deps = deps

    async def of_work(self, request: Request) -> ASGIApp:
        """Return the history of a work by its ID, also of one that is deleted."""
        key = _checked(request, "ResourceBundle")
        return await self._page(request, noun="ResourceBundle", work_id=key)

    async def of_consumer(self, request: Request) -> ASGIApp:
        """Return the history of a consumer by its ID or name, also of one that is deleted."""
        key = _checked(request, "Consumer")
        name = await history_entries.consumer_name(self._deps.database, key)
        if name is None:
            raise routing.not_found("Consumer", key)
        return await self._page(request, noun="Consumer", consumer=name)

    async def everything(self, request: Request) -> ASGIApp:
        """Return the history of everything, for export."""
        return await self._page(request)

    async def _page(
        self, request: Request, *, noun: str = "", work_id: str | None = None, consumer: str | None = None
    ) -> ASGIApp:
        sources = routing.client(request).sources
        parameters = request.query_params
        size, is_descending = _size(parameters), _choice(parameters, "order", _ORDERS) == "desc"
        kinds_wanted = _kinds(parameters)
        fingerprint = continuation.fingerprint(f"{request.url.path} {kinds_wanted}", str(is_descending))
        token = parameters.get("continue", "")
        place = continuation.decode(token, fingerprint=fingerprint, keys=_KEYS) if token else None
        query = history_entries.HistoryQuery(
            work_id=work_id,
            consumer=consumer,
            sources=sources,
            kinds=kinds_wanted,
            since=_moment(parameters, "since"),
            until=_moment(parameters, "until"),
            after=_after(place),
            is_descending=is_descending,
            limit=size + 1,
        )
        found = await history_entries.page(self._deps.database, query)
        if not found and place is None and noun:
            await self._check_exists(noun, request.path_params["id"], sources=sources)
        page, has_more = found[:size], len(found) > size
        headers = {}
        if has_more:
            seen = (place.position.seen if place is not None else 0) + len(page)
            position = Position(values=(page[-1].at, page[-1].id), seen=seen, total=0)
            number = place.page if place is not None else 1
            headers[continuation.HEADER] = continuation.encode(
                continuation.Continuation(page=number + 1, position=position), fingerprint=fingerprint
            )
        return representations.response(self._body(page), headers=headers)

    def _body(self, page: Sequence[history_entries.HistoryRow]) -> bytes:
        body = {
            "items": [msgspec.Raw(_item(row)) for row in page],
            "kind": "HistoryList",
            "recording": self._deps.history.is_enabled,
            "size": len(page),
        }
        return _encode(body)

    async def _check_exists(self, noun: str, key: str, *, sources: frozenset[str] | None) -> None:
        """Tell an object without history, such as one that a Go server wrote, from one that never was."""
        if noun == "Consumer" and sources is None:
            return
        query = resource_lists.by_id(key)
        if sources is not None:
            query = resource_lists.of_sources(query, sources)
        async with resource_lists.snapshot(self._deps.database) as snapshot:
            exists = noun == "ResourceBundle" and bool((await snapshot.outline(query)).entries)
        if not exists:
            raise routing.not_found(noun, key)


def _item(row: history_entries.HistoryRow) -> bytes:
    body: dict[str, Any] = {
        "consumer_name": row.consumer,
        "detail": msgspec.Raw(row.detail.encode()),
        "id": str(row.id),
        "kind": row.kind,
        "operation_id": row.operation_id,
        "address": row.address,
        "result": row.result,
        "source": row.source,
        "time": msgspec.Raw(representations.timestamp(row.at)),
        "user": row.actor,
        "version": row.version,
    }
    owner = "consumer_id" if row.kind.startswith("consumer.") else "resource_id"
    body[owner] = row.subject_id
    # Always there: the time, the kind and the ID.
    return _encode({name: value for name, value in body.items() if value})


def _checked(request: Request, noun: str) -> str:
    key: str = request.path_params["id"]
    if "\0" in key:
        raise routing.not_found(noun, key)
    return key


def _after(place: continuation.Continuation | None) -> tuple[datetime, int] | None:
    if place is None:
        return None
    at, entry_id = place.position.values
    if not isinstance(at, datetime) or not isinstance(entry_id, int):
        raise rest_errors.RestError(error_catalogue.BAD_REQUEST, "continue is not a token of this server")
    return at, entry_id


def _size(parameters: QueryParams) -> int:
    text = parameters.get("size", str(DEFAULT_SIZE))
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MAX_SIZE):
        shown = rest_errors.shorten(text)
        raise rest_errors.RestError(error_catalogue.BAD_REQUEST, f"size={shown}: use a number from 1 to {MAX_SIZE}")
    return int(text)


def _choice(parameters: QueryParams, name: str, choices: Sequence[str]) -> str:
    text = parameters.get(name, choices[0])
    if text not in choices:
        shown = rest_errors.shorten(text)
        raise rest_errors.RestError(error_catalogue.BAD_REQUEST, f"{name}={shown}: use one of {', '.join(choices)}")
    return text


def _kinds(parameters: QueryParams) -> tuple[str, ...]:
    wanted = tuple(filter(None, (name.strip() for name in parameters.get("kind", "").split(","))))
    unknown = [name for name in wanted if name not in kinds.ALL and name not in kinds.FAMILIES]
    if unknown:
        known = ", ".join((*kinds.FAMILIES, *kinds.ALL))
        shown = rest_errors.shorten(", ".join(unknown))
        raise rest_errors.RestError(error_catalogue.BAD_REQUEST, f"kind={shown} is not known; use some of {known}")
    return wanted


def _moment(parameters: QueryParams, name: str) -> datetime | None:
    text = parameters.get(name, "")
    if not text:
        return None
    try:
        moment = timestamps.parse(text).to_datetime()
    except (errors.WireError, ValueError, OverflowError):
        shown = rest_errors.shorten(text)
        reason = f"{name}={shown}: write a time such as 2026-11-17T10:00:00Z, with its time zone"
        raise rest_errors.RestError(error_catalogue.BAD_REQUEST, reason) from None
    return moment
