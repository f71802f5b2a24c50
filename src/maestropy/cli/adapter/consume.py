"""`maestro adapter consume`: handle every event of a broker's subscription, until stopped."""

import os
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import lifecycle
from maestropy.cli.adapter import dependencies
from maestropy.cli.adapter.dependencies import ConnectionFlags
from maestropy.cli.errors import UsageError

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.transports.broker_config import BrokerConfig
    from maestropy.adapter.transports.broker_inbox import BrokerInbox

_DRAIN_SECONDS = 15.0
"""For the events in progress after SIGTERM; Kubernetes kills a pod after 30 seconds."""

EXAMPLES = """\
Examples:

  maestro adapter consume adapter.py --broker broker.yaml --topic hyperfleet-clusters --subscription my-adapter
      receive the events of HyperFleet's Sentinel from RabbitMQ or Google Pub/Sub

  export BROKER_TYPE=rabbitmq BROKER_RABBITMQ_URL=amqp://127.0.0.1/
  maestro adapter consume adapter.py --topic hyperfleet-clusters --subscription my-adapter
      the same without a file

The broker file is HyperFleet's (BROKER_CONFIG_FILE); variables such as BROKER_RABBITMQ_URL come before it. Statuses
go to the HyperFleet API (HYPERFLEET_API_URL). An event is settled after it was handled; SIGTERM lets those
in progress end."""

app = App(
    name="consume",
    help="Handle every event of a subscription of RabbitMQ or Google Pub/Sub.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Consuming:
    """What is consumed, and by how many workers."""

    broker: "BrokerConfig"
    workers: int


@app.default
def act(
    adapter: Annotated[str, Parameter(help="A file, a folder with adapter.py, or module:name.")],
    /,
    *,
    broker: Annotated[
        Path | None, Parameter(help="HyperFleet's broker file (BROKER_CONFIG_FILE).", show_default=False)
    ] = None,
    topic: Annotated[str, Parameter(help="The topic (HYPERFLEET_BROKER_TOPIC).", show_default=False)] = "",
    subscription: Annotated[
        str, Parameter(help="The subscription (HYPERFLEET_BROKER_SUBSCRIPTION_ID).", show_default=False)
    ] = "",
    workers: Annotated[int, Parameter(help="The number of events handled at once.")] = 8,
    connection: ConnectionFlags | None = None,
) -> int:
    """Consume events."""
    from maestropy.adapter.tooling import loading
    from maestropy.adapter.transports import broker_config

    if workers < 1:
        raise UsageError(f"--workers is {workers}; give 1 or more")
    settings = broker_config.parse(
        _document(broker),
        os.environ,
        topic=topic or os.environ.get(broker_config.TOPIC_VARIABLE, ""),
        subscription=subscription or os.environ.get(broker_config.SUBSCRIPTION_VARIABLE, ""),
    )
    loaded = loading.load(adapter)
    consuming = _Consuming(broker=settings, workers=workers)
    return lifecycle.run(lambda stop: _run(loaded, connection or ConnectionFlags(), consuming=consuming, stop=stop))


def _document(path: Path | None) -> object:
    from maestropy.adapter.transports.broker_config import FILE_VARIABLE
    from maestropy.sdk._manifests import sources
    from maestropy.sdk.errors import Invalid

    named = path or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    if named is None:
        return {}
    try:
        documents = sources.read(named)
    except (OSError, Invalid) as error:
        raise UsageError(f"the broker file cannot be used: {error}") from error
    return documents[0] if documents else {}


def _inbox(consuming: _Consuming, *, client_id: str) -> "AbstractAsyncContextManager[BrokerInbox]":
    from maestropy.adapter.transports.broker_config import RabbitmqConfig

    if isinstance(consuming.broker, RabbitmqConfig):
        from maestropy.adapter.transports import rabbitmq_inbox

        return rabbitmq_inbox.opened(consuming.broker, workers=consuming.workers)
    from maestropy.adapter.transports import pubsub_inbox

    return pubsub_inbox.opened(consuming.broker, workers=consuming.workers, client_id=client_id)


async def _run(adapter: "Adapter", flags: ConnectionFlags, *, consuming: _Consuming, stop: lifecycle.Stop) -> int:
    import asyncio
    import logging

    from maestropy.adapter import runner
    from maestropy.adapter.service import AdapterService
    from maestropy.cli.adapter import logs

    logs.write_to_standard_error(logging.INFO, line_format="%(asctime)s %(levelname)s %(message)s")
    for logger in ("httpx", "aio_pika", "aiormq"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    limit = dependencies.seconds(flags.event_timeout, flag="--event-timeout")
    timeouts = runner.EventTimeouts(event_seconds=limit)

    listening = asyncio.Event()

    async def consume() -> None:
        async with dependencies.opened(adapter, flags) as performer, _inbox(consuming, client_id=adapter.name) as inbox:
            service = AdapterService(
                inbox,
                lambda event: runner.handle(adapter, event, performer=performer, timeouts=timeouts),
                workers=consuming.workers,
            )
            async with asyncio.TaskGroup() as group:
                working = group.create_task(service.run(), name="adapter-service")
                sys.stdout.write(f"adapter {adapter.name} consumes {_shown(consuming.broker)}\n")
                sys.stdout.flush()
                listening.set()
                await stop.wait()
                await inbox.close(seconds=_DRAIN_SECONDS)
                working.cancel()

    async with asyncio.TaskGroup() as group:
        consuming_task = group.create_task(consume(), name="adapter-consume")
        stopping = group.create_task(stop.wait(), name="wait for stop request")
        await asyncio.wait({consuming_task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not listening.is_set():
            consuming_task.cancel()  # the broker could not be reached yet: there is nothing to end
        stopping.cancel()
    return 0


def _shown(broker: "BrokerConfig") -> str:
    from maestropy.adapter.transports.broker_config import RabbitmqConfig

    if isinstance(broker, RabbitmqConfig):
        return f"RabbitMQ queue {broker.queue} of exchange {broker.exchange}"
    return f"Pub/Sub {broker.name}"
