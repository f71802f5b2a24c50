"""Define the endpoint of Pub/Sub: the address, the credentials, and the topics and subscriptions of one process."""

from dataclasses import dataclass
from pathlib import Path

GLOBAL_TARGET = "pubsub.googleapis.com:443"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Full names of two topics, or of two subscriptions."""

    events: str
    """For specs and statuses."""
    broadcast: str
    """For resync requests, which reach every agent or every server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepalive:
    """Pings on the connection."""

    seconds: float = 300.0
    """Time without activity after which a ping is sent. 0: no pings."""
    timeout_seconds: float = 20.0
    without_calls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveLimits:
    """How many messages are received before earlier ones are acknowledged, and for how long one may be handled."""

    max_messages: int = 1000
    max_bytes: int = 64 * 2**20
    streams: int = 1
    """Streams for each subscription."""
    lease_seconds: int = 60
    """For how long the service waits for an acknowledgement; extended while a message is handled."""
    max_lease_seconds: float = 3600.0
    """When a lease is not extended any more: the service delivers the message again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubEndpoint:
    """Where to connect, with which credentials, and what to publish to and receive from."""

    project: str
    topics: Names
    subscriptions: Names
    target: str = GLOBAL_TARGET
    """`host:port`."""
    is_secure: bool = True
    """TLS and Google credentials; an emulator has neither."""
    credentials_file: Path | None = None
    """The key of a service account. Absent: Application Default Credentials."""
    keepalive: Keepalive = Keepalive()
    receive: ReceiveLimits = ReceiveLimits()
