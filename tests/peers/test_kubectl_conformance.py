"""The real kubectl prints the same for the sandbox as for a real cluster: apply, get, describe, explain, delete."""

import contextlib
import difflib
import os
import re
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.sandbox_thread import Running, sandbox
from tests.peers import kube_build
from tests.peers.kube_cluster import KubeCluster

pytestmark = pytest.mark.peers

LIST = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one, labels: {app: web}}
  data: {a: "1"}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 0
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers:
        - {name: web, image: "web:1", ports: [{containerPort: 80}], resources: {limits: {cpu: 1, memory: 1Gi}}}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.kubectl.test}
spec:
  group: kubectl.test
  names: {kind: Gauge, plural: gauges, singular: gauge}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
"""
GAUGES = """\
apiVersion: v1
kind: List
items:
- {apiVersion: kubectl.test/v1, kind: Gauge, metadata: {name: small}, spec: {size: 1}}
- {apiVersion: kubectl.test/v1, kind: Gauge, metadata: {name: large}, spec: {size: 9}}
"""

FORWARDED = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: web, labels: {app: web}, annotations: {sandbox.maestropy/forward: "80=LOCAL"}}
  spec: {containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 80}]}]}
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {selector: {app: web}, ports: [{port: 8000, targetPort: http}]}
"""

