"""Serve agents over gRPC: they subscribe to the specs of one consumer and publish status updates."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import BrokerPhrase, SpecWriterPhrase
from maestropy.server.api.grpc import rejections, subscriptions
from maestropy.server.auth import requesters
from maestropy.server.auth.agents import AgentIdentityPolicy, UnnamedConsumers, authorize_agent, identify_agent
from maestropy.server.auth.denied import Denied
from maestropy.server.auth.expiry import check_certificate
from maestropy.server.brokers import port
from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.brokers.unfinished_answers import UnfinishedAnswers
from maestropy.server.context import Context
from maestropy.server.controllers.agents.resync import Resync
from maestropy.server.controllers.history.history_writer import HistoryWriter
from maestropy.server.controllers.status.status_intake import StatusIntake
from maestropy.server.decide import admission, status_intake
from maestropy.server.decide.history import kinds, refusals
from maestropy.server.telemetry import log_fields
from maestropy.store import resources, rows
from maestropy.transport import peer_identity
from maestropy.transport.grpc import check_calls
from maestropy.transport.grpc.server import Stream
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors
from maestropy.wire.events import event, grpc_binding

# Go agents send a resync and subscribe at the same moment, in either order.
_SUBSCRIPTION_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentService:
    """The gRPC service on port 8091."""

    context: Context
    intake: StatusIntake
    resync: Resync
    answers: UnfinishedAnswers
    subscribers: Subscribers
    policy: AgentIdentityPolicy
    history: HistoryWriter
    heartbeats: subscriptions.Heartbeats
    recheck_seconds: float | None = None
    """Time between checks of the certificate of an open subscription; None: never."""
    unnamed_consumers: UnnamedConsumers = field(default_factory=UnnamedConsumers)
    note_seen: Callable[[str], None] = lambda _consumer: None
    """Notes that an agent of a consumer is connected."""

    async def authenticate(self, peer: peer_identity.Peer) -> peer_identity.PeerIdentity:
        """Return the identity in the certificate; the handshake has verified it."""
        try:
            return identify_agent(peer)
        except Denied as denied:
            rejected = rejections.from_denied(denied)
            self._refused(rejected, self._subject(kinds.REQUEST_REFUSED, peer), request="authenticate")
            raise rejected from denied

    async def publish(self, received: event.CloudEvent, peer: peer_identity.Peer) -> None:
        """Store a status update, or answer a spec resync."""
        try:
            consumer = received.optional_text(event.CLUSTER_NAME)
            self._authorize(consumer, peer)
            self.intake.log_received(received)
            kind = _kind(received)
            if kind.action == event.EventAction.RESYNC_REQUEST:
                await self._answer_resync(consumer, received)
            else:
                await self._store_status(received, kind, peer)
        except CallRejected as rejected:
            operation_id = admission.operation_id(received)
            requester = requesters.of_peer(peer)
            subject = refusals.subject_of(
                received, at=self.context.now(), requester=requester, operation_id=operation_id
            )
            self._refused(rejected, subject, request=received.type)
            log_fields.log_rejection(self.context.journal, received, operation_id=operation_id, reason=str(rejected))
            raise

    async def malformed(self, error: errors.WireError, peer: peer_identity.Peer) -> CallRejected:
        """Return the rejection of a malformed event."""
        code = rejections.malformed_code(error, default=StatusCode.INVALID_ARGUMENT)
        rejected = CallRejected(code, f"failed to convert protobuf to cloudevent: {error}")
        self.context.journal.warning(SpecWriterPhrase.REJECTED, {LogKey.REASON: str(rejected)})
        self._refused(rejected, self._subject(kinds.REQUEST_REFUSED, peer), request="publish")
        return rejected

    @asynccontextmanager
    async def subscribe(
        self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer
    ) -> AsyncIterator[Stream]:
        """Open a stream of the specs of one consumer."""
        try:
            _check(subscription)
            self._authorize(subscription.cluster_name, peer)
        except CallRejected as rejected:
            log_fields.log_rejected_subscription(self.context.journal, subscription.cluster_name, reason=str(rejected))
            subject = self._subject(kinds.REQUEST_REFUSED, peer, consumer=subscription.cluster_name)
            self._refused(rejected, subject, request="subscribe")
            raise
        if peer.is_check:
            await self._check_consumer(subscription.cluster_name)
            yield Stream(id=check_calls.ACCEPTED, messages=_nothing())
            return
        recheck = subscriptions.CredentialCheck(
            seconds=self.recheck_seconds, check=lambda: self._recheck(subscription.cluster_name, peer)
        )
        subscription_id = self.context.new_id()
        async with subscriptions.open_stream(
            self.subscribers,
            subscription.cluster_name,
            subscription_id=subscription_id,
            heartbeats=self.heartbeats,
            recheck=recheck,
        ) as stream:
            fields = {
                LogKey.ID: subscription_id,
                LogKey.CLUSTER_NAME: subscription.cluster_name,
                LogKey.DATA_TYPE: subscription.data_type,
            }
            self.context.journal.info(BrokerPhrase.REGISTERING, fields)
            self.history.add(self._subject(kinds.AGENT_CONNECTED, peer, consumer=subscription.cluster_name))
            self.note_seen(subscription.cluster_name)
            await self.resync.on_subscribe(subscription.cluster_name, subscription_id=subscription_id)
            try:
                yield stream
            finally:
                self.note_seen(subscription.cluster_name)
                self.context.journal.info(BrokerPhrase.UNREGISTERING, fields)
                self.history.add(self._subject(kinds.AGENT_DISCONNECTED, peer, consumer=subscription.cluster_name))

    async def _check_consumer(self, consumer: str) -> None:
        """Raise `CallRejected` if no works can be for this consumer; agents may connect nevertheless."""
        try:
            async with self.context.database.connection() as connection:
                known = await resources.existing_consumers(connection, [consumer])
        except rejections.FAILURES as error:
            raise rejections.from_failure(error, doing="read the consumer") from error
        if not known:
            raise CallRejected(StatusCode.NOT_FOUND, f"there is no consumer {consumer[:253]!r}")

    def _subject(self, kind: str, peer: peer_identity.Peer, *, consumer: str = "") -> rows.HistoryEntry:
        return rows.HistoryEntry(
            kind=kind,
            at=self.context.now(),
            consumer=consumer,
            requester=requesters.of_peer(peer),
            detail=kinds.detail({"instance": self.context.instance_id}),
        )

    def _refused(self, rejected: CallRejected, subject: rows.HistoryEntry, *, request: str) -> None:
        result = refusals.of_grpc_code(rejected.code.name)
        if result is not None:
            self.history.add(refusals.entry(subject, result=result, request=request, reason=str(rejected)))

    def _authorize(self, consumer: str, peer: peer_identity.Peer) -> None:
        try:
            identity = authorize_agent(peer, consumer=consumer, policy=self.policy)
        except Denied as denied:
            raise rejections.from_denied(denied) from denied
        if self.policy is AgentIdentityPolicy.WARN and self.unnamed_consumers.is_new(identity, consumer):
            fields = {LogKey.CLUSTER_NAME: consumer[:253], LogKey.IDENTITY: identity.user}
            self.context.journal.warning(BrokerPhrase.CONSUMER_NOT_NAMED, fields)

    async def _recheck(self, consumer: str, peer: peer_identity.Peer) -> None:
        try:
            check_certificate(peer, now=self.context.now())
            authorize_agent(peer, consumer=consumer, policy=self.policy)
        except Denied as denied:
            rejected = rejections.from_denied(denied)
            log_fields.log_rejected_subscription(self.context.journal, consumer, reason=str(rejected))
            subject = self._subject(kinds.REQUEST_REFUSED, peer, consumer=consumer)
            self._refused(rejected, subject, request="stay subscribed")
            raise rejected from denied

    async def _store_status(
        self, received: event.CloudEvent, kind: event.CloudEventType, peer: peer_identity.Peer
    ) -> None:
        try:
            update = self.intake.read(received, kind, requester=requesters.of_peer(peer))
        except errors.UnsupportedEvent as error:
            raise CallRejected(StatusCode.FAILED_PRECONDITION, str(error)) from error
        except errors.WireError as error:
            raise CallRejected(StatusCode.FAILED_PRECONDITION, f"failed to decode status: {error}") from error
        try:
            verdict = await self.intake.store(update)
        except rejections.FAILURES as error:
            raise rejections.from_failure(error, doing="handle status event") from error
        match verdict:
            case status_intake.Reject(reason):
                raise CallRejected(StatusCode.FAILED_PRECONDITION, f"failed to handle status event: {reason}")
            case status_intake.Unordered(problem, is_error=True):
                # The code for a failed check of a sequence: agents send the status again.
                raise CallRejected(StatusCode.ABORTED, f"failed to handle status event: {problem.text}")

    async def _answer_resync(self, consumer: str, received: event.CloudEvent) -> None:
        if not await self.subscribers.wait_for_subscriber(consumer, seconds=_SUBSCRIPTION_SECONDS):
            raise CallRejected(
                StatusCode.FAILED_PRECONDITION,
                f"failed to respond resync spec request: cluster {consumer[:253]} has no subscription on this "
                "instance; subscribe first",
            )
        try:
            answer = self.resync.answer(consumer, received.data, source=received.source)
            await self.answers.send(consumer, answer)
        except port.Paused:
            return  # the agent is told to resync when the consumer is resumed
        except errors.WireError as error:
            text = f"failed to respond resync spec request: {error}"
            raise CallRejected(StatusCode.FAILED_PRECONDITION, text) from error
        except rejections.FAILURES as error:
            raise rejections.from_failure(error, doing="respond resync spec request") from error


async def _nothing() -> AsyncIterator[Sequence[bytes]]:
    """Yield no messages: the answer to a check."""
    none: tuple[Sequence[bytes], ...] = ()
    for messages in none:
        yield messages


def _check(subscription: grpc_binding.Subscription) -> None:
    if not subscription.cluster_name:
        raise CallRejected(StatusCode.UNKNOWN, "invalid subscription request: missing cluster name")
    try:
        # A scan for pending events reads those of all subscribed consumers: one invalid name would fail it for all.
        event.check_name(subscription.cluster_name, label="cluster_name")
        event.parse_data_type(subscription.data_type)
    except errors.WireError as error:
        raise CallRejected(StatusCode.UNKNOWN, f"invalid subscription request: {error}") from error


def _kind(received: event.CloudEvent) -> event.CloudEventType:
    try:
        kind = event.parse_type(received.type)
    except errors.WireError as error:
        raise CallRejected(
            StatusCode.INVALID_ARGUMENT, f"failed to parse cloud event type {received.type[:256]}, {error}"
        ) from error
    if kind.data_type != event.MANIFEST_BUNDLES:
        raise CallRejected(StatusCode.INVALID_ARGUMENT, f"failed to find service for event type {kind.data_type[:256]}")
    return kind
