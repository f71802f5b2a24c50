"""One combination on the ground that all share: its processes, their certificates, and what the scenario looks at.

Server, agent and client speak TLS with certificates of their own wherever the protocol knows TLS: sources over mTLS
and Kubernetes' access reviews, agents over mTLS to the server or to Mosquitto. REST is plain, as behind a mesh.
"""

import contextlib
import itertools
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.certificates import Authority, CertFiles, put
from tests.peers.kube_agents import RunningAgent, configured_agent, wait_for_deletion
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.matrix_clients import Client, PythonClient, SecureWorkClient
from tests.peers.mosquitto import TOPICS, Mosquitto
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Refused, rest
from tests.peers.peer_postgres import Database
from tests.peers.peer_processes import free_ports
from tests.peers.peer_servers import RunningServer, go_server, python_server
from tests.peers.pubsub_emulator import Emulator
from tests.waiting import wait_for

Found = TypeVar("Found")
_numbers = itertools.count(1)
PATIENCE = 60.0
GROUPS = {"deployments": "/apis/apps/v1", "manifestworks": "/apis/work.open-cluster-management.io/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all combinations stand on."""

    programs: Programs
    cluster: KubeCluster
    broker: Mosquitto
    pubsub: Emulator
    authority: Authority
    verbosity: int = 4


@dataclass(kw_only=True)
class Rig:
    """A running combination."""

    ground: Ground
    players: Combination
    database: Database
    consumer: str
    namespace: str
    folder: Path
    api: httpx.Client
    on_log: Callable[[Path], None] = lambda _: None
    ports: list[int] = field(default_factory=lambda: free_ports(5))
    watch: str = ""
    agent_settings: str = ""
    """Lines for the agent's configuration, over gRPC."""
    server_flags: tuple[str, ...] = ()
    go_program: Path | None = None
    """The Go server; absent: the pinned one that reconnects at once."""

    def __post_init__(self) -> None:
        issue = self.ground.authority.issue
        self.server_files = issue(cn="maestro", san=["127.0.0.1", "localhost"])
        self.broker_files = issue(cn="maestro")
        self.agent_files = issue(cn=f"{self.consumer}-work-agent")
        self.client_files = issue(cn=self.source, o=["sources"])
        self._server = ExitStack()
        self._agent = ExitStack()
        self._client: Client | None = None
        self.server: RunningServer | None = None
        self.agent: RunningAgent | None = None

    @property
    def source(self) -> str:
        return f"source-of-{self.consumer}"

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    def start_server(self) -> None:
        ground = self.ground
        ca = ground.authority.cert
        flags = [
            f"--v={ground.verbosity}",
            f"--grpc-tls-cert-file={self.server_files.cert}",
            f"--grpc-tls-key-file={self.server_files.key}",
            f"--grpc-client-ca-file={ca}",
            "--grpc-authn-type=mtls",
            f"--grpc-authorizer-config={ground.cluster.kubeconfig}",
            *self.server_flags,
        ]
        if self.players.broker == "grpc":
            flags += [
                f"--grpc-broker-tls-cert-file={self.server_files.cert}",
                f"--grpc-broker-tls-key-file={self.server_files.key}",
                f"--grpc-broker-client-ca-file={ca}",
            ]
        else:
            flags.append(f"--message-broker-config-file={self._broker_config('server', self.broker_files)}")
        how: dict[str, Any] = {"database": self.database, "folder": self.folder, "flags": flags, "ports": self.ports}
        if self.players.server == "go":
            program = self.go_program or ground.programs.impatient
            made = go_server(ground.programs, program=program, broker=self.players.broker, **how)
        else:
            made = python_server(broker=self.players.broker, **how)
        self.server = self._server.enter_context(made)
        self.on_log(self.server.log)

    def stop_server(self) -> None:
        self._server.close()

    def start_agent(self) -> None:
        assert self.server is not None
        broker = self.players.broker
        if broker == "grpc":
            config = self._grpc_config("agent", f"127.0.0.1:{self.ports[2]}", self.agent_files)
            config.write_text(config.read_text() + self.agent_settings)
        else:
            config = self._broker_config("agent", self.agent_files)
        made = configured_agent(
            self.players.agent,
            self.ground.programs.impatient,
            cluster=self.ground.cluster,
            consumer=self.consumer,
            config=config,
            driver=broker,
            # The Go agent polls the cluster; ours watches it.
            flags=[f"-v={self.ground.verbosity}", "--status-sync-interval=1s"],
        )
        self.agent = self._agent.enter_context(made)
        self.on_log(self.agent.log)

    def stop_agent(self) -> None:
        self._agent.close()

    def restart_agent(self) -> None:
        self.stop_agent()
        self.start_agent()

    def start_client(self) -> None:
        self._client = self.new_client(self.source)

    def new_client(self, source: str) -> Client:
        """Return a client of its own, for whom a test wants besides the scenario's; who asks closes it."""
        assert self.server is not None
        if self.players.client == "python":
            return PythonClient(self.server, source=source, ca=self.ground.authority.cert, files=self.client_files)
        name = f"client-{next(_numbers)}"
        config = self._grpc_config(name, self.server.grpc_addr, self.client_files)
        log = self.folder / f"{name}.log"
        self.on_log(log)
        return SecureWorkClient(self.ground.programs, self.server, source=source, config=config, log=log)

    def stop_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.stop_server)
            stack.callback(self.stop_agent)
            stack.callback(self.stop_client)

    def cut_off_the_agent(self) -> None:
        """End the agent's connection; whom it spoke with is back at once."""
        if self.players.broker == "grpc":
            self.stop_server()
            self.start_server()
        elif self.players.broker == "mqtt":
            self.ground.broker.stop()
            self.ground.broker.start()
        else:
            self.ground.pubsub.cut()
            self.ground.pubsub.restore()

    # What the scenario looks at.

    def work(self, name: str) -> Json:
        return self.client.get(self.consumer, name)

    def is_gone(self, name: str) -> bool:
        try:
            self.work(name)
        except Refused as refused:
            return refused.reason == "NotFound"
        return False

    def wait_until_gone(self, name: str) -> None:
        """Wait for the end of a deleted work."""
        is_go_pair = (self.players.server, self.players.agent) == ("go", "go")
        restart = self.restart_agent if is_go_pair else None
        wait_for_deletion(lambda: self.is_gone(name), what=f"{name} to go", restart_of_go_pair=restart)

    def object(self, kind: str, name: str) -> Json | None:
        """Return an object of the cluster, or None."""
        found = self.api.get(f"{GROUPS.get(kind, '/api/v1')}/namespaces/{self.namespace}/{kind}/{name}")
        return None if found.status_code == 404 else answer(found)

    def value(self, name: str) -> str | None:
        """Return what the ConfigMap of a work says."""
        found = self.object("configmaps", name)
        return None if found is None else found["data"]["value"]

    def write_outside(self, text: str) -> None:
        """Change the object that the work only reads."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        body = {"metadata": {"name": "outside"}, "data": {"seen": text}}
        if self.object("configmaps", "outside") is None:
            answer(self.api.post(path, json=body))
        else:
            answer(self.api.put(f"{path}/outside", json=body))

    def served_certificate(self) -> bytes:
        """Return the certificate that a new connection to the sources' port meets."""
        return ssl.get_server_certificate(("127.0.0.1", self.ports[1])).encode()

    def wait(self, look: Callable[[], Found | None], what: str, *, seconds: float = PATIENCE) -> Found:
        """Return the first true thing that `look` finds; a refusal on the way is a reason to look again."""

        def patient() -> Found | None:
            with contextlib.suppress(Refused):
                return look()
            return None

        return wait_for(patient, what=what, seconds=seconds)

    def _grpc_config(self, name: str, url: str, files: CertFiles) -> Path:
        path = self.folder / f"{name}.yaml"
        # Go programs read it again and again, and must never meet half of it.
        put(path, f"url: {url}\n{self._certificates(files)}".encode())
        return path

    def _broker_config(self, name: str, files: CertFiles) -> Path:
        if self.players.broker == "pubsub":
            return self.ground.pubsub.config(self.folder / f"{name}.yaml", self.consumer if name == "agent" else "")
        path = self.folder / f"{name}.yaml"
        text = f"brokerHost: {self.ground.broker.host}\n{self._certificates(files)}{TOPICS.format(share='')}"
        put(path, text.encode())
        return path

    def _certificates(self, files: CertFiles) -> str:
        ca = self.ground.authority.cert
        return f"caFile: {ca}\nclientCertFile: {files.cert}\nclientKeyFile: {files.key}\n"


@contextlib.contextmanager
def running_rig(rig: Rig) -> Iterator[Rig]:
    """Start everything; the agent has subscribed and the client can speak when this yields."""
    with contextlib.closing(rig):
        rig.write_outside("first")
        rig.start_server()
        assert rig.server is not None
        rest(rig.server, "POST", "/consumers", {"name": rig.consumer})
        rig.start_agent()
        rig.start_client()
        yield rig
