"""Run the whole system in the background of a blocking test."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from maestropy.sandbox.fleet import Fleet, FleetOptions, fleet
from maestropy.sdk.blocking import Maestro
from maestropy.testing.cluster import Cluster, client_for
from maestropy.testing.loop import LoopThread, loop_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningFleet:
    """A running system and its addresses."""

    api_url: str
    """The address of the REST API."""
    grpc_url: str
    """The address of the gRPC API for sources."""
    clusters: Mapping[str, Cluster]
    """The clusters, by consumer."""
    folder: Path
    """The folder with its logs."""
    inner: Fleet
    loop: LoopThread

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables that connect a client, an adapter or a command to this fleet."""
        return {
            "MAESTRO_API_URL": self.api_url,
            "MAESTRO_GRPC_URL": self.grpc_url,
            "MANAGEMENT_CLUSTER_CONSUMER": next(iter(self.clusters)),
        }

    def cluster(self, consumer: str = "") -> Cluster:
        """Return a cluster; the first one if none is named."""
        return self.clusters[consumer or next(iter(self.clusters))]

    def maestro(self, source: str = "test") -> Maestro:
        """Return a new client; the caller closes it."""
        return Maestro(environ={}, api_url=self.api_url, grpc_url=self.grpc_url, source=source)

    def kill_server(self) -> None:
        """Kill the server with SIGKILL."""
        self.loop.call(self.inner.server.kill())

    def start_server(self) -> None:
        """Start the server again, on the same ports and database."""
        self.loop.call(self.inner.server.start())


@contextmanager
def running_fleet(*consumers: str, folder: Path | None = None) -> Iterator[RunningFleet]:
    """Run a fleet with these clusters, `cluster1` if none is named; everything is ready when entered.

    >>> with running_fleet("eu", "us") as fleet:
    ...     fleet.cluster("eu").get("v1", "Namespace", "default")
    """
    with ExitStack() as stack:
        fleet_folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maestro-test-")))
        loop = stack.enter_context(loop_thread("maestro-fleet"))
        options = FleetOptions(
            folder=fleet_folder, consumers=consumers or ("cluster1",), source="test", is_ephemeral=True
        )
        started = stack.enter_context(loop.entered(fleet(options)))
        clusters = {
            consumer: Cluster(
                stack.enter_context(loop.entered(client_for(kubeconfig))), loop=loop, kubeconfig=kubeconfig
            )
            for consumer, kubeconfig in started.kubeconfigs.items()
        }
        yield RunningFleet(
            api_url=started.api_url,
            grpc_url=started.grpc_url,
            clusters=clusters,
            folder=fleet_folder,
            inner=started,
            loop=loop,
        )
