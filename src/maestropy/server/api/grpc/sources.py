"""Serve sources over gRPC: they publish spec requests and subscribe to status events."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import SpecWriterPhrase, StatusDispatcherPhrase
from maestropy.server.api.grpc import rejections, subscriptions
from maestropy.server.auth import requesters
from maestropy.server.auth.denied import Denied
from maestropy.server.auth.expiry import check_certificate
from maestropy.server.auth.sources import SourceAccessControl
from maestropy.server.brokers.subscribers import Subscribers
from maestropy.server.brokers.unfinished_answers import UnfinishedAnswers
from maestropy.server.context import Context
from maestropy.server.controllers.history.history_writer import HistoryWriter
from maestropy.server.controllers.spec.spec_writer import SpecWriter
from maestropy.server.controllers.status.status_dispatcher import StatusDispatcher
from maestropy.server.decide import admission, rejection
from maestropy.server.decide.history import kinds, refusals
from maestropy.server.telemetry import log_fields
from maestropy.store import rows
from maestropy.transport import peer_identity
from maestropy.transport.grpc.server import Metadata, Stream
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors, positions
from maestropy.wire.events import event, grpc_binding
from maestropy.wire.works import validation

_SPEC_REQUESTS = frozenset(
    (event.EventAction.CREATE_REQUEST, event.EventAction.UPDATE_REQUEST, event.EventAction.DELETE_REQUEST)
)


async def no_position() -> str:
    """Return no position: clients need none without a read replica."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceService:
    """The gRPC service on port 8090."""

    context: Context
    spec_writer: SpecWriter
    status_dispatcher: StatusDispatcher
    answers: UnfinishedAnswers
    subscribers: Subscribers
    access_control: SourceAccessControl
    history: HistoryWriter
    heartbeats: subscriptions.Heartbeats
    recheck_seconds: float | None = None
    """Time between checks of the credentials of an open subscription; None: never."""
    position_after_write: Callable[[], Awaitable[str]] = no_position
    """Returns the position that a write of this moment has in the database; empty if clients need none."""

    async def authenticate(self, peer: peer_identity.Peer) -> peer_identity.PeerIdentity:
        """Return the identity of the source client."""
        try:
            return await self.access_control.authenticate(peer)
        except Denied as denied:
            rejected = rejections.from_denied(denied)
            self.context.journal.warning(SpecWriterPhrase.REJECTED, {LogKey.REASON: str(rejected)})
            self._refused(rejected, self._subject(peer), request="authenticate")
            raise rejected from denied

    async def publish(self, received: event.CloudEvent, peer: peer_identity.Peer) -> Metadata:
        """Store a spec request, or answer a status resync."""
        try:
            await self._authorize(received.source, peer, verb="pub")
            self._log_received(received)
            kind = self._kind(received)
            if kind.action == event.EventAction.RESYNC_REQUEST:
                await self._resync(received)
                return ()
            await self._spec_request(received, event.EventAction(kind.action), peer)
        except CallRejected as rejected:
            self._log_rejection(received, rejected)
            subject = refusals.subject_of(
                received,
                at=self.context.now(),
                requester=requesters.of_peer(peer),
                operation_id=admission.operation_id(received),
            )
            self._refused(rejected, subject, request=received.type)
            raise
        position = await self.position_after_write()
        return ((positions.METADATA, position),) if position else ()

    async def malformed(self, error: errors.WireError, peer: peer_identity.Peer) -> CallRejected:
        """Return the rejection of a malformed event."""
        code = rejections.malformed_code(error, default=StatusCode.UNKNOWN)
        rejected = CallRejected(code, f"failed to convert to cloudevent: {error}")
        self.context.journal.warning(SpecWriterPhrase.REJECTED, {LogKey.REASON: str(rejected)})
        self._refused(rejected, self._subject(peer), request="publish")
        return rejected

    @asynccontextmanager
    async def subscribe(
        self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer
    ) -> AsyncIterator[Stream]:
        """Open a stream of the status events of one source, from now on."""
        if peer.is_check:
            raise CallRejected(StatusCode.UNIMPLEMENTED, "this port is for sources, and has no specs for agents")
        try:
            await self._authorize(subscription.source, peer, verb="sub")
            _check(subscription)
        except CallRejected as rejected:
            log_fields.log_rejected_subscription(self.context.journal, subscription.source, reason=str(rejected))
            self._refused(rejected, self._subject(peer, source=subscription.source), request="subscribe")
            raise
        recheck = subscriptions.CredentialCheck(
            seconds=self.recheck_seconds, check=lambda: self._recheck(subscription.source, peer)
        )
        fields: dict[str, object] = {LogKey.ID: self.context.new_id(), LogKey.SOURCE: subscription.source}
        async with subscriptions.open_stream(
            self.subscribers,
            subscription.source,
            subscription_id=str(fields[LogKey.ID]),
            heartbeats=self.heartbeats,
            recheck=recheck,
        ) as stream:
            self.context.journal.info(StatusDispatcherPhrase.REGISTERED, fields)
            self.context.metrics.client_registered(subscription.source)
            try:
                yield stream
            except CallRejected as rejected:
                self.context.journal.warning(
                    StatusDispatcherPhrase.SEND_FAILED_UNREGISTER, {LogKey.SUBSCRIBER: fields[LogKey.ID]}, err=rejected
                )
                raise
            finally:
                self.context.metrics.client_unregistered(subscription.source)
                self.context.journal.info(StatusDispatcherPhrase.UNREGISTERED, fields)

    async def _authorize(self, source: str, peer: peer_identity.Peer, *, verb: str) -> None:
        try:
            identity = peer.identity or await self.access_control.authenticate(peer)
            await self.access_control.authorize(identity, source=source, verb="pub" if verb == "pub" else "sub")
        except Denied as denied:
            raise rejections.from_denied(denied) from denied

    async def _recheck(self, source: str, peer: peer_identity.Peer) -> None:
        """Raise `CallRejected` if the client may no longer subscribe; without an answer of Kubernetes it may."""
        try:
            check_certificate(peer, now=self.context.now())
            identity = await self.access_control.authenticate(replace(peer, identity=None))
            await self.access_control.authorize(identity, source=source, verb="sub")
        except Denied as denied:
            if denied.is_final:
                log_fields.log_rejected_subscription(self.context.journal, source, reason=denied.text)
                rejected = rejections.from_denied(denied)
                self._refused(rejected, self._subject(peer, source=source), request="stay subscribed")
                raise rejections.from_denied(denied) from denied
            self.context.journal.warning(
                StatusDispatcherPhrase.NOT_RECHECKED, {LogKey.SOURCE: source, LogKey.REASON: denied.text}
            )

    def _kind(self, received: event.CloudEvent) -> event.CloudEventType:
        try:
            kind = event.parse_type(received.type)
        except errors.WireError as error:
            raise CallRejected(
                StatusCode.UNKNOWN, f"failed to parse cloud event type {received.type[:256]}, {error}"
            ) from error
        if kind.action != event.EventAction.RESYNC_REQUEST and kind.action not in _SPEC_REQUESTS:
            raise CallRejected(StatusCode.UNKNOWN, f"unsupported action {kind.action[:64]}")
        if kind.data_type != event.MANIFEST_BUNDLES:
            raise CallRejected(
                StatusCode.UNKNOWN,
                f"unsupported cloudevents data type {kind.data_type[:128]}; send {event.MANIFEST_BUNDLES}",
            )
        return kind

    def _subject(self, peer: peer_identity.Peer, *, source: str = "") -> rows.HistoryEntry:
        return rows.HistoryEntry(
            kind=kinds.REQUEST_REFUSED, at=self.context.now(), source=source, requester=requesters.of_peer(peer)
        )

    def _refused(self, rejected: CallRejected, subject: rows.HistoryEntry, *, request: str) -> None:
        result = (
            refusals.of_rejection(rejected.rejected)
            if isinstance(rejected, rejections.LoggedRejection)
            else refusals.of_grpc_code(rejected.code.name)
        )
        if result is not None:
            self.history.add(refusals.entry(subject, result=result, request=request, reason=str(rejected)))

    async def _spec_request(
        self, received: event.CloudEvent, action: event.EventAction, peer: peer_identity.Peer
    ) -> None:
        try:
            request = _read(received, action, requester=requesters.of_peer(peer))
        except errors.WireError as error:
            raise CallRejected(StatusCode.UNKNOWN, f"failed to decode cloudevent: {error}") from error
        spans, clock = self.context.spans, self.context.clock
        if not spans.may_trace(request.operation_id):
            await self._submit(request)
            return
        arrival = spans.arrive(received.optional_text(event.TRACE_PARENT) or peer.trace_parent, now=clock.epoch())
        verdict, problem = None, "the call ended without an answer"
        try:
            verdict, problem = await self._submit(replace(request, arrival_span=arrival.span_id)), ""
        except CallRejected as rejected:
            problem = str(rejected)
            raise
        finally:
            spans.accepted(arrival, request, verdict, now=clock.epoch(), problem=problem)

    async def _submit(self, request: admission.SpecRequest) -> admission.Verdict:
        try:
            verdict = await self.spec_writer.submit(request)
        except rejections.FAILURES as error:
            raise rejections.from_failure(error, doing=f"{request.action.removesuffix('_request')} resource") from error
        if isinstance(verdict, rejection.Rejection):
            raise rejections.from_rejection(verdict)
        return verdict

    async def _resync(self, received: event.CloudEvent) -> None:
        try:
            event.check_name(received.source, label="source")
            await self.answers.send(
                received.source, self.status_dispatcher.answer_resync(received.source, received.data)
            )
        except errors.WireError as error:
            raise CallRejected(StatusCode.UNKNOWN, f"failed to respond resync status request: {error}") from error
        except rejections.FAILURES as error:
            raise rejections.from_failure(error, doing="respond resync status request") from error

    def _log_received(self, received: event.CloudEvent) -> None:
        journal = self.context.journal
        fields = log_fields.event_fields(journal, received)
        operation_id = admission.operation_id(received)
        journal.info(SpecWriterPhrase.RECEIVED, {LogKey.OP_ID: operation_id, **fields} if operation_id else fields)

    def _log_rejection(self, received: event.CloudEvent, rejected: CallRejected) -> None:
        if isinstance(rejected, rejections.LoggedRejection):
            return
        operation_id = admission.operation_id(received)
        log_fields.log_rejection(self.context.journal, received, operation_id=operation_id, reason=str(rejected))


def _check(subscription: grpc_binding.Subscription) -> None:
    if not subscription.source:
        return  # an empty source gets no events, as in Go Maestro
    try:
        event.check_name(subscription.source, label="source")
    except errors.WireError as error:
        raise CallRejected(StatusCode.UNKNOWN, f"invalid subscription request: {error}") from error


def _read(received: event.CloudEvent, action: event.EventAction, *, requester: rows.Requester) -> admission.SpecRequest:
    event.check_name(received.source, label="source")
    if not received.id:
        raise errors.MalformedMessage("the event has no id; set it to a fresh UUID")
    request = admission.read_spec_request(received, action, requester=requester)
    if action == event.EventAction.DELETE_REQUEST or not received.data:
        return request
    try:
        validation.validate_manifest_bundle(received.data)
    except errors.UnstorableContent:
        raise  # even a comparison with the stored spec would be unsafe
    except errors.InvalidContent as error:
        return replace(request, problem=str(error))
    return request
