"""Recognise the requests that nothing can be said against, which most are, without taking them apart.

One create, every stage proven, not one record that speaks of trouble, of another version or of a deletion: whatever
`wishes` and `judge` would work out, it is complete, and its times are those of its records. Anything else is theirs.
Pure: numbers of a table in, a key and nine times out.
"""

from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, repeat
from operator import sub
from typing import Final

from maestropy.trace.request.attach import Owners
from maestropy.trace.request.hits import STAGE_OF, Hits, What
from maestropy.trace.request.model import Course, Key, Records, Trace, Verdict

_PROOFS: Final = (
    (What.WISH,),
    (What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS),
    (What.RECEIVED_SPEC, What.STORED),
    (What.APPLIED,),
    (What.SENDING_STATUS,),
    (What.RECEIVED_STATUS, What.STATUS_TAKEN),
    (What.UPDATING, What.UPDATE_SENT),
    (What.BROADCAST,),
    (What.TO_CLIENTS,),
)
_ASIDE: Final = frozenset({What.NOT_OWNED, What.HANDLING, What.NO_CLIENTS, What.OTHER_INSTANCE, What.NOTIFIED})
_SPEC: Final = frozenset({What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS, What.RECEIVED_SPEC})
_PUBLISHING: Final = tuple(what for what, stage in STAGE_OF.items() if stage == 2)
_PLACE: Final = {int(what): stage for stage, whats in enumerate(_PROOFS) for what in whats}
_PLAIN: Final = frozenset(_PLACE) | _ASIDE
_STAGES: Final = tuple(_PLACE.get(what, len(_PROOFS)) for what in range(128))
"""The stage that a record proves, counted from 0; the last place is for those that prove none."""
_NEVER: Final = float("inf")


@dataclass(slots=True)
class Verdicts:
    """The plain requests of a table, as columns of numbers: they can be kept, and become traces when they are read."""

    resources: "array[int]" = field(default_factory=lambda: array("I"))
    wishes: "array[int]" = field(default_factory=lambda: array("I"))
    """Where the record of each arrival is in the table."""
    events: "array[int]" = field(default_factory=lambda: array("I"))
    """The event in the database, by its number."""
    moments: "array[float]" = field(default_factory=lambda: array("d"))
    """Nine for each."""

    def __len__(self) -> int:
        return len(self.resources)

    def traces(
        self, hits: Hits, *, course: Callable[[int, tuple[float, ...]], Records], wanted: Container[int] | None = None
    ) -> Iterator[Trace]:
        """Return those of the wanted resources; `course` tells of each how it went, when somebody asks."""
        word, stages = hits.word, len(_PROOFS)
        for at, (resource, wish, event) in enumerate(zip(self.resources, self.wishes, self.events, strict=True)):
            if wanted is not None and resource not in wanted:
                continue
            moments = tuple(self.moments[at * stages : (at + 1) * stages])
            ce, consumer, source, action, _, _ = hits.rest_of(wish)
            key = Key(
                resource=word(resource),
                work_name=word(hits.names[wish]),
                consumer=consumer,
                source=source,
                action=action,
                version=1,
                op=word(hits.operations[wish]),
                ce=ce,
                db_event=word(event),
                life=1,
            )
            yield Trace(
                key=key, verdict=Verdict.COMPLETE, course=Course(partial(course, resource, moments)), moments=moments,
                start=moments[0], end=max(moments),
            )  # fmt: skip


def found(hits: Hits, owned: Owners, *, skews: Sequence[float]) -> Verdicts:
    """Return the requests of a table that are plain."""
    # Records that were given to a resource by its name are seldom and old: all of its requests are looked at.
    odd = {*_with_odd_records(hits, owned.resources), *owned.merged}
    wishes: dict[int, int] = {}
    for index in hits.places(What.WISH):
        if wishes.setdefault(hits.resources[index], index) != index or not _is_named(hits, index):
            odd.add(hits.resources[index])
    events: dict[int, int] = {}
    for index in hits.places(*_PUBLISHING):
        resource, event = hits.resources[index], hits.events[index]
        if event and events.setdefault(resource, event) != event:
            odd.add(resource)
    verdicts = Verdicts()
    *stages, aside = _firsts(hits, owned.resources, skews=skews)
    for resource, wish in wishes.items():
        if resource in odd:
            continue
        moments = [first[resource] for first in stages]
        if moments[0] <= min(aside[resource], *moments) and _NEVER not in moments:
            verdicts.resources.append(resource)
            verdicts.wishes.append(wish)
            verdicts.events.append(events.get(resource, 0))
            verdicts.moments.extend(moments)
    return verdicts


def _firsts(hits: Hits, owners: Sequence[int], *, skews: Sequence[float]) -> list[list[float]]:
    """Return when each resource was first said to have passed each stage, and the first of what proves no stage."""
    times: Sequence[float] = hits.times
    if any(skews):
        times = array("d", map(sub, times, map(skews.__getitem__, hits.files)))
    firsts = [[_NEVER] * len(hits.ids) for _ in range(len(_PROOFS) + 1)]
    for what in set(hits.whats):
        first = firsts[_STAGES[what]]
        for run in hits.runs(What(what)):
            for number, at in zip(owners[run.start : run.stop], times[run.start : run.stop], strict=True):
                if at < first[number]:  # noqa: PLR1730 - half a million times; calling min takes three times as long
                    first[number] = at
    return firsts


def _is_named(hits: Hits, wish: int) -> bool:
    return hits.names[wish] not in (0, hits.resources[wish])


def _with_odd_records(hits: Hits, owners: "array[int]") -> set[int]:
    """Return the resources of all records that do not belong to a plain create."""
    odd = _Oddness(hits)
    found: set[int] = set()
    for what in set(hits.whats):
        for run in hits.runs(What(what)):
            part = slice(run.start, run.stop)
            rests, versions = hits.rests[part], hits.versions[part]
            # What was read at once mostly says the same, and arrays are compared faster than looked at.
            if rests == rests[:1] * len(run) and versions == versions[:1] * len(run):
                if odd[what, rests[0], versions[0]]:
                    found.update(owners[part])
            else:
                kinds = zip(repeat(what), rests, versions)
                found.update(compress(owners[part], map(odd.__getitem__, kinds)))
    return found


class _Oddness(dict[tuple[int, int, int], bool]):
    """Whether records of a kind, with rest and version, speak against a plain create; worked out once for each."""

    def __init__(self, hits: Hits) -> None:
        super().__init__()
        self._hits = hits

    def __missing__(self, kind: tuple[int, int, int]) -> bool:
        what, rest, version = kind
        _, consumer, _, action, is_deleting, _ = self._hits.rest_at(rest)
        if what == What.WISH:
            # Each is of its own kind, which need not be remembered.
            return action != "create" or is_deleting or not consumer or version > 1
        is_plain = what in _PLAIN and not is_deleting and version in (-1, 1) and action != "resync"
        if what in _SPEC:
            is_plain = is_plain and action == "create"
        elif what == What.BROADCAST:
            is_plain = is_plain and action != "delete"
        self[kind] = not is_plain
        return not is_plain
