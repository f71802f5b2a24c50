"""Run a sandbox cluster in a thread, for synchronous tests."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from maestropy.sandbox.kubeapi.cluster import SandboxCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running cluster and its event loop."""

    cluster: SandboxCluster
    loop: asyncio.AbstractEventLoop

    def client(self, token: str | None = None) -> httpx.Client:
        """Open a client for the administrator, or for the owner of the token."""
        ca = self.cluster.ca_file
        trust: Any = ssl.create_default_context(cafile=ca) if ca else True
        headers = {"Authorization": f"Bearer {token or self.cluster.token}"}
        return httpx.Client(base_url=self.cluster.url, headers=headers, verify=trust, timeout=20, trust_env=False)


@contextmanager
def sandbox(**options: Any) -> Iterator[Running]:
    """Run a cluster until the block ends."""
    ready = threading.Event()
    running: list[Running] = []
    stop: list[asyncio.Event] = []

    async def serve() -> None:
        async with SandboxCluster(**options) as cluster:
            stop.append(asyncio.Event())
            running.append(Running(cluster=cluster, loop=asyncio.get_running_loop()))
            ready.set()
            await stop[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(20), "the sandbox did not start"
    try:
        yield running[0]
    finally:
        running[0].loop.call_soon_threadsafe(stop[0].set)
        thread.join(20)
        assert not thread.is_alive(), "the sandbox did not stop"
