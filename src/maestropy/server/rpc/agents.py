"""The service for agents: they subscribe to the specs of one consumer and publish statuses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maestropy.journal.fields import Absorb as Phrase
from maestropy.journal.fields import Broker as BrokerPhrase
from maestropy.journal.fields import Key
from maestropy.server import describe
from maestropy.server.absorb import Absorb
from maestropy.server.auth.agents import AgentIdentityPolicy, admit_agent
from maestropy.server.auth.denied import Denied
from maestropy.server.decide import admission, intake
from maestropy.server.rejoin import Rejoin
from maestropy.server.rpc import refusals, subscriptions
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.transport import identity
from maestropy.transport.grpc_server import Stream, TooLarge
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event, storable

# Go agents ask for a resync and subscribe at the same moment, in either order.
_SUBSCRIPTION_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Port 8091."""

    world: World
    absorb: Absorb
    rejoin: Rejoin
    streams: Streams
    policy: AgentIdentityPolicy
    heartbeats: subscriptions.Heartbeats

    async def publish(self, received: event.Event, peer: identity.Peer) -> None:
        """Take a report, or answer a spec resync."""
        try:
            consumer = received.optional_text(event.CLUSTER_NAME)
            self._admit(consumer, peer)
            self._tell(received)
            kind = _kind(received)
            if kind.action == event.Action.RESYNC_REQUEST:
                await self._resync(consumer, received)
            else:
                await self._report(received, kind)
        except Refused as refused:
            self._tell_refused(received, refused)
            raise

    async def malformed(self, problem: errors.WireError, peer: identity.Peer) -> Refused:
        """Refuse what could not be read."""
        del peer  # the handshake has already decided who may connect here
        code = Code.RESOURCE_EXHAUSTED if isinstance(problem, TooLarge) else Code.INVALID_ARGUMENT
        refused = Refused(code, f"failed to convert protobuf to cloudevent: {problem}")
        self.world.journal.warning("request refused", {Key.REASON: str(refused)})
        return refused

    @asynccontextmanager
    async def subscribe(self, wanted: envelope.Subscription, peer: identity.Peer) -> AsyncIterator[Stream]:
        """Open a stream of the specs of one consumer."""
        try:
            _check(wanted)
            self._admit(wanted.cluster_name, peer)
        except Refused as refused:
            describe.refused_subscription(self.world.journal, wanted.cluster_name, reason=str(refused))
            raise
        subscription_id = self.world.new_id()
        async with subscriptions.open_stream(
            self.streams, wanted.cluster_name, subscription_id=subscription_id, heartbeats=self.heartbeats
        ) as (subscriber, stream):
            fields = {
                Key.ID: subscription_id,
                Key.CLUSTER_NAME: wanted.cluster_name,
                Key.DATA_TYPE: wanted.data_type,
            }
            self.world.journal.info(BrokerPhrase.REGISTERING, fields)
            await self.rejoin.greet(subscriber)
            try:
                yield stream
            finally:
                self.world.journal.info(BrokerPhrase.UNREGISTERING, fields)

    def _admit(self, consumer: str, peer: identity.Peer) -> None:
        try:
            admit_agent(peer, consumer=consumer, policy=self.policy)
        except Denied as denied:
            raise refusals.from_denied(denied) from denied

    async def _report(self, received: event.Event, kind: event.EventType) -> None:
        if kind.subresource != event.Subresource.STATUS:
            raise Refused(
                Code.FAILED_PRECONDITION, f"unsupported event type {received.type[:256]}: agents send statuses"
            )
        try:
            storable.check_json(received.data or b"{}", what="event data")
            report = intake.read_report(
                received, source_id=self.world.source_id, operation_id=admission.operation_id(received)
            )
        except errors.WireError as error:
            raise Refused(Code.FAILED_PRECONDITION, f"failed to decode status: {error}") from error
        try:
            verdict = await self.absorb.submit(report)
        except refusals.FAILURES as error:
            raise refusals.from_failure(error, doing="handle status event") from error
        if isinstance(verdict, intake.Reject):
            raise Refused(Code.FAILED_PRECONDITION, f"failed to handle status event: {verdict.reason}")

    async def _resync(self, consumer: str, received: event.Event) -> None:
        started = self.world.clock.monotonic()
        try:
            if not await self.streams.wait_for(consumer, seconds=_SUBSCRIPTION_SECONDS):
                raise Refused(
                    Code.FAILED_PRECONDITION,
                    f"failed to respond resync spec request: cluster {consumer[:253]} has no subscription on this "
                    "instance; subscribe first",
                )
            await self.rejoin.answer(consumer, received.data)
        except errors.WireError as error:
            raise Refused(Code.FAILED_PRECONDITION, f"failed to respond resync spec request: {error}") from error
        except refusals.FAILURES as error:
            raise refusals.from_failure(error, doing="respond resync spec request") from error
        seconds = self.world.clock.monotonic() - started
        self.world.metrics.spec_resynced(received.source, consumer, data_type=event.MANIFEST_BUNDLES, seconds=seconds)

    def _tell(self, received: event.Event) -> None:
        journal = self.world.journal
        if journal.enabled(2):
            operation_id = admission.operation_id(received)
            fields: dict[str, object] = {Key.OP_ID: operation_id} if operation_id else {}
            fields[Key.EVENT_TYPE] = received.type
            if journal.enabled(5):
                fields = describe.event_fields(journal, received, whole_from=5)
            else:
                fields[Key.EXTENSIONS] = describe.extensions(received)
            journal.info(Phrase.RECEIVED, fields, v=2)

    def _tell_refused(self, received: event.Event, refused: Refused) -> None:
        operation_id = admission.operation_id(received)
        describe.refused(self.world.journal, received, operation_id=operation_id, reason=str(refused))


def _check(wanted: envelope.Subscription) -> None:
    if not wanted.cluster_name:
        raise Refused(Code.UNKNOWN, "invalid subscription request: missing cluster name")
    try:
        # Every look for pending events asks for all subscribed names at once: one bad name would fail it for all.
        event.check_name(wanted.cluster_name, what="cluster_name")
        event.parse_data_type(wanted.data_type)
    except errors.WireError as error:
        raise Refused(Code.UNKNOWN, f"invalid subscription request: {error}") from error


def _kind(received: event.Event) -> event.EventType:
    try:
        kind = event.parse_type(received.type)
    except errors.WireError as error:
        raise Refused(
            Code.INVALID_ARGUMENT, f"failed to parse cloud event type {received.type[:256]}, {error}"
        ) from error
    if kind.data_type != event.MANIFEST_BUNDLES:
        raise Refused(Code.INVALID_ARGUMENT, f"failed to find service for event type {kind.data_type[:256]}")
    return kind
