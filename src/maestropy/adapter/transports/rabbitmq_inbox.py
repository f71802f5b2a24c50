"""Receive events from RabbitMQ: the exchange of HyperFleet's Sentinel, and a durable queue for each subscription.

| settlement | what RabbitMQ is told |
|---|---|
| handled | acknowledge |
| a dependency is away | deliver it again, after a pause |
| malformed | reject: it is dropped, or goes to the dead-letter exchange of the queue |

The connection is opened again when it breaks; unsettled events are then delivered again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_never

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

from maestropy.adapter.service import EventDone, EventRejected, EventRetry, Settlement
from maestropy.adapter.transports.broker_config import RabbitmqConfig
from maestropy.adapter.transports.broker_inbox import BrokerInbox
from maestropy.sdk.errors import ConfigError, Unavailable

_CONNECT_SECONDS = 15.0
_log = logging.getLogger(__name__)


@asynccontextmanager
async def opened(config: RabbitmqConfig, *, workers: int) -> AsyncIterator[BrokerInbox]:
    """Connect, declare exchange and queue as HyperFleet does, and receive; raises Unavailable and ConfigError."""
    where = f"receive from RabbitMQ queue {config.queue}"
    try:
        connection = await aio_pika.connect_robust(config.url, timeout=_CONNECT_SECONDS)
    except (AMQPError, OSError, TimeoutError) as error:
        # The address is not shown: it holds the password.
        cause = type(error).__name__ if config.url in str(error) else str(error) or type(error).__name__
        raise Unavailable(cause, doing=where, advice="check rabbitmq.url and the broker") from error
    inbox = BrokerInbox(connection.connected.is_set)
    async with connection:
        try:
            await _subscribe(connection, config, inbox=inbox, workers=workers)
        except AMQPError as error:
            advice = "exchange or queue exist with other settings; use those of the Sentinel"
            raise ConfigError(str(error), doing=where, advice=advice) from error
        yield inbox


async def _subscribe(
    connection: aio_pika.abc.AbstractRobustConnection, config: RabbitmqConfig, *, inbox: BrokerInbox, workers: int
) -> None:
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=config.prefetch_count or workers)
    exchange = await channel.declare_exchange(config.exchange, config.exchange_type, durable=True)
    queue = await channel.declare_queue(config.queue, durable=True)
    # HyperFleet binds with an empty key, whatever the publisher's routing key is.
    await queue.bind(exchange, routing_key="")

    async def receive(message: AbstractIncomingMessage) -> None:
        async def settle(settlement: Settlement) -> None:
            await _settle(message, settlement, inbox=inbox)

        headers = {"content-type": message.content_type or ""}
        inbox.put(message.body, headers=headers, settle=settle)

    await queue.consume(receive, consumer_tag=config.consumer_tag or None)


async def _settle(message: AbstractIncomingMessage, settlement: Settlement, *, inbox: BrokerInbox) -> None:
    try:
        match settlement:
            case EventDone():
                await message.ack()
            case EventRetry():
                await inbox.hold_back()
                await message.nack(requeue=True)
            case EventRejected():
                await message.reject(requeue=False)
            case _:
                assert_never(settlement)
    except (AMQPError, ChannelInvalidStateError, asyncio.InvalidStateError, OSError) as error:
        # The connection broke after the event was handled: RabbitMQ delivers it again, which changes nothing.
        _log.warning("an event could not be settled, and is delivered again: %s", error or type(error).__name__)
