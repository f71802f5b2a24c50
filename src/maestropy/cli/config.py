"""`maestro config`: manage named environments with the addresses and credential files of Maestro servers."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Group, Parameter

from maestropy.cli import environments, screen
from maestropy.cli.client import connection
from maestropy.cli.client import output as rendering
from maestropy.cli.client.connection import GrpcFlags, RestAddress, RestFlags
from maestropy.cli.client.formats import Format
from maestropy.cli.client.output import Output
from maestropy.cli.environments import Environments
from maestropy.cli.errors import UsageError
from maestropy.cli.examples import epilogue

_EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 a mistake in the command line or in the file."

app = App(
    name="config",
    help="Manage named environments: the addresses and credential files of Maestro servers.",
    help_epilogue="""\
Examples:

  maestro config set-env local --rest-url http://127.0.0.1:8000
  maestro config set-env local --grpc-server-address 127.0.0.1:8090
  maestro config set-env prod --rest-url https://maestro.example --use
  maestro config set-env prod --grpc-token-file /secrets/token
  maestro config set-env prod --svc-context svc --mgmt-context mgmt-1=mgmt
  maestro config show
  maestro consumer list --env local

Environments are stored in $XDG_CONFIG_HOME/maestropy/config.yaml, or under ~/.config.
The file contains no secrets, only the paths of files with secrets. A flag wins
over an environment variable, a variable over this file, the file over the default.

"""
    + _EXIT_CODES,
    help_format="plaintext",
    version_flags=[],
)

_TRACE = Group("Tracing", sort_key=91)


@Parameter(name="*", group=_TRACE, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFlags:
    """Access of `maestro trace work` and `maestro trace hcp` to clusters, database and services."""

    svc_context: str = ""
    """The context of the service cluster."""
    svc_kubeconfig: str = ""
    """The kubeconfig file of the service cluster."""
    mgmt_context: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """The context of a management cluster, or CONSUMER=CONTEXT; repeat it for several."""
    mgmt_kubeconfig: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """The kubeconfig file of a management cluster, or CONSUMER=FILE; repeat it for several."""
    namespace: str = ""
    """The server's namespace."""
    agent_namespace: str = ""
    """The agents' namespace."""
    db: str = ""
    """How to reach the database, as in `maestro trace work --db`."""
    db_dsn: str = ""
    """postgresql://user@host:5432/database, without a password."""
    db_pod: str = ""
    """The pod to run psql in."""
    frontend_url: str = ""
    """The RP frontend, for `maestro trace hcp`."""
    cs_url: str = ""
    """Clusters Service, for `maestro trace hcp`."""
    logs: str = ""
    """The folder with the log files of server and agents, if they run on this computer, as with `maestro up`."""
    health_url: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """The health port of a server or an agent, for `maestro diagnose collect`; repeat it for several."""
    metrics_url: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """The metrics port of a server or an agent, for `maestro diagnose collect`; repeat it for several."""


OutputFlag = Annotated[Output, Parameter(name=("-o", "--output"), help="Output format.")]
Name = Annotated[str, Parameter(help="The name of the environment.")]


@app.command(
    name="set-env",
    help_epilogue=epilogue(
        "maestro config set-env local --rest-url http://127.0.0.1:8000 --grpc-server-address 127.0.0.1:8090",
        "maestro config set-env prod --rest-url https://maestro.example --grpc-token-file /secrets/token --use",
        "maestro config set-env prod --svc-context svc --mgmt-context mgmt-1=mgmt",
        exit_codes=_EXIT_CODES,
    ),
)
def set_env(
    name: Name,
    /,
    *,
    use: Annotated[bool, Parameter(help="Also use it as the current environment.", negative=())] = False,
    rest: RestAddress | None = None,
    grpc: GrpcFlags | None = None,
    trace: TraceFlags | None = None,
) -> int:
    """Create an environment or change its settings; the first one becomes the current one."""
    values = {key: _stored_value(key, value) for key, value in connection.flag_values(rest, grpc).items()}
    values |= _trace_settings(trace)
    if not values:
        raise UsageError("there are no settings to store; give --rest-url, --grpc-server-address or another setting")
    _check(values)
    _change(lambda config: config.put(name, values, use=use), f"Environment {name} is stored")
    return 0


