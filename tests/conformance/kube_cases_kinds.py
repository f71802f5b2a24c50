"""Cases of single kinds, custom resources included."""

from tests.conformance.kube_bodies import (
    APPS,
    BATCH,
    CONTAINER,
    CRDS,
    RBAC,
    SIZED,
    custom,
    definition,
    deployment,
    install,
)
from tests.conformance.kube_client import MERGE, STRATEGIC, Json, Kube


def case_zero_values_are_omitted_with_omitempty(kube: Kube) -> None:
    container = {**CONTAINER, "stdin": False, "workingDir": "", "env": [{"name": "A", "value": ""}]}
    container["livenessProbe"] = {"httpGet": {"port": 80}, "initialDelaySeconds": 0}
    container["securityContext"] = {"privileged": False, "runAsUser": 0}
    pod = {"containers": [container], "hostNetwork": False, "automountServiceAccountToken": False, "nodeName": ""}
    pod["volumes"] = [
        {"name": "v", "emptyDir": {"medium": ""}},
        {"name": "w"},
        {"name": "c", "configMap": {"name": "c"}},
    ]
    pod["tolerations"] = [{"key": "", "operator": "Exists"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    kube.ok("POST", kube.path("deployments", group=APPS), deployment(template=template, minReadySeconds=0))
    applied = deployment("applied", minReadySeconds=0)
    kube.apply(kube.path("deployments", "applied", group=APPS), applied, manager="one")


WEBHOOK = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://localhost:1"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "namespaceSelector": {"matchLabels": {"never": "there"}},
}
OTHERS: dict[str, Json] = {
    "v1/limitranges": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
    "v1/endpoints": {"subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}]},
    "v1/podtemplates": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}},
    "v1/events": {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": "M", "type": "Normal"},
    "networking.k8s.io/v1/ingresses": {
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    },
    "discovery.k8s.io/v1/endpointslices": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"]}],
        "ports": [{"port": 80}],
    },
    "scheduling.k8s.io/v1/priorityclasses": {"value": 7},
    "storage.k8s.io/v1/storageclasses": {"provisioner": "a.b/c"},
    "networking.k8s.io/v1/ingressclasses": {"spec": {"controller": "a.b/c"}},
    "rbac.authorization.k8s.io/v1/clusterrolebindings": {
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "Group", "name": "g"}],
    },
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {"webhooks": [WEBHOOK]},
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": {"webhooks": [WEBHOOK]},
}
CLUSTER_SCOPED = ("priorityclasses", "storageclasses", "ingressclasses", "clusterrolebindings", "webhookconfigurations")


def case_every_other_kind_is_stored(kube: Kube) -> None:
    for resource, body in OTHERS.items():
        version, _, plural = resource.rpartition("/")
        group = "" if version == "v1" else version
        namespace = None if plural.endswith(CLUSTER_SCOPED) else ""
        path = kube.path(plural, group=group, namespace=namespace)
        name = f"other-{kube.namespace}"
        if plural == "events":
            kube.rejected(422, "POST", path, {**body, "metadata": {"name": name}})
            body = {**body, "involvedObject": {**body["involvedObject"], "namespace": kube.namespace}}
        kube.ok("POST", path, {**body, "metadata": {"name": name}})
        kube.ok("PATCH", f"{path}/{name}", {"metadata": {"annotations": {"a": "b"}}}, media=MERGE)
        kube.ok("DELETE", f"{path}/{name}")


def case_pod_is_stored_as_written(kube: Kube) -> None:
    pods = kube.path("pods")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
    created = kube.call("POST", pods, pod)
    assert created["status"]["phase"] == "Pending"
    kube.record.clear()
    assert kube.call("PATCH", f"{pods}/p", {"spec": {"hostNetwork": True}}, media=MERGE)["http"] == 422
    kube.record.clear()
    moved = kube.ok("PATCH", f"{pods}/p", {"spec": {"containers": [{"name": "web", "image": "x:2"}]}}, media=STRATEGIC)
    assert moved["spec"]["containers"][0]["image"] == "x:2"
    kube.record.clear()
    kube.call("DELETE", f"{pods}/p", {"gracePeriodSeconds": 0})
    kube.eventually(lambda: kube.is_not_found(f"{pods}/p"), what="end of the pod")
    kube.record.clear()


def case_deleted_job_orphans_its_pods_by_default(kube: Kube) -> None:
    orphaned = end_of_pod(kube, policy="")
    assert "ownerReferences" not in kube.api.get(orphaned).json()["metadata"]
    kube.api.delete(orphaned)
    kube.eventually(lambda: kube.is_not_found(orphaned), what="end of the pod")
    taken = end_of_pod(kube, policy="Background")
    kube.eventually(lambda: kube.is_not_found(taken), what="end of the pod")
    kube.record.clear()


