"""What the turns of a work have in common: what they work with, how often they come, and what they say of themselves.

Nothing here decides anything about a work; `reconcile` takes the turns, `departure` and `strays` those of works that
leave and of records without one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from maestropy.agent.apply import Applier
from maestropy.agent.arrivals import Arrivals
from maestropy.agent.cleanup import Cleaner
from maestropy.agent.decide import executor, ownership
from maestropy.agent.observe import Observer, Place
from maestropy.agent.records import Records
from maestropy.agent.report import Reporter
from maestropy.agent.works import Works
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube.objects import Json
from maestropy.wire import instant

PENDING_SECONDS = 5.0
"""How soon to look again at what is on its way out; the watch mostly tells earlier."""


class NotYet(Exception):
    """Something did not work and should be tried again soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often a work is looked at when nothing happens."""

    resync: timedelta = timedelta(minutes=4)
    poll: timedelta = timedelta(seconds=10)
    """Where the watch does not stand."""
    executor: timedelta = timedelta(seconds=executor.RETRY_SECONDS)
    """How long the cluster's answer about what an executor may do is believed."""
    eviction_grace: timedelta = timedelta(minutes=60)
    arrival: timedelta = timedelta(seconds=10)
    """How long after the server's first answer the works it sends may take to arrive."""
    json_raw_max_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a turn works with."""

    works: Works
    records: Records
    observer: Observer
    applier: Applier
    cleaner: Cleaner
    reporter: Reporter
    arrivals: Arrivals
    is_crowded: Callable[[], bool]
    """Whether others have their turn, or wait for it."""
    answered_at: Callable[[], instant.Timestamp | None]
    """When the server first told, since the agent started, which works there are."""
    identity: ownership.Identity
    rhythm: Rhythm
    clock: clocks.Clock
    jitter: Callable[[], float]
    journal: Journal

    def now(self) -> instant.Timestamp:
        """Return the time."""
        return instant.from_datetime(self.clock.now())

    def resync_seconds(self) -> float:
        """Return how long a work may be left alone; not all for the same time."""
        return self.rhythm.resync.total_seconds() * (1 + 0.5 * self.jitter())

    async def watch(self, key: str, places: Sequence[Place], leaving: Sequence[ownership.AppliedResource]) -> None:
        """Be woken by what happens to these objects, and by the end of those."""
        ending = [await self.applier.place_of(each) for each in leaving]
        self.observer.track(key, [*places, *ending])

    def rest(self, key: str) -> None:
        """Nothing of this key's work is left to look at."""
        self.observer.track(key, ())
        self.arrivals.wait(key, frozenset())


def owner_of(record: Json, *, is_wanted: bool) -> ownership.Owner:
    """Return the reference to a record that objects should carry, or should lose."""
    metadata = record["metadata"]
    return ownership.Owner(name=metadata["name"], uid=metadata["uid"], is_wanted=is_wanted)
