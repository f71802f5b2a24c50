"""A cluster that upstream's charts are installed on, with what they take from images of others beside it."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.peers import go_build, kube_build, mosquitto, peer_postgres, pubsub_emulator
from tests.peers.kube_cluster import KubeCluster, kube_cluster
from tests.peers.pubsub_emulator import Emulator
from tests.upstream import installation, pod_network, sources
from tests.upstream.installation import SERVER, Installer
from tests.upstream.node import node
from tests.upstream.pod_files import Image
from tests.upstream.pod_network import Endpoint

PYTHON = Path(sys.executable).parent / "maestro"
CLIENT_IMAGE = "maestro/maestro-e2e"
Outside = Mapping[tuple[str, str], Endpoint]


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A running cluster and the tools for it."""

    upstream: sources.Upstream
    cluster: KubeCluster
    installer: Installer
    emulator: Emulator | None
    folder: Path

    def install(self, *, server: str, agent: str) -> str:
        """Install server and agent of these kinds for a new consumer, and return its name."""
        say(f"installing the server ({server})")
        self.installer.prepare()
        self.installer.server(tag=server)
        self.installer.client_token(self.upstream.checkout / "test" / "setup" / "grpc-client")
        consumer = installation.create_consumer(tls=self.installer.tls)
        if self.emulator is not None:
            self.emulator.add_consumer(consumer)
        say(f"the server is available; installing the agent ({agent})")
        self.installer.agent(tag=agent, consumer=consumer)
        return consumer


@contextlib.contextmanager
def rig(*, broker: str, folder: Path, tls: bool = True) -> Iterator[Rig]:
    """Run a cluster in the namespace we are in."""
    upstream = sources.upstream()
    control_plane = kube_build.control_plane(say)
    helm = go_build.built(sources.HELM, say) / "helm"
    pod_network.open_bridge()
    with (
        kube_cluster(control_plane, folder=made(folder / "cluster")) as cluster,
        outside(broker, folder) as (endpoints, emulator),
        node(cluster, images=images(upstream), folder=made(folder / "pods"), outside=endpoints, say=say),
    ):
        installer = Installer(
            cluster=cluster,
            programs=control_plane,
            helm=helm,
            charts=upstream.checkout / "charts",
            folder=folder,
            broker=broker,
            tls=tls,
        )
        yield Rig(upstream=upstream, cluster=cluster, installer=installer, emulator=emulator, folder=folder)


def images(upstream: sources.Upstream) -> dict[str, Image]:
    """Return what runs for the images of the charts; all others do nothing."""
    maestro, named = "/usr/local/bin/maestro", f"{installation.REPOSITORY}:"
    return {
        f"{named}go": Image(files={maestro: upstream.maestro}),
        f"{named}python": Image(files={maestro: PYTHON}),
        CLIENT_IMAGE: Image(files={"/e2e/work-server.test": upstream.suites / "work-server.test"}),
        "mosquitto": Image(files={}, command=(mosquitto.program(), "-c", "/mosquitto/config/mosquitto.conf")),
    }


@contextlib.contextmanager
def outside(broker: str, folder: Path) -> Iterator[tuple[Outside, Emulator | None]]:
    """Run PostgreSQL, and the emulator of Pub/Sub where it is the broker."""
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(peer_postgres.cluster(made(folder / "postgres")))
        as_admin = ["-h", "127.0.0.1", "-p", str(postgres.port), "-U", "postgres"]
        pod_network.run(postgres.binaries / "createuser", *as_admin, "--superuser", "maestro")
        postgres.create("maestro")
        endpoints: dict[tuple[str, str], Endpoint] = {(SERVER, "maestro-db"): ("127.0.0.1", postgres.port)}
        emulator = None
        if broker == "pubsub":
            emulator = stack.enter_context(pubsub_emulator.emulator(folder / "pubsub"))
            endpoints[SERVER, "maestro-pubsub"] = ("127.0.0.1", emulator.port)
        yield endpoints, emulator


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
