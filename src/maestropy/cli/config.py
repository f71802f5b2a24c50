"""`maestro config`: named environments, so that nobody types addresses each time."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import App, Group, Parameter

from maestropy.cli import connection, environments, rendering
from maestropy.cli.connection import GrpcFlags, RestAddress, RestFlags
from maestropy.cli.environments import Environments
from maestropy.cli.failure import UsageError
from maestropy.cli.rendering import Output

app = App(
    name="config",
    help="Keep named environments: where Maestro is, and the files that prove who we are.",
    help_epilogue="""\
Examples:

  maestro config set-env local --rest-url http://127.0.0.1:8000
  maestro config set-env local --grpc-server-address 127.0.0.1:8090
  maestro config set-env prod --rest-url https://maestro.example --use
  maestro config set-env prod --grpc-token-file /secrets/token
  maestro config set-env prod --svc-context svc --mgmt-context mgmt-1=mgmt
  maestro config show
  maestro consumer list --env local

They are kept in $XDG_CONFIG_HOME/maestropy/config.yaml, or under ~/.config.
The file holds no secrets, only the names of files that do. A flag wins over an
environment variable, a variable over this file, the file over the default.

Exit codes: 0 done, 1 failed, 2 a mistake in the command line or in the file.""",
    help_format="plaintext",
    version_flags=[],
)

_TRACE = Group("Tracing", sort_key=91)


@Parameter(name="*", group=_TRACE, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFlags:
    """Whom `maestro trace work` asks."""

    svc_context: str = ""
    """The service cluster: a context."""
    svc_kubeconfig: str = ""
    """The service cluster: a kubeconfig file."""
    mgmt_context: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """A management cluster: a context, or CONSUMER=CONTEXT; repeat it for several."""
    mgmt_kubeconfig: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """A management cluster: a kubeconfig file, or CONSUMER=FILE; repeat it for several."""
    namespace: str = ""
    """The server's namespace."""
    agent_namespace: str = ""
    """The agents' namespace."""
    db: str = ""
    """The way to the database, as `maestro trace work --db` takes it."""
    db_dsn: str = ""
    """postgresql://user@host:5432/database, without a password."""
    db_pod: str = ""
    """The pod to run psql in."""


Shown = Annotated[Output, Parameter(name=("-o", "--output"), help="How to print.")]
Name = Annotated[str, Parameter(help="The environment.")]


@app.command(name="set-env")
def set_env(
    name: Name,
    /,
    *,
    use: Annotated[bool, Parameter(help="Also make it the one in use.", negative=())] = False,
    rest: RestAddress | None = None,
    grpc: GrpcFlags | None = None,
    trace: TraceFlags | None = None,
) -> int:
    """Make an environment, or change some settings of one; the first one made is in use at once."""
    values = {key: _kept(key, value) for key, value in connection.given_flags(rest, grpc).items()}
    values |= _trace_values(trace)
    if not values:
        raise UsageError("nothing is given to keep; give --rest-url, --grpc-server-address or another setting")
    _check(values)
    _save(_read().put(name, values, use=use), f"Environment {name} is written")
    return 0


@app.command
def use(name: Name, /) -> int:
    """Make an environment the one in use."""
    found = _read()
    found.get(name)
    _save(found.put(name, {}, use=True), f"Environment {name} is in use")
    return 0


@app.command(name="list")
def list_(*, output: Shown = "table") -> int:
    """Show the environments; a star marks the one in use."""
    found = _read()
    if output == "name":
        sys.stdout.write("".join(f"{name}\n" for name in found.named))
    elif output in ("json", "yaml"):
        document = {"current": found.current, "environments": {name: dict(each) for name, each in found.named.items()}}
        sys.stdout.write(rendering.single(document, output=output, fields=lambda _: ()))
    else:
        lines = [
            ["*" if name == found.current else "", name, each.get("rest-url", ""), each.get("grpc-server-address", "")]
            for name, each in found.named.items()
        ]
        sys.stdout.write(rendering.table([["", "NAME", "REST", "GRPC"], *lines]))
    return 0


@app.command
def show(name: Name = "", /, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show the settings that hold now, and where each comes from; with a name, what that environment would give."""
    held = connection.settle(RestFlags(env=name) if name else rest)
    held += connection.for_tracing(RestFlags(env=name) if name else rest)
    if output in ("table", "wide"):
        lines = [[each.key, each.value, each.origin] for each in held]
        sys.stdout.write(rendering.table([["SETTING", "VALUE", "FROM"], *lines]))
    else:
        values = {each.key: each.value for each in held}
        sys.stdout.write(rendering.single(values, output=output, fields=lambda _: ()))
    return 0


@app.command
def delete(name: Name, /) -> int:
    """Remove an environment."""
    _save(_read().without(name), f"Environment {name} is removed")
    return 0


def _read() -> Environments:
    return environments.read(environments.default_path(os.environ))


def _save(found: Environments, told: str) -> None:
    environments.write(found)
    in_use = f"in use is {found.current}" if found.current else "none is in use"
    sys.stdout.write(f"{told}; {in_use} ({found.path})\n")


def _kept(key: str, value: str) -> str:
    """Return a value as it is kept: the names of files so that they are right from every folder."""
    return str(Path(value).expanduser().absolute()) if key.endswith("-file") else value


def _trace_values(given: TraceFlags | None) -> dict[str, str]:
    if given is None:
        return {}
    found = {key: getattr(given, key.replace("-", "_")) for key in environments.TRACE_KEYS}
    texts = {key: ",".join(each) if isinstance(each, tuple) else each for key, each in found.items() if each}
    return {key: _absolute(text) if key.endswith("kubeconfig") else text for key, text in texts.items()}


def _absolute(files: str) -> str:
    """Return FILE or CONSUMER=FILE, or several of them, so that they are right from every folder."""
    named = [each.rpartition("=") for each in files.split(",")]
    return ",".join(f"{consumer}{sign}{Path(file).expanduser().absolute()}" for consumer, sign, file in named)


def _check(values: dict[str, str]) -> None:
    from maestropy.sdk import settings

    held = [
        connection.Given(key=key, name=connection.SETTINGS[key], value=value, origin=f"--{key}")
        for key, value in values.items()
        if key in connection.SETTINGS
        # Half of a pair may be there already, or come later.
        and not key.startswith("grpc-client-")
    ]
    settings.load(connection.options(held), {}, called={each.name: each.origin for each in held})
    environments.refuse_password(values, "--")
    if urlsplit(values.get("rest-url", "")).password:
        raise UsageError("--rest-url holds a password; put it into a file and give --grpc-token-file")
