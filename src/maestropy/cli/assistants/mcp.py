"""`maestro mcp`: tools for assistants over the Model Context Protocol, until the client or Ctrl-C ends it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter, validators

from maestropy import installation
from maestropy.cli import lifecycle, screen
from maestropy.cli.client import connection
from maestropy.cli.client.connection import RestFlags
from maestropy.cli.errors import CommandError, UsageError, innermost
from maestropy.cli.trace import endings
from maestropy.trace.errors import TraceError

if TYPE_CHECKING:
    from maestropy.mcp.live import LiveOptions
    from maestropy.mcp.server import HttpOptions
    from maestropy.mcp.tools import Options

EXAMPLES = """\
Examples:

  maestro mcp
      tools over the current environment of `maestro config`, on standard input and output, as assistants start it

  maestro mcp --archive incident.tar.zst
      over an archive of `maestro diagnose collect`: no access to the systems is needed

  maestro mcp --archive after.tar.zst --archive before.tar.zst
      the first is asked about; the tool `diff` compares them

  maestro mcp --env prod --logs ./maestro-logs --http 8765
      over HTTP on 127.0.0.1, with logs of servers and agents

  maestro mcp --allow-actions
      with plan_action and perform_action: pause, resume, resync, resend, each after its dry run

Exit codes: 0 done, 2 a mistake in the command line, 3 an archive cannot be read, 130 interrupted."""

app = App(
    name="mcp",
    help="Offer tools to an assistant (Model Context Protocol): find and trace works, explain findings, read logs. "
    "Nothing is changed unless --allow-actions is given.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)
_HTTP = Group("HTTP", sort_key=50)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@Parameter(name="*", group=_HTTP, show_default=False)
@dataclass(frozen=True, kw_only=True)
class HttpFlags:
    """Flags of the HTTP transport."""

    http: Annotated[int | None, Parameter(validator=validators.Number(gte=0, lte=65535))] = None
    """Serve streamable HTTP on this port instead of standard input and output; 0 for a free one."""
    http_host: str = "127.0.0.1"
    """The address to listen on; others than loopback need --tls-cert-file, --tls-key-file and --http-token-file."""
    http_token_file: Path | None = None
    """A file with the bearer token that clients must send."""
    tls_cert_file: Path | None = None
    """The certificate of the HTTPS listener."""
    tls_key_file: Path | None = None
    """The key of that certificate."""
    allowed_host: Annotated[list[str], Parameter(negative=())] = field(default_factory=list)
    """A name under which clients reach it, besides its own address; may be repeated."""


@app.default
def execute(
    *,
    archive: Annotated[
        tuple[Path, ...],
        Parameter(help="An archive of `maestro diagnose collect` instead of live systems; repeatable.", negative=()),
    ] = (),
    logs: Annotated[
        tuple[Path, ...],
        Parameter(help="Log files of server and agents, or folders of them; may be repeated.", negative=()),
    ] = (),
    allow_actions: Annotated[
        bool, Parameter(help="Offer tools that change something, each only after its dry run.", negative=())
    ] = False,
    http: HttpFlags = HttpFlags(),  # noqa: B008 - frozen
    rest: RestFlags | None = None,
) -> int:
    """Serve the tools."""
    if archive and (logs or allow_actions):
        raise UsageError("--archive is read without any system: leave out --logs and --allow-actions")
    missing = next((path for path in (*archive, *logs) if not path.exists()), None)
    if missing is not None:
        raise UsageError(f"{missing} does not exist; name archives with --archive, and log files with --logs")
    listening = _listening(http)
    try:
        import maestropy.mcp.server  # noqa: F401
    except ModuleNotFoundError as error:
        raise CommandError(f"{error.name} is not installed; {installation.hint('mcp')}") from error
    target = _Target(archives=archive, logs=logs, allows_actions=allow_actions, rest=None if archive else _rest(rest))
    try:
        return lifecycle.run(lambda stop: _serve(target, listening, stop=stop))
    except TraceError as error:
        return endings.failed(error)
    except BaseExceptionGroup as group:
        cause = innermost(group)
        if isinstance(cause, TraceError):
            return endings.failed(cause)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    options: dict[str, Any]
    env: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    archives: tuple[Path, ...]
    logs: tuple[Path, ...]
    allows_actions: bool
    rest: _Rest | None


def _rest(rest: RestFlags | None) -> _Rest:
    resolved = connection.resolve_settings(rest)
    return _Rest(options=dict(connection.options(resolved)), env=(rest.env if rest else None) or "")


def _listening(flags: HttpFlags) -> "_Listening | None":
    given = (flags.http_token_file, flags.tls_cert_file, flags.tls_key_file)
    if flags.http is None:
        if any(given) or flags.allowed_host or flags.http_host != _LOOPBACK[0]:
            raise UsageError("the flags of HTTP need --http PORT")
        return None
    if flags.http_host not in _LOOPBACK and not all(given):
        raise UsageError(
            f"--http-host {flags.http_host} can be reached by others: give --tls-cert-file, --tls-key-file and "
            "--http-token-file too, or listen on 127.0.0.1"
        )
    if bool(flags.tls_cert_file) != bool(flags.tls_key_file):
        raise UsageError("--tls-cert-file and --tls-key-file belong together; give both")
    token = ""
    if flags.http_token_file is not None:
        from maestropy.untrusted import files

        try:
            token = files.read_text(flags.http_token_file, most=files.CONFIG_BYTES).strip()
        except (OSError, ValueError) as error:
            raise UsageError(f"--http-token-file {flags.http_token_file} cannot be read: {error}") from error
        if len(token) < 16:
            raise UsageError(
                f"--http-token-file {flags.http_token_file} holds less than 16 characters; use a longer token"
            )
    return _Listening(flags=flags, token=token)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    flags: HttpFlags
    token: str

    def options(self) -> "HttpOptions":
        """Return the options of the listener, with the certificate loaded."""
        import ssl

        from maestropy.mcp.server import HttpOptions

        flags, tls = self.flags, None
        if flags.tls_cert_file and flags.tls_key_file:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            try:
                tls.load_cert_chain(flags.tls_cert_file, flags.tls_key_file)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(f"--tls-cert-file {flags.tls_cert_file} cannot be used: {error}") from error
        hosts = (*_LOOPBACK, flags.http_host, *flags.allowed_host)
        return HttpOptions(host=flags.http_host, port=flags.http or 0, hosts=hosts, token=self.token, tls=tls)


async def _serve(target: _Target, listening: _Listening | None, *, stop: lifecycle.Stop) -> int:
    from contextlib import AsyncExitStack

    from maestropy.mcp import server, tools

    http = listening.options() if listening else None
    async with AsyncExitStack() as stack:
        options = await _options(target, stack)
        box = await stack.enter_async_context(tools.opened(options))
        if http is None:
            await lifecycle.run_until(stop, server.serve_stdio(box))
            return 0
        address = await stack.enter_async_context(server.serve_http(box, http))
        screen.write(f"Tools of {box.description}: {address}\nCtrl-C stops it.\n")
        await stop.wait()
    return 0


async def _options(target: _Target, stack: Any) -> "Options":
    from maestropy.mcp.tools import Options

    if target.rest is None:
        return Options(archives=target.archives)
    from maestropy.sdk.client import AsyncMaestro
    from maestropy.sdk.retry import RetryPolicy

    # A tool says what is wrong at once; the assistant asks again.
    client = await stack.enter_async_context(AsyncMaestro(**{**target.rest.options, "retry": RetryPolicy(attempts=1)}))
    return Options(live=_live(client, target, env=target.rest.env), allows_actions=target.allows_actions)


def _live(client: Any, target: _Target, *, env: str) -> "LiveOptions":
    """Return how live systems are reached: the API of the client, and what the environment adds."""
    from maestropy.cli.console import console_options
    from maestropy.cli.trace import environment
    from maestropy.mcp.live import LiveOptions
    from maestropy.trace.access.options import HcpAccess, WorkAccess

    choice = environment.EnvironmentChoice(env=env)
    completed = environment.complete_work_access(WorkAccess(), choice, os.environ)
    named = tuple(Path(text).expanduser() for text in completed.logs.split(",") if text)
    health, metrics = environment.endpoints(choice, os.environ) if completed.environment else ((), ())
    return LiveOptions(
        client=client,
        access=console_options(client, env=env, logs=()).access,
        hcp_access=environment.complete_hcp_access(HcpAccess(), choice, os.environ),
        logs=target.logs or tuple(path for path in named if path.exists()),
        health_urls=health,
        metrics_urls=metrics,
    )
