"""What the REST API is given: everything that reads a clock, makes an id, or belongs to another stage."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from maestropy.aio import clock as clocks
from maestropy.journal import Journal
from maestropy.store import pool


class RequestMetrics(Protocol):
    """Where finished requests are counted."""

    def request_finished(self, *, method: str, path: str, code: int, seconds: float) -> None:
        """Count one request; `path` has `-` in the place of ids, so there are few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestDependencies:
    """The parts of the server that the REST API needs."""

    database: pool.Database
    journal: Journal
    metrics: RequestMetrics
    mark_deleting: Callable[[str, str], Awaitable[None]]
    """Ask for the deletion of a bundle, by its id and the operation id; does nothing when it is gone or going."""

    clock: clocks.Clock
    new_id: Callable[[], str]
    authenticate: Callable[[str | None], Awaitable[object]] | None = None
    """Check the `Authorization` header, or raise `Unverified`. None lets everybody in, as the reference does."""

    max_streams: int = 8
    """How many long lists may be sent at once; each holds a connection, so it must stay below the pool's size."""
