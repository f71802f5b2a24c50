"""Recognise requests that are certainly complete, without a full judgement. Most requests are.

A request qualifies if it is the only create of its resource, every stage is proven, and no record shows an error,
another version or a deletion. `spec_requests` and `judge` handle all others. Pure: columns of a record table in, keys
and nine times out.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, repeat
from operator import sub
from typing import Final

from maestropy.trace.logs import evidence
from maestropy.trace.logs.judge.apply_outcome import ERROR_FOLLOWS
from maestropy.trace.logs.judge.subscribers import BREAKS_WITHIN
from maestropy.trace.logs.log_records import (
    APPLIED_AND_GONE,
    NOT_APPLIED,
    NOT_AVAILABLE,
    STAGE_OF,
    RecordKind,
    RecordTable,
)
from maestropy.trace.logs.match.attribution import Attribution
from maestropy.trace.logs.model import LazyDetails, RequestKey, RequestVerdict, Trace, TraceDetails
from maestropy.trace.stages import Stage

_PROOFS: Final = tuple(
    tuple(kind for kind in sorted(evidence.DONE[stage]) if evidence.EVIDENCE[kind].is_of_create) for stage in Stage
)
_NEUTRAL: Final = frozenset(
    kind for kind, shown in evidence.EVIDENCE.items() if shown.shows is evidence.Shows.CONTEXT and shown.is_of_create
)
_SPEC: Final = frozenset(
    {RecordKind.PUBLISHING, RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS, RecordKind.RECEIVED_SPEC}
)
_PUBLISHING: Final = tuple(kind for kind, stage in STAGE_OF.items() if stage == 2)
_STAGE_INDEX: Final = {int(kind): stage for stage, kinds in enumerate(_PROOFS) for kind in kinds}
_PLAIN: Final = frozenset(_STAGE_INDEX) | _NEUTRAL
_STAGES: Final = tuple(_STAGE_INDEX.get(kind, len(_PROOFS)) for kind in range(128))
"""The stage that a record kind proves, counted from 0; the last index is for kinds that prove none."""
_NEVER: Final = float("inf")
_SLOW: Final = 5.0
"""Requests that took longer are judged in full, which says why: a restart, a resync."""
_NOTABLE_STATUSES: Final = (NOT_APPLIED, NOT_AVAILABLE, APPLIED_AND_GONE)


@dataclass(slots=True)
class CompleteRequests:
    """The plain requests of a table, as columns of numbers: they can be kept, and become traces when they are read."""

    resources: "array[int]" = field(default_factory=lambda: array("I"))
    requests: "array[int]" = field(default_factory=lambda: array("I"))
    """Where the record of each arrival is in the table."""
    events: "array[int]" = field(default_factory=lambda: array("I"))
    """The event in the database, by its number."""
    moments: "array[float]" = field(default_factory=lambda: array("d"))
    """Nine for each."""

    def __len__(self) -> int:
        return len(self.resources)

    def traces(
        self,
        records: RecordTable,
        *,
        details: Callable[[int, tuple[float, ...]], TraceDetails],
        is_kept: bool = True,
        wanted: Container[int] | None = None,
    ) -> Iterator[Trace]:
        """Return the requests of the `wanted` resources.

        `details` computes the stages of one on demand: once if they are kept, else each time.
        """
        text, stages = records.text, len(_PROOFS)
        for at, (resource, request, event) in enumerate(zip(self.resources, self.requests, self.events, strict=True)):
            if wanted is not None and resource not in wanted:
                continue
            moments = tuple(self.moments[at * stages : (at + 1) * stages])
            cloudevent_id, consumer, source, action, _, _ = records.details_of(request)
            key = RequestKey(
                resource=text(resource),
                work_name=text(records.names[request]),
                consumer=consumer,
                source=source,
                action=action,
                version=1,
                op_id=text(records.operations[request]),
                cloudevent_id=cloudevent_id,
                db_event=text(event),
                incarnation=1,
            )
            lazy = LazyDetails(partial(details, resource, moments), is_kept=is_kept)
            yield Trace(
                key=key, verdict=RequestVerdict.COMPLETE, details=lazy, moments=moments, start=moments[0],
                end=max(moments),
            )  # fmt: skip


def find_complete(
    records: RecordTable, owned: Attribution, *, skews: Sequence[float], pods: Sequence[str]
) -> CompleteRequests:
    """Return the requests of a table that are plain; `pods` are those of its files."""
    # Records attributed by work name are rare and old: all requests of such a resource are judged in full.
    unusual = {*_with_unusual_records(records, owned.resources), *owned.merged, *_received_twice(records, pods)}
    requests: dict[int, int] = {}
    for index in records.indices(RecordKind.REQUEST_RECEIVED):
        if requests.setdefault(records.resources[index], index) != index or not _is_named(records, index):
            unusual.add(records.resources[index])
    unusual |= _received_elsewhere(records, requests)
    events: dict[int, int] = {}
    for index in records.indices(*_PUBLISHING):
        resource, event = records.resources[index], records.events[index]
        if event and events.setdefault(resource, event) != event:
            unusual.add(resource)
    verdicts = CompleteRequests()
    broken = sorted(records.times[index] for index in records.indices(RecordKind.STREAM_BROKEN))
    unclear = sorted(
        records.times[index] - skews[records.files[index]]
        for index in owned.untied
        if records.kinds[index] == RecordKind.APPLY_FAILED
    )
    *stages, aside = _first_times(records, owned.resources, skews=skews)
    for resource, request in requests.items():
        if resource in unusual:
            continue
        moments = [first[resource] for first in stages]
        if _NEVER in moments or max(moments) - moments[0] > _SLOW:
            continue
        sent, told = moments[Stage.AGENT_PUBLISHES_STATUS - 1], moments[-1]
        received = moments[Stage.AGENT_RECEIVES - 1]
        if _has_any(broken, told, told + BREAKS_WITHIN) or _has_any(unclear, received, sent + ERROR_FOLLOWS):
            continue
        if moments[0] <= min(aside[resource], *moments):
            verdicts.resources.append(resource)
            verdicts.requests.append(request)
            verdicts.events.append(events.get(resource, 0))
            verdicts.moments.extend(moments)
    return verdicts


def _has_any(times: Sequence[float], since: float, until: float) -> bool:
    """Say whether any of some times, which are in order, is between two moments."""
    after = bisect_left(times, since)
    return after < len(times) and times[after] <= until


def _first_times(records: RecordTable, owners: Sequence[int], *, skews: Sequence[float]) -> list[list[float]]:
    """Return when each resource first passed each stage, and its first record that proves no stage."""
    times: Sequence[float] = records.times
    if any(skews):
        times = array("d", map(sub, times, map(skews.__getitem__, records.files)))
    firsts = [[_NEVER] * len(records.ids) for _ in range(len(_PROOFS) + 1)]
    for kind in set(records.kinds):
        first = firsts[_STAGES[kind]]
        for run in records.runs(RecordKind(kind)):
            for number, at in zip(owners[run.start : run.stop], times[run.start : run.stop], strict=True):
                if at < first[number]:  # noqa: PLR1730 - half a million times; calling min takes three times as long
                    first[number] = at
    return firsts


def _received_twice(records: RecordTable, pods: Sequence[str]) -> set[int]:
    """Return the resources whose requests agents of several pods received."""
    files = {
        file for run in records.runs(RecordKind.RECEIVED_SPEC) for file in set(records.files[run.start : run.stop])
    }
    if len({pods[file] for file in files}) < 2:
        return set()
    first: dict[int, str] = {}
    return {
        records.resources[index]
        for index in records.indices(RecordKind.RECEIVED_SPEC)
        if first.setdefault(records.resources[index], pods[records.files[index]]) != pods[records.files[index]]
    }


def _received_elsewhere(records: RecordTable, requests: Mapping[int, int]) -> set[int]:
    """Return the resources that an agent of another consumer received."""
    if len({consumer for _, consumer, _, _, _, _ in records.all_details() if consumer}) < 2:
        return set()
    elsewhere: set[int] = set()
    for index in records.indices(RecordKind.RECEIVED_SPEC):
        resource, consumer = records.resources[index], records.details_of(index)[1]
        if consumer and resource in requests and consumer != records.details_of(requests[resource])[1]:
            elsewhere.add(resource)
    return elsewhere


def _is_named(records: RecordTable, request: int) -> bool:
    return records.names[request] not in (0, records.resources[request])


def _with_unusual_records(records: RecordTable, owners: "array[int]") -> set[int]:
    """Return the resources of all records that do not belong to a plain create."""
    unusual = _IsUnusual(records)
    resources: set[int] = set()
    for kind in set(records.kinds):
        for run in records.runs(RecordKind(kind)):
            part = slice(run.start, run.stop)
            details, versions = records.details[part], records.versions[part]
            # Records read together mostly have equal details, and comparing arrays is faster than iterating over them.
            if details == details[:1] * len(run) and versions == versions[:1] * len(run):
                if unusual[kind, details[0], versions[0]]:
                    resources.update(owners[part])
            else:
                kinds = zip(repeat(kind), details, versions)
                resources.update(compress(owners[part], map(unusual.__getitem__, kinds)))
    return resources


class _IsUnusual(dict[tuple[int, int, int], bool]):
    """Whether records with this kind, these details and this version rule out a plain create; computed once per key."""

    def __init__(self, records: RecordTable) -> None:
        super().__init__()
        self._records = records

    def __missing__(self, key: tuple[int, int, int]) -> bool:
        kind, details, version = key
        _, consumer, _, action, is_deleting, detail = self._records.details_at(details)
        if kind == RecordKind.REQUEST_RECEIVED:
            # Each is of its own key, which need not be remembered.
            return action != "create" or is_deleting or not consumer or version > 1
        is_plain = kind in _PLAIN and not is_deleting and version in (-1, 1) and action != "resync"
        is_plain = is_plain and not detail.startswith(_NOTABLE_STATUSES)
        if kind in _SPEC:
            is_plain = is_plain and action == "create"
        elif kind == RecordKind.BROADCAST:
            is_plain = is_plain and action != "delete"
        self[key] = not is_plain
        return not is_plain
