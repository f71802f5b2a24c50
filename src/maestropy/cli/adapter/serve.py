"""`maestro adapter serve`: handle every event that arrives over HTTP, until stopped."""

import ipaddress
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import lifecycle
from maestropy.cli.adapter import dependencies
from maestropy.cli.adapter.dependencies import ConnectionFlags
from maestropy.cli.errors import UsageError
from maestropy.untrusted import tokens
from maestropy.untrusted.errors import InputRejected

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.metrics import AdapterMetrics
    from maestropy.transport.http.listener import HttpListener

_LOOPBACK = "127.0.0.1"

EXAMPLES = """\
Examples:

  maestro adapter serve adapter.py --port 8080
      POST / takes a CloudEvent and answers 204 when it was handled, 503 when it must be sent again

  maestro adapter serve adapter.py --host 0.0.0.0 --token-file /var/run/adapter/token
      in a pod: senders must present the token of the file (Authorization: Bearer ...)

Statuses go to the HyperFleet API (HYPERFLEET_API_URL). /healthz and /readyz are for probes; /metrics of the metrics
port has the metrics hyperfleet_adapter_*. /healthz fails when 32 calls of handlers have not returned: restart the
adapter. SIGTERM fails /readyz, waits 15 seconds for the events in progress, and exits with 0; what still runs after
25 seconds is ended with code 1."""

app = App(
    name="serve",
    help="Handle every event that arrives over HTTP.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    """Where the service listens, and for whom."""

    host: str
    port: int
    metrics_port: int
    token_file: Path | None
    workers: int
    verbose: bool

    def check(self) -> None:
        """Raise UsageError unless senders are authenticated, or on this machine, and the numbers are usable."""
        dependencies.check_ports({"--port": self.port, "--metrics-port": self.metrics_port})
        if self.workers < 1:
            raise UsageError(f"--workers is {self.workers}; give 1 or more")
        if self.token_file is None and not _is_loopback(self.host):
            raise UsageError(
                f"--host={self.host or '*'} lets other machines send events; give --token-file with the token that "
                f"senders present, or listen on {_LOOPBACK}"
            )
        if self.token_file is not None:
            try:
                tokens.read(self.token_file)
            except InputRejected as error:
                raise UsageError(f"--token-file: {error}") from None

    def token(self) -> str:
        """Return the token that senders must present; read for every event, so that it can be rotated.

        It is empty, which admits nobody, while the file holds none.
        """
        import logging

        assert self.token_file
        try:
            return tokens.read(self.token_file)
        except InputRejected as error:
            logging.getLogger(__name__).warning("no sender is admitted: %s", error)
            return ""


@app.default
def act(  # noqa: PLR0913 - one parameter per flag
    adapter: Annotated[str, Parameter(help="A file, a folder with adapter.py, or module:name.")],
    /,
    *,
    host: Annotated[str, Parameter(help="The address to listen on; another than loopback needs --token-file.")] = (
        _LOOPBACK
    ),
    port: Annotated[int, Parameter(help="The port to listen on; 0 for a free one.")] = 8080,
    metrics_port: Annotated[int, Parameter(help="The port of /metrics; 0 for a free one.")] = 9090,
    token_file: Annotated[
        Path | None, Parameter(help="The file with the bearer token that senders must present.", show_default=False)
    ] = None,
    workers: Annotated[int, Parameter(help="The number of events handled at once.")] = 8,
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", help="Log the traceback of a failure of the adapter.")
    ] = False,
    connection: ConnectionFlags | None = None,
) -> int:
    """Serve events."""
    listening = _Listening(
        host=host, port=port, metrics_port=metrics_port, token_file=token_file, workers=workers, verbose=verbose
    )
    listening.check()
    loaded = dependencies.loaded(adapter, verbose=verbose)
    return lifecycle.run(lambda stop: _run(loaded, connection or ConnectionFlags(), listening=listening, stop=stop))


async def _run(adapter: "Adapter", flags: ConnectionFlags, *, listening: _Listening, stop: lifecycle.Stop) -> int:
    import asyncio
    import contextlib

    from maestropy import _version
    from maestropy.adapter import runner
    from maestropy.adapter.metrics import AdapterMetrics, MeteredPerformer
    from maestropy.adapter.service import AdapterService
    from maestropy.adapter.transports.http_inbox import HttpInbox
    from maestropy.adapter.transports.interruptible import InterruptiblePerformer
    from maestropy.transport.http.limits import HttpLimits
    from maestropy.transport.http.listener import HttpListener

    _log_to_standard_error(verbose=listening.verbose)
    metrics = AdapterMetrics(adapter.name, version=_version.__version__)
    inbox = HttpInbox(token=listening.token if listening.token_file else None)
    limits = HttpLimits(read_seconds=30.0)
    listener = HttpListener(inbox.app, host=listening.host, port=listening.port, limits=limits)
    exporter = _exporter(metrics, listening)
    limit = dependencies.seconds(flags.event_timeout, flag="--event-timeout")
    timeouts = runner.EventTimeouts(event_seconds=limit)
    async with dependencies.opened(adapter, flags) as live:
        performer = InterruptiblePerformer(MeteredPerformer(live, metrics))
        service = AdapterService(
            inbox,
            lambda event: runner.handle(adapter, event, performer=performer, timeouts=timeouts),
            workers=listening.workers,
            observer=metrics,
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(service.run(), name="adapter-service")
            serving = group.create_task(listener.serve(tls=None), name="adapter-http")
            group.create_task(exporter.serve(tls=None), name="adapter-metrics")
            _announce(adapter.name, listener, exporter)
            await stop.wait()
            lifecycle.exit_after(dependencies.STOP_SECONDS)
            # No event is begun any more, those in progress end, and only then the listeners close.
            metrics.stopping()
            await inbox.close()
            performer.stop()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(dependencies.DRAIN_SECONDS):
                    await service.drained()
            inbox.abandon()
            listener.stop()
            await serving
            exporter.stop()
            working.cancel()
    return 0


def _exporter(metrics: "AdapterMetrics", listening: _Listening) -> "HttpListener":
    from maestropy.adapter import probes
    from maestropy.transport.http.listener import HttpListener

    return HttpListener(probes.metrics_app(metrics), host=listening.host, port=listening.metrics_port)


def _log_to_standard_error(*, verbose: bool) -> None:
    import logging

    from maestropy.adapter.transports import hyperfleet_api
    from maestropy.cli.adapter import logs

    logs.write_to_standard_error(logging.INFO, line_format="%(asctime)s %(levelname)s %(message)s", verbose=verbose)
    for logger in ("httpx", "uvicorn.error"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    if hyperfleet_api.from_environment(os.environ) is None:
        advice = "set %s: without it events must carry their spec, and statuses are only logged"
        logging.getLogger(__name__).warning(advice, hyperfleet_api.API_VARIABLES[0])


def _announce(name: str, listener: "HttpListener", exporter: "HttpListener") -> None:
    sys.stdout.write(
        f"adapter {name} listens for events on port {listener.port}, metrics are on port {exporter.port}\n"
    )
    sys.stdout.flush()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
