"""Workers get their databases by the environment: all users of a host can read command lines."""

from collections.abc import Awaitable, Sequence

import pytest

from maestropy.cli import lifecycle
from maestropy.cli.server import run
from maestropy.server import settings as configuration
from maestropy.server.runtime import workers
from maestropy.store.dsn import Dsn


async def test_addresses_of_databases_are_not_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[workers.Worker] = []

    async def supervise(group: Sequence[workers.Worker], *, until: Awaitable[None], **_: object) -> int:
        started.extend(group)
        await until
        return 0

    class Stop:
        async def wait(self) -> None:
            """Stop at once."""

    monkeypatch.setattr(workers, "supervise", supervise)
    flags = {
        "--workers": "2",
        "--db-dsn": "postgresql://u:hunter1@a,b/d",
        "--db-listen-dsn": "postgresql://u:hunter2@c/d",
    }
    settings = configuration.load(flags, {"HOME": "/"})
    stop: lifecycle.Stop = Stop()  # type: ignore[assignment]
    assert await run.serve(settings, Dsn.parse(flags["--db-dsn"]), flags=flags, stop=stop) == 0
    for worker in started:
        assert "hunter" not in " ".join(worker.command)
        assert worker.environ["MAESTRO_DB_DSN"] == flags["--db-dsn"]
        assert worker.environ["MAESTRO_DB_LISTEN_DSN"] == flags["--db-listen-dsn"]
