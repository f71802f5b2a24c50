"""Run the server with its settings: start the embedded database if needed, then one process or several workers."""

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from maestropy.aio import backoff
from maestropy.cli import lifecycle, screen
from maestropy.server import settings as configuration
from maestropy.store.dsn import Dsn

if TYPE_CHECKING:
    from maestropy.server.runtime.mounts import Mount

_SECRET_FLAGS = {
    "--db-dsn": "MAESTRO_DB_DSN",
    "--db-listen-dsn": "MAESTRO_DB_LISTEN_DSN",
    "--db-read-dsn": "MAESTRO_DB_READ_DSN",
}


async def serve(
    settings: configuration.ServerSettings, dsn: Dsn | None, *, flags: Mapping[str, str], stop: lifecycle.Stop
) -> int:
    """Run a server until `stop`, with the embedded database if there is no `dsn`."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(_embedded(settings)) if dsn is None else dsn
        if settings.instance.workers > 1 and settings.instance.worker_index is None:
            if dsn is None:
                flags = {name: text for name, text in flags.items() if name != "--embedded-database"}
                flags |= {"--db-dsn": str(address), "--auto-migrate": str(settings.database.auto_migrate)}
            return await _supervise(flags, count=settings.instance.workers, stop=stop)
        from maestropy.cli.server.database_login import with_login
        from maestropy.server.main import run

        address = await stack.enter_async_context(with_login(address, settings.database))
        if settings.instance.worker_index is not None:
            lifecycle.stop_when_input_closes(sys.stdin.fileno(), stop)
        await lifecycle.run_until(stop, run(settings, dsn=address, mount=_console(settings)))
    return 0


def _console(settings: configuration.ServerSettings) -> "Mount | None":
    if not settings.http.enable_console:
        return None
    # Imported here: a server without the console starts faster.
    from maestropy.cli.server.console_login import options
    from maestropy.cli.server.console_mount import mount

    return mount(options(settings.console_login))


def _embedded(settings: configuration.ServerSettings) -> AbstractAsyncContextManager[Dsn]:
    # Imported here: the production image has no sandbox.
    from maestropy.sandbox.postgres import EmbeddedPostgres

    if warning := previous_data(settings.database.data_dir):
        _print_error(warning)
    # More than the pools need: for listeners, migrations and psql.
    needed = settings.instance.workers * (settings.database.max_open_connections + 5) + 20
    return EmbeddedPostgres(settings.database.data_dir, max_connections=max(100, needed), report=_print_error)


def previous_data(data_dir: Path) -> str:
    """Return a warning if a new database begins beside the data of a version that had another name, else nothing."""
    previous = data_dir.with_name("pymaestro")
    if data_dir.name != "maestropy" or data_dir.exists() or not previous.exists():
        return ""
    return (
        f"Warning: {data_dir} is new and empty, and {previous} has the database of an earlier version; "
        f"to go on with it, stop this server, move that directory to {data_dir} and start again"
    )


async def _supervise(flags: Mapping[str, str], *, count: int, stop: lifecycle.Stop) -> int:
    from maestropy.server.runtime import workers

    with tempfile.TemporaryDirectory(prefix="maestropy-metrics-") as metrics:
        environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": metrics}
        # By the environment, because all users of the host can read the command line of a process.
        environ |= {variable: flags[name] for name, variable in _SECRET_FLAGS.items() if name in flags}
        arguments = [f"{name}={value}" for name, value in flags.items() if name not in _SECRET_FLAGS]
        group = [
            workers.Worker(
                index=index,
                command=(sys.executable, "-m", "maestropy.cli.main", "server", *arguments, f"--worker-index={index}"),
                environ=environ,
            )
            for index in range(count)
        ]
        return await workers.supervise(group, until=stop.wait(), report=_print_error, jitter=backoff.jitter)


def _print_error(text: str) -> None:
    screen.write_error(f"{text}\n")
    sys.stderr.flush()
