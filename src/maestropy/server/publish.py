"""Stage: pending events become messages at an outside broker.

The broker reaches every agent, so any instance may send any event. Instances share the work by taking events in the
database: rows that another one has are skipped, and the locks are those under which a Go server sends, so both kinds
can run side by side. An event counts as delivered when the broker has acknowledged the message; the agent that was away
then asks when it comes back.
"""

import asyncio
import enum
from collections.abc import Mapping, Sequence

from maestropy.journal.fields import Deliver as Phrase
from maestropy.journal.fields import Key, Logger
from maestropy.server import describe
from maestropy.server.backlog import Backlog
from maestropy.server.decide import carriage, delivery, patience, turns
from maestropy.server.metrics import EventLabels
from maestropy.server.world import World
from maestropy.store import events, resources, rows
from maestropy.transport import base, mqtt
from maestropy.transport.mqtt_endpoint import Endpoint
from maestropy.wire import errors as wire_errors
from maestropy.wire import event, record, topics
from maestropy.wire import mqtt as binding

_ROWS_AT_ONCE = 64
_PER_CONSUMER = 256
_SCAN_LIMIT = 5000
# A broker that refuses a topic does so until somebody changes its rules.
_REST_SECONDS = 30.0


class Outcome(enum.Enum):
    """What became of one message."""

    SENT = enum.auto()
    UNHEARD = enum.auto()
    """The broker took it, and nobody has subscribed to it; who comes asks."""
    NEVER = enum.auto()
    """It cannot be sent as it is; a newer version of the bundle may."""
    LATER = enum.auto()
    """The broker does not take messages to this consumer now."""
    OFFLINE = enum.auto()


