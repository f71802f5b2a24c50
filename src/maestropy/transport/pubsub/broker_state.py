"""Ask Pub/Sub how its topics and subscriptions are configured. Administrative reads only: no message is received."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from google.auth import exceptions as auth_exceptions
from google.pubsub_v1 import types
from google.pubsub_v1.services.publisher import PublisherAsyncClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcAsyncIOTransport
from google.pubsub_v1.services.subscriber import SubscriberAsyncClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcAsyncIOTransport

from maestropy.transport import port
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.endpoint import PubsubEndpoint

_CALL_SECONDS: Final = 5.0
_VIEWER: Final = "roles/pubsub.viewer"
_MOST: Final = 500
"""Subscriptions of agents that are read."""
_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic that a process publishes to."""

    name: str
    problem: str = ""
    is_absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription and its configuration."""

    name: str
    problem: str = ""
    """Why nothing is known of it."""
    is_absent: bool = False
    topic: str = ""
    filter: str = ""
    ack_deadline_seconds: int = 0
    retention_seconds: int = 0
    expires_seconds: int = 0
    """Without a subscriber for so long, the service deletes it; 0: never."""
    is_detached: bool = False
    is_push: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubState:
    """What the service told."""

    topics: tuple[Topic, ...]
    own: tuple[Subscription, ...]
    """Those of the configuration file."""
    agents: tuple[Subscription, ...] = ()
    """All on the topic of specs."""
    agents_problem: str = ""
    """Why the subscriptions of agents are not known, or not all."""


async def read(endpoint: PubsubEndpoint) -> PubsubState:
    """Read topics and subscriptions; raises `Disconnected` if the service cannot be reached."""
    async with _clients(endpoint) as (publisher, subscriber):
        # One by one: the first call signs the token, which no two threads may do.
        topics = [await _topic(publisher, name) for name in (endpoint.topics.events, endpoint.topics.broadcast)]
        own = [
            await _subscription(subscriber, name)
            for name in (endpoint.subscriptions.events, endpoint.subscriptions.broadcast)
        ]
        agents, problem = await _agents(publisher, subscriber, endpoint.topics.events)
    return PubsubState(topics=tuple(topics), own=tuple(own), agents=agents, agents_problem=problem)


@asynccontextmanager
async def _clients(endpoint: PubsubEndpoint) -> AsyncIterator[tuple[PublisherAsyncClient, SubscriberAsyncClient]]:
    try:
        channel = await connection.open_channel(endpoint)
    except (auth_exceptions.GoogleAuthError, OSError, ValueError) as error:
        raise connection.translated(error, endpoint.target) from error
    try:
        yield (
            PublisherAsyncClient(transport=PublisherGrpcAsyncIOTransport(channel=channel)),
            SubscriberAsyncClient(transport=SubscriberGrpcAsyncIOTransport(channel=channel)),
        )
    finally:
        await channel.close()


async def _topic(publisher: PublisherAsyncClient, name: str) -> Topic:
    try:
        await _called(publisher.get_topic(topic=name, retry=None, timeout=_CALL_SECONDS), name)
    except port.Misconfigured as error:
        return Topic(name=name, problem=str(error), is_absent=_is_absent(error))
    return Topic(name=name)


async def _subscription(subscriber: SubscriberAsyncClient, name: str) -> Subscription:
    call = subscriber.get_subscription(subscription=name, retry=None, timeout=_CALL_SECONDS)
    try:
        found = await _called(call, name)
    except port.Misconfigured as error:
        return Subscription(name=name, problem=str(error), is_absent=_is_absent(error))
    return Subscription(
        name=name,
        topic=found.topic,
        filter=found.filter,
        ack_deadline_seconds=found.ack_deadline_seconds,
        retention_seconds=_seconds(found.message_retention_duration),
        expires_seconds=_seconds(found.expiration_policy.ttl) if found.expiration_policy else 0,
        is_detached=found.detached,
        is_push=bool(found.push_config.push_endpoint),
    )


async def _agents(
    publisher: PublisherAsyncClient, subscriber: SubscriberAsyncClient, topic: str
) -> tuple[tuple[Subscription, ...], str]:
    request = types.ListTopicSubscriptionsRequest(topic=topic, page_size=_MOST)
    try:
        page = await _called(publisher.list_topic_subscriptions(request, retry=None, timeout=_CALL_SECONDS), topic)
    except port.Misconfigured as error:
        return (), str(error)
    names = list(page.subscriptions)[:_MOST]
    found: list[Subscription] = []
    for start in range(0, len(names), _AT_ONCE):
        several = names[start : start + _AT_ONCE]
        found += await asyncio.gather(*(_subscription(subscriber, name) for name in several))
    more = f"only the first {_MOST} are read" if page.next_page_token or len(page.subscriptions) > _MOST else ""
    return tuple(found), more


async def _called(call: Awaitable[Any], name: str) -> Any:
    try:
        return await call
    except connection.ERRORS as error:
        raise connection.translated(error, name, role=_VIEWER) from error


def _is_absent(error: port.Misconfigured) -> bool:
    return "does not exist" in str(error)


def _seconds(duration: Any) -> int:
    return round(duration.total_seconds()) if duration else 0
