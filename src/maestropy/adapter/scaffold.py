"""A new adapter's files: the adapter, samples, tests on a fleet, a Job and an image. Pure: names in, texts out.

What is written runs and passes its own tests at once, on plain Kubernetes kinds; its author replaces them.
"""

from collections.abc import Mapping

from maestropy.adapter.errors import BadAdapter
from maestropy.wire import names


def files(name: str) -> Mapping[str, str]:
    """Return the files of a new adapter, by path."""
    problems = names.dns1123_label(name)
    if problems:
        raise BadAdapter(f"the adapter's name is {name!r}: {problems[0]}")
    return {path: text.replace("@name@", name) for path, text in _FILES.items()}


_ADAPTER = '''\
"""What this adapter wants for a cluster, and what it reads back."""

from maestropy import Work
from maestropy.adapter import Adapter, Event, Reading, Resource, Seen, Wish

adapter = Adapter("@name@")


@adapter.reconciles("Cluster")
def wanted(_: Event, cluster: Resource) -> Wish:
    """Return everything that should be on the management cluster."""
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
    return Wish(Work(f"@name@-{cluster.id}").add(deployment, feedback={"status": ".status"}), read=read)


def read(seen: Seen) -> Reading:
    """Say what has become of it."""
    status = seen.status("Deployment")
    return Reading(available=status, data={"ready": status.get("readyReplicas", 0)})
'''

_TEST = '''\
"""The adapter without a fleet, and on a whole one."""

import json
import subprocess
import sys
from pathlib import Path

from maestropy.testing import FakeHyperFleet, RunningFleet

HERE = Path(__file__).parent


def maestro_adapter(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maestropy.cli.main", "adapter", *arguments]
    return subprocess.run(command, cwd=HERE, env=environ, capture_output=True, text=True, check=False)


def test_what_it_would_do() -> None:
    shown = maestro_adapter(
        "run", "adapter.py", "--dry-run", "--event", "samples/event.json", "--resource", "samples/cluster.json"
    )
    assert "Deployment default/@name@-abc123" in shown.stdout, shown.stderr


def test_that_nothing_is_wrong_with_it() -> None:
    assert maestro_adapter("lint", ".", "--strict").stdout == "nothing is wrong\\n"


def test_from_an_event_to_available(fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path) -> None:
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
"""A whole fleet and a HyperFleet API for the tests."""

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
# The adapter as a Job beside HyperFleet's status reporter. CLUSTER_ID and GENERATION come from whoever makes the Job.
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
RUN pip install --no-cache-dir 'maestropy[agent]'
WORKDIR /adapter
COPY adapter.py .
ENTRYPOINT ["maestro", "adapter"]
CMD ["serve", "adapter.py"]
"""

_README = """\
# @name@

A HyperFleet adapter. What it wants and reads is in `adapter.py`; everything else is the kit's.

    maestro adapter lint .
    maestro adapter run adapter.py --event samples/event.json --resource samples/cluster.json --dry-run
    pytest

`maestro adapter serve adapter.py` deals with every event that comes in over HTTP; `deploy/job.yaml` runs it once.
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