class Publish:
    """Sends specs to agents through the broker."""

    def __init__(self, world: World, endpoint: Endpoint) -> None:
        self._world = world
        self._endpoint = endpoint
        self._journal = world.journal.bind({Key.LOGGER: Logger.CONTROLLERS})
        self._client: mqtt.Client | None = None
        self._online = asyncio.Event()
        self._max_packet_bytes = mqtt.UNLIMITED_BYTES
        self._resting: dict[str, float] = {}
        self._backlog = Backlog(world, queue=world.metrics.event_queue, controller=world.metrics.spec)
        self.tickets = self._backlog.tickets

    @property
    def client(self) -> mqtt.Client:
        """The open connection; raises `Disconnected` while there is none."""
        if self._client is None:
            raise base.Disconnected("the cloudevents client is not ready")
        return self._client

    def cannot_carry(self, parts: record.Parts) -> str:
        """Return why the broker, as we last knew it, would not take a bundle; empty when it would."""
        return carriage.problem(parts, max_packet_bytes=self._max_packet_bytes)

    def attach(self, client: mqtt.Client) -> None:
        """Send over `client` from now on, beginning with everything that waits."""
        self._client = client
        self._max_packet_bytes = client.maximum_packet_bytes
        self._online.set()
        self._resting.clear()
        self.tickets.add_everything()

    def detach(self) -> None:
        """There is no connection; events stay pending."""
        self._client = None
        self._online.clear()

    async def wait_online(self) -> None:
        """Wait until there is a connection."""
        await self._online.wait()

    async def run(self) -> None:
        """Deliver for ever."""
        await self._backlog.work_off(
            self._turn,
            is_idle=lambda: self._client is None,
            journal=self._journal,
            failed=Phrase.HANDLE_FAILED,
            again=True,
        )

    async def _turn(self, ids: Sequence[str], *, everything: bool) -> int:
        return await self._deliver(await self._look_up(ids, everything=everything))

    async def _look_up(self, ids: Sequence[str], *, everything: bool) -> list[rows.Pending]:
        async with self._world.database.connection() as connection:
            found = await events.read_events(connection, ids) if ids else []
            if everything:
                found += await events.pending_everywhere(connection, per_consumer=_PER_CONSUMER, limit=_SCAN_LIMIT)
        unique = {each.id: each for each in found if not each.reconciled}
        return [each for each in unique.values() if not self._rests(each.consumer or "")]

    async def _deliver(self, found: Sequence[rows.Pending]) -> int:
        sent = 0
        for group in turns.rounds(found, at_most=_ROWS_AT_ONCE):
            if self._client is None:
                break
            sent += await self._send_group(group)
        return sent

    async def _send_group(self, group: Mapping[str, Sequence[rows.Pending]]) -> int:
        started = self._world.clock.monotonic()
        # A mark that is lost costs one more delivery, which changes nothing: no need to wait for the disk.
        async with self._world.database.transaction(durable=False) as connection:
            claimed = await events.claim(connection, [each.id for pending in group.values() for each in pending])
            taken = {
                resource_id: [each for each in pending if each.id in claimed] for resource_id, pending in group.items()
            }
            taken = {resource_id: pending for resource_id, pending in taken.items() if pending}
            if not taken:
                return 0
            specs = await resources.read_specs(connection, taken.keys())
            outcomes = await self.send(specs, because=taken)
            # Events whose bundle is gone have nobody to go to.
            done = [
                each.id
                for resource_id, pending in taken.items()
                if outcomes.get(resource_id, Outcome.NEVER) in (Outcome.SENT, Outcome.UNHEARD, Outcome.NEVER)
                for each in pending
            ]
            await events.reconcile(connection, done, now=self._world.now())
        sent = [
            taken[each][-1].event_type
            for each, outcome in outcomes.items()
            if outcome in (Outcome.SENT, Outcome.UNHEARD)
        ]
        self._world.metrics.specs_delivered(sent, seconds=self._world.clock.monotonic() - started)
        return len(sent)

    async def send(
        self, specs: Sequence[rows.Spec], *, because: Mapping[str, Sequence[rows.Pending]] | None = None
    ) -> dict[str, Outcome]:
        """Send bundles as they are, and say what became of each; `because` has the events that ask for it.

        The caller holds the sending locks of the bundles, and reads them after it got the locks.
        """
        outcomes = await asyncio.gather(
            *(self._send_spec(spec, because[spec.id][-1] if because else None) for spec in specs)
        )
        return {spec.id: outcome for spec, outcome in zip(specs, outcomes, strict=True)}

    async def _send_spec(self, spec: rows.Spec, pending: rows.Pending | None) -> Outcome:
        is_deleting = spec.deleted_at is not None
        action = event.Action.RESYNC_RESPONSE
        if pending is not None:
            action = delivery.action_for(pending.event_type, deleting=is_deleting)
        event_id = pending.id if pending else ""
        fields: dict[str, object] = {Key.EVENT: event_id, Key.RESOURCE_ID: spec.id}
        try:
            outgoing = delivery.spec_event(
                spec,
                action=action,
                source_id=self._world.source_id,
                fresh_id=self._world.new_id(),
                now=self._world.timestamp(),
            )
            if patience.needs_other_words(spec, event_id=event_id, now=self._world.now()):
                outgoing = delivery.displacing(outgoing)
            describe.delivering(self._journal, outgoing, action=action, event_id=event_id)
            is_heard = await self.send_event(outgoing, consumer=spec.consumer)
        except (wire_errors.WireError, mqtt.TooLarge) as error:
            # Whoever wrote this row, one that cannot be sent must not keep the others from their agents.
            self._journal.error(Phrase.PUBLISH_FAILED, fields, err=error)
            return Outcome.NEVER
        except base.Rejected as error:
            self._rest(spec.consumer, reason=str(error))
            return Outcome.LATER
        except base.Disconnected as error:
            self._journal.info(Phrase.PUBLISH_FAILED, {**fields, Key.REASON: str(error)}, v=2)
            return Outcome.OFFLINE
        return Outcome.SENT if is_heard else Outcome.UNHEARD

    async def send_event(self, outgoing: event.Event, *, consumer: str) -> bool:
        """Send one event to one agent; returns when the broker has it, and whether anybody listens."""
        topic = topics.source_events(self._endpoint.topics, source=self._world.source_id, consumer=consumer)
        is_heard = await self.client.publish(topic, binding.encode(outgoing), qos=self._endpoint.publish_qos)
        self._world.metrics.event_sent(EventLabels.of(outgoing))
        return is_heard

    def _rest(self, consumer: str, *, reason: str) -> None:
        now = self._world.clock.monotonic()
        if not self._rests(consumer):
            told = {Key.CONSUMER: consumer, Key.REASON: reason}
            self._journal.error("the broker refuses messages to a consumer; they are tried again later", told)
        self._resting[consumer] = now + _REST_SECONDS

    def _rests(self, consumer: str) -> bool:
        return self._resting.get(consumer, 0.0) > self._world.clock.monotonic()
