"""A running stack for incidents: servers, an agent, clients, and what breaks them.

The programs are the Go Maestro's or ours; PostgreSQL, the Kubernetes API server and Mosquitto are real and shared.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tests.peers import kube_commands, peer_postgres
from tests.peers.incidents.api_gate import ApiGate, api_gate
from tests.peers.kube_agents import RunningAgent, configured_agent
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Lines, Refused, WorkClient, rest
from tests.peers.peer_processes import free_ports
from tests.peers.peer_servers import RunningServer, go_server, python_server
from tests.waiting import wait_for

Value = TypeVar("Value")
PATIENCE = 60.0
STAGE_SECONDS = 3.0
"""After this long without a record a stage counts as missing."""
ASKED = "asked.json"
"""Beside the collected logs: the works that were asked for."""
_numbers = itertools.count(1)

MUTE = """
CREATE TABLE public.muted (channel text PRIMARY KEY);
CREATE FUNCTION public.pg_notify(channel text, payload text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.muted m WHERE m.channel = $1) THEN
    PERFORM pg_catalog.pg_notify($1, $2);
  END IF;
END $$;
ALTER DATABASE {name} SET search_path = public, pg_catalog;
"""
"""A notification on a muted channel is lost, as one whose listener's connection just broke."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What all scenes stand on."""

    programs: Programs
    cluster: KubeCluster
    postgres: peer_postgres.Cluster
    folder: Path
    kind: str
    """Whose programs: go or python."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Other names of works and consumers; the names of the scenes give away what is wrong with them."""
    quiet_seconds: Callable[[str, str], float] = lambda scene, moment: STAGE_SECONDS
    """How long nothing is done before the logs of a moment are collected."""
    client: Callable[..., Any] | None = None
    """Makes clients of another kind than Maestro's Go work client."""
    on_moment: Callable[["Lab", str], None] = lambda lab, moment: None
    """Called when the logs of a moment are collected, and everything still runs."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A stack on which several situations are made."""

    name: str
    broker: str = "grpc"
    servers: int = 1
    verbosity: int = 4

    def __str__(self) -> str:
        count = "1 server" if self.servers == 1 else f"{self.servers} servers"
        return f"{self.broker}, {count}, -v={self.verbosity}"


class ReconnectingClient(WorkClient):
    """Maestro's Go work client, which reconnects at once."""

    def __init__(self, programs: Programs, server: RunningServer, *, source: str, log: Path) -> None:
        where: list[str | Path] = ["-rest", server.rest_url, "-grpc", server.grpc_addr, "-reconnect-delay", "300ms"]
        Lines.__init__(self, [programs.workclient, *where, "-source", source], log=log)
        self.source = source
        self._numbers = itertools.count(1)


