"""The history of works and consumers: who changed what, when and from where. A Go server keeps none."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from maestropy.sdk._connection import responses
from maestropy.sdk._connection.error_mapping import UnknownPath
from maestropy.sdk._connection.rest import RestClient
from maestropy.sdk._operations import checks
from maestropy.sdk.errors import Invalid, Unsupported
from maestropy.wire import timestamps

PAGE_SIZE: Final = 500
_MOST_PAGES: Final = 1_000_000
_UNAUTHENTICATED: Final = "unauthenticated"
_BY_SOURCES: Final = frozenset(("work.created", "work.updated", "work.deletion-requested", "request.refused"))
_BY_OPERATORS: Final = frozenset(
    (
        *("work.resent", "work.released", "database.swept"),
        *(f"consumer.{done}" for done in ("paused", "resumed", "resynced", "retired", "adopted")),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One entry of the history."""

    id: str
    time: str
    """When it happened, as RFC 3339 in UTC."""
    kind: str
    """What happened, such as `work.updated`, `agent.connected`, `consumer.deleted` or `request.refused`."""
    consumer: str = ""
    resource_id: str = ""
    consumer_id: str = ""
    source: str = ""
    version: int = 0
    user: str = ""
    """The authenticated user who asked for it; empty if the server does not authenticate."""
    address: str = ""
    """The address from which it was asked for."""
    operation_id: str = ""
    result: str = ""
    """Why a request was refused: `denied`, `conflict`, `not-found` or `invalid`."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What changed: names of paths, conditions and objects, never values."""

    @property
    def requester(self) -> str:
        """Who asked for it: the user, or without authentication the source or who the client of an operator says it is.

        Empty for what nobody asked for, such as a status. The source of an entry is that of the work: operators act on
        works of every source.
        """
        if self.user:
            return self.user
        name = self.detail.get("requested_by")
        if name or self.detail.get("action") or self.kind in _BY_OPERATORS:
            return f"{_UNAUTHENTICATED} ({name})" if name else _UNAUTHENTICATED
        return f"source {self.source}" if self.source and self.kind in _BY_SOURCES else ""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "HistoryEntry":
        """Parse an entry of the REST API."""
        detail = body.get("detail")
        return cls(
            id=str(body.get("id") or ""),
            time=str(body.get("time") or ""),
            kind=str(body.get("kind") or ""),
            consumer=str(body.get("consumer_name") or ""),
            resource_id=str(body.get("resource_id") or ""),
            consumer_id=str(body.get("consumer_id") or ""),
            source=str(body.get("source") or ""),
            version=int(body.get("version") or 0),
            user=str(body.get("user") or ""),
            address=str(body.get("address") or ""),
            operation_id=str(body.get("operation_id") or ""),
            result=str(body.get("result") or ""),
            detail=detail if isinstance(detail, Mapping) else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which entries to read."""

    since: datetime | str | None = None
    until: datetime | str | None = None
    kinds: str | Iterable[str] = ()
    newest_first: bool = False
    limit: int | None = None


async def read(rest: RestClient, path: str, *, doing: str, wanted: HistoryFilter) -> AsyncGenerator[HistoryEntry, None]:
    """Yield the entries under a path, page by page."""
    if wanted.limit is not None and wanted.limit < 1:
        raise Invalid(f"limit is {wanted.limit}", doing=doing, advice="use 1 or more, or leave it out")
    left = wanted.limit
    token = ""
    query = _query(wanted, doing=doing)
    for _ in range(_MOST_PAGES):
        size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
        try:
            page = await rest.page(
                path, kind="HistoryList", doing=doing, query={**query, "size": size, "continue": token}
            )
        except UnknownPath as error:
            raise Unsupported(
                "the server keeps no history: it is a Go Maestro, or a maestropy server before 0.3",
                doing=doing,
                operation_id=error.operation_id,
            ) from error
        items = page.get("items") or []
        for item in items:
            yield HistoryEntry.from_dict(item)
        left = None if left is None else left - len(items)
        token = str(page.get("continue") or "")
        if not token or not items or left == 0:
            return
    raise responses.incomplete(f"it has more than {_MOST_PAGES} pages", doing=doing)


def work_path(bundle_id: str) -> str:
    """Return the path of the history of a work."""
    segment = checks.path_segment(bundle_id, name="bundle_id", doing="read the history of a work")
    return f"/resource-bundles/{segment}/history"


def consumer_path(key: str) -> str:
    """Return the path of the history of a consumer, by its ID or name."""
    return f"/consumers/{checks.path_segment(key, name='key', doing='read the history of a consumer')}/history"


def _query(wanted: HistoryFilter, *, doing: str) -> dict[str, str | int]:
    names = [wanted.kinds] if isinstance(wanted.kinds, str) else list(wanted.kinds)
    return {
        "since": _moment(wanted.since, name="since", doing=doing),
        "until": _moment(wanted.until, name="until", doing=doing),
        "kind": ",".join(names),
        "order": "desc" if wanted.newest_first else "",
    }


def _moment(value: datetime | str | None, *, name: str, doing: str) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Invalid(f"{name} has no time zone", doing=doing, advice="use datetime.now(UTC) and the like")
        return timestamps.from_datetime(value).rfc3339()
    return value or ""
