"""The real kubectl prints the same for the sandbox as for a real cluster: apply, get, describe, explain, delete."""

import difflib
import os
import re
import subprocess
from collections.abc import Iterator
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
    assert "container x is not valid for pod web\nexit 1" in kubectl.run("logs web -c x")
    assert "the sandbox runs no containers" in kubectl.run("port-forward pod/web 18080:80")
    assert 'pod "web" deleted' in kubectl.run("delete pod web --timeout=60s")
