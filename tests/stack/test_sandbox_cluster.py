"""The sandbox cluster as a whole: fault injection, workload controllers, kubectl, persistence."""

import contextlib
import itertools
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conformance.kube_client import Kube
from tests.conformance.sandbox_thread import Running, sandbox

NUMBERS = itertools.count(1)
CONTAINER = {"name": "web", "image": "registry.test/web:1"}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
WORKLOAD = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with sandbox(delay=0.01) as started:
        yield started


@pytest.fixture
def kube(running: Running) -> Iterator[Kube]:
    name = f"test{next(NUMBERS)}"
    with running.client() as api:
        api.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
        yield Kube(api=api, namespace=name, token_client=running.client)
    running.cluster.faults.clear()


def status_of(kube: Kube, path: str, **expected: Any) -> dict[str, Any]:
    def look() -> Any:
        status = kube.call("GET", path).get("status") or {}
        return status if expected.items() <= status.items() else None

    result: dict[str, Any] = kube.eventually(look, what=f"status with {expected}", seconds=10)
    return result


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def test_deployment_becomes_available_and_follows_its_spec(kube: Kube) -> None:
    path = kube.path("deployments", "web", group="apps/v1")
    kube.ok("POST", path.rpartition("/")[0], {"metadata": {"name": "web"}, "spec": {**WORKLOAD, "replicas": 3}})
    status = status_of(kube, path, availableReplicas=3, readyReplicas=3, replicas=3, observedGeneration=1)
    assert conditions(status) == {"Available": "True", "Progressing": "True"}
    image = {"spec": {"replicas": 1, "template": {"spec": {"containers": [{**CONTAINER, "image": "web:2"}]}}}}
    kube.ok("PATCH", path, image, media="application/merge-patch+json")
    status_of(kube, path, availableReplicas=1, replicas=1, updatedReplicas=1, observedGeneration=2)
    pods = kube.ok("GET", kube.path("pods"))["items"]
    assert [(pod["status"]["phase"], pod["spec"]["containers"][0]["image"]) for pod in pods] == [("Running", "web:2")]


@pytest.mark.parametrize(
    ("annotations", "condition"),
    [
        pytest.param({}, "Complete", id="succeeds"),
        pytest.param({"sandbox.maestropy/fail": "true"}, "Failed", id="fails"),
    ],
)
def test_job_finishes(kube: Kube, annotations: dict[str, str], condition: str) -> None:
    path = kube.path("jobs", "job", group="batch/v1")
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    body = {"metadata": {"name": "job", "annotations": annotations}, "spec": {"template": {"spec": pod}}}
    kube.ok("POST", path.rpartition("/")[0], body)
    kube.eventually(
        lambda: conditions({"conditions": [], **kube.call("GET", path)["status"]}).get(condition) == "True",
        what=condition,
        seconds=10,
    )


