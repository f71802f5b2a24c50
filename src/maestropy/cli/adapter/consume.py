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
    from maestropy.adapter.metrics import AdapterMetrics
    from maestropy.adapter.probes import AdapterProbes
    from maestropy.adapter.transports.broker_config import BrokerConfig
    from maestropy.adapter.transports.broker_inbox import BrokerInbox

EXAMPLES = """\
Examples:

  maestro adapter consume adapter.py --broker broker.yaml --topic hyperfleet-clusters --subscription my-adapter
      receive the events of HyperFleet's Sentinel from RabbitMQ or Google Pub/Sub

  export BROKER_TYPE=rabbitmq BROKER_RABBITMQ_URL=amqp://127.0.0.1/
  maestro adapter consume adapter.py --topic hyperfleet-clusters --subscription my-adapter
      the same without a file

The broker file is HyperFleet's (BROKER_CONFIG_FILE); variables such as BROKER_RABBITMQ_URL come before it. Statuses
go to the HyperFleet API (HYPERFLEET_API_URL). An event is settled after it was handled. /healthz and /readyz of the
health port are for probes; /readyz fails during an outage of the broker. A RabbitMQ that cannot be reached at the start
ends the command with 1. /metrics of the metrics port has the metrics hyperfleet_adapter_*. /healthz fails when 32
calls of handlers have not returned: restart the adapter. SIGTERM fails /readyz, waits 15 seconds for the events in
progress, and exits with 0; what still runs after 25 seconds is ended with code 1."""

app = App(
    name="consume",
    help="Handle every event of a subscription of RabbitMQ or Google Pub/Sub.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Consuming:
    """What is consumed, by how many workers, and where probes and scrapes are answered."""

    broker: "BrokerConfig"
    workers: int
    host: str
    health_port: int
    metrics_port: int
    verbose: bool


@app.default
def act(  # noqa: PLR0913 - one parameter per flag
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
    host: Annotated[str, Parameter(help="The address of the health and metrics ports.")] = "127.0.0.1",
    health_port: Annotated[int, Parameter(help="The port of /healthz and /readyz; 0 for a free one.")] = 8080,
    metrics_port: Annotated[int, Parameter(help="The port of /metrics; 0 for a free one.")] = 9090,
    workers: Annotated[int, Parameter(help="The number of events handled at once.")] = 8,
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", help="Log the traceback of a failure of the adapter.")
    ] = False,
    connection: ConnectionFlags | None = None,
) -> int:
    """Consume events."""
    from maestropy.adapter.transports import broker_config

    dependencies.check_ports({"--health-port": health_port, "--metrics-port": metrics_port})
    if workers < 1:
        raise UsageError(f"--workers is {workers}; give 1 or more")
    settings = broker_config.parse(
        _document(broker),
        os.environ,
        topic=topic or os.environ.get(broker_config.TOPIC_VARIABLE, ""),
        subscription=subscription or os.environ.get(broker_config.SUBSCRIPTION_VARIABLE, ""),
    )
    loaded = dependencies.loaded(adapter, verbose=verbose)
    consuming = _Consuming(
        broker=settings,
        workers=workers,
        host=host,
        health_port=health_port,
        metrics_port=metrics_port,
        verbose=verbose,
    )
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

    from maestropy import _version
    from maestropy.adapter import probes
    from maestropy.adapter.metrics import AdapterMetrics
    from maestropy.cli.adapter import logs
    from maestropy.transport.http.listener import HttpListener

    line_format = "%(asctime)s %(levelname)s %(message)s"
    logs.write_to_standard_error(logging.INFO, line_format=line_format, verbose=consuming.verbose)
    for logger in ("httpx", "aio_pika", "aiormq", "uvicorn.error"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    dependencies.seconds(flags.event_timeout, flag="--event-timeout")
    metrics = AdapterMetrics(adapter.name, version=_version.__version__)
    health = probes.AdapterProbes()
    # Bound before the broker is connected: a probe sees a process that is alive and not ready.
    listeners = [
        HttpListener(health.app, host=consuming.host, port=consuming.health_port),
        HttpListener(probes.metrics_app(metrics), host=consuming.host, port=consuming.metrics_port),
    ]
    ports = f"health on port {listeners[0].port}, metrics on port {listeners[1].port}"
    sys.stdout.write(f"adapter {adapter.name} connects to {_shown(consuming.broker)}; {ports}\n")
    sys.stdout.flush()
    async with asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(listener.serve(tls=None), name=f"adapter-http-{listener.port}")
        await _consume_until(stop, adapter, flags, consuming=consuming, metrics=metrics, health=health)
        for listener in listeners:
            listener.stop()
    return 0


async def _consume_until(
    stop: lifecycle.Stop,
    adapter: "Adapter",
    flags: ConnectionFlags,
    *,
    consuming: _Consuming,
    metrics: "AdapterMetrics",
    health: "AdapterProbes",
) -> None:
    import asyncio

    from maestropy.adapter import runner
    from maestropy.adapter.metrics import MeteredPerformer
    from maestropy.adapter.service import AdapterService
    from maestropy.adapter.transports.interruptible import InterruptiblePerformer

    limit = dependencies.seconds(flags.event_timeout, flag="--event-timeout")
    timeouts = runner.EventTimeouts(event_seconds=limit)
    listening = asyncio.Event()

    async def consume() -> None:
        async with dependencies.opened(adapter, flags) as live, _inbox(consuming, client_id=adapter.name) as inbox:
            performer = InterruptiblePerformer(MeteredPerformer(live, metrics))
            service = AdapterService(
                inbox,
                lambda event: runner.handle(adapter, event, performer=performer, timeouts=timeouts),
                workers=consuming.workers,
                observer=metrics,
            )
            async with asyncio.TaskGroup() as group:
                working = group.create_task(service.run(), name="adapter-service")
                health.connected(inbox.is_connected)
                sys.stdout.write(f"adapter {adapter.name} consumes {_shown(consuming.broker)}\n")
                sys.stdout.flush()
                listening.set()
                await stop.wait()
                lifecycle.exit_after(dependencies.STOP_SECONDS)
                metrics.stopping()
                health.stopping()
                performer.stop()
                await inbox.close(seconds=dependencies.DRAIN_SECONDS)
                working.cancel()

    async with asyncio.TaskGroup() as group:
        consuming_task = group.create_task(consume(), name="adapter-consume")
        stopping = group.create_task(stop.wait(), name="wait for stop request")
        await asyncio.wait({consuming_task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not listening.is_set():
            consuming_task.cancel()  # the broker could not be reached yet: there is nothing to end
        stopping.cancel()


def _shown(broker: "BrokerConfig") -> str:
    from maestropy.adapter.transports.broker_config import RabbitmqConfig

    if isinstance(broker, RabbitmqConfig):
        return f"RabbitMQ queue {broker.queue} of exchange {broker.exchange}"
    return f"Pub/Sub {broker.name}"
