"""The real programs of the system as processes that tests kill, stop, start again and freeze.

`Postgres` is one directory with a PostgreSQL on it; the others are commands. A program started again is the same
program: same ports, same data. Nothing outlives the test: every process dies with the one that started it.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from maestropy.sandbox import ports, postmaster
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from tests import waiting
from tests.stack import harness

READY_SECONDS = 60.0
_HERE = Path(__file__).parent


@dataclass(kw_only=True)
class Program:
    """One process, now or soon."""

    name: str
    command: Sequence[str]
    log: Path
    ready: Callable[[], Awaitable[bool]]
    env: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        await self.wait_ready()

    def launch(self) -> None:
        """Start it."""
        assert not self.is_alive, f"{self.name} runs already"
        mortal = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*mortal, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
        self.starts += 1

    async def wait_ready(self, *, seconds: float = READY_SECONDS) -> None:
        """Wait until it answers."""

        async def look() -> bool:
            assert self.is_alive, f"{self.name} ended: {self.tail()}"
            return await self.ready()

        await waiting.until(look, seconds=seconds, what=f"{self.name}, ready")

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def kill(self) -> None:
        """End it as a power cut would."""
        self._signal(signal.SIGKILL)
        await self._wait()

    async def stop(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)
        await self._wait()

    def pause(self) -> None:
        """Freeze it where it stands."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on as if nothing had happened."""
        self._signal(signal.SIGCONT)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def memory_bytes(self) -> int:
        """Return what it holds of the computer's memory."""
        assert self.process
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def _signal(self, number: signal.Signals) -> None:
        if self.is_alive:
            assert self.process
            self.process.send_signal(number)

    async def _wait(self) -> None:
        if self.process is not None:
            await asyncio.to_thread(self.process.wait, 30)


@contextlib.asynccontextmanager
async def programs(*wanted: Program) -> AsyncIterator[None]:
    """Run programs until the block ends, whatever became of them meanwhile."""
    try:
        await asyncio.gather(*(program.start() for program in wanted))
        yield
    finally:
        for program in reversed(wanted):
            program.resume()
            await program.kill()


@dataclass(kw_only=True)
class ServerProgram(Program):
    """A `maestro server`."""

    rest: str
    health: str
    sources: str
    agents: str
    metrics: str
    """Host and port."""

    def running(self) -> harness.Running:
        """Return it as the other tests know servers."""
        return harness.Running(rest=self.rest, health=self.health, sources=self.sources, agents=self.agents)


def server(
    folder: Path, dsn: Dsn, *flags: str, name: str = "server", env: Mapping[str, str] | None = None
) -> ServerProgram:
    """Return a server on a database that is migrated already."""
    rest, metrics, health, sources, agents = ports.free(5)
    host = "127.0.0.1"
    where = harness.Running(
        rest=f"http://{host}:{rest}",
        health=f"http://{host}:{health}",
        sources=f"{host}:{sources}",
        agents=f"{host}:{agents}",
    )

    async def ready() -> bool:
        return await where.probe() == 200

    return ServerProgram(
        name=name,
        command=[
            *(sys.executable, "-m", "maestropy.cli.main", "server", f"--server-hostname={host}"),
            f"--client-id={name}",
            f"--http-server-bindport={rest}",
            f"--metrics-server-bindport={metrics}",
            f"--health-check-server-bindport={health}",
            f"--grpc-server-bindport={sources}",
            f"--grpc-broker-bindport={agents}",
            *flags,
        ],
        log=folder / f"{name}.log",
        ready=ready,
        env={"MAESTRO_DB_DSN": str(dsn), "MAESTRO_ENV": "", **(env or {})},
        rest=where.rest,
        health=where.health,
        sources=where.sources,
        agents=where.agents,
        metrics=f"{host}:{metrics}",
    )


def agent(folder: Path, consumer: str, *, kubeconfig: Path, way: Sequence[str]) -> Program:
    """Return a real agent; `way` are the flags that lead it to the server or the broker."""
    (port,) = ports.free(1)

    async def ready() -> bool:
        with contextlib.suppress(httpx.TransportError):
            async with httpx.AsyncClient(verify=False, timeout=2) as client:
                return (await client.get(f"https://127.0.0.1:{port}/readyz")).status_code == 200
        return False

    return Program(
        name=f"agent of {consumer}",
        command=[
            *(sys.executable, "-m", "maestropy.cli.main", "agent", f"--consumer-name={consumer}"),
            f"--kubeconfig={kubeconfig}",
            f"--listen=127.0.0.1:{port}",
            *way,
        ],
        log=folder / f"agent-{consumer}.log",
        ready=ready,
    )


