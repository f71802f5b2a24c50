"""`maestro up`: the whole system on this computer, until Ctrl-C."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from maestropy.cli import running
from maestropy.cli.failure import UsageError

_ENVIRONMENT = "local"
_HELLO = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}'

EXAMPLES = """\
Examples:

  maestro up
      PostgreSQL, server, one cluster and its agent; the data stays for the next time

  maestro up --agents 3 --ephemeral
      three clusters, and nothing is left behind

  maestro up --write-config
      the same, and `maestro consumer list` finds it without flags

  maestro up --kubeconfig ~/.kube/config
      the agent works on a cluster of yours"""

app = App(
    name="up",
    help="Run PostgreSQL, a server, clusters and their agents on this computer, until Ctrl-C.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(  # noqa: PLR0913 - one parameter per flag
    *,
    agents: Annotated[int, Parameter(help="How many clusters, each with its agent: cluster1, cluster2, ...")] = 1,
    kubeconfig: Annotated[Path | None, Parameter(help="A cluster of yours in place of the first sandbox.")] = None,
    data_dir: Annotated[
        Path | None, Parameter(help="Where everything is kept. Default: $XDG_DATA_HOME/maestropy/up.")
    ] = None,
    ephemeral: Annotated[bool, Parameter(negative="", help="Keep nothing.")] = False,
    free_ports: Annotated[
        bool, Parameter(negative="", help="Take ports that are free, instead of 8000, 8080, 8083, 8090 and 8091.")
    ] = False,
    broker: Annotated[
        Literal["grpc", "mqtt"],
        Parameter(help="What carries events to the agents: the server itself, or a Mosquitto that is started too."),
    ] = "grpc",
    write_config: Annotated[
        bool, Parameter(negative="", help="Keep the addresses as environment `local` of `maestro config`, and use it.")
    ] = False,
) -> int:
    """Run the whole system."""
    import tempfile
    from contextlib import ExitStack

    if agents < 1:
        raise UsageError("--agents must be 1 or more")
    if kubeconfig is not None and not kubeconfig.exists():
        raise UsageError(f"--kubeconfig={kubeconfig} does not exist")
    given = kubeconfig.absolute() if kubeconfig else None
    with ExitStack() as stack:
        folder = data_dir or data_home()
        if ephemeral:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maestro-up-")))
        wanted = _Wanted(
            folder=folder,
            agents=agents,
            kubeconfig=given,
            is_ephemeral=ephemeral,
            free_ports=free_ports,
            broker=broker,
            write_config=write_config,
        )
        return running.run(lambda stop: _run(wanted, stop=stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    folder: Path
    agents: int
    kubeconfig: Path | None
    is_ephemeral: bool
    free_ports: bool
    broker: Literal["grpc", "mqtt"]
    write_config: bool


async def _run(asked: _Wanted, *, stop: running.Stop) -> int:
    from rich.console import Console

    from maestropy.sandbox.fleet import Wanted, fleet
    from maestropy.sandbox.process import Ports

    console = Console(highlight=False, soft_wrap=True)
    with console.status("starting") as status:
        ports = None if asked.free_ports else Ports(rest=8000, health=8083, metrics=8080, sources=8090, agents=8091)
        wanted = Wanted(
            folder=asked.folder,
            consumers=tuple(f"cluster{number}" for number in range(1, asked.agents + 1)),
            kubeconfig=asked.kubeconfig,
            ports=ports,
            source="maestro-cli",
            broker=asked.broker,
            is_ephemeral=asked.is_ephemeral,
            progress=lambda text: status.update(f"starting: {text}"),
        )
        async with fleet(wanted) as started:
            status.stop()
            written = _write_config(started) if asked.write_config else None
            _tell(console, started, written=written)
            await running.until(stop, started.server.watch_over())
            console.print("stopping")
    return 0


def _tell(console: Any, started: Any, *, written: Path | None) -> None:
    """Say where everything is; console and fleet are only known once the command runs."""
    # Plain lines: a path in the cell of a table breaks where nobody can copy it.
    lines = {
        "REST": started.api_url,
        "gRPC for sources": started.grpc_url,
        **({"MQTT broker": started.mqtt_url} if started.mqtt_url else {"gRPC for agents": started.broker_url}),
        **{f"cluster {consumer}": f"kubeconfig {path}" for consumer, path in started.kubeconfigs.items()},
        "logs and data": started.folder,
    }
    if written:
        lines["environment local"] = f"in {written}, and in use"
    console.print("Maestro is up", style="bold green")
    for name, value in lines.items():
        console.print(f"  {name:<18} {value}")
    if not written:
        console.print("\nLet the other commands know (--write-config does it for you):")
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
    """Keep the addresses as an environment, and use it."""
    import os

    from maestropy.cli import environments

    found = environments.read(environments.default_path(os.environ))
    values = {
        "rest-url": started.api_url,
        "grpc-server-address": started.grpc_url,
        "db-dsn": str(started.dsn),
        "mgmt-kubeconfig": ",".join(f"{consumer}={path}" for consumer, path in started.kubeconfigs.items()),
    }
    environments.write(found.put(_ENVIRONMENT, values, use=True))
    return found.path


def data_home() -> Path:
    """Return where everything is kept unless somebody says otherwise."""
    import os

    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "maestropy" / "up"
