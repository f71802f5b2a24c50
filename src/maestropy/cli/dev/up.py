"""`maestro up`: run the whole system on this computer until Ctrl-C."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from maestropy.cli import lifecycle
from maestropy.cli.errors import CommandError, UsageError
from maestropy.wire import source_ids

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
        bool, Parameter(negative="", help="Use free ports instead of 8000, 8080, 8083, 8090 and 8091.")
    ] = False,
    broker: Annotated[
        Literal["grpc", "mqtt"],
        Parameter(help="The message broker: the gRPC broker of the server, or a Mosquitto that is started too."),
    ] = "grpc",
    write_config: Annotated[
        bool, Parameter(negative="", help="Store the addresses as environment `local` of `maestro config`, and use it.")
    ] = False,
) -> int:
    """Run the whole system."""
    import tempfile
    from contextlib import ExitStack

    if agents < 1:
        raise UsageError("--agents must be 1 or more")
    if ephemeral and data_dir is not None:
        raise UsageError("--ephemeral and --data-dir exclude each other: ephemeral data is in a temporary directory")
    if kubeconfig is not None and not kubeconfig.exists():
        raise UsageError(f"--kubeconfig={kubeconfig} does not exist")
    kubeconfig_file = kubeconfig.absolute() if kubeconfig else None
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


async def _run_alone(options: _UpOptions, *, stop: lifecycle.Stop) -> int:
    from maestropy.sandbox.errors import DirectoryInUse

    try:
        return await _run(options, stop=stop)
    except DirectoryInUse as error:
        raise CommandError(
            f"it already runs: process {error.holder}, with its logs and data in {options.folder}; use that one, stop "
            "it with Ctrl-C in its terminal, or start another with --data-dir DIR --free-ports"
        ) from error


async def _run(options: _UpOptions, *, stop: lifecycle.Stop) -> int:
    from rich.console import Console

    from maestropy.sandbox.fleet import FleetOptions, fleet
    from maestropy.sandbox.server_process import Ports

    console = Console(highlight=False, soft_wrap=True)
    with console.status("starting") as status:
        ports = None if options.free_ports else Ports(rest=8000, health=8083, metrics=8080, sources=8090, agents=8091)
        fleet_options = FleetOptions(
            folder=options.folder,
            consumers=tuple(f"cluster{number}" for number in range(1, options.agents + 1)),
            kubeconfig=options.kubeconfig,
            ports=ports,
            source=source_ids.COMMAND_LINE,
            broker=options.broker,
            is_ephemeral=options.is_ephemeral,
            progress=lambda text: status.update(f"starting: {text}"),
        )
        async with fleet(fleet_options) as started:
            status.stop()
            written = _write_config(started) if options.write_config else None
            _print_summary(console, started, written=written)
            await lifecycle.run_until(stop, started.server.wait_for_exit())
            console.print("stopping")
    return 0


def _print_summary(console: Any, started: Any, *, written: Path | None) -> None:
    """Print the addresses. The types of console and fleet are imported only when the command runs."""
    # Plain lines, because a path that wraps in a table cell cannot be copied.
    lines = {
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

    config = environments.read(environments.default_path(os.environ))
    values = {
        "rest-url": started.api_url,
        "grpc-server-address": started.grpc_url,
        "db-dsn": str(started.dsn),
        "mgmt-kubeconfig": ",".join(f"{consumer}={path}" for consumer, path in started.kubeconfigs.items()),
    }
    environments.write(config.put(_ENVIRONMENT, values, use=True))
    return config.path


def data_home() -> Path:
    """Return the default directory of data and logs."""
    import os

    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "maestropy" / "up"
