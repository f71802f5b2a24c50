"""A way from an agent to the Kubernetes API server that can be closed: requests then hang, without any answer."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.faults.fault_proxy import FaultProxy


class ApiGate:
    """A proxy in a thread of its own."""

    def __init__(self, proxy: FaultProxy, loop: asyncio.AbstractEventLoop) -> None:
        self._proxy, self._loop = proxy, loop
        self.port = proxy.port

    def close(self) -> None:
        """Let every request hang, also on new connections."""
        self._call(self._proxy.partition)

    def open(self) -> None:
        """Let what waited through."""
        self._call(self._proxy.heal)

    def cut(self) -> None:
        """Reset all connections, so that what hung is asked again."""
        self._call(self._proxy.cut)

    def _call(self, action: Callable[[], None]) -> None:
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(act)
        assert done.wait(10)


@contextmanager
def api_gate(port: int) -> Iterator[ApiGate]:
    """Run a gate before a loopback port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    proxy = FaultProxy(("127.0.0.1", port))
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result(10)
    try:
        yield ApiGate(proxy, loop)
    finally:
        loop.call_soon_threadsafe(proxy.heal)
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