STEPS: dict[str, list[tuple[str, str]]] = {
    "apply-list": [
        ("apply -f -", LIST),
        ("apply -f -", LIST),
        ("apply -f -", LIST.replace('a: "1"', 'a: "2"')),
        ("apply -f - --dry-run=server", LIST.replace('a: "1"', 'a: "3"')),
        ("apply -f - --server-side --force-conflicts", LIST),
    ],
    "apply-rejections": [
        ("apply -f -", LIST.replace("  data:", "  dota:")),
        ("apply -f -", LIST.replace("replicas: 0", "replicas: many")),
        ("apply -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, dota: {a: b}}"),
        ("apply -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'Not A Name'}}"),
        ("apply -f -", "{apiVersion: v1, kind: Nothing, metadata: {name: x}}"),
    ],
    "get": [
        ("apply -f -", LIST),
        ("get configmap one", ""),
        ("get configmap one --no-headers -o custom-columns=N:.metadata.name,D:.data.a", ""),
        ("get configmap one -o jsonpath={.data.a}", ""),
        ("get configmap,deployment -l app=web -o name", ""),
        ("get configmap one -o yaml", ""),
        ("get configmap missing", ""),
        ("get secrets", ""),
        ("get deployment web", ""),
        ("create service clusterip two --tcp=80:8080 --tcp=443 --clusterip=None", ""),
        ("get service two", ""),
        ("get nothings", ""),
    ],
    "describe": [("apply -f -", LIST), ("describe configmap one", ""), ("describe configmap missing", "")],
    "change": [
        ("apply -f -", LIST),
        ("label configmap one tier=front", ""),
        ("annotate configmap one note=kept", ""),
        ('patch configmap one --type=merge -p {"data":{"b":"2"}}', ""),
        ("scale deployment web --replicas=0", ""),
        ("set image deployment/web web=web:2", ""),
        ("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", ""),
        ("create configmap one --from-literal=a=b", ""),
    ],
    "delete": [
        ("apply -f -", LIST),
        ("delete configmap one missing", ""),
        ("delete deployment web --cascade=foreground", ""),
        ("wait --for=delete deployment/web --timeout=30s", ""),
        ("delete configmap one --ignore-not-found", ""),
        ("delete configmap one", ""),
    ],
    "custom-resources": [
        ("apply -f -", DEFINITION),
        ("wait --for=condition=Established crd/gauges.kubectl.test --timeout=30s", ""),
        ("apply -f -", GAUGES),
        ("get gauges -o name", ""),
        ("get crd gauges.kubectl.test", ""),
        ("apply -f -", GAUGES.replace("size: 1", "size: big")),
        ("delete crd gauges.kubectl.test --timeout=60s", ""),
        ("get crd gauges.kubectl.test", ""),
    ],
    "logs": [("logs missing", "")],
}
_CHANGING = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r'resourceVersion: "\d+"'), "resourceVersion: <version>"),
    (re.compile(r" +\d+s$", re.MULTILINE), " <age>"),
)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one cluster and one namespace."""

    program: Path
    kubeconfig: Path
    cache: Path
    namespace: str

    def run(self, command: str, text: str = "") -> str:
        """Return exit code and output, with names in place of what differs from cluster to cluster."""
        where = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}", f"--namespace={self.namespace}"]
        ran = subprocess.run(
            [str(self.program), *command.split(), *where],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        shown = f"$ kubectl {command}\n{ran.stdout}{ran.stderr}exit {ran.returncode}\n"
        for pattern, name in _CHANGING:
            shown = pattern.sub(name, shown)
        return shown


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with sandbox(delay=0.01) as started:
        yield started


@pytest.fixture
def both(
    control_plane: kube_build.ControlPlane, real_cluster: KubeCluster, running: Running, tmp_path: Path
) -> tuple[Kubectl, Kubectl]:
    """kubectl with the real cluster and with the sandbox, in a namespace of the same name."""
    namespace = f"kubectl-{os.getpid()}-{tmp_path.name.rpartition('_')[2].lower()}"
    pair = (
        Kubectl(control_plane.kubectl, real_cluster.kubeconfig, tmp_path / "real", namespace),
        Kubectl(control_plane.kubectl, running.cluster.kubeconfig, tmp_path / "sandbox", namespace),
    )
    for kubectl in pair:
        created = kubectl.run(f"create namespace {namespace}")
        assert "created" in created, created
    return pair


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_kubectl_prints_the_same(steps: list[tuple[str, str]], both: tuple[Kubectl, Kubectl]) -> None:
    real, ours = ("".join(kubectl.run(command, text) for command, text in steps) for kubectl in both)
    if ours != real:
        differences = difflib.unified_diff(real.splitlines(), ours.splitlines(), "real", "sandbox", lineterm="", n=2)
        pytest.fail("\n".join(differences), pytrace=False)


@pytest.mark.parametrize("field", ["configmap", "deployment.spec", "pod.spec.containers", "service.spec.ports"])
def test_explain_lists_the_same_fields(field: str, both: tuple[Kubectl, Kubectl]) -> None:
    # The sandbox has no descriptions.
    real, ours = (re.findall(r"^  (\w+)\t(<[^>]*>)", kubectl.run(f"explain {field}"), re.MULTILINE) for kubectl in both)
    assert real
    assert ours == real


def test_pod_of_the_sandbox_is_described_and_has_a_log(both: tuple[Kubectl, Kubectl]) -> None:
    # A real pod would need a node.
    _, kubectl = both
    assert "pod/web created" in kubectl.run("run web --image=web:1")
    assert "condition met" in kubectl.run("wait --for=condition=Ready pod/web --timeout=30s")
    described = kubectl.run("describe pod web")
    assert re.search(r"^Status: +Running$", described, re.MULTILINE)
    assert re.search(r"^    Image: +web:1$", described, re.MULTILINE)
    assert "sandbox: container web (web:1) is not run; it has no log\nexit 0" in kubectl.run("logs web")
    # Newer versions of kubectl add the names of the containers.
    assert re.search(r"container x is not valid for pod web.*\nexit 1", kubectl.run("logs web -c x"))
    assert "the sandbox runs no containers" in kubectl.run("attach web")
    assert 'pod "web" deleted' in kubectl.run("delete pod web --timeout=60s")


@contextmanager
def echoing() -> Iterator[int]:
    """Run a program that returns what it receives, in upper case; yields its port."""

    class Echo(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while data := self.rfile.read1(65536):
                self.wfile.write(data.upper())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="echo", daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def forwarding(kubectl: Kubectl, target: str, port: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run `kubectl port-forward`; yields the local port."""
    where = [f"--kubeconfig={kubectl.kubeconfig}", f"--cache-dir={kubectl.cache}", f"--namespace={kubectl.namespace}"]
    process = subprocess.Popen(
        [str(kubectl.program), "port-forward", "--address=127.0.0.1", target, f":{port}", *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    try:
        line = process.stdout.readline()
        found = re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
        assert found, line + process.stdout.read()
        yield int(found[1]), process
    finally:
        process.kill()
        process.communicate()


def exchanged(port: int, text: bytes) -> bytes:
    """Send a text and its end, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:

        def send() -> None:
            peer.sendall(text)
            peer.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send, name="sender", daemon=True)
        sending.start()
        received = b"".join(iter(lambda: peer.recv(65536), b""))
        sending.join(60)
        return received


def test_kubectl_forwards_ports_of_pods_and_services_of_the_sandbox(both: tuple[Kubectl, Kubectl]) -> None:
    _, kubectl = both
    with echoing() as local:
        assert "created" in kubectl.run("apply -f -", FORWARDED.replace("LOCAL", str(local)))
        assert "condition met" in kubectl.run("wait --for=condition=Ready pod/web --timeout=30s")
        for target, port in (("pod/web", 80), ("service/web", 8000)):
            with forwarding(kubectl, target, port) as (forwarded, _):
                large = b"abc" * 300_000
                assert exchanged(forwarded, large) == large.upper()
                with ThreadPoolExecutor(8) as pool:
                    assert set(pool.map(lambda _: exchanged(forwarded, b"hello" * 5000), range(16))) == {
                        b"HELLO" * 5000
                    }
        with forwarding(kubectl, "pod/web", 81) as (forwarded, process):
            # kubectl ends here, and closes the connection before or after it has read what was sent.
            with contextlib.suppress(ConnectionResetError):
                assert exchanged(forwarded, b"x") == b""
            told, _ = process.communicate(timeout=60)
            assert "nothing listens on port 81 of pod web; annotate the pod" in told