@dataclass(kw_only=True)
class Lab:
    """A running scene."""

    ground: Ground
    scene: Scene
    api: httpx.Client
    gate: ApiGate
    broker: Mosquitto | None
    database: peer_postgres.Database
    kubeconfig: Path
    stack: ExitStack
    servers: dict[int, RunningServer] = field(default_factory=dict)
    agent: RunningAgent | None = None
    moments: dict[str, Path] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    """The works that clients asked for: names and resource ids."""
    asked_at: dict[str, float] = field(default_factory=dict)
    """When each was asked for the first time."""

    def __post_init__(self) -> None:
        self.folder = self.ground.folder / self.scene.name
        self.consumer = f"{self.scene.name}-c1"
        self.namespace = f"lab-{self.ground.kind}-{self.scene.name}"
        self.source = f"{self.scene.name}-source"
        self._ports = [free_ports(5) for _ in range(self.scene.servers)]
        self._running: dict[str, ExitStack] = {}
        self._client: ReconnectingClient | None = None

    @property
    def client(self) -> ReconnectingClient:
        assert self._client is not None
        return self._client

    # Processes.

    def start_server(self, number: int = 0) -> None:
        scene = self.scene
        folder = self.folder / f"server-{number}"
        folder.mkdir(exist_ok=True)
        flags = [f"--v={scene.verbosity}", f"--client-id=maestro-{number}"]
        if self.broker is not None:
            config = self.broker.config(f"server-{number}")
            flags += [f"--message-broker-config-file={config}", "--subscription-type=broadcast"]
        how: dict[str, Any] = {
            "database": self.database,
            "folder": folder,
            "flags": flags,
            "broker": scene.broker,
            "ports": self._ports[number],
        }
        if self.ground.kind == "go":
            made = go_server(self.ground.programs, program=self.ground.programs.impatient, **how)
        else:
            made = python_server(**how)
        self.servers[number] = self._owner(f"server-{number}").enter_context(made)

    def start_agent(self) -> None:
        if self.broker is not None:
            config = self.folder / "agent.yaml"
            shutil.copy(self.broker.config("agent"), config)
        else:
            config = self.folder / "agent.yaml"
            config.write_text(f"url: {self.servers[self.scene.servers - 1].broker_addr}\n")
        made = configured_agent(
            self.ground.kind,
            self.ground.programs.impatient,
            cluster=dataclasses.replace(self.ground.cluster, kubeconfig=self.kubeconfig),
            consumer=self.consumer,
            config=config,
            driver=self.scene.broker,
            # The Go agent polls the cluster; ours watches it.
            flags=[f"-v={self.scene.verbosity}", "--status-sync-interval=1s"],
        )
        self.agent = self._owner("agent").enter_context(made)

    def stop_agent(self) -> None:
        """Ask the agent to end."""
        self._owner("agent").close()

    def kill_agent(self) -> None:
        """End the agent without a word, as the kernel does when memory runs out."""
        assert self.agent is not None
        os.kill(self.agent.pid, signal.SIGKILL)
        self._owner("agent").close()

    def kill_server(self, number: int = 0) -> None:
        os.kill(self.servers[number].pid, signal.SIGKILL)
        self._owner(f"server-{number}").close()

    def start_client(self) -> None:
        self._client = self.new_client(self.source)
        self._client.watch("")

    def new_client(self, source: str, *, server: int = 0) -> ReconnectingClient:
        log = self.folder / f"client-{next(_numbers)}.log"
        if self.ground.client is not None:
            made: ReconnectingClient = self.stack.enter_context(self.ground.client(self.servers[server], source=source))
            return made
        return self.stack.enter_context(
            ReconnectingClient(self.ground.programs, self.servers[server], source=source, log=log)
        )

    def _owner(self, name: str) -> ExitStack:
        if name not in self._running:
            self._running[name] = self.stack.enter_context(ExitStack())
        return self._running[name]

    # Breaking.

    def sql(self, text: str) -> None:
        psql = self.ground.postgres.binaries / "psql"
        where = ["-h", "127.0.0.1", "-p", str(self.database.port), "-U", "postgres", "-d", self.database.name]
        subprocess.run([psql, *where, "-q", "-v", "ON_ERROR_STOP=1", "-c", text], check=True, capture_output=True)

    def mute(self, channel: str) -> None:
        self.sql(f"INSERT INTO public.muted VALUES ('{channel}')")

    def unmute(self, channel: str) -> None:
        self.sql(f"DELETE FROM public.muted WHERE channel = '{channel}'")

    # Works.

    def named(self, name: str) -> str:
        """Return the name that a work or consumer of a scene has here."""
        return self.ground.names.get(name, name)

    def manifest(self, name: str, *, kind: str = "ConfigMap", api: str = "v1", **body: Any) -> Json:
        meta = {"name": self.named(name), "namespace": self.namespace, **body.pop("metadata", {})}
        if kind == "ConfigMap":
            body = {"data": {"value": "1"}} | body
        return {"apiVersion": api, "kind": kind, "metadata": meta, **body}

    def work(self, name: str, *manifests: Json, **spec: Any) -> Json:
        chosen = list(manifests) or [self.manifest(name)]
        return {"metadata": {"name": self.named(name)}, "spec": {"workload": {"manifests": chosen}, **spec}}

    def create(self, name: str, *manifests: Json, consumer: str = "", **spec: Any) -> None:
        self.note(name, consumer or self.consumer, self.source)
        self.client.create(consumer or self.consumer, self.work(name, *manifests, **spec))

    def note(self, name: str, consumer: str, source: str) -> None:
        """Remember that a client asked for a work; its id is made of who asks and what for."""
        text = f"{source}-manifestworks.work.open-cluster-management.io-{consumer}-{self.named(name)}"
        self.asked_at.setdefault(name, time.time())
        self.asked[name] = str(uuid.uuid5(uuid.NAMESPACE_OID, text))

    def refused(self, ask: Callable[[], object]) -> None:
        """Send what the server must refuse."""
        try:
            ask()
        except Refused:
            return
        raise AssertionError("the server did not refuse it")

    def update(self, name: str, *manifests: Json, **spec: Any) -> None:
        old = self.stored(name)
        self.client.patch(self.consumer, old, self.work(name, *manifests, **spec))

    def stored(self, name: str) -> Json:
        return self.wait(lambda: self.client.get(self.consumer, self.named(name)), f"the work {name}")

    def delete(self, name: str) -> None:
        self.client.delete(self.consumer, self.named(name))

    def condition(self, name: str, kind: str, *, generation: int = 1) -> str:
        """Return True, False, or nothing: a condition of the newest status of that generation."""
        try:
            work = self.client.get(self.consumer, self.named(name))
        except Refused:
            return ""
        for condition in work.get("status", {}).get("conditions") or []:
            if condition["type"] == kind and condition.get("observedGeneration") == generation:
                return str(condition["status"])
        return ""

    def applied(self, *names: str, generation: int = 1) -> None:
        for name in names:
            self.wait(
                lambda: (
                    self.condition(name, "Applied", generation=generation)
                    == self.condition(name, "Available", generation=generation)
                    == "True"
                ),
                f"{name} to be applied",
            )

    def not_applied(self, *names: str, generation: int = 1) -> None:
        for name in names:
            self.wait(
                lambda: self.condition(name, "Applied", generation=generation) == "False",
                f"{name} to be reported as not applied",
            )

    def gone(self, *names: str) -> None:
        for name in names:
            self.wait(lambda: self._is_gone(name), f"{name} to be gone")

    def _is_gone(self, name: str) -> bool:
        try:
            self.client.get(self.consumer, self.named(name))
        except Refused as refused:
            return refused.reason == "NotFound"
        return False

    def wait(self, look: Callable[[], Value | None], what: str, *, seconds: float = PATIENCE) -> Value:
        def patient() -> Value | None:
            with contextlib.suppress(Refused, OSError):
                return look()
            return None

        return wait_for(patient, what=f"{what} ({self.ground.kind} {self.scene.name})", seconds=seconds)

    def agent_received(self, name: str) -> None:
        """Wait until the agent has written that it received the work."""
        self.logged("agent", lambda line: '"Received event"' in line and self.asked[name] in line)

    def told(self, name: str) -> None:
        """Wait until the first server has sent a status of the work to a client, which may have had to reconnect."""
        sent = "send the event to status subscribers"
        self.logged("server-0", lambda line: sent in line and self.asked[name] in line)

    def logged(self, part: str, wanted: Callable[[str], bool], *, seconds: float = PATIENCE) -> str:
        """Wait for a line in a program's log: agent, server-0, server-1."""
        path = self.logs()[part]

        def look() -> str | None:
            return next(filter(wanted, path.read_text(errors="replace").splitlines()), None)

        return self.wait(look, f"a line in the log of {part}", seconds=seconds)

    # Logs.

    def logs(self) -> dict[str, Path]:
        found = {f"server-{number}": server.log for number, server in self.servers.items()}
        if self.agent is not None:
            found["agent"] = self.agent.log
        return found

    def pass_time(self, seconds: float = STAGE_SECONDS) -> None:
        """Let the time pass in which something could still have come, and let the servers write a line after it."""
        time.sleep(seconds + 1)
        for server in self.servers.values():
            with contextlib.suppress(OSError):
                rest(server, "GET", "/consumers")
        time.sleep(0.5)

    def collect(self, moment: str, *, quiet: bool = True) -> Path:
        """Copy the logs as they are now: a file per pod."""
        if quiet:
            self.pass_time(self.ground.quiet_seconds(self.scene.name, moment))
        folder = self.folder / "moments" / moment
        folder.mkdir(parents=True)
        for part, path in self.logs().items():
            name = f"maestro-{part[-1]}.log" if part.startswith("server") else "maestro-agent-0.log"
            shutil.copy(path, folder / name)
        (folder.parent / ASKED).write_text(json.dumps(self.asked))
        self.moments[moment] = folder
        self.ground.on_moment(self, moment)
        return folder


