"""Plays what a platform team does with the charts, on a cluster of this machine: `python -m tests.peers.charts.play`.

Runs in namespaces of its own (`pod_network.enclosed`). Helm installs and upgrades real releases, pods run as processes,
and after every step the works of the steps before are looked at: their rows, their objects and the agent's records.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maestropy import Maestro, Work
from tests.peers import go_build, kube_build
from tests.peers.charts.rendering import CHARTS
from tests.peers.kube_cluster import KubeCluster, answer, kube_cluster
from tests.upstream import installation, pod_network, rig, sources
from tests.upstream.installation import AGENT, REPOSITORY, SERVER, Installer, ran
from tests.upstream.node import node
from tests.upstream.pod_files import Image
from tests.waiting import wait_for

MAESTRO = "/usr/local/bin/maestro"
CONSUMER = "cluster1"
RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
OBJECTS = "/api/v1/namespaces/default/configmaps"
WAIT_SECONDS = 180


@dataclass(kw_only=True)
class Stage:
    """A cluster with Helm, and what has been seen of the works so far."""

    cluster: KubeCluster
    installer: Installer
    helm: Path
    folder: Path
    uids: dict[str, str] = field(default_factory=dict)
    """Objects and records of works → their uid: nothing of a work may be made anew."""

    def release(self, charts: Path, chart: str, *, values: Mapping[str, Any], presets: tuple[str, ...] = ()) -> None:
        """Install or upgrade a release and wait until it is available."""
        namespace = {"maestro-server": SERVER, "maestro-agent": AGENT}[chart]
        path = self.folder / f"{chart}-values.json"
        path.write_text(json.dumps(values))
        files = [*(charts / chart / name for name in presets), path]
        given = [word for each in files for word in ("--values", str(each))]
        who = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", namespace]
        # Hooks only prepare Google's emulator.
        ran([str(self.helm), "upgrade", "--install", chart, str(charts / chart), "--no-hooks", *who, *given])
        self.installer.wait_available(namespace, "maestro" if namespace == SERVER else "maestro-agent")

    def check(self, client: Maestro, step: str) -> None:
        """Apply a new work and a new version of every old one, and find that nothing was lost or made anew."""
        say(f"looking at the works: {step}")
        works = client.works(CONSUMER)
        before = {work.name for work in works.list()}
        assert before == {name for name in self.uids if not name.startswith("/")}, before
        for name in sorted({*before, step}):
            works.apply(Work(name).add(config_map(name, step)))
        with self.cluster.client() as api:

            def objects() -> dict[str, dict[str, Any]]:
                return {f"{OBJECTS}/{name}": api.get(f"{OBJECTS}/{name}").json() for name in {*before, step}}

            wait_for(
                lambda: all(each.get("data") == {"step": step} for each in objects().values()),
                what=f"the manifests of {step} to be applied",
                seconds=WAIT_SECONDS,
            )
            for name in sorted({*before, step}):
                works.wait_for(name, "Applied", timeout=WAIT_SECONDS)
            found = objects()
            records = {f"{RECORDS}/{each['metadata']['name']}": each for each in answer(api.get(RECORDS))["items"]}
        assert len(records) == len(found)
        now = {path: each["metadata"]["uid"] for path, each in {**found, **records}.items()}
        changed = [path for path, uid in self.uids.items() if path.startswith("/") and now.get(path) != uid]
        assert changed == [], f"{step}: made anew or lost: {changed}"
        self.uids |= {**now, step: ""}


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def config_map(name: str, step: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"step": step}}


@contextlib.contextmanager
def stage(folder: Path, images: Mapping[str, Image]) -> Iterator[Stage]:
    """Run a cluster and a database."""
    control_plane = kube_build.control_plane(say)
    helm = go_build.built(sources.HELM, say) / "helm"
    pod_network.open_bridge()
    with (
        kube_cluster(control_plane, folder=rig.made(folder / "cluster"), with_crds=False) as cluster,
        rig.outside("grpc", folder) as (endpoints, _),
        node(cluster, images=images, folder=rig.made(folder / "pods"), outside=endpoints, say=say),
    ):
        installer = Installer(
            cluster=cluster, programs=control_plane, helm=helm, charts=CHARTS, folder=folder, broker="grpc"
        )
        installer.prepare()
        yield Stage(cluster=cluster, installer=installer, helm=helm, folder=folder)


@contextlib.contextmanager
def connected(here: Stage, *, rest: str, token: str) -> Iterator[Maestro]:
    """Open a client that trusts the authorities of REST and gRPC."""
    bundle, token_file = here.folder / "authorities.pem", here.folder / "token"
    authorities = sorted(here.folder.glob("certificates-*/*.crt"))
    bundle.write_bytes(b"".join(path.read_bytes() for path in authorities))
    token_file.write_text(token)
    with Maestro(
        environ={},
        source="platform",
        api_url=rest,
        grpc_url=installation.GRPC,
        ca_file=str(bundle),
        token_file=token_file,
    ) as client:
        yield client


def upgrade(folder: Path) -> None:
    """Go from the Go Maestro's charts to ours and back, with one file of values: theirs."""
    upstream = sources.upstream()
    images = {
        f"{REPOSITORY}:go": Image(files={MAESTRO: upstream.maestro}),
        f"{REPOSITORY}:python": Image(files={MAESTRO: rig.PYTHON}),
    }
    with stage(folder, images) as here:
        steps = (("go", upstream.checkout / "charts"), ("python", CHARTS), ("go", upstream.checkout / "charts"))
        for number, (kind, charts) in enumerate(steps):
            image = {"image": installation.image(kind)}
            say(f"step {number}: the charts and programs of {kind}")
            here.release(charts, "maestro-server", values={**installation.server_values("grpc", tls=True), **image})
            if number == 0:
                with connected(here, rest=f"https://{installation.REST}", token="any") as client:
                    client.consumers.create(CONSUMER)
            values = {**installation.agent_values("grpc", CONSUMER, tls=True), **image}
            here.release(charts, "maestro-agent", values=values)
            with connected(here, rest=f"https://{installation.REST}", token="any") as client:
                here.check(client, f"step{number}-{kind}")


