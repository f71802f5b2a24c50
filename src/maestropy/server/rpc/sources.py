"""The service for sources: they publish specs and subscribe to statuses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from maestropy.journal.fields import Accept as Phrase
from maestropy.journal.fields import Fanout as FanoutPhrase
from maestropy.journal.fields import Key
from maestropy.server import describe
from maestropy.server.accept import Accept
from maestropy.server.auth.denied import Denied
from maestropy.server.auth.sources import SourceGate
from maestropy.server.decide import admission, refusal
from maestropy.server.fanout import Fanout
from maestropy.server.rpc import refusals, subscriptions
from maestropy.server.streams import Streams
from maestropy.server.world import World
from maestropy.transport import identity
from maestropy.transport.grpc_server import Stream, TooLarge
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event, validate

_WISHES = frozenset((event.Action.CREATE_REQUEST, event.Action.UPDATE_REQUEST, event.Action.DELETE_REQUEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Port 8090."""

    world: World
    accept: Accept
    fanout: Fanout
    streams: Streams
    gate: SourceGate
    heartbeats: subscriptions.Heartbeats

    async def publish(self, received: event.Event, peer: identity.Peer) -> None:
        """Take a wish, or answer a status resync."""
        try:
            await self._admit(received.source, peer, verb="pub")
            self._tell(received)
            kind = self._kind(received)
            if kind.action == event.Action.RESYNC_REQUEST:
                await self._resync(received)
            else:
                await self._wish(received, event.Action(kind.action))
        except Refused as refused:
            self._tell_refused(received, refused)
            raise

    async def malformed(self, problem: errors.WireError, peer: identity.Peer) -> Refused:
        """Refuse what could not be read; whoever may not speak here does not learn why."""
        try:
            await self.gate.authenticate(peer)
        except Denied as denied:
            return refusals.from_denied(denied)
        code = Code.RESOURCE_EXHAUSTED if isinstance(problem, TooLarge) else Code.UNKNOWN
        refused = Refused(code, f"failed to convert to cloudevent: {problem}")
        self.world.journal.warning("request refused", {Key.REASON: str(refused)})
        return refused

    @asynccontextmanager
    async def subscribe(self, wanted: envelope.Subscription, peer: identity.Peer) -> AsyncIterator[Stream]:
        """Open a stream of the statuses of one source, from now on."""
        try:
            await self._admit(wanted.source, peer, verb="sub")
            _check(wanted)
        except Refused as refused:
            describe.refused_subscription(self.world.journal, wanted.source, reason=str(refused))
            raise
        fields: dict[str, object] = {Key.ID: self.world.new_id(), Key.SOURCE: wanted.source}
        async with subscriptions.open_stream(
            self.streams, wanted.source, subscription_id=str(fields[Key.ID]), heartbeats=self.heartbeats
        ) as (_, stream):
            self.world.journal.info(FanoutPhrase.REGISTERED, fields)
            self.world.metrics.client_registered(wanted.source)
            try:
                yield stream
            except Refused as refused:
                self.world.journal.warning(
                    FanoutPhrase.SEND_FAILED_UNREGISTER, {Key.SUBSCRIBER: fields[Key.ID]}, err=refused
                )
                raise
            finally:
                self.world.metrics.client_unregistered(wanted.source)
                self.world.journal.info(FanoutPhrase.UNREGISTERED, fields)

    async def _admit(self, source: str, peer: identity.Peer, *, verb: str) -> None:
        try:
            who = await self.gate.authenticate(peer)
            await self.gate.authorize(who, source=source, verb="pub" if verb == "pub" else "sub")
        except Denied as denied:
            raise refusals.from_denied(denied) from denied

    def _kind(self, received: event.Event) -> event.EventType:
        try:
            kind = event.parse_type(received.type)
        except errors.WireError as error:
            raise Refused(Code.UNKNOWN, f"failed to parse cloud event type {received.type[:256]}, {error}") from error
        if kind.action != event.Action.RESYNC_REQUEST and kind.action not in _WISHES:
            raise Refused(Code.UNKNOWN, f"unsupported action {kind.action[:64]}")
        if kind.data_type != event.MANIFEST_BUNDLES:
            raise Refused(
                Code.UNKNOWN,
                f"unsupported cloudevents data type {kind.data_type[:128]}; send {event.MANIFEST_BUNDLES}",
            )
        return kind

    async def _wish(self, received: event.Event, action: event.Action) -> None:
        try:
            wish = _read(received, action)
        except errors.WireError as error:
            raise Refused(Code.UNKNOWN, f"failed to decode cloudevent: {error}") from error
        try:
            verdict = await self.accept.submit(wish)
        except refusals.FAILURES as error:
            raise refusals.from_failure(error, doing=f"{action.removesuffix('_request')} resource") from error
        if isinstance(verdict, refusal.Refusal):
            raise refusals.from_refusal(verdict)

    async def _resync(self, received: event.Event) -> None:
        try:
            event.check_name(received.source, what="source")
            await self.fanout.answer_resync(received.source, received.data)
        except errors.WireError as error:
            raise Refused(Code.UNKNOWN, f"failed to respond resync status request: {error}") from error
        except refusals.FAILURES as error:
            raise refusals.from_failure(error, doing="respond resync status request") from error

    def _tell(self, received: event.Event) -> None:
        journal = self.world.journal
        fields = describe.event_fields(journal, received)
        operation_id = admission.operation_id(received)
        journal.info(Phrase.RECEIVED, {Key.OP_ID: operation_id, **fields} if operation_id else fields)

    def _tell_refused(self, received: event.Event, refused: Refused) -> None:
        if isinstance(refused, refusals.Judged):
            return
        operation_id = admission.operation_id(received)
        describe.refused(self.world.journal, received, operation_id=operation_id, reason=str(refused))


def _check(wanted: envelope.Subscription) -> None:
    if not wanted.source:
        return  # hears nothing, as in Maestro
    try:
        event.check_name(wanted.source, what="source")
    except errors.WireError as error:
        raise Refused(Code.UNKNOWN, f"invalid subscription request: {error}") from error


def _read(received: event.Event, action: event.Action) -> admission.Wish:
    event.check_name(received.source, what="source")
    if not received.id:
        raise errors.Malformed("the event has no id; set it to a fresh UUID")
    wish = admission.read_wish(received, action)
    if action == event.Action.DELETE_REQUEST or not received.data:
        return wish
    try:
        validate.validate_bundle(received.data)
    except errors.Unstorable:
        raise  # not even a comparison with what is stored would be safe
    except errors.Invalid as problem:
        return replace(wish, problem=str(problem))
    return wish
