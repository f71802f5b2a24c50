"""Recognise the requests that nothing can be said against, which most are, without taking them apart.

One create, every stage proven, not one record that speaks of trouble, of another version or of a deletion: whatever
`wishes` and `judge` would work out, it is complete, and its times are those of its records. Anything else is theirs.
Pure: numbers of a table in, a key and nine times out.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Final

from pymaestro.trace.request.attach import Grouping
from pymaestro.trace.request.hits import STAGE_OF, Hits, What
from pymaestro.trace.request.model import Course, Key, Records, Trace, Verdict

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


class Plain:
    """Knows of all resources of a table which may be plain, and judges those that are."""

    def __init__(self, hits: Hits, grouping: Grouping, *, skews: Sequence[float]) -> None:
        self._hits = hits
        self._skews = skews if any(skews) else ()
        # Records that were given to a resource by its name are seldom and old: all of its requests are looked at.
        self._odd = {*_with_odd_records(hits), *grouping.merged}
        self._wishes: dict[int, int] = {}
        for index in hits.places(What.WISH):
            if self._wishes.setdefault(hits.resources[index], index) != index:
                self._odd.add(hits.resources[index])
        self._events: dict[int, int] = {}
        for index in hits.places(*_PUBLISHING):
            resource, event = hits.resources[index], hits.events[index]
            if event and self._events.setdefault(resource, event) != event:
                self._odd.add(resource)

    def judged(self, resource: int, places: Sequence[int], *, course: Callable[[], Records]) -> Trace | None:
        """Return the verdict on the one plain request of a resource; nothing when it is not plain."""
        wish = self._wishes.get(resource)
        if wish is None or resource in self._odd or len(places) < len(_PROOFS):
            return None
        hits, pick = self._hits, itemgetter(*places)
        whats, times = pick(hits.whats), pick(hits.times)
        if self._skews:
            skews = self._skews
            times = tuple(at - skews[file] for at, file in zip(times, pick(hits.files), strict=True))
        moments = _moments(whats, times)
        if moments[0] > min(times) or moments[-1] == _NEVER or _NEVER in moments or not _PLAIN.issuperset(whats):
            return None
        key = self._key(resource, wish)
        if key is None:
            return None
        return Trace(
            key=key, verdict=Verdict.COMPLETE, course=Course(course), moments=moments, start=moments[0],
            end=max(moments),
        )  # fmt: skip

    def _key(self, resource: int, wish: int) -> Key | None:
        hits = self._hits
        if not hits.names[wish] or hits.names[wish] == resource:
            return None
        ce, consumer, source, action, _, _ = hits.rest_of(wish)
        return Key(
            resource=hits.word(resource),
            work_name=hits.word(hits.names[wish]),
            consumer=consumer,
            source=source,
            action=action,
            version=1,
            op=hits.word(hits.operations[wish]),
            ce=ce,
            db_event=hits.word(self._events.get(resource, 0)),
            life=1,
        )


def _with_odd_records(hits: Hits) -> set[int]:
    """Return the resources of all records that do not belong to a plain create."""
    odd = _Oddness(hits)
    kinds = zip(hits.whats, hits.rests, hits.versions, strict=True)
    return set(compress(hits.resources, map(odd.__getitem__, kinds)))


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


def _moments(whats: Sequence[int], times: Sequence[float]) -> tuple[float, ...]:
    """Return the first time of each stage, infinity for those that were never reached."""
    found = [_NEVER] * (len(_PROOFS) + 1)
    for what, at in zip(whats, times, strict=True):
        stage = _STAGES[what]
        if at < found[stage]:  # noqa: PLR1730 - half a million times; calling min takes three times as long
            found[stage] = at
    return tuple(found[:-1])
