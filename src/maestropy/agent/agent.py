"""The stages of one agent, put together: what wakes what, and in which order they start."""

import asyncio
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from maestropy.agent import crds, records
from maestropy.agent.apply import Applier
from maestropy.agent.arrivals import Arrivals
from maestropy.agent.cleanup import Cleaner
from maestropy.agent.decide import ownership
from maestropy.agent.inbox import Inbox, Ways
from maestropy.agent.link import Link
from maestropy.agent.observe import Observer, Wakes
from maestropy.agent.permission import Permissions
from maestropy.agent.reconcile import Reconciler
from maestropy.agent.repairs import Repairs
from maestropy.agent.report import Reporter
from maestropy.agent.turn import Parts, Rhythm
from maestropy.agent.works import Held, Works
from maestropy.aio import backoff, keyed
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.transport import base
from maestropy.wire import event, instant, resync


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an agent is given."""

    client: KubeClient
    medium: base.Medium
    journal: Journal
    jitter: Callable[[], float]
    clock: clocks.Clock
    new_id: Callable[[], str]
    meter: keyed.Meter | None = None
    """Who counts the turns."""
    resynced: Callable[[str, float], None] = lambda _source, _seconds: None
    """Called when a status resync that a source asked for is answered, and how long that took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """Who an agent is and how it works."""

    consumer: str
    client_id: str
    workers: int = 10
    rhythm: Rhythm = field(default_factory=Rhythm)
    install_crds: bool = True


