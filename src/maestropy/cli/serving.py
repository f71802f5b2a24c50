"""Run `maestro server` once its settings are known: the database, and then one process or several."""

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from random import random

from maestropy.cli import running
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.server import settings as configuration
from maestropy.store.dsn import Dsn


async def serve(
    settings: configuration.ServerSettings, dsn: Dsn | None, *, given: Mapping[str, str], stop: running.Stop
) -> int:
    """Run a server until `stop`, with a database of its own if it has no `dsn`."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(_embedded(settings)) if dsn is None else dsn
        if settings.instance.workers > 1 and settings.instance.worker_index is None:
            if dsn is None:
                given = {**given, "--db-dsn": str(address), "--auto-migrate": str(settings.database.auto_migrate)}
            return await _supervise(given, count=settings.instance.workers, stop=stop)
        from maestropy.server.main import run

        if settings.instance.worker_index is not None:
            running.stop_when_closed(sys.stdin.fileno(), stop)
        await running.until(stop, run(settings, dsn=address))
    return 0


def _embedded(settings: configuration.ServerSettings) -> EmbeddedPostgres:
    # Some beside the pools: for listeners, migrations and a person with psql.
    needed = settings.instance.workers * (settings.database.max_open_connections + 5) + 20
    return EmbeddedPostgres(settings.database.data_dir, max_connections=max(100, needed), report=_say)


async def _supervise(given: Mapping[str, str], *, count: int, stop: running.Stop) -> int:
    from maestropy.server import workers

    with tempfile.TemporaryDirectory(prefix="maestropy-metrics-") as metrics:
        environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": metrics}
        if "--db-dsn" in given:
            # By the environment, because everybody on the host can read the command line of a process.
            environ["MAESTRO_DB_DSN"] = given["--db-dsn"]
        flags = [f"{name}={value}" for name, value in given.items() if name != "--db-dsn"]
        crew = [
            workers.Worker(
                index=index,
                command=(sys.executable, "-m", "maestropy.cli.main", "server", *flags, f"--worker-index={index}"),
                environ=environ,
            )
            for index in range(count)
        ]
        return await workers.supervise(crew, until=stop.wait(), report=_say, jitter=random)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
