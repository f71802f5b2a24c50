"""The stages of one instance, put together: what wakes what, what goes round, in which order they start and finish.

It opens no port and listens to no notification: `main` gives it those, and a simulation gives it others. It decides
nothing either.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from maestropy.aio import tasks
from maestropy.journal.fields import Key, Logger
from maestropy.server.absorb import Absorb
from maestropy.server.accept import Accept
from maestropy.server.decide import patience
from maestropy.server.deliver import Deliver
from maestropy.server.fanout import Fanout
from maestropy.server.membership import Membership
from maestropy.server.outside import Outside
from maestropy.server.rejoin import Rejoin
from maestropy.server.settings import ServerSettings
from maestropy.server.streams import Streams
from maestropy.server.sweep import Sweep, Thresholds
from maestropy.server.world import World

# A subscriber that has this much waiting does not read any more; it is let go, reconnects and resyncs.
_MAILBOX_ITEMS = 20_000
_MAILBOX_BYTES = 64 * 2**20
_GAUGES_EVERY = timedelta(seconds=30)
# Whoever changed a bundle wrote its own time, and a transaction becomes visible later than that.
_CLOCKS_DIFFER = timedelta(seconds=60)


class Stages:
    """Accept, deliver, absorb, fan out, and what looks after them."""

    def __init__(self, settings: ServerSettings, world: World, *, delays: Callable[[], Iterator[float]]) -> None:
        self._settings = settings
        self._world = world
        self._heard_until: datetime | None = None
        self._journal = world.journal.bind({Key.LOGGER: Logger.SERVER})
        self.agents = Streams(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        self.sources = Streams(max_items=_MAILBOX_ITEMS, max_bytes=_MAILBOX_BYTES)
        self.absorb = Absorb(world)
        self.deliver = Deliver(world, self.agents)
        self.rejoin = Rejoin(world, self.agents, self.deliver)
        self.outside = Outside.build(settings, world, absorb=self.absorb, delays=delays) if settings.uses_mqtt else None
        self.accept = Accept(world, cannot_carry=self.outside.publish.cannot_carry) if self.outside else Accept(world)
        self._tickets = self.outside.publish.tickets if self.outside else self.deliver.tickets
        self.fanout = Fanout(world, self.sources)
        heartbeat = timedelta(seconds=settings.health.heartbeat_interval)
        # Where instances divide the consumers among them, one that hears no agent must not keep its share.
        divides = self.outside is not None and settings.delivery.subscription_type == "broadcast"
        can_take_part = self.outside.broker.is_in_reach if self.outside and divides else lambda: True
        self.membership = Membership(world, heartbeat=heartbeat, can_take_part=can_take_part)
        delivery = settings.delivery
        thresholds = Thresholds(
            undelivered=timedelta(seconds=delivery.undelivered_threshold),
            stale_delete=timedelta(seconds=delivery.stale_delete_threshold),
            event_retention=delivery.event_retention,
        )
        # Through a broker every agent is in reach; otherwise those who are connected here.
        in_reach = (lambda: None) if self.outside else self.agents.topics
        self.sweep = Sweep(world, thresholds=thresholds, look_again=self.look_again, in_reach=in_reach)
        self._draining: list[asyncio.Task[None]] = []
        self._connected: asyncio.Task[None] | None = None

    @property
    def channels(self) -> Mapping[str, Callable[[str], None]]:
        """Whom the database's notifications wake, by channel."""
        return {"events": self._tickets.add, "status_events": self.fanout.tickets.add}

    def look_again(self) -> None:
        """Look at everything: notifications may have been missed."""
        self._tickets.add_everything()
        self.fanout.tickets.add_everything()

    def hear_on(self) -> None:
        """Note that until now no notification was missed."""
        self._heard_until = self._world.now()

    def hear_again(self) -> None:
        """Find what was missed since notifications stopped to come.

        What is still pending is found as always. But an event counts as delivered when one instance has told its
        agents; where agents of one consumer are connected to several, the others look for what changed meanwhile.
        """
        if self._heard_until is not None:
            self.deliver.look_since(self._heard_until - _CLOCKS_DIFFER)
        self.hear_on()
        self.look_again()

    def start(self, crew: tasks.Crew) -> None:
        """Begin to work on what comes in."""
        self._draining = [crew.start("accept", self.accept.run()), crew.start("absorb", self.absorb.run())]
        crew.start("fanout", self.fanout.run())
        if self._settings.serves_agents:
            crew.start("deliver", self.deliver.run())
            self.rejoin.start(crew)

    async def join(self, crew: tasks.Crew) -> None:
        """Take part among the instances, and go round from now on."""
        await self.membership.join()
        if self.outside is not None:
            self._connected = await self.outside.start(crew, on_error=self.reporter("ownership"))
        heartbeat = self._settings.health.heartbeat_interval
        sweep_seconds = self._settings.delivery.sweep_interval.total_seconds()
        for name, seconds, turn in (
            ("heartbeat", heartbeat, self.membership.beat),
            ("liveness", max(1.0, heartbeat / 3), self.membership.judge),
            ("sweep", sweep_seconds, self.sweep.look_again),
            ("purge", sweep_seconds, self.sweep.purge),
            ("record", 1.0, self.fanout.record),
            ("remind", patience.FIRST_WAIT.total_seconds(), self.sweep.remind),
            ("detect", self.sweep.detectors_every.total_seconds(), self.sweep.detect),
            ("gauges", _GAUGES_EVERY.total_seconds(), self.sweep.measure),
        ):
            crew.start(name, tasks.every(seconds, turn, on_error=self.reporter(name)))

    def let_go(self) -> None:
        """End every stream, after what is queued."""
        self.agents.close_all()
        self.sources.close_all()

    async def finish(self) -> None:
        """Finish what was taken; nothing new comes in any more."""
        if self.outside is not None and self._connected is not None:
            self.outside.broker.stop()
            await asyncio.wait([self._connected])
        self.accept.stop()
        self.absorb.stop()
        await asyncio.gather(*self._draining)
        await tasks.attempt(self.fanout.record, on_error=self.reporter("record"))

    def reporter(self, name: str) -> Callable[[Exception], None]:
        """Return what tells of a failed turn of a round."""

        def report(error: Exception) -> None:
            self._journal.error("a periodic task failed; it is tried again", {Key.ACTION: name}, err=error)

        return report