@dataclass(kw_only=True)
class KubeProgram(Program):
    """A sandbox Kubernetes API; asked to end it keeps its objects, as etcd would."""

    url: str
    kubeconfig: Path

    async def config_maps(self) -> dict[str, str]:
        """Return the texts of the ConfigMaps that bundles have made."""
        async with httpx.AsyncClient(verify=False, timeout=30) as client:
            answer = await client.get(
                f"{self.url}/api/v1/namespaces/default/configmaps", headers={"Authorization": f"Bearer {self.token}"}
            )
        assert answer.status_code == 200, answer.text
        found = {item["metadata"]["name"]: item.get("data", {}).get("k") for item in answer.json()["items"]}
        return {name: text for name, text in found.items() if text is not None}

    @property
    def token(self) -> str:
        return self.kubeconfig.read_text().rpartition("token: ")[2].split()[0]


def kube(folder: Path, name: str) -> KubeProgram:
    """Return a Kubernetes API of one cluster."""
    (port,) = ports.free(1)
    home = folder / f"kube-{name}"

    async def ready() -> bool:
        with contextlib.suppress(httpx.TransportError):
            async with httpx.AsyncClient(timeout=2, verify=False) as client:
                return (await client.get(f"http://127.0.0.1:{port}/version")).status_code < 500
        return False

    return KubeProgram(
        name=f"kubernetes of {name}",
        command=[sys.executable, str(_HERE / "kube_program.py"), str(home), str(port)],
        log=folder / f"kube-{name}.log",
        ready=ready,
        url=f"http://127.0.0.1:{port}",
        kubeconfig=home / "kubeconfig",
    )


@dataclass(kw_only=True)
class Postgres:
    """A database, and the PostgreSQL below it; one of the test's own can be killed and started again."""

    folder: Path
    cluster: PostgresCluster | None
    address: Dsn

    @property
    def socket(self) -> Path:
        """Where it listens; moves with every start."""
        return Path(self.address.host) / postmaster.SOCKET_NAME

    def kill(self) -> None:
        """Kill the first process; the others notice and end."""
        found = postmaster.recorded(self.folder / "postgres")
        assert found
        os.kill(found.pid, signal.SIGKILL)

    def start(self) -> None:
        """Start it again after a kill, and let it recover."""
        assert self.cluster
        self.cluster.stop()
        self.cluster = PostgresCluster(self.folder, max_connections=200)
        self.address = replace(self.cluster.start(), database=self.address.database)

    def behind(self, port: int) -> Dsn:
        """Return the address of its database as seen through a proxy."""
        return replace(self.address, host="127.0.0.1", port=port)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a PostgreSQL with an empty, migrated database."""
    # Not below pytest's own folder: every other run that starts as root closes that to PostgreSQL's user.
    folder = Path(tempfile.mkdtemp(prefix="faults-postgres-"))
    cluster = PostgresCluster(folder, max_connections=200)
    running = Postgres(folder=folder, cluster=cluster, address=Dsn(host="", user="", database=""))
    try:
        running.address = cluster.start()
        asyncio.run(migrate.migrate(running.address))
        yield running
    finally:
        (running.cluster or cluster).stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(kw_only=True)
class MosquittoProgram(Program):
    """A real MQTT broker that keeps nothing: killed, it loses what it held."""

    port: int


def mosquitto(folder: Path) -> MosquittoProgram:
    """Return a Mosquitto; raises `LookupError` where there is none."""
    (port,) = ports.free(1)
    found = shutil.which(
        "mosquitto", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    )
    if found is None:
        raise LookupError("Mosquitto is needed: `apt-get install mosquitto`, or put the program on the PATH")
    settings = folder / "mosquitto.conf"
    # As root it would become another user, who may not read the test's folder.
    user = "user root\n" if os.geteuid() == 0 else ""
    settings.write_text(f"{user}listener {port} 127.0.0.1\nallow_anonymous true\n")

    async def ready() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    return MosquittoProgram(
        name="mosquitto", command=[found, "-c", str(settings)], log=folder / "mosquitto.log", ready=ready, port=port
    )


def mqtt_config(path: Path, port: int, *, share: str = "", keep_alive_seconds: int = 5) -> Path:
    """Write the file that leads a server (with a share) or an agent to a broker."""
    prefix = f"$share/{share}/" if share else ""
    path.write_text(
        f"brokerHost: 127.0.0.1:{port}\nkeepAlive: {keep_alive_seconds}\ntopics:\n"
        "  sourceEvents: sources/maestro/consumers/+/sourceevents\n"
        f"  agentEvents: {prefix}sources/maestro/consumers/+/agentevents\n"
    )
    return path
