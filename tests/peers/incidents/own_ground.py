"""A ground of our own programs for the lab: the sandbox's Kubernetes API and our SDK, so that no Go is needed.

Incidents of our stack that need no admission are made on it. It looks to the lab like the real ones do.
"""

import contextlib
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import yaml

import maestropy
from maestropy import Work
from maestropy.sdk import errors
from tests import certificates
from tests.peers.kube_cluster import AGENT_CRDS, KubeCluster, install_crd, succeeds
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Refused
from tests.peers.peer_processes import free_ports, running
from tests.peers.peer_servers import RunningServer
from tests.waiting import wait_for

PROGRAM = """
import asyncio, sys
from pathlib import Path
from maestropy.sandbox.kubeapi.cluster import SandboxCluster

async def main():
    async with SandboxCluster(directory=Path(sys.argv[1]), port=int(sys.argv[2])):
        await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxKube(KubeCluster):
    """The sandbox's API; its administrator has a token instead of a certificate."""

    admin_token: str

    def client(self, *, token: str | None = None) -> httpx.Client:
        trust = ssl.create_default_context(cafile=self.authority.cert)
        headers = {"Authorization": f"Bearer {token or self.admin_token}"}
        return httpx.Client(base_url=self.url, verify=trust, headers=headers, timeout=20, trust_env=False)


@contextlib.contextmanager
def sandbox_kube(folder: Path) -> Iterator[KubeCluster]:
    """Run the API in a process of its own, with the CRDs of an agent."""
    (port,) = free_ports(1)
    home = folder / "api"
    with running([sys.executable, "-c", PROGRAM, str(home), str(port)], log=folder / "api.log"):
        kubeconfig = home / "kubeconfig"
        given = wait_for(lambda: kubeconfig.exists() and yaml.safe_load(kubeconfig.read_text()), what="its kubeconfig")
        ca = certificates.make_ca(folder)
        ca.cert.write_bytes(_authority(given["clusters"][0]["cluster"]))
        cluster = SandboxKube(
            url=given["clusters"][0]["cluster"]["server"],
            folder=folder,
            authority=ca,
            admin=ca.issue(cn="admin"),
            kubeconfig=kubeconfig,
            admin_token=given["users"][0]["user"]["token"],
        )
        with cluster.client() as api:
            wait_for(lambda: succeeds(api, "/api/v1/namespaces/default"), what="the sandbox's API")
            for path in sorted(AGENT_CRDS.glob("*.yaml")):
                install_crd(api, yaml.safe_load(path.read_text()))
        yield cluster


def _authority(cluster: Json) -> bytes:
    import base64

    if "certificate-authority" in cluster:
        return Path(cluster["certificate-authority"]).read_bytes()
    return base64.b64decode(cluster["certificate-authority-data"])


class SdkClient:
    """Our SDK with the words of the Go work client."""

    def __init__(self, server: RunningServer, *, source: str) -> None:
        self.source = source
        self._client = maestropy.Maestro(
            environ={}, api_url=server.rest_url, grpc_url=server.grpc_addr, source=source, timeout=10
        )
        self._client.__enter__()
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave; calling it twice is fine."""
        if self._is_open:
            self._is_open = False
            self._client.__exit__(None, None, None)

    def create(self, namespace: str, work: Json) -> Json:
        with _refusals():
            return self._client.works(namespace).create(_work(work)).to_dict()

    def get(self, namespace: str, name: str) -> Json:
        with _refusals():
            return self._client.works(namespace).get(name).to_dict()

    def patch(self, namespace: str, old: Json, new: Json) -> Json:
        name, version = old["metadata"]["name"], int(old["metadata"]["generation"])
        with _refusals():
            return (
                self._client.works(namespace).patch(name, lambda stored: _changed(stored, new), version=version)
            ).to_dict()

    def delete(self, namespace: str, name: str) -> None:
        with _refusals():
            self._client.works(namespace).delete(name)

    def watch(self, namespace: str) -> None:
        """Subscribe to all works of the source, and let what comes pass."""
        subscribed = threading.Event()
        threading.Thread(target=self._watch, args=(subscribed,), daemon=True).start()
        assert subscribed.wait(60), "no subscription within 60 s"

    def _watch(self, subscribed: threading.Event) -> None:
        # A client that is closed ends its watch with whatever error it met.
        with contextlib.suppress(Exception):
            for event in self._client.works(None).watch(bookmarks=True):
                if event.type == "SYNCED":
                    subscribed.set()


def _work(body: Json) -> Work:
    return Work.from_dict({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", **body})


def _changed(stored: Work, new: Json) -> Work:
    return Work.from_dict({**stored.to_dict(), "spec": new["spec"]})


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except errors.NotFound as error:
        raise Refused({"message": str(error), "reason": "NotFound", "code": 404}) from error
    except errors.MaestroError as error:
        raise Refused({"message": str(error), "reason": type(error).__name__, "code": 500}) from error


_NONE = Path("of-go")
NO_PROGRAMS = Programs(
    maestro=_NONE, workclient=_NONE, fakeagent=_NONE, load=_NONE, impatient=_NONE, newest=_NONE, newest_version=""
)
"""Nothing of Go is started on this ground."""
