"""The ground that all combinations share: one Kubernetes, one Mosquitto with certificates, one authority."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import certificates
from tests.peers import peer_build, peer_postgres
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.matrix import compatibility_page, matrix_report
from tests.peers.matrix.rig import Ground
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.peers.pubsub_emulator import Emulator, emulator

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    """Who signs all certificates of the matrix."""
    return certificates.make_ca(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def secure_broker(authority: certificates.Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A broker that asks everybody for a certificate."""
    files = authority.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    settings = f"cafile {authority.cert}\ncertfile {files.cert}\nkeyfile {files.key}\nrequire_certificate true"
    with mosquitto(tmp_path_factory.mktemp("mosquitto"), settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def pubsub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Google's in-memory Pub/Sub."""
    with emulator(tmp_path_factory.mktemp("pubsub")) as running:
        yield running


@pytest.fixture(scope="session")
def ground(
    programs: peer_build.Programs,
    real_cluster: KubeCluster,
    secure_broker: Mosquitto,
    pubsub: Emulator,
    authority: certificates.Authority,
) -> Iterator[Ground]:
    """Everything but the players; members of the group `sources` may publish and subscribe."""
    rule = {"nonResourceURLs": ["/sources/*"], "verbs": ["pub", "sub"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "matrix-sources"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "sources"}
    meta = {"name": "matrix-sources"}
    with real_cluster.client() as api:
        answer(api.post(f"{RBAC}/clusterroles", json={"metadata": meta, "rules": [rule]}))
        binding = {"metadata": meta, "roleRef": reference, "subjects": [group]}
        answer(api.post(f"{RBAC}/clusterrolebindings", json=binding))
    with pytest.MonkeyPatch.context() as patch:
        # The Go programs look at their certificates every five minutes otherwise.
        patch.setenv("CERT_CALLBACK_REFRESH_DURATION", "1s")
        yield Ground(programs=programs, cluster=real_cluster, broker=secure_broker, pubsub=pubsub, authority=authority)


@pytest.fixture
def show(shown_logs: list[Path]) -> Iterator[Callable[[Path], None]]:
    """Let a test name logs whose ends are shown should it fail."""
    before = list(shown_logs)

    def add(log: Path) -> None:
        if log not in shown_logs:
            shown_logs.append(log)

    yield add
    shown_logs[:] = before


@pytest.fixture(scope="session")
def recorded(postgres: peer_postgres.Cluster) -> Iterator[Callable[[matrix_report.Row], None]]:
    """Remember the rows of this run; write the page of them when asked."""
    rows: list[matrix_report.Row] = []
    yield rows.append
    if os.environ.get("MAESTROPY_WRITE_DOCS"):
        compatibility_page.write(rows, postgres=postgres.binaries / "postgres")