def end_of_pod(kube: Kube, *, policy: str) -> str:
    """Let a job come and go; return the path of its pod."""
    jobs, pods = kube.path("jobs", group=BATCH), kube.path("pods")
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    kube.ok("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}})
    (found,) = kube.eventually(lambda: kube.api.get(pods).json()["items"], what="pod")
    kube.call("DELETE", f"{jobs}/j", **({"propagationPolicy": policy} if policy else {}))
    kube.eventually(lambda: kube.is_not_found(f"{jobs}/j"), what="end of the job")
    return f"{pods}/{found['metadata']['name']}"


def case_cluster_scoped_objects_have_no_namespace(kube: Kube) -> None:
    roles = kube.path("clusterroles", group=RBAC, namespace=None)
    name = f"role-{kube.namespace}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    kube.ok("POST", roles, {"metadata": {"name": name}, "rules": [rule]})
    misplaced = kube.ok("POST", roles, {"metadata": {"name": f"{name}-x", "namespace": "default"}, "rules": [rule]})
    assert "namespace" not in misplaced["metadata"]
    kube.api.delete(f"{roles}/{name}-x")
    gathering = {
        "metadata": {"name": f"{name}-all"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"of": kube.namespace}}]},
        "rules": [],
    }
    kube.call("POST", roles, gathering)
    kube.call("PATCH", f"{roles}/{name}", {"metadata": {"labels": {"of": kube.namespace}}}, media=MERGE)
    kube.record.pop()
    kube.eventually(lambda: kube.call("GET", f"{roles}/{name}-all").get("rules") == [rule], what="gathered rules")
    kube.api.delete(f"{roles}/{name}")
    kube.api.delete(f"{roles}/{name}-all")
    assert kube.call("GET", f"/apis/{RBAC}/namespaces/x/clusterroles")["http"] == 404
    kube.record.pop()


def case_namespace_keeps_its_spec(kube: Kube) -> None:
    path = f"/api/v1/namespaces/{kube.namespace}"
    namespace = kube.ok("GET", path)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": kube.namespace}
    assert (namespace["spec"], namespace["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    kube.ok("PATCH", path, {"spec": {"finalizers": []}, "metadata": {"labels": {"a": "b"}}}, media=MERGE)
    kube.rejected(422, "POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}})


def case_custom_resource_is_pruned_defaulted_and_validated(kube: Kube) -> None:
    plural = f"sized{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED, subresources={"status": {}}))
    kube.record.clear()
    created = kube.ok("POST", things, custom(plural, spec={"unknown": 1}, status={"a": 1}))
    assert created["spec"] == {"size": 3}
    assert "status" not in created
    assert created["metadata"]["generation"] == 1
    kube.rejected(422, "POST", things, custom(plural, "two", spec={"size": 0}))
    kube.rejected(422, "POST", things, custom(plural, "two", spec={"mode": "c"}))
    kube.rejected(422, "POST", things, custom(plural, "two", spec={"size": "x"}))
    kube.rejected(422, "POST", things, custom(plural, "two"))
    assert kube.call("POST", things, {"metadata": {"name": "two"}})["http"] == 400
    status = kube.ok("PATCH", f"{things}/one/status", {"status": {"any": 1}, "spec": {"size": 9}}, media=MERGE)
    assert (status["spec"]["size"], status["metadata"]["generation"]) == (3, 1)
    kube.rejected(415, "PATCH", f"{things}/one", {"spec": {"size": 4}}, media=STRATEGIC)
    kube.rejected(422, "PUT", f"{things}/one", custom(plural, spec={"size": 4}))
    assert kube.ok("PATCH", f"{things}/one", {"spec": {"size": 4}}, media=MERGE)["metadata"]["generation"] == 2
    kube.ok("DELETE", f"{CRDS}/{plural}.conformance.test")
    kube.eventually(lambda: kube.is_not_found(f"{CRDS}/{plural}.conformance.test"), what="end of the kind")
    assert kube.eventually(lambda: kube.is_not_found(things), what="end of service")
    kube.record.clear()


def case_apply_merges_lists_of_custom_resources_by_key(kube: Kube) -> None:
    plural = f"listed{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED))
    kube.record.clear()
    kube.apply(f"{things}/one", custom(plural, spec={"items": [{"name": "a", "value": "1"}]}), manager="one")
    both = kube.apply(f"{things}/one", custom(plural, spec={"items": [{"name": "b"}]}), manager="two")
    assert [item["name"] for item in both["spec"]["items"]] == ["a", "b"]
    remaining = kube.apply(f"{things}/one", custom(plural, spec={}), manager="one")
    assert [item["name"] for item in remaining["spec"]["items"]] == ["b"]
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


def case_crd_is_established_and_discovered(kube: Kube) -> None:
    plural = f"found{kube.namespace.replace('-', '')}"
    install(kube, definition(plural))
    name = f"{CRDS}/{plural}.conformance.test"
    kube.record.clear()

    def established() -> bool:
        conditions = kube.call("GET", name)["status"].get("conditions") or []
        return {"Established": "True"}.items() <= {
            condition["type"]: condition["status"] for condition in conditions
        }.items()

    kube.eventually(established, what="established kind")
    kube.eventually(
        lambda: (
            plural
            in [resource["name"] for resource in kube.call("GET", "/apis/conformance.test/v1").get("resources", [])]
        ),
        what="discovery",
    )
    kube.api.delete(name)