class Agent:
    """One agent for one consumer on one cluster."""

    def __init__(self, given: Surroundings, character: Character) -> None:
        self._given = given
        self._character = character
        self._journal = given.journal
        self._identity = _identity(given.medium.address)
        self.works = Works()
        # Never slower than the healthy round, however often something failed.
        patience = keyed.Backoff(cap_seconds=character.rhythm.resync.total_seconds())
        self._queue: keyed.KeyedQueue[str] = keyed.KeyedQueue(
            self._turn, workers=character.workers, backoff=patience, on_error=self._on_error, meter=given.meter
        )
        self.link = Link(
            given.medium,
            journal=given.journal,
            received=self._take,
            greet=self._greeting,
            delays=self._delays,
            answered=self._answered,
        )
        self._answered_at: instant.Timestamp | None = None
        """When the server first told, in this run, which works there are; before that, its silence means nothing."""
        self._reporter = Reporter(
            self.link,
            client_id=character.client_id,
            clock=given.clock,
            new_id=given.new_id,
            gone=self._forget,
        )
        self._inbox = Inbox(
            self.works,
            consumer=character.consumer,
            journal=given.journal,
            ways=Ways(
                wake=self._wake,
                say_again=self._reporter.say_again,
                withdraw=self.link.withdraw,
                resynced=given.resynced,
            ),
            monotonic=given.clock.monotonic,
        )
        self._records = records.Records(
            given.client,
            identity=self._identity,
            wakes=records.Wakes(changed=self._queue.add, recovered=self._queue.retry),
            jitter=given.jitter,
            journal=given.journal,
        )
        self._reconciler: Reconciler | None = None

    @property
    def busy(self) -> int:
        """How much there is still to do: works that have their turn or wait for it, and lists that were put off."""
        return len(self._queue) + (self._reconciler.put_off if self._reconciler is not None else 0)

    @property
    def is_ready(self) -> bool:
        """Whether the agent knows its records and hears the server."""
        return self._records.synced.is_set() and self.link.is_connected

    async def run(self) -> None:
        """Work until cancelled."""
        if self._character.install_crds:
            await self._install_crds()
        async with asyncio.TaskGroup() as group:
            self._reconciler = self._build(group)
            group.create_task(self._records.run(), name="records")
            await self._records.synced.wait()
            self._journal.info(Phrase.CACHES_SYNCED)
            group.create_task(self._queue.run(), name="reconcile")
            group.create_task(self.link.run(), name="link")

    async def _install_crds(self) -> None:
        """Install what the records need, as soon as the API server lets us."""
        waits = self._delays()
        while True:
            try:
                await crds.install(self._given.client, journal=self._journal)
            except errors.Forbidden as error:
                # Somebody else installs it then; without it the records cannot be read, which is told as well.
                self._journal.warning("the AppliedManifestWork CRD may not be looked after", err=error)
            except errors.KubeError as error:
                self._journal.error("the AppliedManifestWork CRD could not be installed", err=error)
                await asyncio.sleep(next(waits))
                continue
            return

    def _build(self, group: asyncio.TaskGroup) -> Reconciler:
        given = self._given
        observer = Observer(
            given.client,
            wakes=Wakes(changed=self._queue.add, unwatched=self._look_soon),
            jitter=given.jitter,
            journal=self._journal,
            group=group,
            is_ours=functools.partial(ownership.has_owner_of, hub=self._identity.hub_hash),
        )
        rhythm, monotonic = self._character.rhythm, given.clock.monotonic
        discovery = Discovery(given.client, monotonic=monotonic)
        applier = Applier(
            given.client,
            discovery=discovery,
            observer=observer,
            permissions=Permissions(given.client, monotonic=monotonic, seconds=rhythm.executor.total_seconds()),
            repairs=Repairs(monotonic=monotonic, longest_seconds=rhythm.resync.total_seconds()),
            journal=self._journal,
        )

        def arrived(key: str) -> None:
            discovery.invalidate()
            # It waited for this, not for something that keeps failing: it is tried as if for the first time.
            self._queue.forget(key)
            self._queue.add(key)

        arrivals = Arrivals(given.client, arrived=arrived, jitter=given.jitter, journal=self._journal, group=group)
        parts = Parts(
            works=self.works,
            records=self._records,
            observer=observer,
            applier=applier,
            cleaner=Cleaner(applier, journal=self._journal),
            reporter=self._reporter,
            arrivals=arrivals,
            is_crowded=lambda: len(self._queue) > 1,
            answered_at=lambda: self._answered_at,
            identity=self._identity,
            rhythm=rhythm,
            clock=given.clock,
            jitter=given.jitter,
            journal=self._journal,
        )
        return Reconciler(parts)

    def _take(self, received: event.Event) -> None:
        self._inbox.take(received)

    def _wake(self, held: Held) -> None:
        # A new wish is tried as if nothing had failed before.
        self._queue.forget(self._key(held))
        self._queue.add(self._key(held))

    async def _turn(self, key: str) -> keyed.Again | None:
        assert self._reconciler is not None
        return await self._reconciler.turn(key)

    def _key(self, held: Held) -> str:
        return self._records.name_for(held.name)

    def _forget(self, held: Held) -> None:
        self.works.drop(held)
        if self.works.named(held.name) is None:
            self._queue.forget(self._key(held))

    def _look_soon(self, key: str) -> None:
        self._queue.add_later(key, self._character.rhythm.poll.total_seconds() * (1 + 0.9 * self._given.jitter()))

    def _answered(self) -> None:
        if self._answered_at is None:
            self._answered_at = self._now()
            for name in self._records:
                self._queue.add(name)

    def _on_error(self, key: str, error: Exception) -> None:
        # What the API server said is in the conditions already; here it only explains why there will be another turn.
        name = key.partition("-")[2]
        told = {Key.LOGGER: Logger.WORK_UNHANDLED, Key.KEY: name}
        if isinstance(error, errors.Conflict):
            self._journal.info(Phrase.SYNC_FAILED, {**told, Key.REASON: str(error)}, v=2)
        else:
            self._journal.error(Phrase.SYNC_FAILED, told, err=error)

    def _greeting(self) -> event.Event:
        return event.Event(
            id=self._given.new_id(),
            source=self._character.client_id,
            type=event.SPEC_RESYNC_REQUEST,
            time=self._now(),
            extensions={event.CLUSTER_NAME: self._character.consumer, event.ORIGINAL_SOURCE: ""},
            data=resync.encode_versions(self.works.versions()),
        )

    def _now(self) -> instant.Timestamp:
        return instant.from_datetime(self._given.clock.now())

    def _delays(self) -> Iterator[float]:
        return backoff.delays(base=0.5, factor=2, cap=15.0, jitter=self._given.jitter)


def _identity(address: str) -> ownership.Identity:
    hub_hash = ownership.hub_hash(address)
    return ownership.Identity(hub_hash=hub_hash, agent_id=hub_hash)
