"""`maestro console`: serve the console for any Maestro on this computer, until Ctrl-C."""

import os
import secrets
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter, validators

from maestropy.cli import lifecycle
from maestropy.cli.client import connection
from maestropy.cli.client.actions import operator
from maestropy.cli.client.connection import RestFlags
from maestropy.cli.errors import UsageError

if TYPE_CHECKING:
    from maestropy.console.serve import ConsoleOptions
    from maestropy.trace.access.options import WorkAccess

EXAMPLES = """\
Examples:

  maestro console
      the Maestro of the current environment of `maestro config`

  maestro console --rest-url https://maestro:8000 --token-file token --logs ./logs
      another one, with the stages of its requests from logs that are written to a folder

  maestro console --allow-actions
      with buttons for operator actions, which run with your token

  maestro console --env prod --port 0
      an environment; with its db-dsn and mgmt-context, works are traced in database and clusters"""

app = App(
    name="console",
    help="Show the fleet, its works and their requests in a browser of this computer, until Ctrl-C.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def execute(
    *,
    port: Annotated[
        int, Parameter(help="The port on 127.0.0.1; 0 for a free one.", validator=validators.Number(gte=0, lte=65535))
    ] = 8088,
    logs: Annotated[
        tuple[Path, ...],
        Parameter(help="Log files of server and agents, or folders of them; may be repeated.", negative=()),
    ] = (),
    allow_actions: Annotated[
        bool,
        Parameter(
            help="Resend, resync, pause, resume, retire, adopt and sweep with your token. The printed address then has "
            "a key of this start, which other users of this computer need. Without it the console changes nothing.",
            negative=(),
        ),
    ] = False,
    rest: RestFlags | None = None,
) -> int:
    """Serve the console."""
    missing = next((path for path in logs if not path.exists()), None)
    if missing is not None:
        raise UsageError(f"--logs {missing} does not exist; name the files or folders that the logs are written to")
    resolved = connection.resolve_settings(rest)
    target = _Target(
        options=dict(connection.options(resolved)),
        logs=logs,
        env=(rest.env if rest else None) or "",
        port=port,
        allows_actions=allow_actions,
    )
    return lifecycle.run(lambda stop: _serve(target, stop=stop))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    options: dict[str, Any]
    logs: tuple[Path, ...]
    env: str
    port: int
    allows_actions: bool


async def _serve(target: _Target, *, stop: lifecycle.Stop) -> int:
    from maestropy.cli import screen
    from maestropy.console import sessions
    from maestropy.console.actions import with_token_of
    from maestropy.console.serve import serve
    from maestropy.sdk.client import AsyncMaestro
    from maestropy.sdk.retry import RetryPolicy

    # The console itself tries again, and says meanwhile what is wrong.
    async with AsyncMaestro(**{**target.options, "retry": RetryPolicy(attempts=1)}) as client:
        options = console_options(client, env=target.env, logs=target.logs)
        if target.allows_actions:
            gate = sessions.with_key(secrets.token_urlsafe(32))
            options = replace(options, actions=with_token_of(client, requested_by=operator()), gate=gate)
        async with serve(options, port=target.port) as address:
            screen.write(f"Console of {options.description}: {address}\nCtrl-C stops it.\n")
            await stop.wait()
    return 0


def console_options(client: Any, *, env: str, logs: tuple[Path, ...]) -> "ConsoleOptions":
    """Return the options of a console: the API of the client, and what the environment adds for tracing works."""
    from maestropy.console.serve import ConsoleOptions

    api_url = client.settings.api_url
    return ConsoleOptions(
        client=client,
        description=api_url,
        access=_access(client, env=env),
        logs=logs,
        api_flags=f"--env {shlex.quote(env)}" if env else f"--rest-url {shlex.quote(api_url)}",
    )


def _access(client: Any, *, env: str) -> "WorkAccess | None":
    """Return how works are traced in database and clusters; None if the environment names neither."""
    from maestropy.cli.trace.environment import EnvironmentChoice, complete_work_access
    from maestropy.trace.access.options import WorkAccess

    found = complete_work_access(WorkAccess(), EnvironmentChoice(env=env), os.environ)
    has_clusters = bool(found.mgmt_contexts or found.mgmt_kubeconfigs)
    if not found.db_dsn and not has_clusters:
        return None
    if not found.db_dsn:
        # A database in a pod may want to be confirmed, and nobody is asked here: REST has the row too.
        found = replace(found, db="rest", rest_url=client.settings.api_url)
    return found if has_clusters else replace(found, no_cluster=True)
