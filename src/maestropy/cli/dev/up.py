"""`maestro up`: run the whole system on this computer until Ctrl-C."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from maestropy.cli import lifecycle
from maestropy.cli.errors import CommandError, UsageError, innermost
from maestropy.wire import source_ids

MOST_AGENTS = 100
"""Each is a cluster with its agent in this process; a larger number is a mistake in typing."""
_ENVIRONMENT = "local"
_HELLO = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}'

EXAMPLES = """\
Examples:

  maestro up
      PostgreSQL, server, one cluster and its agent; the data is kept

  maestro up --agents 3 --ephemeral
      three clusters; the data is deleted at the end

  maestro up --write-config
      the same; `maestro consumer list` then works without flags

  maestro up --with-traces --ephemeral
      apply a work and print its trace, from the client to the cluster and back

  maestro up --kubeconfig ~/.kube/config
      the agent uses an existing cluster"""

app = App(
    name="up",
    help="Run PostgreSQL, a server, clusters and their agents on this computer, until Ctrl-C.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def execute(  # noqa: PLR0913 - one parameter per flag
    *,
    agents: Annotated[int, Parameter(help="The number of clusters, each with one agent: cluster1, cluster2, ...")] = 1,
    kubeconfig: Annotated[
        Path | None, Parameter(help="An existing cluster in place of the first sandbox cluster.")
    ] = None,
    data_dir: Annotated[
        Path | None, Parameter(help="The directory of data and logs. Default: $XDG_DATA_HOME/maestropy/up.")
    ] = None,
    ephemeral: Annotated[bool, Parameter(negative="", help="Delete all data at the end; not with --data-dir.")] = False,
    free_ports: Annotated[
        bool, Parameter(negative="", help="Use free ports instead of 8000, 8080, 8083, 8088, 8090 and 8091.")
    ] = False,
    broker: Annotated[
        Literal["grpc", "mqtt"],
        Parameter(help="The message broker: the gRPC broker of the server, or a Mosquitto that is started too."),
    ] = "grpc",
    write_config: Annotated[
        bool, Parameter(negative="", help="Store the addresses as environment `local` of `maestro config`, and use it.")
    ] = False,
    with_traces: Annotated[
        bool, Parameter(negative="", help="Trace all processes with OpenTelemetry, apply a work and print its trace.")
    ] = False,
) -> int:
    """Run the whole system."""
    import importlib
    import tempfile
    from contextlib import ExitStack

    # Path takes an empty text for the current directory.
    if data_dir == Path():
        raise UsageError("--data-dir is empty; name a directory, the current one by its full path")
    if not 1 <= agents <= MOST_AGENTS:
        raise UsageError(
            f"--agents is {agents}; use 1 to {MOST_AGENTS}: each is a cluster and an agent on this computer"
        )
    if ephemeral and data_dir is not None:
        raise UsageError("--ephemeral and --data-dir exclude each other: ephemeral data is in a temporary directory")
    if kubeconfig is not None and not kubeconfig.exists():
        raise UsageError(f"--kubeconfig={kubeconfig} does not exist")
    if with_traces:
        _prepare_traces()
    kubeconfig_file = kubeconfig.absolute() if kubeconfig else None
    # Before the event loop handles signals: it would handle none while these modules are imported.
    importlib.import_module("maestropy.sandbox.shown_trace" if with_traces else "maestropy.sandbox.fleet")
    with ExitStack() as stack:
        folder = data_dir or data_home()
        if ephemeral:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maestro-up-")))
        options = _UpOptions(
            folder=folder,
            agents=agents,
            kubeconfig=kubeconfig_file,
            is_ephemeral=ephemeral,
            free_ports=free_ports,
            broker=broker,
            write_config=write_config,
            with_traces=with_traces,
        )
        return lifecycle.run(lambda stop: _run_alone(options, stop=stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class _UpOptions:
    folder: Path
    agents: int
    kubeconfig: Path | None
    is_ephemeral: bool
    free_ports: bool
    broker: Literal["grpc", "mqtt"]
    write_config: bool
    with_traces: bool


def _prepare_traces() -> None:
    """Leave the OTEL_* variables to `shown_trace`, which sets its own: the SDK may fail at its import with others."""
    import os

    from maestropy import installation
    from maestropy.telemetry import configuration

    if os.environ.get("OTEL_TRACES_EXPORTER"):
        raise UsageError("--with-traces collects the traces itself; unset OTEL_TRACES_EXPORTER, or leave the flag out")
    if not configuration.is_installed():
        raise CommandError(f"--with-traces needs the extra otel: {installation.hint('otel')}")
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]


async def _run_alone(options: _UpOptions, *, stop: lifecycle.Stop) -> int:
    from maestropy.sandbox.errors import DirectoryInUse

    try:
        await _run(options, stop=stop)
    except Exception as error:
        cause = innermost(error)
        if not isinstance(cause, DirectoryInUse):
            raise
        raise CommandError(
            f"it already runs: process {cause.holder}, with its logs and data in {options.folder}; use that one, stop "
            "it with Ctrl-C in its terminal, or start another with --data-dir DIR --free-ports"
        ) from error
    return 0


async def _run(options: _UpOptions, *, stop: lifecycle.Stop) -> None:
    import asyncio
    from contextlib import ExitStack

    from rich.console import Console

    from maestropy.sandbox.fleet import FleetOptions, fleet
    from maestropy.sandbox.server_process import Ports
    from maestropy.telemetry import tracing

    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack, console.status("starting") as status:
        traces: Any = None
        if options.with_traces:
            from maestropy.sandbox import shown_trace

            traces = stack.enter_context(shown_trace.traced())
        ports = None if options.free_ports else Ports(rest=8000, health=8083, metrics=8080, sources=8090, agents=8091)
        fleet_options = FleetOptions(
            folder=options.folder,
            consumers=tuple(f"cluster{number}" for number in range(1, options.agents + 1)),
            kubeconfig=options.kubeconfig,
            ports=ports,
            source=source_ids.COMMAND_LINE,
            broker=options.broker,
            is_ephemeral=options.is_ephemeral,
            agent_tracer=traces.agent_tracer if traces else tracing.OFF,
            progress=lambda text: status.update(f"starting: {text}"),
        )

        async def run_fleet() -> None:
            async with fleet(fleet_options) as started, _console(started, options) as address:
                status.stop()
                written = _write_config(started) if options.write_config else None
                _print_summary(console, started, written=written, address=address)
                if traces:
                    await _print_trace(console, started, traces, consumer=fleet_options.consumers[0])
                await started.server.wait_for_exit()

        async def announce_stop() -> None:
            await stop.wait()
            status.stop()
            console.print("stopping")

        async with asyncio.TaskGroup() as group:
            announcing = group.create_task(announce_stop(), name="announce the stop")
            # Also the start, which may take long, ends when the stop is requested.
            await lifecycle.run_until(stop, run_fleet())
            announcing.cancel()


async def _print_trace(console: Any, started: Any, traces: Any, *, consumer: str) -> None:
    from maestropy.sandbox import otlp_receiver, shown_trace

    spans = await shown_trace.trace_one(started, traces.receiver, consumer=consumer)
    console.print(f"\nThe trace {spans[0].trace_id} of one request: span, process, start, duration")
    for line in otlp_receiver.tree(spans):
        console.print(f"  {line}", markup=False)


@asynccontextmanager
async def _console(started: Any, options: _UpOptions) -> AsyncIterator[str]:
    """Serve the console of the fleet: it reads the API, the database, the clusters and the logs."""
    from maestropy.cli.client.actions import operator
    from maestropy.console.actions import with_token_of
    from maestropy.console.serve import PORT, ConsoleOptions, serve
    from maestropy.sdk.client import AsyncMaestro
    from maestropy.sdk.retry import RetryPolicy
    from maestropy.trace.access.options import WorkAccess

    folder = started.folder.absolute()
    clusters = tuple(f"{consumer}={path}" for consumer, path in started.kubeconfigs.items())
    access = WorkAccess(db_dsn=str(started.dsn), mgmt_kubeconfigs=clusters, logs=str(folder))
    if options.write_config:
        access = replace(access, environment=_ENVIRONMENT)
    # The console itself tries again, and says meanwhile what is wrong.
    async with AsyncMaestro(environ={}, api_url=started.api_url, retry=RetryPolicy(attempts=1)) as client:
        console_options = ConsoleOptions(
            client=client,
            description=started.api_url,
            access=access,
            logs=(folder / "server.log", *(folder / f"agent-{consumer}.log" for consumer in started.kubeconfigs)),
            api_flags=f"--rest-url {started.api_url}",
            actions=with_token_of(client, requested_by=operator()),
        )
        async with serve(console_options, port=0 if options.free_ports else PORT) as address:
            yield address


def _print_summary(console: Any, started: Any, *, written: Path | None, address: str) -> None:
    """Print the addresses. The types of console and fleet are imported only when the command runs."""
    # Plain lines, because a path that wraps in a table cell cannot be copied.
    lines = {
        "console": address,
        "REST": started.api_url,
        "gRPC for sources": started.grpc_url,
        **({"MQTT broker": started.mqtt_url} if started.mqtt_url else {"gRPC for agents": started.broker_url}),
        **{f"cluster {consumer}": f"kubeconfig {path}" for consumer, path in started.kubeconfigs.items()},
        "logs and data": started.folder,
    }
    if written:
        lines["environment local"] = f"in {written}, and current"
    console.print("Maestro is up", style="bold green")
    for name, value in lines.items():
        console.print(f"  {name:<18} {value}")
    if not written:
        console.print("\nStore the addresses for the other commands (--write-config does it for you):")
        addresses = f"--rest-url {started.api_url} --grpc-server-address {started.grpc_url}"
        console.print(f"  maestro config set-env {_ENVIRONMENT} --use {addresses}")
    first, path = next(iter(started.kubeconfigs.items()))
    console.print("\nTry:")
    console.print("  maestro consumer list")
    console.print(f"  echo '{_HELLO}' | maestro resourcebundle apply --consumer {first} --name hello --wait -f -")
    console.print(f"  kubectl --kubeconfig {path} get configmap hello")
    if written:
        console.print("  maestro trace work --work-name hello")
    logs = "" if started.folder == data_home() else f" {started.folder}"
    console.print(f"  maestro trace request --live hello{logs}")
    console.print("\nCtrl-C stops everything.")


def _write_config(started: Any) -> Path:
    """Store the addresses as an environment, and use it."""
    import os

    from maestropy.cli import environments

    values = {
        "rest-url": started.api_url,
        "grpc-server-address": started.grpc_url,
        "db-dsn": str(started.dsn),
        "mgmt-kubeconfig": ",".join(f"{consumer}={path}" for consumer, path in started.kubeconfigs.items()),
        "logs": str(started.folder.absolute()),
        "health-url": f"http://127.0.0.1:{started.server.ports.health}",
        "metrics-url": f"http://127.0.0.1:{started.server.ports.metrics}",
    }
    path = environments.default_path(os.environ)
    return environments.change(path, lambda config: config.put(_ENVIRONMENT, values, use=True)).path


def data_home() -> Path:
    """Return the default directory of data and logs."""
    import os

    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "maestropy" / "up"
