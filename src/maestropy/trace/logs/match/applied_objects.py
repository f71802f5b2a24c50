"""Attribute records of agents that name an object, but no work, to the work that has the object.

A record is tied to a work by the object: a request whose manifests are logged contains it, or an earlier record of the
same object names the work. An error is tied by its text, which the agent repeats with the name of the work when the
reconciliation ends. Otherwise it is attributed only if one single work was being handled at that time. Everything else
stays without a work: several workers of an agent write at the same time, so the record before proves nothing. Pure.
"""

from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from maestropy.trace.logs.log_records import RecordKind, RecordTable, objects_of
from maestropy.trace.logs.objects import identity

KINDS: Final = frozenset(
    {RecordKind.APPLIED, RecordKind.DELETING, RecordKind.REMOVED, RecordKind.APPLY_FAILED, RecordKind.PENDING_DELETION}
)
ORDERED_KINDS: Final = (*KINDS, RecordKind.RECEIVED_SPEC, RecordKind.STORED, RecordKind.SENDING_STATUS)
_REQUESTS: Final = (RecordKind.REQUEST_RECEIVED, RecordKind.SENDING_SPEC, RecordKind.RECEIVED_SPEC)
_MOST_WAITING: Final = 64


def attribute(records: RecordTable, in_order: Iterable[int], resources: "array[int]") -> None:
    """Set the resources of agent records that have none; `in_order` goes through each file from start to end."""
    agents: dict[int, _Agent] = {}
    declared = _declared_objects(records)
    for index in in_order:
        file = records.files[index]
        agent = agents.get(file) or agents.setdefault(file, _Agent(records, resources, declared))
        agent.take(index)


def _declared_objects(records: RecordTable) -> dict[str, set[int]]:
    """Return the resources whose logged manifests contain each object."""
    declared: dict[str, set[int]] = defaultdict(set)
    for index in records.indices(*_REQUESTS):
        if records.resources[index]:
            for name in objects_of(records.details_of(index)[5]):
                declared[name].add(records.resources[index])
    return declared


class _Agent:
    """What one agent's log has shown so far."""

    def __init__(self, records: RecordTable, resources: "array[int]", declared: Mapping[str, set[int]]) -> None:
        self._records = records
        self._resources = resources
        self._declared = declared
        self._applied: dict[str, set[int]] = defaultdict(set)
        """The works that were seen to apply each object."""
        self._received: set[int] = set()
        """Works that this agent received: an object that works of several clusters have is of one of these here."""
        self._handled: set[int] = set()
        """Works that were received and have not been reported on since."""
        self._deleted: set[int] = set()
        """Works whose objects are being deleted."""
        self._errors: deque[tuple[int, str]] = deque(maxlen=_MOST_WAITING)

    def take(self, index: int) -> None:
        """Take the next record, and attribute it if it has no work."""
        kind, work = self._records.kinds[index], self._resources[index]
        if kind in (RecordKind.RECEIVED_SPEC, RecordKind.STORED):
            self._received.add(work)
            self._handled.add(work)
        elif kind == RecordKind.SENDING_STATUS:
            self._handled.discard(work)
        elif work:
            self._learn(index, work)
        else:
            self._attribute(index)

    def _learn(self, index: int, work: int) -> None:
        kind, detail = self._records.kinds[index], self._records.details_of(index)[5]
        if kind == RecordKind.APPLY_FAILED:
            for waiting in [waiting for waiting in self._errors if waiting[1] in detail]:
                self._resources[waiting[0]] = work
                self._applied[identity(self._records.details_of(waiting[0])[5])].add(work)
                self._errors.remove(waiting)
        elif kind == RecordKind.DELETING:
            self._deleted.add(work)
        name = identity(detail)
        if name:
            self._applied[name].add(work)

    def _attribute(self, index: int) -> None:
        kind, detail = self._records.kinds[index], self._records.details_of(index)[5]
        if kind == RecordKind.PENDING_DELETION:
            self._resources[index] = _only(self._deleted)
            return
        name = identity(detail)
        if kind == RecordKind.APPLY_FAILED:
            # The agent retries for hours: the work that is being handled now is not the one that fails.
            self._resources[index] = _only(self._candidates(name))
            if self._resources[index]:
                return
            _, _, error = detail.partition(": ")
            self._errors.append(
                (index, error.partition(": ")[2] if error.startswith("Failed to ") else error or detail)
            )
            return
        work = self._resources[index] = self._owner(name)
        if work and name:
            self._applied[name].add(work)
        if kind == RecordKind.REMOVED:
            self._deleted.discard(work)

    def _owner(self, name: str) -> int:
        """Return the only work that an object can belong to; 0 where there is none, or a rival."""
        candidates = self._candidates(name)
        has_rivals = bool(candidates) or self._records.is_partial
        return _only(candidates) or _only(candidates & self._handled) or (0 if has_rivals else _only(self._handled))

    def _candidates(self, name: str) -> set[int]:
        works = (self._declared.get(name) or self._applied.get(name) or set()) if name else set()
        return works & self._received or works


def _only(works: set[int]) -> int:
    return next(iter(works)) if len(works) == 1 else 0
