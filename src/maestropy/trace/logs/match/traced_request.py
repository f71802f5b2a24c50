"""One spec request with its records. Values only: `spec_requests` fills them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.match.status_updates import StatusUpdateRecords

CHANGES: Final = ("create", "update")
"""The actions that make a version."""


@dataclass(slots=True, kw_only=True)
class TracedRequest:
    """One spec request and all its records."""

    resource: str
    action: str
    at: float
    incarnation: int = 1
    version: int = 0
    """The resource version it led to; 0 when no record shows it."""
    arrival: LogRecord | None = None
    """Its arrival, where the logs show it."""
    rejection: str = ""
    """Why the server rejected it."""
    is_surely_rejected: bool = False
    no_op: str = ""
    repeats: "TracedRequest | None" = None
    """The first of the requests just before it that wanted the same, though the server made a version of each."""
    records: list[LogRecord] = field(default_factory=list)
    status_updates: list[StatusUpdateRecords] = field(default_factory=list)
    next_request: "TracedRequest | None" = None
    """The next accepted request of the same incarnation."""
    received_at: float = math.inf
    """When an agent first received it."""
    _by_stage: dict[int, list[LogRecord]] = field(default_factory=dict)
    """Filled on first access, after all records were attributed."""

    @property
    def replaced_at(self) -> float:
        """When the next request of the resource came; infinite when none did."""
        return math.inf if self.next_request is None else self.next_request.at

    @property
    def is_change(self) -> bool:
        """Say whether it creates or updates."""
        return self.action in CHANGES

    def stage(self, number: int) -> list[LogRecord]:
        """Return its records of one stage in order of time."""
        if not self._by_stage:
            for record in self._all_records():
                self._by_stage.setdefault(record.stage, []).append(record)
            for records in self._by_stage.values():
                records.sort(key=lambda record: record.at)
        return self._by_stage.get(number, [])

    def _all_records(self) -> Iterator[LogRecord]:
        # One by one: mostly the first few answer, and an agent that retries for hours logs a hundred thousand.
        return chain(self.records, (record for update in self.status_updates for record in update.records))

    def first(self, name: str) -> str:
        """Return the first value that any of its records has for a field."""
        own = [self.arrival] if self.arrival else []
        for record in chain(own, self._all_records()):
            value = getattr(record, name)
            if value and (name != "name" or value != self.resource):
                return str(value)
        return ""