def production(folder: Path) -> None:
    """Install for production: tokens, certificates that name the consumer, an agent without cluster-admin."""
    with stage(folder, {f"{REPOSITORY}:python": Image(files={MAESTRO: rig.PYTHON})}) as here:
        image = {"image": installation.image("python")}
        secrets(here)
        server = {
            **image,
            "database": {"sslMode": "disable"},
            "postgresql": {"enabled": True, "persistence": {"enabled": False}},
            "service": {
                "api": {"type": "NodePort", "nodePort": 30080},
                "grpc": {"type": "NodePort", "nodePort": 30090, "headless": True},
            },
            "sources": [{"name": "platform", "serviceAccount": "platform", "namespace": installation.CLIENTS}],
        }
        here.release(CHARTS, "maestro-server", values=server, presets=("values-production.yaml",))
        token = here.cluster.service_account_token(namespace=installation.CLIENTS, name="platform")
        with connected(here, rest=f"http://{installation.REST}", token=token) as client:
            client.consumers.create(CONSUMER)
            agent = {
                **image,
                "consumerName": CONSUMER,
                "messageBroker": {"grpc": {"url": "maestro-grpc-broker.maestro:8091"}},
            }
            here.release(CHARTS, "maestro-agent", values=agent, presets=("values-production.yaml",))
            here.check(client, "installed")
            # The same again with two agents, of which one waits.
            here.release(CHARTS, "maestro-agent", values={**agent, "replicas": 2}, presets=("values-production.yaml",))
            here.check(client, "replicas")


def secrets(here: Stage) -> None:
    """Make the secrets of docs/deploy.md."""
    installer = here.installer
    sources_ca, agents_ca = (installer._authority(f"{name}-production") for name in ("sources", "agents"))
    server = sources_ca.issue(cn="maestro-grpc", san=["localhost", "127.0.0.1"])
    installer.secret(SERVER, "maestro-sources-tls", {"tls.crt": server.cert, "tls.key": server.key})
    broker = agents_ca.issue(cn="maestro-grpc-broker", san=["maestro-grpc-broker.maestro"])
    files = {"tls.crt": broker.cert, "tls.key": broker.key, "ca.crt": agents_ca.cert}
    installer.secret(SERVER, "maestro-agents-tls", files)
    agent = agents_ca.issue(cn=CONSUMER)
    files = {"tls.crt": agent.cert, "tls.key": agent.key, "ca.crt": agents_ca.cert}
    installer.secret(AGENT, "maestro-agent-tls", files)


PLAYS = {"upgrade": upgrade, "production": production}

if __name__ == "__main__":
    PLAYS[sys.argv[1]](Path(sys.argv[2]))
    say("played to the end")
