"""The control plane of the tests is a whole one: what conformance tests rely on happens here, by Kubernetes itself."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.peers import kube_build
from tests.peers.kube_cluster import CRDS, KubeCluster, answer, install_crd
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

APPLIED_WORKS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
CONTAINERS = [{"name": "web", "image": "registry.test/web:1"}]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
NUMBERS = itertools.count(1)


@pytest.fixture
def api(real_cluster: KubeCluster) -> Iterator[httpx.Client]:
    with real_cluster.client() as client:
        yield client


def listed(api: httpx.Client, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = answer(api.get(path))["items"]
    return items


def apply(api: httpx.Client, path: str, body: dict[str, Any], *, manager: str, force: bool = False) -> httpx.Response:
    how = {"fieldManager": manager, "force": str(force).lower()}
    return api.patch(path, params=how, json=body, headers={"Content-Type": "application/apply-patch+yaml"})


def test_starts_quickly_and_tells_the_pinned_version(real_cluster: KubeCluster, api: httpx.Client) -> None:
    assert answer(api.get("/version"))["gitVersion"] == kube_build.VERSION
    assert real_cluster.start_seconds < 60
    print(f"started in {real_cluster.start_seconds:.1f} s")


def test_anonymous_client_is_rejected(real_cluster: KubeCluster, api: httpx.Client) -> None:
    with real_cluster.client(token="no-such-token") as stranger:
        assert stranger.get("/api/v1/namespaces").status_code == 401
    with real_cluster.client(token=real_cluster.service_account_token(namespace="default", name="nobody")) as nobody:
        assert nobody.get("/api/v1/namespaces").status_code == 403


def test_a_namespace_goes_with_all_it_holds(api: httpx.Client, namespace: str) -> None:
    home = f"/api/v1/namespaces/{namespace}"
    answer(api.post(f"{home}/configmaps", json={"metadata": {"name": "kept"}}))
    answer(api.delete(home))
    wait_for(lambda: api.get(home).status_code == 404, what="the namespace to be gone", seconds=40)
    assert api.get(f"{home}/configmaps/kept").status_code == 404


def test_a_deployment_gets_a_replica_set_and_pods(api: httpx.Client, namespace: str) -> None:
    home = f"/apis/apps/v1/namespaces/{namespace}"
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    deployment = answer(api.post(f"{home}/deployments", json={"metadata": {"name": "web"}, "spec": spec}))

    (replica_set,) = wait_for(lambda: listed(api, f"{home}/replicasets"), what="a ReplicaSet")
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_for(lambda: len(listed(api, pods)) == 2, what="two Pods")
    assert {pod["status"]["phase"] for pod in listed(api, pods)} == {"Pending"}

    def status() -> dict[str, Any] | None:
        found: dict[str, Any] = answer(api.get(f"{home}/deployments/web")).get("status", {})
        return found if found.get("unavailableReplicas") == 2 else None

    conditions = {
        condition["type"]: condition["status"] for condition in wait_for(status, what="the status")["conditions"]
    }
    assert conditions["Available"] == "False"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param(
            "batch/v1/jobs", {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}, id="job"
        ),
        pytest.param(
            "apps/v1/statefulsets",
            {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
            id="statefulset",
        ),
    ],
)
def test_other_workloads_get_a_pod_too(api: httpx.Client, namespace: str, kind: str, spec: dict[str, Any]) -> None:
    version, _, resource = kind.rpartition("/")
    path = f"/apis/{version}/namespaces/{namespace}/{resource}"
    owner = answer(api.post(path, json={"metadata": {"name": "web"}, "spec": spec}))
    (pod,) = wait_for(lambda: listed(api, f"/api/v1/namespaces/{namespace}/pods"), what="a Pod")
    assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


def test_two_managers_of_one_field_conflict_until_one_insists(api: httpx.Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/shared"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
    answer(apply(api, path, {**body, "data": {"k": "first"}}, manager="first"))

    refused = apply(api, path, {**body, "data": {"k": "second"}}, manager="second")
    assert refused.status_code == 409
    (cause,) = refused.json()["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.k")

    forced = answer(apply(api, path, {**body, "data": {"k": "second"}}, manager="second", force=True))
    assert forced["data"] == {"k": "second"}
    assert {
        managed_field["manager"]: "f:data" in managed_field["fieldsV1"]
        for managed_field in forced["metadata"]["managedFields"]
    } == {"second": True}


def test_a_new_kind_is_established_and_served(api: httpx.Client, namespace: str) -> None:
    plural = f"things{next(NUMBERS)}"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.capitalize()}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.maestropy.test"},
        "spec": {"group": "maestropy.test", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = f"/apis/maestropy.test/v1/namespaces/{namespace}/{plural}"
    body = {
        "apiVersion": "maestropy.test/v1",
        "kind": names["kind"],
        "metadata": {"name": "one"},
        "spec": {"unknown": "pruned"},
    }
    assert api.post(path, json=body).status_code == 404
    install_crd(api, definition)
    assert answer(api.post(path, json=body))["spec"] == {"size": 3}
    answer(api.delete(f"{CRDS}/{plural}.maestropy.test"))
    wait_for(lambda: api.get(path).status_code == 404, what="the kind to be gone", seconds=40)


def test_reviews_know_accounts_and_what_they_may_do(real_cluster: KubeCluster, api: httpx.Client) -> None:
    def review(group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        status: dict[str, Any] = answer(api.post(f"/apis/{group}/v1/{kind.lower()}s", json=body))["status"]
        return status

    token = real_cluster.service_account_token(namespace="default", name="reviewed")
    who = review("authentication.k8s.io", "TokenReview", {"token": token})
    assert who["authenticated"] is True
    assert who["user"]["username"] == "system:serviceaccount:default:reviewed"
    assert "system:serviceaccounts:default" in who["user"]["groups"]
    assert "authenticated" not in review("authentication.k8s.io", "TokenReview", {"token": f"{token}x"})

    def may(user: str, groups: list[str]) -> bool:
        wanted = {"user": user, "groups": groups, "resourceAttributes": {"verb": "create", "resource": "secrets"}}
        allowed: bool = review("authorization.k8s.io", "SubjectAccessReview", wanted)["allowed"]
        return allowed

    assert not may(who["user"]["username"], who["user"]["groups"])
    assert may("anyone", ["system:masters"])


def applied_work(name: str, **spec: str) -> dict[str, Any]:
    kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def test_an_owner_takes_what_it_owns_with_it(api: httpx.Client, namespace: str) -> None:
    """The owner is of an agent's kind, as in production."""
    owner = answer(api.post(APPLIED_WORKS, json=applied_work(namespace, hubHash="h", manifestWorkName="w")))
    by = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": namespace, "uid": owner["metadata"]["uid"]}
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    answer(api.post(maps, json={"metadata": {"name": "owned", "ownerReferences": [by]}}))
    answer(api.post(maps, json={"metadata": {"name": "free"}}))
    answer(api.post(maps, json={"metadata": {"name": "orphan", "ownerReferences": [{**by, "uid": "gone"}]}}))

    wait_for(lambda: api.get(f"{maps}/orphan").status_code == 404, what="the one with a wrong owner to go", seconds=40)
    answer(api.get(f"{maps}/owned"))
    answer(api.delete(f"{APPLIED_WORKS}/{namespace}"))
    wait_for(lambda: api.get(f"{maps}/owned").status_code == 404, what="the owned one to go", seconds=40)
    answer(api.get(f"{maps}/free"))


