"""Write the files of a new adapter: its code, samples, tests on a fleet, a Job and an image. Pure: names in, texts out.

The new adapter runs and passes its own tests at once, with plain Kubernetes kinds; its author replaces them.
"""

from collections.abc import Mapping

from maestropy import installation
from maestropy.adapter.errors import BadAdapter
from maestropy.wire import kubernetes_names


def files(name: str) -> Mapping[str, str]:
    """Return the files of a new adapter, by path."""
    problems = kubernetes_names.dns1123_label(name)
    if problems:
        raise BadAdapter(f"the adapter's name is {name!r}: {problems[0]}")
    values = {
        "@name@": name,
        "@wheel@": installation.WHEEL,
        "@requirement@": installation.requirement("/wheels/${WHEEL}", "agent"),
    }
    return {path: _filled(text, values) for path, text in _FILES.items()}


def _filled(text: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


_ADAPTER = '''\
"""The desired state for a cluster, and the status that is read back."""

from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, Event, ObservedState, Resource, StatusReport

adapter = Adapter("@name@")


@adapter.reconciles("Cluster")
def desired(_: Event, cluster: Resource) -> DesiredState:
    """Return the works that should exist for a cluster."""
    labels = {"app": f"@name@-{cluster.id}"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"@name@-{cluster.id}", "namespace": "default"},
        "spec": {
            "replicas": cluster.spec.get("replicas", 1),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]},
            },
        },
    }
    return DesiredState(Work(f"@name@-{cluster.id}").add(deployment, feedback={"status": ".status"}), read=read)


def read(observed: ObservedState) -> StatusReport:
    """Report the availability of the Deployment."""
    status = observed.status("Deployment")
    return StatusReport(available=status, data={"ready": status.get("readyReplicas", 0)})
'''

_TEST = '''\
"""The adapter without a fleet, and on a fleet."""

import json
import subprocess
import sys
from pathlib import Path

from maestropy.testing import FakeHyperFleet, RunningFleet

HERE = Path(__file__).parent


def maestro_adapter(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maestropy.cli.main", "adapter", *arguments]
    return subprocess.run(command, cwd=HERE, env=environ, capture_output=True, text=True, check=False)


def test_dry_run_shows_the_deployment() -> None:
    shown = maestro_adapter(
        "run", "adapter.py", "--dry-run", "--event", "samples/event.json", "--resource", "samples/cluster.json"
    )
    assert "Deployment default/@name@-abc123" in shown.stdout, shown.stderr


def test_lint_has_no_findings() -> None:
    assert maestro_adapter("lint", ".", "--strict").stdout == "no findings\\n"


def test_event_makes_the_cluster_available(fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(hyperfleet.put("Cluster", "abc123", spec={"replicas": 2})))
    ran = maestro_adapter(
        *("run", "adapter.py", "--event", str(tmp_path / "event.json"), "--wait", "20s"),
        **fleet.environ,
        HYPERFLEET_API_URL=hyperfleet.url,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert hyperfleet.condition("abc123", "@name@", "Available")["status"] == "True"
    assert fleet.cluster().get("apps/v1", "Deployment", "@name@-abc123", namespace="default")
'''

_CONFTEST = '''\
"""A fleet and a fake HyperFleet API for the tests."""

pytest_plugins = ["maestropy.testing.fixtures"]
'''

_EVENT = """\
{
  "specversion": "1.0",
  "type": "com.redhat.hyperfleet.cluster.reconcile",
  "source": "hyperfleet-sentinel",
  "id": "0198d0e0-6b5a-7c33-9a53-2f7a0a9d0c11",
  "data": {
    "id": "abc123",
    "kind": "Cluster",
    "href": "/api/hyperfleet/v1/clusters/abc123",
    "generation": 1
  }
}
"""

_CLUSTER = """\
{
  "id": "abc123",
  "kind": "Cluster",
  "name": "my-cluster",
  "href": "/api/hyperfleet/v1/clusters/abc123",
  "generation": 1,
  "spec": {
    "replicas": 2
  }
}
"""

_JOB = """\
# The adapter as a Job beside HyperFleet's status reporter. The creator of the Job sets CLUSTER_ID and GENERATION.
apiVersion: batch/v1
kind: Job
metadata:
  name: @name@
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 900
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: maestro-adapter-sa
      containers:
        - name: adapter
          image: @name@:latest
          args: ["run", "adapter.py", "--wait", "10m"]
          env:
            - {name: CLUSTER_ID, value: "abc123"}
            - {name: GENERATION, value: "1"}
            - {name: RESULTS_PATH, value: /results/adapter-result.json}
            - {name: MAESTRO_API_URL, value: "http://maestro.maestro.svc:8000"}
            - {name: MAESTRO_GRPC_URL, value: "maestro-grpc.maestro.svc:8090"}
            - {name: MAESTRO_TOKEN_FILE, value: /var/run/secrets/kubernetes.io/serviceaccount/token}
            - {name: HYPERFLEET_API_URL, value: "http://hyperfleet-api:8000"}
            - name: MANAGEMENT_CLUSTER_CONSUMER
              valueFrom:
                configMapKeyRef: {name: @name@-config, key: management_cluster_consumer}
          volumeMounts:
            - {name: results, mountPath: /results}
      volumes:
        - {name: results, emptyDir: {}}
"""

_IMAGE = """\
FROM python:3.13-slim
ARG WHEEL=@wheel@
COPY $WHEEL /wheels/
RUN pip install --no-cache-dir "@requirement@"
WORKDIR /adapter
COPY adapter.py .
ENTRYPOINT ["maestro", "adapter"]
# Other machines send events to a pod: mount the token that they present.
CMD ["serve", "adapter.py", "--host", "0.0.0.0", "--token-file", "/var/run/adapter/token"]
"""

_README = """\
# @name@

A HyperFleet adapter. `adapter.py` holds the desired state and what is read back; maestropy does the rest.

    maestro adapter lint .
    maestro adapter run adapter.py --event samples/event.json --resource samples/cluster.json --dry-run
    pytest

`maestro adapter serve adapter.py` handles every event that arrives over HTTP; `deploy/job.yaml` runs it once.

The image installs maestropy from a wheel beside this file. In a clone of maestropy, `make wheel` puts it in `dist/`:

    cp CLONE/dist/@wheel@ .
    podman build -f deploy/Containerfile -t @name@:latest .
"""

_FILES = {
    "README.md": _README,
    "adapter.py": _ADAPTER,
    "conftest.py": _CONFTEST,
    "test_adapter.py": _TEST,
    "samples/event.json": _EVENT,
    "samples/cluster.json": _CLUSTER,
    "deploy/job.yaml": _JOB,
    "deploy/Containerfile": _IMAGE,
}
