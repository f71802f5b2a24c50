"""Find servers whose clocks differ from each other's: by what one did only after another, and by what all do at once.

A server publishes what another has received, and broadcasts what another has stored. If the times show it the other way
round, their clocks differ. By how much, the messages show that reach all servers at once: statuses of a topic that all
subscribe to, and notifications of the database. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from maestropy.trace.logs.log_records import RecordKind, RecordTable
from maestropy.trace.logs.read.log_writers import LogWriter

_SURE: Final = 0.25
"""Seconds by which the order of two servers' records must be impossible: clocks that are synchronised differ less."""
_AGREE: Final = 0.2
_SAMPLE: Final = 500
"""So many statuses show the order of the servers' broadcasts; each of a hundred thousand would show the same."""
_Order = dict[tuple[str, str], float]
"""For two pods, the shortest time that a message seems to have taken from the one to the other."""


def offsets(records: RecordTable, writers: Sequence[LogWriter]) -> list[float]:
    """Return by how many seconds the clock of each server's log is ahead of that of most servers; else 0."""
    pods = list(dict.fromkeys(writer.pod for writer in writers if writer.role == "server"))
    if len(pods) < 2:
        return [0.0] * len(writers)
    pod_of = [writer.pod if writer.role == "server" else "" for writer in writers]
    order = _order(records, pod_of)
    if not any(took < -_SURE for took in order.values()):
        return [0.0] * len(writers)
    moments = _moments_at_once(records, pod_of)
    ahead = {pod: _ahead(pods[0], pod, order, moments) for pod in pods}
    usual = max(
        ahead.values(), key=lambda one: (sum(abs(one - other) <= _AGREE for other in ahead.values()), -abs(one))
    )
    return [ahead[pod] - usual if pod else 0.0 for pod in pod_of]


def nearest_to_agents(known: Sequence[float], measured: Sequence[float], writers: Sequence[LogWriter]) -> list[float]:
    """Return the offsets of the servers' clocks, counted from one that the agents' clocks agree with best.

    `known` are those of the servers, `measured` those of the agents beside them. Where servers disagree, nothing but
    the agents shows which of them is right.
    """
    servers = [known[file] for file, writer in enumerate(writers) if writer.role == "server"]
    agents = [measured[file] for file, writer in enumerate(writers) if writer.role == "agent"]
    base = max(servers, key=lambda one: (sum(abs(one - other) <= _AGREE for other in (*servers, *agents)), -abs(one)))
    return [offset - base if writer.role == "server" else 0.0 for offset, writer in zip(known, writers, strict=True)]


def _ahead(first: str, pod: str, order: _Order, moments: Mapping[str, Mapping[object, float]]) -> float:
    """Return by how much the clock of a pod is ahead of the first one's; 0 if their records are in a possible order."""
    most, least = order.get((first, pod), 0.0), -order.get((pod, first), 0.0)
    common = moments[first].keys() & moments[pod].keys() if most < -_SURE or least > _SURE else set()
    if pod == first or not common:
        return 0.0
    bound = most if most < -_SURE else least
    apart = median(moments[pod][one] - moments[first][one] for one in common)
    # Records that do not belong together may be out of order too; then the rest contradicts them.
    return apart if apart * bound > 0 and abs(apart) >= abs(bound) - _SURE else 0.0


def _order(records: RecordTable, pod_of: Sequence[str]) -> _Order:
    order: _Order = {}
    for before, after in (*_published(records), *_broadcast(records)):
        pods = pod_of[records.files[before]], pod_of[records.files[after]]
        took = records.times[after] - records.times[before]
        if all(pods) and pods[0] != pods[1] and took < order.get(pods, 0.0):
            order[pods] = took
    return order


def _published(records: RecordTable) -> Iterator[tuple[int, int]]:
    """Return the arrival of each resource that has one only, and the record that it was published."""
    arrivals = _only(records, RecordKind.REQUEST_RECEIVED)
    publishings = _only(records, RecordKind.PUBLISHING)
    return ((arrivals[resource], publishings[resource]) for resource in arrivals.keys() & publishings.keys())


def _broadcast(records: RecordTable) -> Iterator[tuple[int, int]]:
    """Return the only stored status of each resource, and the records that it was broadcast."""
    stored, resources = _only(records, RecordKind.UPDATE_SENT), records.resources
    sample = frozenset(list(stored)[:: 1 + len(stored) // _SAMPLE])
    broadcasts: dict[int, list[int]] = defaultdict(list)
    for index in records.indices(RecordKind.BROADCAST):
        if resources[index] in sample:
            broadcasts[resources[index]].append(index)
    for resource, indices in broadcasts.items():
        if len({records.events[index] for index in indices}) == 1:
            yield from ((stored[resource], index) for index in indices)


def _only(records: RecordTable, kind: RecordKind) -> dict[int, int]:
    """Return the record of each resource that has one record of a kind."""
    found: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for run in records.runs(kind):
        resources = records.resources[run.start : run.stop]
        counts.update(resources)
        found.update(zip(resources, run, strict=True))
    return {resource: index for resource, index in found.items() if resource and counts[resource] == 1}


def _moments_at_once(records: RecordTable, pod_of: Sequence[str]) -> Mapping[str, Mapping[object, float]]:
    """Return, for each pod, when it first had each message that reaches all servers at once."""
    moments: dict[str, dict[object, float]] = defaultdict(dict)
    for index, key in (*_keys(records, RecordKind.BROADCAST), *_keys(records, RecordKind.RECEIVED_STATUS)):
        moments[pod_of[records.files[index]]].setdefault(key, records.times[index])
    return moments


def _keys(records: RecordTable, kind: RecordKind) -> Iterable[tuple[int, object]]:
    column = records.events if kind is RecordKind.BROADCAST else records.sequences
    return ((index, (kind, column[index])) for index in records.indices(kind) if column[index])