def test_records_of_agents_keep_spec_and_status_apart(api: httpx.Client, namespace: str) -> None:
    path = f"{APPLIED_WORKS}/{namespace}"
    assert api.post(APPLIED_WORKS, json=applied_work(namespace, agentID="a")).status_code == 422
    body = applied_work(namespace, hubHash="h", agentID="a", manifestWorkName="w")
    applied = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "d", "name": "n", "uid": "u"}
    status = {"appliedResources": [applied], "evictionStartTime": "2026-01-02T03:04:05Z"}
    created = answer(api.post(APPLIED_WORKS, json={**body, "status": status}))
    assert "status" not in created

    how = {"Content-Type": "application/merge-patch+json"}
    patched = answer(api.patch(f"{path}/status", json={"spec": {"agentID": "b"}, "status": status}, headers=how))
    assert (patched["spec"], patched["status"]) == (body["spec"], status)
    answer(api.delete(path))


def test_works_as_objects_are_completed_and_checked(api: httpx.Client, namespace: str) -> None:
    path = f"/apis/work.open-cluster-management.io/v1/namespaces/{namespace}/manifestworks"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"k": "v"}}
    config = {
        "resourceIdentifier": {"resource": "configmaps", "name": "*"},
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": True}},
    }
    spec = {"workload": {"manifests": [manifest]}, "manifestConfigs": [config]}
    body = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "w"}}
    created = answer(api.post(path, json={**body, "spec": spec}))
    assert created["spec"]["workload"] == spec["workload"]
    (completed,) = created["spec"]["manifestConfigs"]
    assert completed["feedbackScrapeType"] == "Poll"
    assert completed["updateStrategy"]["serverSideApply"] == {"force": True, "fieldManager": "work-agent"}

    wrong = {**config, "updateStrategy": {"type": "Sometimes"}}
    refused = api.post(path, json={**body, "metadata": {"name": "x"}, "spec": {"manifestConfigs": [wrong]}})
    assert refused.status_code == 422
    assert "updateStrategy.type" in refused.text


def test_kubectl_needs_nothing_but_a_kubeconfig(
    control_plane: kube_build.ControlPlane, real_cluster: KubeCluster, tmp_path: Path
) -> None:
    def namespaces(kubeconfig: Path) -> subprocess.CompletedProcess[str]:
        where = [f"--kubeconfig={kubeconfig}", f"--cache-dir={tmp_path}"]
        command = [str(control_plane.kubectl), "get", "namespaces", "--output=name", *where]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    assert "namespace/kube-system" in namespaces(real_cluster.kubeconfig).stdout.splitlines()
    token = real_cluster.service_account_token(namespace="default", name="nobody")
    refused = namespaces(real_cluster.kubeconfig_for(token=token))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert '"system:serviceaccount:default:nobody" cannot list resource "namespaces"' in refused.stderr