@contextlib.contextmanager
def lab(ground: Ground, scene: Scene) -> Iterator[Lab]:
    """Start a scene; the agent has subscribed and the client can speak when this yields."""
    folder = ground.folder / scene.name
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        api = stack.enter_context(ground.cluster.client())
        gate = stack.enter_context(api_gate(urlsplit(ground.cluster.url).port or 0))
        broker = stack.enter_context(mosquitto(folder / "mosquitto")) if scene.broker == "mqtt" else None
        name = f"incidents_{ground.kind}_{scene.name}".replace("-", "_")
        database = ground.postgres.create(name)
        made = Lab(
            ground=ground,
            scene=scene,
            api=api,
            gate=gate,
            broker=broker,
            database=database,
            kubeconfig=folder / "kubeconfig",
            stack=stack,
        )
        made.sql(MUTE.format(name=name))
        restricted_account(made)
        answer(api.post("/api/v1/namespaces", json={"metadata": {"name": made.namespace}}))
        for number in range(scene.servers):
            made.start_server(number)
        rest(made.servers[0], "POST", "/consumers", {"name": made.consumer})
        made.start_agent()
        made.start_client()
        yield made


RULES: tuple[Json, ...] = (
    {"apiGroups": ["work.open-cluster-management.io", "apps", "lab.test"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["configmaps", "namespaces", "events", "services"], "verbs": ["*"]},
    {"apiGroups": ["events.k8s.io", "coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["*"], "verbs": ["create"]},
)
"""An agent that may do everything but touch Secrets."""


def restricted_account(made: Lab) -> None:
    """Write the agent's kubeconfig: through the gate, as an account with limited rights."""
    cluster, name = made.ground.cluster, f"lab-agent-{made.ground.kind}-{made.scene.name}"
    token = cluster.service_account_token(namespace="default", name=name)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    group = "rbac.authorization.k8s.io"
    answer(made.api.post(f"{rbac}/clusterroles", json={"metadata": {"name": name}, "rules": list(RULES)}))
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    answer(made.api.post(f"{rbac}/clusterrolebindings", json=binding))
    url = f"https://127.0.0.1:{made.gate.port}"
    kube_commands.write_kubeconfig(made.kubeconfig, url=url, ca=cluster.authority.cert, user={"token": token})
