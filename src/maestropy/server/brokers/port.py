"""Define what the controllers need of a broker, whatever carries the events: gRPC streams, MQTT or another one.

A backend sends one event to the agents of one consumer and returns a `SendResult`. It reads no table and keeps no
order: `dispatch.spec_sender` does. Where backends differ, the controllers ask `Capabilities` and never the class of a
backend. A message broker also hands the events of agents to a `Receiver`; agents on gRPC streams call `api.grpc.agents`
instead.
"""

import enum
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from maestropy.wire.events import event, stored_event


class Outcome(enum.Enum):
    """The result of sending one event."""

    SENT = enum.auto()
    """The broker has the event, or it is in the mailbox of an agent."""
    NO_SUBSCRIBER = enum.auto()
    """The broker has taken the event and no agent subscribes to it; the agent resyncs when it does."""
    NO_ROOM = enum.auto()
    """The queue of the consumer is full; `Broker.wait_for_room` returns when it is not."""
    REJECTED = enum.auto()
    """The broker takes no message to this consumer until its rules are changed; try again later."""
    NEVER = enum.auto()
    """The event cannot be sent as it is; a newer version of the resource may be."""
    OFFLINE = enum.auto()
    """The broker cannot be reached, or no agent of the consumer is connected here."""
    PAUSED = enum.auto()
    """Not sent: an operator has paused the delivery to the consumer. The event waits until it is resumed."""


DONE = frozenset((Outcome.SENT, Outcome.NO_SUBSCRIBER, Outcome.NEVER))
"""Outcomes after which a pending event is reconciled: sending it again would change nothing."""
DELIVERED = frozenset((Outcome.SENT, Outcome.NO_SUBSCRIBER))


@dataclass(frozen=True, slots=True)
class SendResult:
    """An outcome, and why it is not `SENT`."""

    outcome: Outcome
    reason: str = ""


SENT = SendResult(Outcome.SENT)


class NotDelivered(Exception):
    """The broker did not take everything; the caller tries again."""


class Paused(NotDelivered):
    """An operator has paused the delivery to the consumer."""


class NoSubscriber(NotDelivered):
    """The broker took everything and no agent of the consumer subscribes yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """How a broker differs from others."""

    reaches_every_consumer: bool
    """Any instance can send to any consumer. Otherwise only to the agents connected here, and the agents of one
    consumer may be connected to several instances: each instance then sends every event to its own agents."""
    reports_subscriptions: bool
    """The server knows when an agent subscribes. Otherwise it requests statuses when it gains a consumer or the
    connection, and sends again what the agent has not confirmed, since the broker may have lost it."""
    needs_claims: bool
    """Several instances may send the same event: one claims it under locks in the database, the same as a Go server."""
    waits_for_acknowledgement: bool
    """`send` returns when the broker has acknowledged the event, so several are sent at the same time."""
    agents_get_errors: bool
    """An agent learns from the answer that its status update was not stored. Otherwise the server has to ask it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The receiver of one event."""

    consumer: str
    key: str
    """A newer event under the same key replaces an older one that the agent has not read; brokers that cannot, ignore
    it."""
    subscription_id: str = ""
    """Only this subscription of the consumer, where the broker tells them apart."""


class Broker(Protocol):
    """The way to the agents."""

    @property
    def capabilities(self) -> Capabilities:
        """How this broker differs from others."""

    @property
    def is_online(self) -> bool:
        """Whether there is anything to send to: a connection to the broker, or a connected agent."""

    @property
    def max_event_bytes(self) -> int:
        """The largest event that should be sent."""

    async def wait_online(self) -> None:
        """Wait for the connection to the broker; returns at once where there is none."""

    def consumers(self) -> Collection[str] | None:
        """Return the consumers whose agents are connected here; None: every consumer can be reached."""

    def reaches(self, consumer: str) -> bool:
        """Return whether an event to `consumer` has an address."""

    def has_room(self, consumer: str) -> bool:
        """Return whether a sender that can wait should send to `consumer` now."""

    async def wait_for_room(self, consumer: str) -> None:
        """Wait until `consumer` has room, or is not reached any more."""

    def problem_with(self, parts: stored_event.StoredParts) -> str:
        """Return why this broker cannot carry a resource; empty when it can."""

    async def send(self, outgoing: event.CloudEvent, address: Address) -> SendResult:
        """Send one event; never raises for a reason of the broker or of the event."""


class MessageBroker(Broker, Protocol):
    """A broker outside of this process, to which agents and instances connect."""

    @property
    def problem(self) -> str:
        """What an operator has to change before all messages can be exchanged; empty if nothing is known."""

    @property
    def last_error(self) -> str:
        """Why the last connection failed or ended; empty while connected."""

    @property
    def is_within_grace(self) -> bool:
        """Whether status updates arrive here, or will after a short interruption."""

    async def run(self, receiver: "Receiver") -> None:
        """Stay connected until `stop`; then finish the messages that have been received."""

    def stop(self) -> None:
        """Receive no more messages."""


class Receiver(Protocol):
    """What a message broker calls."""

    async def on_online(self) -> None:
        """The broker is connected and subscribed; raises `StoreError` when the instance cannot start to work."""

    async def on_messages_lost(self) -> None:
        """The broker may have dropped messages of agents."""

    async def receive(self, received: event.CloudEvent, acknowledge: Callable[[], None]) -> None:
        """Handle an event of an agent and acknowledge it when it is stored; raises `WireError` for a wrong one."""
