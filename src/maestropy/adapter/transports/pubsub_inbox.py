"""Receive events from a subscription of Google Pub/Sub.

| settlement | what Pub/Sub is told |
|---|---|
| handled | acknowledge |
| a dependency is away, or malformed | deliver it again, after a pause; in the end, to the dead-letter topic |

The connection is opened again when it breaks; unsettled events are then delivered again.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_never

from maestropy.adapter.service import EventDone, EventRejected, EventRetry, Settlement
from maestropy.adapter.transports.broker_config import PubsubConfig
from maestropy.adapter.transports.broker_inbox import BrokerInbox
from maestropy.aio import tasks
from maestropy.sdk.errors import ConfigError
from maestropy.transport import port
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.endpoint import GLOBAL_TARGET, Names, PubsubEndpoint, ReceiveLimits

_RECONNECT_SECONDS = 2.0
_EMULATOR = "PUBSUB_EMULATOR_HOST"
_log = logging.getLogger(__name__)


@asynccontextmanager
async def opened(config: PubsubConfig, *, workers: int, client_id: str) -> AsyncIterator[BrokerInbox]:
    """Connect and receive; raises ConfigError when the subscription is missing or denied."""
    online = asyncio.Event()
    inbox = BrokerInbox(online.is_set)
    endpoint = _endpoint(config, workers=workers)
    owner = tasks.TaskOwner()
    connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    owner.start("pubsub-inbox", _receive(endpoint, inbox, online=online, connected=connected, client_id=client_id))
    try:
        await connected
        yield inbox
    finally:
        await owner.stop()


def _endpoint(config: PubsubConfig, *, workers: int) -> PubsubEndpoint:
    emulator = os.environ.get(_EMULATOR, "")
    # One subscription has both roles here: the connection was made for a pair of them.
    names = Names(events=config.name, broadcast=config.name)
    limits = ReceiveLimits(
        max_messages=config.max_messages or workers,
        max_bytes=config.max_bytes,
        lease_seconds=config.ack_deadline_seconds,
    )
    return PubsubEndpoint(
        project=config.project,
        topics=names,
        subscriptions=names,
        target=emulator or GLOBAL_TARGET,
        is_secure=not emulator,
        receive=limits,
    )


async def _receive(
    endpoint: PubsubEndpoint,
    inbox: BrokerInbox,
    *,
    online: asyncio.Event,
    connected: asyncio.Future[None],
    client_id: str,
) -> None:
    """Receive for ever; a connection that breaks is opened again, one that never worked is an error at once."""
    while True:
        try:
            async with connection.connect(endpoint, client_id=client_id) as client:
                online.set()
                if not connected.done():
                    connected.set_result(None)
                async for incoming in client.messages():
                    _put(inbox, incoming)
        except port.Disconnected as error:
            online.clear()
            if not connected.done() and isinstance(error, port.Misconfigured):
                doing = f"receive from {endpoint.subscriptions.events}"
                connected.set_exception(ConfigError(str(error), doing=doing))
                return
            _log.warning("Pub/Sub is away, connecting again: %s", error)
        await asyncio.sleep(_RECONNECT_SECONDS)


def _put(inbox: BrokerInbox, incoming: connection.Incoming) -> None:
    async def settle(settlement: Settlement) -> None:
        match settlement:
            case EventDone():
                incoming.acknowledge()
            case EventRetry() | EventRejected():
                await inbox.hold_back()
                incoming.refuse()
            case _:
                assert_never(settlement)

    inbox.put(incoming.message.data, headers=incoming.message.attributes, settle=settle)
