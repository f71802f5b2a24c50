"""A server process with a scripted agent, for blocking tests."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from tests.stack.sdk_agent import scripted_agent


@pytest.fixture
def live_server(database: Dsn, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server and an agent in the background."""
    process = ServerProcess(database, log=tmp_path / "server.log")
    started, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with process, scripted_agent(f"127.0.0.1:{process.ports.agents}", "c1", feedback={"status": {"x": 1}}):
            started.set()
            while not stop.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(60)
    yield process
    stop.set()
    thread.join()
