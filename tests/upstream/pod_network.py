"""Networks on one machine as a cluster has them: an address for every pod and Service, reachable from here only.

All of it lives in a network namespace without a way out; who leaves it, leaves nothing behind.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BRIDGE = "pods0"
BRIDGE_ADDRESS = "02:00:0a:f4:00:01"
GATEWAY = "10.244.0.1"
FIRST_POD = ipaddress.ip_address("10.244.1.1")
ENCLOSED = (
    "unshare",
    "--net",
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)
CHUNK = 65536

Endpoint = tuple[str, int]


def enclosed(module: str, *words: str) -> list[str]:
    """Return the command that runs a module of ours in namespaces of its own; all processes end with it."""
    return [*ENCLOSED, sys.executable, "-m", module, *words]


def run(*words: str | Path) -> None:
    """Run a command that must succeed."""
    outcome = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, f"{' '.join(map(str, words))}: {outcome.stderr or outcome.stdout}"


def open_bridge() -> None:
    """Prepare the namespace we are in: loopback, and a bridge that pods are joined to."""
    run("ip", "link", "set", "lo", "up")
    # With an address of its own: otherwise a bridge takes that of a pod, another one whenever pods come and go, and for
    # half a minute no pod finds the way to it.
    run("ip", "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
    run("ip", "addr", "add", f"{GATEWAY}/16", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    # Leads nowhere; kube-apiserver does not start without one.
    run("ip", "route", "add", "default", "dev", BRIDGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNetwork:
    """The network namespace of a pod."""

    address: str
    path: Path
    link: str

    def enter(self) -> list[str]:
        """Return a prefix that runs a command in it."""
        return ["nsenter", f"--net={self.path}"]

    def close(self) -> None:
        """Take the pod off the bridge."""
        subprocess.run(["ip", "link", "del", self.link], capture_output=True, check=False)
        subprocess.run(["umount", str(self.path)], capture_output=True, check=False)


_numbers = itertools.count()
_one_at_a_time = threading.Lock()


def open_pod(folder: Path) -> PodNetwork:
    """Make a network for a pod, with an address nobody had before."""
    with _one_at_a_time:
        number = next(_numbers)
    address, path, link = str(FIRST_POD + number), folder / "net", f"pod{number}"
    path.touch()
    run("unshare", f"--net={path}", "true")
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", path)
    run("ip", "link", "set", link, "master", BRIDGE, "up")
    network = PodNetwork(address=address, path=path, link=link)
    for command in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "addr", "add", f"{address}/16", "dev", "eth0"),
        ("ip", "link", "set", "eth0", "up"),
        ("ip", "route", "add", "default", "via", GATEWAY),
    ):
        run(*network.enter(), *command)
    return network


@dataclass(kw_only=True)
class Forwarder:
    """Carries connections from Service addresses to whoever is behind them at that moment, in turn."""

    loop: asyncio.AbstractEventLoop
    listening: dict[Endpoint, asyncio.Server] = field(default_factory=dict)
    turns: Iterator[int] = field(default_factory=itertools.count)

    def listen(self, front: Endpoint, backends: Callable[[], Sequence[Endpoint]]) -> None:
        """Forward from now on; does nothing where that address is forwarded already."""
        if front not in self.listening:
            started = asyncio.run_coroutine_threadsafe(self._start(front, backends), self.loop)
            self.listening[front] = started.result(10)

    async def _start(self, front: Endpoint, backends: Callable[[], Sequence[Endpoint]]) -> asyncio.Server:
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._carry(reader, writer, backends())
            writer.close()

        return await asyncio.start_server(carry, *front)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, backends: Sequence[Endpoint]
    ) -> None:
        if not backends:
            # As a Service without endpoints: refused at once, not silent.
            writer.transport.abort()
            return
        host, port = backends[next(self.turns) % len(backends)]
        there, back = await asyncio.open_connection(host, port)
        copies = [asyncio.create_task(copy(reader, back)), asyncio.create_task(copy(there, writer))]
        # One side that is gone ends the other too, as it does without us in between.
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(copies, timeout=1)
        for task in copies:
            task.cancel()
        back.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end or an error of either side."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


@contextlib.contextmanager
def forwarder() -> Iterator[Forwarder]:
    """Run a forwarder in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="forwarder", daemon=True)
    thread.start()
    try:
        yield Forwarder(loop=loop)
    finally:
        asyncio.run_coroutine_threadsafe(cancel_all(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def cancel_all() -> None:
    """End every connection of this loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def hosts(services: Sequence[Mapping[str, str]], *, namespace: str) -> str:
    """Return /etc/hosts for a pod: every Service by the names that cluster DNS would know in its namespace."""
    lines = ["127.0.0.1 localhost"]
    for service in services:
        name, home = service["name"], service["namespace"]
        names = [f"{name}.{home}", f"{name}.{home}.svc", f"{name}.{home}.svc.cluster.local"]
        if home == namespace:
            names.insert(0, name)
        lines.append(f"{service['address']} {' '.join(names)}")
    return "\n".join(lines) + "\n"
