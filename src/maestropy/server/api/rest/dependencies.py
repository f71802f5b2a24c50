"""The dependencies of the REST API."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from maestropy.aio import clock as clocks
from maestropy.journal import Journal
from maestropy.server.api.rest.hosts import HostRules
from maestropy.server.auth.roles import RestCaller
from maestropy.server.decide.rejection import Rejection
from maestropy.store import pool


class RequestMetrics(Protocol):
    """Metrics of finished requests."""

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        """Count one request; `path` has `-` for IDs, so that there are few values."""


class DeleteResource(Protocol):
    """Marks a resource for deletion; no effect if it is absent or deleting."""

    async def __call__(
        self, resource_id: str, operation_id: str, *, sources: frozenset[str] | None = None
    ) -> Rejection | None:
        """Return why the resource stays: it belongs to none of `sources`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestDependencies:
    """Database, log, metrics, clock and callbacks of the REST API."""

    database: pool.Database
    journal: Journal
    metrics: RequestMetrics
    mark_deleting: DeleteResource
    clock: clocks.Clock
    new_id: Callable[[], str]
    authenticate: Callable[[str | None], Awaitable[RestCaller]] | None = None
    """Check the `Authorization` header; raises `Unverified`. None: no authentication, as in the Go server."""

    request_resync: Callable[[str], None] = lambda _consumer: None
    """Called when a consumer with held works was created or adopted, so that its agent learns it at once."""

    hosts: HostRules = field(default_factory=HostRules)
    """The names in the `Host` header that are served."""

    allowed_origins: tuple[str, ...] = ()
    """The origins of web pages that may use the API."""

    max_streams: int = 8
    """How many long lists may be sent at once; each holds a connection, so it must be below the pool size."""