@app.command(help_epilogue=epilogue("maestro config use prod", exit_codes=_EXIT_CODES))
def use(name: Name, /) -> int:
    """Use an environment as the current one."""

    def use_it(config: Environments) -> Environments:
        config.get(name)
        return config.put(name, {}, use=True)

    _change(use_it, f"Environment {name} is selected")
    return 0


@app.command(name="list", help_epilogue=epilogue("maestro config list", exit_codes=_EXIT_CODES))
def list_(*, output: OutputFlag = "table") -> int:
    """List the environments; a star marks the current one."""
    config = _read()
    if output == "name":
        screen.write("".join(f"{name}\n" for name in config.named))
    elif output in ("json", "yaml"):
        document = {
            "current": config.current,
            "environments": {name: dict(settings) for name, settings in config.named.items()},
        }
        screen.write(rendering.single(document, output=Format(output), fields=lambda _: ()))
    else:
        lines = [
            ["*" if name == config.current else "", name, env.get("rest-url", ""), env.get("grpc-server-address", "")]
            for name, env in config.named.items()
        ]
        screen.write(rendering.table([["", "NAME", "REST", "GRPC"], *lines]))
    return 0


@app.command(help_epilogue=epilogue("maestro config show", "maestro config show prod -o yaml", exit_codes=_EXIT_CODES))
def show(name: Name = "", /, *, output: OutputFlag = "table", rest: RestFlags | None = None) -> int:
    """Show the effective settings and the origin of each; with a name, those of that environment."""
    effective = connection.resolve_settings(RestFlags(env=name) if name else rest)
    effective += connection.trace_settings(RestFlags(env=name) if name else rest)
    if output in ("table", "wide"):
        lines = [[setting.key, setting.value, setting.origin] for setting in effective]
        screen.write(rendering.table([["SETTING", "VALUE", "FROM"], *lines]))
    else:
        values = {setting.key: setting.value for setting in effective}
        screen.write(rendering.single(values, output=Format(output), fields=lambda _: ()))
    return 0


@app.command(help_epilogue=epilogue("maestro config delete local", exit_codes=_EXIT_CODES))
def delete(name: Name, /) -> int:
    """Delete an environment."""
    _change(lambda config: config.without(name), f"Environment {name} is deleted")
    return 0


def _read() -> Environments:
    return environments.read(environments.default_path(os.environ))


def _change(changed: Callable[[Environments], Environments], message: str) -> None:
    config = environments.change(environments.default_path(os.environ), changed)
    current = f"the current environment is {config.current}" if config.current else "there is no current environment"
    screen.write(f"{message}; {current} ({config.path})\n")


def _stored_value(key: str, value: str) -> str:
    """Return a value as it is stored: file names become absolute paths."""
    return str(Path(value).expanduser().absolute()) if key.endswith("-file") else value


def _trace_settings(flags: TraceFlags | None) -> dict[str, str]:
    if flags is None:
        return {}
    values = {key: getattr(flags, key.replace("-", "_")) for key in environments.TRACE_KEYS}
    texts = {key: ",".join(value) if isinstance(value, tuple) else value for key, value in values.items() if value}
    return {
        key: _absolute(text) if key.endswith("kubeconfig") or key == "logs" else text for key, text in texts.items()
    }


def _absolute(files: str) -> str:
    """Return FILE or CONSUMER=FILE, or several of them, with absolute paths."""
    named = [item.rpartition("=") for item in files.split(",")]
    return ",".join(f"{consumer}{sign}{Path(file).expanduser().absolute()}" for consumer, sign, file in named)


def _check(values: dict[str, str]) -> None:
    from maestropy.sdk import settings

    given = [
        connection.ResolvedSetting(key=key, name=connection.SETTINGS[key], value=value, origin=f"--{key}")
        for key, value in values.items()
        if key in connection.SETTINGS
        # Certificate and key may be set by two commands.
        and not key.startswith("grpc-client-")
    ]
    environments.reject_password(values, "--")
    settings.load(connection.options(given), {}, origin_names={setting.name: setting.origin for setting in given})
