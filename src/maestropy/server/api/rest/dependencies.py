"""The dependencies of the REST API."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from maestropy.aio import clock as clocks
from maestropy.journal import Journal
from maestropy.server.api.rest.hosts import HostRules
from maestropy.server.auth.roles import RestCaller
from maestropy.server.controllers.operator_actions import OperatorActions
from maestropy.server.decide.rejection import Rejection
from maestropy.server.telemetry.request_spans import RequestSpans
from maestropy.store import rows
from maestropy.store.postgres import pool
from maestropy.wire import positions

_Result = TypeVar("_Result")


class RequestMetrics(Protocol):
    """Metrics of finished requests."""

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        """Count one request; `path` has `-` for IDs, so that there are few values."""


class DeleteResource(Protocol):
    """Marks a resource for deletion; no effect if it is absent or deleting."""

    async def __call__(
        self,
        resource_id: str,
        operation_id: str,
        *,
        sources: frozenset[str] | None = None,
        requester: rows.Requester = rows.UNKNOWN_REQUESTER,
    ) -> Rejection | None:
        """Return why the resource stays: it belongs to none of `sources`."""


class ListReads(Protocol):
    """Reads lists from a read replica or from the primary."""

    async def read(
        self,
        asked: positions.Position | None,
        attempt: Callable[[pool.Snapshots], Awaitable[_Result]],
        *,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> _Result:
        """Return what `attempt` reads; it may be called twice while `may_repeat`."""

    async def position_after_write(self) -> str:
        """Return the position that a write of this moment has; empty if it is unknown."""


class PrimaryReads:
    """Reads lists from the primary: there is no replica, and no position to tell."""

    def __init__(self, database: pool.Database) -> None:
        self._database = database

    async def read(
        self,
        asked: positions.Position | None,
        attempt: Callable[[pool.Snapshots], Awaitable[_Result]],
        *,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> _Result:
        """Return what `attempt` reads."""
        del asked, may_repeat
        return await attempt(self._database)

    async def position_after_write(self) -> str:
        """Return nothing."""
        return ""


class HistoryEntries(Protocol):
    """Records what belongs to no transaction."""

    @property
    def is_enabled(self) -> bool:
        """Whether anything is recorded."""

    def add(self, entry: rows.HistoryEntry) -> None:
        """Queue an entry."""


class NoHistory:
    """Records nothing."""

    is_enabled = False

    def add(self, entry: rows.HistoryEntry) -> None:
        """Leave the entry out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestDependencies:
    """Database, log, metrics, clock and callbacks of the REST API."""

    database: pool.Database
    journal: Journal
    metrics: RequestMetrics
    mark_deleting: DeleteResource
    clock: clocks.Clock
    new_id: Callable[[], str]
    actions: OperatorActions
    authenticate: Callable[[str | None], Awaitable[RestCaller]] | None = None
    """Check the `Authorization` header; raises `Unverified`. None: no authentication, as in the Go server."""

    request_resync: Callable[[str], None] = lambda _consumer: None
    """Called when a consumer with held works was created or adopted, so that its agent learns it at once."""

    replica: ListReads | None = None
    """Where lists are read from; None: from the primary."""

    history: HistoryEntries = field(default_factory=NoHistory)
    """Where refused requests are recorded."""

    spans: RequestSpans = field(default_factory=RequestSpans)

    hosts: HostRules = field(default_factory=HostRules)
    """The names in the `Host` header that are served."""

    allowed_origins: tuple[str, ...] = ()
    """The origins of web pages that may use the API."""

    max_streams: int = 8
    """How many long lists may be sent at once; each holds a connection, so it must be below the pool size."""

    @property
    def reads(self) -> ListReads:
        """What reads lists."""
        return self.replica or PrimaryReads(self.database)
