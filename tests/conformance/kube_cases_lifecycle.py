"""Cases of deletion, finalizers, garbage collection, controllers and the status subresource."""

from typing import Any

from tests.conformance.kube_bodies import APPS, CRDS, SCALED, SIZED, config_map, custom, definition, deployment, install
from tests.conformance.kube_client import MERGE, Json, Kube


def case_spec_and_status_are_written_separately(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    kube.ok("POST", kube.path("deployments", group=APPS), {**deployment(), "status": {"replicas": 5}})
    kube.eventually(lambda: kube.call("GET", path)["status"].get("conditions"), what="first status")
    conditions = [{"type": "Custom", "status": "True"}]
    # Check the response, because the controller may write again at once.
    body = {"status": {"conditions": conditions}, "spec": {"replicas": 9}}
    patched = kube.ok("PATCH", f"{path}/status", body, media=MERGE)
    assert patched["spec"]["replicas"] == 0
    assert patched["metadata"]["generation"] == 1
    assert patched["status"]["conditions"][0]["type"] == "Custom"
    kube.rejected(404, "GET", kube.path("configmaps", "none") + "/status")


def case_status_can_be_applied(kube: Kube) -> None:
    plural = f"applied{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED, subresources={"status": {}, "scale": SCALED}))
    kube.record.clear()
    kube.apply(f"{things}/one", custom(plural, spec={"size": 1}), manager="one")
    kube.apply(f"{things}/one/status", custom(plural, spec={"size": 2}, status={"count": 7}), manager="two")
    obj = kube.ok("GET", f"{things}/one")
    assert (obj["spec"]["size"], obj["status"]["count"], obj["metadata"]["generation"]) == (1, 7, 1)
    kube.ok("PATCH", f"{things}/one/status", {"status": {"count": 8}}, media=MERGE)
    kube.ok("PUT", f"{things}/one/status", {**kube.ok("GET", f"{things}/one"), "status": {"count": 9}})
    assert kube.ok("GET", f"{things}/one/scale")["spec"]["replicas"] == 1
    assert kube.ok("PATCH", f"{things}/one/scale", {"spec": {"replicas": 4}}, media=MERGE)["spec"]["replicas"] == 4
    assert kube.call("GET", f"{things}/one")["spec"]["size"] == 4
    kube.record.pop()
    assert kube.apply(f"{things}/none/status", custom(plural, "none", status={}), manager="x")["http"] == 404
    kube.record.pop()
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


def case_crd_serves_several_versions(kube: Kube) -> None:
    plural = f"versions{kube.namespace.replace('-', '')}"
    crd = definition(plural)
    older = {**crd["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    crd["spec"]["versions"].append(older)
    things = install(kube, crd)
    kube.record.clear()
    beta = things.replace("/v1/", "/v1beta1/")
    kube.eventually(lambda: kube.call("GET", beta)["http"] == 200, what="older version")
    created = kube.ok("POST", beta, {**custom(plural, spec={"a": 1}), "apiVersion": "conformance.test/v1beta1"})
    assert created["apiVersion"] == "conformance.test/v1beta1"
    obj = kube.ok("GET", f"{things}/one")
    assert (obj["apiVersion"], obj["metadata"]["uid"]) == ("conformance.test/v1", created["metadata"]["uid"])
    kube.ok("PATCH", f"{beta}/one", {"spec": {"a": 2}}, media=MERGE)
    assert kube.ok("GET", f"{things}/one")["metadata"]["generation"] == 2
    assert kube.ok("GET", beta)["items"][0]["apiVersion"] == "conformance.test/v1beta1"
    kube.apply(f"{things}/one", custom(plural, spec={"b": [1, 2], "c": {"d": "e"}}), manager="one")
    kube.apply(f"{things}/one", custom(plural, spec={"b": [3]}), manager="one")
    kube.ok("PATCH", f"{things}/one", {"metadata": {"finalizers": ["a.b/c"]}}, media=MERGE)
    kube.ok("DELETE", f"{things}/one")
    kube.ok("PATCH", f"{things}/one", {"metadata": {"finalizers": []}}, media=MERGE)
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


def case_terminating_crd_accepts_no_new_objects(kube: Kube) -> None:
    plural = f"ending{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural))
    kube.record.clear()
    held = custom(plural, "held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kube.ok("POST", things, held)
    crd = f"{CRDS}/{plural}.conformance.test"
    kube.api.delete(crd)

    def conditions() -> dict[str, str]:
        status = kube.call("GET", crd).get("status") or {}
        return {condition["type"]: condition["status"] for condition in status.get("conditions", [])}

    kube.eventually(lambda: conditions().get("Terminating") == "True", what="condition Terminating")
    # A controller that creates its objects again would otherwise keep the definition for ever.
    rejected = kube.rejected(403, "POST", things, custom(plural, "again"))
    assert rejected["message"].endswith("create not allowed while custom resource definition is terminating")
    assert kube.apply(f"{things}/again", custom(plural, "again"), manager="one")["http"] == 403
    # The condition comes before the deletion of the objects; without this wait the PATCH meets both states.
    kube.eventually(
        lambda: kube.call("GET", f"{things}/held")["metadata"].get("deletionTimestamp"), what="deletion of the object"
    )
    kube.ok("PATCH", f"{things}/held", {"metadata": {"finalizers": []}}, media=MERGE)
    kube.eventually(lambda: kube.is_not_found(crd), what="end of the definition")


def case_finalizers_delay_deletion(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    body = config_map()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    kube.ok("POST", kube.path("configmaps"), body)
    deleting = kube.ok("DELETE", path)
    assert deleting["metadata"]["deletionTimestamp"]
    again = kube.ok("DELETE", path)
    assert again["metadata"]["resourceVersion"] == deleting["metadata"]["resourceVersion"]
    kube.rejected(422, "PATCH", path, {"metadata": {"finalizers": ["example.com/hold", "a.b/more"]}}, media=MERGE)
    kube.ok("PATCH", path, {"data": {"still": "writable"}}, media=MERGE)
    kube.ok("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE)
    kube.rejected(404, "GET", path)


def case_deletion_checks_its_preconditions(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    created = kube.ok("POST", kube.path("configmaps"), config_map())
    wrong = {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    assert kube.rejected(409, "DELETE", path, wrong)["reason"] == "Conflict"
    kube.rejected(409, "DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    kube.rejected(422, "DELETE", path, propagationPolicy="Sideways")
    kube.ok("DELETE", path, {"preconditions": {"uid": created["metadata"]["uid"]}, "propagationPolicy": "Background"})


def owned_by(owner: Json, name: str, **reference: Any) -> Json:
    body = config_map(name)
    link = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    body["metadata"]["ownerReferences"] = [{**link, **reference}]
    return body


def case_background_deletion_deletes_dependents(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    kube.ok("POST", maps, owned_by(owner, "child"))
    kube.ok("DELETE", f"{maps}/owner", propagationPolicy="Background")
    kube.eventually(lambda: kube.is_not_found(f"{maps}/child"), what="end of the child")


def case_references_to_deleted_owners_are_removed(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    child = owned_by(owner, "child")
    is_not_found = {
        **child["metadata"]["ownerReferences"][0],
        "name": "gone",
        "uid": "11111111-2222-3333-4444-555555555555",
    }
    child["metadata"]["ownerReferences"].append(is_not_found)
    kube.ok("POST", maps, child)
    kube.eventually(
        lambda: len(kube.call("GET", f"{maps}/child")["metadata"]["ownerReferences"]) == 1, what="one reference"
    )
    kube.ok("GET", f"{maps}/child")


def case_orphan_deletion_keeps_dependents(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    kube.ok("POST", maps, owned_by(owner, "child"))
    kube.ok("DELETE", f"{maps}/owner", propagationPolicy="Orphan")
    kube.eventually(lambda: kube.is_not_found(f"{maps}/owner"), what="end of the owner")
    assert "ownerReferences" not in kube.ok("GET", f"{maps}/child")["metadata"]


def case_foreground_deletion_waits_for_dependents(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    child = owned_by(owner, "child", blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    kube.ok("POST", maps, child)
    kube.ok("DELETE", f"{maps}/owner", propagationPolicy="Foreground")
    kube.eventually(
        lambda: kube.call("GET", f"{maps}/child")["metadata"].get("deletionTimestamp"), what="deletion of the child"
    )
    assert kube.call("GET", f"{maps}/owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
    kube.call("PATCH", f"{maps}/child", {"metadata": {"finalizers": None}}, media=MERGE)
    kube.eventually(lambda: kube.is_not_found(f"{maps}/owner"), what="end of the owner")
    kube.record.clear()


def case_namespace_deletion_deletes_its_content(kube: Kube) -> None:
    name = f"{kube.namespace}-more"
    kube.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    finalized = config_map("held")
    finalized["metadata"]["finalizers"] = ["example.com/hold"]
    maps = kube.path("configmaps", namespace=name)
    kube.ok("POST", maps, finalized)
    leaving = kube.ok("DELETE", f"/api/v1/namespaces/{name}")
    assert leaving["status"]["phase"] == "Terminating"
    rejected = kube.rejected(403, "POST", maps, config_map("late"))
    assert rejected["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    kube.eventually(lambda: kube.call("GET", f"{maps}/held")["metadata"].get("deletionTimestamp"), what="end of held")
    kube.call("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, media=MERGE)
    kube.eventually(lambda: kube.is_not_found(f"/api/v1/namespaces/{name}"), what="end of the namespace")
    kube.record.clear()


def case_deployment_creates_and_deletes_its_pods(kube: Kube) -> None:
    deployments = kube.path("deployments", group=APPS)
    kube.ok("POST", deployments, deployment(paused=False, replicas=2))
    kube.record.clear()

    def pods() -> list[Json]:
        items: list[Json] = kube.api.get(kube.path("pods"), params={"labelSelector": "app=web"}).json()["items"]
        return items

    kube.eventually(lambda: len(pods()) == 2, what="pods")
    kube.eventually(
        lambda: kube.call("GET", f"{deployments}/web")["status"].get("observedGeneration") == 1, what="observation"
    )
    assert pods()[0]["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    kube.call("DELETE", f"{deployments}/web", propagationPolicy="Background")
    kube.eventually(lambda: not pods(), what="end of the pods")
    kube.record.clear()


def case_namespace_gets_default_service_account(kube: Kube) -> None:
    kube.eventually(lambda: not kube.is_not_found(kube.path("serviceaccounts", "default")), what="account")