def test_statefulset_daemonset_and_pvc_become_ready(kube: Kube) -> None:
    sets = kube.path("statefulsets", "set", group="apps/v1")
    kube.ok(
        "POST",
        sets.rpartition("/")[0],
        {"metadata": {"name": "set"}, "spec": {**WORKLOAD, "serviceName": "s", "replicas": 2}},
    )
    status_of(kube, sets, readyReplicas=2)
    assert kube.ok("GET", kube.path("pods", "set-1"))["status"]["phase"] == "Running"
    daemons = kube.path("daemonsets", "daemon", group="apps/v1")
    kube.ok("POST", daemons.rpartition("/")[0], {"metadata": {"name": "daemon"}, "spec": WORKLOAD})
    status_of(kube, daemons, numberReady=1, desiredNumberScheduled=1, numberAvailable=1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kube.ok("POST", kube.path("persistentvolumeclaims"), {"metadata": {"name": "claim"}, "spec": claim})
    status_of(kube, kube.path("persistentvolumeclaims", "claim"), phase="Bound")


def test_garbage_collection_works_without_workload_controllers() -> None:
    with sandbox(controllers=False, tls=False) as bare, bare.client() as api:
        kube = Kube(api=api, namespace="default", token_client=bare.client)
        path = kube.path("deployments", "web", group="apps/v1")
        owner = kube.ok("POST", path.rpartition("/")[0], {"metadata": {"name": "web"}, "spec": WORKLOAD})
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner["metadata"]["uid"]}
        kube.ok("POST", kube.path("configmaps"), {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        kube.ok("DELETE", path, propagationPolicy="Background")
        kube.eventually(
            lambda: kube.is_not_found(kube.path("configmaps", "owned")), what="deleted dependent", seconds=10
        )
        assert kube.ok("GET", kube.path("pods"))["items"] == []


def test_injected_faults_and_request_counts(running: Running, kube: Kube) -> None:
    maps = kube.path("configmaps")
    before = running.cluster.request_counts["list", "configmaps"]
    running.cluster.faults.fail_next(2, status=429, retry_after=3, matches=lambda info: info.resource == "configmaps")
    kube.ok("GET", kube.path("secrets"))
    response = kube.api.get(maps)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "3")
    assert response.json()["details"]["retryAfterSeconds"] == 3
    assert kube.api.get(maps).status_code == 429
    assert kube.api.get(maps).status_code == 200
    assert running.cluster.request_counts["list", "configmaps"] == before + 3
    running.cluster.faults.fail_next(status=503)
    assert kube.api.get(maps).json()["reason"] == "ServiceUnavailable"
    running.cluster.faults.delay(0.2)
    begun = time.monotonic()
    kube.ok("GET", maps)
    assert time.monotonic() - begun >= 0.2


def test_expired_history_ends_watches_and_lists(running: Running, kube: Kube) -> None:
    maps = kube.path("configmaps")
    for name in "abc":
        kube.ok("POST", maps, {"metadata": {"name": name}})
    page = kube.ok("GET", maps, limit="1")["metadata"]
    with kube.watch(maps, resourceVersion=page["resourceVersion"]) as events:
        running.loop.call_soon_threadsafe(running.cluster.faults.expire_history)
        # The controller may still create the root CA ConfigMap of a new namespace.
        error = next(event for event in events if event["type"] == "ERROR")
        assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    with kube.watch(maps, resourceVersion=page["resourceVersion"]) as events:
        assert next(events)["object"]["code"] == 410
    assert kube.rejected(410, "GET", maps, limit="1", **{"continue": page["continue"]})["reason"] == "Expired"
    fresh = kube.ok("GET", maps)["metadata"]["resourceVersion"]
    with kube.watch(maps, resourceVersion=fresh) as events:
        kube.ok("POST", maps, {"metadata": {"name": "d"}})
        assert next(events)["object"]["metadata"]["name"] == "d"


def test_unauthenticated_and_unauthorized_users(running: Running, kube: Kube) -> None:
    with httpx.Client(base_url=kube.api.base_url, verify=kube.api._transport._pool._ssl_context) as anonymous:  # type: ignore[attr-defined]
        assert anonymous.get("/api/v1/namespaces").status_code == 401
        assert anonymous.get("/healthz").text == "ok"
    running.cluster.add_token("plain-token", "plain", groups=("devs",))
    with running.client("plain-token") as plain:
        assert plain.get("/api/v1/namespaces").status_code == 403
    review = {"spec": {"token": "plain-token"}}
    status = kube.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert (status["user"]["username"], status["user"]["groups"]) == ("plain", ["devs", "system:authenticated"])


def test_kubeconfig_is_valid_after_restart(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with sandbox(directory=tmp_path) as first:
            port = int(first.cluster.url.rpartition(":")[2])
            api = stack.enter_context(first.client())
            api.get("/api/v1/namespaces").raise_for_status()
        with pytest.raises(httpx.TransportError):
            api.get("/api/v1/namespaces")
        with sandbox(directory=tmp_path, port=port):
            api.get("/api/v1/namespaces").raise_for_status()


def test_cluster_stops_with_open_watch() -> None:
    with sandbox() as short, short.client() as api:
        with api.stream("GET", "/api/v1/pods", params={"watch": "true"}) as response:
            begun = time.monotonic()
            short.loop.call_soon_threadsafe(short.cluster.store.close)
            assert list(response.iter_lines()) == []
            assert time.monotonic() - begun < 2


def test_objects_are_persisted_in_directory(tmp_path: Path) -> None:
    crd = {
        "metadata": {"name": "things.test.io"},
        "spec": {
            "group": "test.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    with sandbox(directory=tmp_path, tls=False) as first, first.client() as api:
        api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=crd).raise_for_status()
        thing = {"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": "one"}}
        created = api.post("/apis/test.io/v1/namespaces/default/things", json=thing).raise_for_status().json()
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o077 == 0
    with sandbox(directory=tmp_path, tls=False) as second, second.client() as api:
        loaded = api.get("/apis/test.io/v1/namespaces/default/things/one").raise_for_status().json()
        assert loaded == created
        version = api.get("/apis/test.io/v1/things").json()["metadata"]["resourceVersion"]
        assert int(version) >= int(created["metadata"]["resourceVersion"])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_works_with_it(running: Running, kube: Kube, tmp_path: Path) -> None:
    def kubectl(*arguments: str, text: str | None = None) -> str:
        command = ["kubectl", "--kubeconfig", str(running.cluster.kubeconfig), "--cache-dir", str(tmp_path), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    manifest = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, "
        "spec: {containers: [{name: c, image: i}]}}}\n"
    )
    in_namespace = ("-n", kube.namespace)
    assert "created" in kubectl("apply", *in_namespace, "-f", "-", text=manifest)
    assert "unchanged" in kubectl("apply", *in_namespace, "-f", "-", text=manifest)
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=20s", *in_namespace)
    assert "1/1" in kubectl("get", "deploy", *in_namespace)
    assert "serverside-applied" in kubectl(
        "apply", "--server-side", "--force-conflicts", *in_namespace, "-f", "-", text=manifest
    )
    # Imperative commands send protobuf.
    assert "created" in kubectl("create", "configmap", "made", "--from-literal=a=b", *in_namespace)
    assert kube.ok("GET", kube.path("configmaps", "made"))["data"] == {"a": "b"}
    kubectl("create", "deployment", "other", "--image=i:1", "--port=80", "--replicas=2", *in_namespace)
    kubectl("rollout", "status", "deploy/other", "--timeout=20s", *in_namespace)
    kubectl("delete", "deploy", "web", "other", "--cascade=foreground", *in_namespace)
    assert "deployment" not in kubectl("get", "all", *in_namespace)
