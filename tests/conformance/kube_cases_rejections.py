"""Cases of rejected requests, their messages, and RBAC."""

from tests.conformance.kube_bodies import APPS, BATCH, CONTAINER, RBAC, config_map, deployment
from tests.conformance.kube_client import MERGE, Json, Kube


def case_namespace_must_exist(kube: Kube) -> None:
    rejected = kube.rejected(404, "POST", kube.path("configmaps", namespace="nowhere"), config_map())
    assert rejected["message"] == 'namespaces "nowhere" not found'
    assert kube.ok("GET", kube.path("configmaps", namespace="nowhere"))["items"] == []


def case_invalid_object_is_rejected_with_causes(kube: Kube) -> None:
    maps = kube.path("configmaps")
    for name in ("Upper", "under_score", "-dash", "a" * 254, ""):
        kube.rejected(422, "POST", maps, config_map(name))
    labelled = config_map()
    labelled["metadata"]["labels"] = {"a": "not a value"}
    kube.rejected(422, "POST", maps, labelled)
    labelled["metadata"]["labels"] = {"bad key": "a"}
    kube.rejected(422, "POST", maps, labelled)
    finalized = config_map()
    finalized["metadata"]["finalizers"] = ["unqualified"]
    kube.rejected(422, "POST", maps, finalized)
    kube.rejected(422, "POST", maps, config_map(data={"bad key": "x"}))
    owned = config_map()
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]
    kube.rejected(422, "POST", maps, owned)


def case_malformed_request_is_rejected(kube: Kube) -> None:
    maps = kube.path("configmaps")
    assert kube.call("POST", maps, b"{")["http"] == 400
    kube.record.clear()
    assert kube.call("POST", maps, b"{}", media="text/html")["http"] == 415
    wrong = {**config_map(), "apiVersion": "v2"}
    assert kube.call("POST", maps, wrong)["http"] == 400
    elsewhere = config_map()
    elsewhere["metadata"]["namespace"] = "elsewhere"
    kube.rejected(400, "POST", maps, elsewhere)
    kube.rejected(400, "PUT", f"{maps}/other", config_map("one"))
    typed = deployment()
    typed["spec"]["replicas"] = "three"
    assert kube.call("POST", kube.path("deployments", group=APPS), typed)["http"] == 400
    kube.record.clear()
    big = config_map(data={"a": "x" * 3_200_000})
    assert kube.api.post(maps, json=big).status_code == 413
    big = config_map(data={"a": "x" * 1_900_000})
    assert kube.api.post(maps, json=big).status_code in (413, 422)


def case_unknown_kinds_and_methods_are_rejected(kube: Kube) -> None:
    for path in ("/api/v1/nothings", "/apis/none.test/v1/things", "/apis/apps/v9/deployments"):
        assert kube.api.get(path).status_code == 404
    assert kube.api.get("/apis/none.test/v1").status_code == 404
    assert kube.call("PUT", kube.path("configmaps"), config_map())["http"] == 405
    assert kube.call("POST", kube.path("configmaps", "one"), config_map())["http"] in (404, 405)


def case_field_validation_drops_warns_or_rejects(kube: Kube) -> None:
    maps = kube.path("configmaps")
    created = kube.ok("POST", maps, config_map(surprise=1))
    assert "surprise" not in created
    rejected = kube.rejected(400, "POST", maps, config_map("two", surprise=1), fieldValidation="Strict")
    assert 'unknown field "surprise"' in rejected["message"]
    warned = kube.api.post(maps, json=config_map("three", surprise=1), params={"fieldValidation": "Warn"})
    assert "unknown field" in warned.headers["Warning"]


def case_empty_lists_and_maps_are_omitted(kube: Kube) -> None:
    body = config_map(data={}, binaryData={})
    body["metadata"] |= {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    created = kube.ok("POST", kube.path("configmaps"), body)
    assert "data" not in created
    assert "labels" not in created["metadata"]
    spec = {"containers": [{**CONTAINER, "env": [], "args": [], "volumeMounts": [], "resources": {}}], "volumes": []}
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {}}, "spec": spec}
    kube.ok("POST", kube.path("deployments", group=APPS), deployment(template=template))
    kube.ok("POST", kube.path("roles", group=RBAC), {"metadata": {"name": "r"}, "rules": []})


def case_immutable_fields_cannot_change(kube: Kube) -> None:
    deployments = kube.path("deployments", group=APPS)
    kube.ok("POST", deployments, deployment())
    patch = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    assert kube.call("PATCH", f"{deployments}/web", patch, media=MERGE)["http"] == 422
    jobs = kube.path("jobs", group=BATCH)
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    kube.ok("POST", jobs, {"metadata": {"name": "j"}, "spec": {"suspend": True, "template": {"spec": pod}}})
    moved = {"spec": {"template": {"spec": {"containers": [{**CONTAINER, "image": "x:2"}]}}}}
    assert kube.call("PATCH", f"{jobs}/j", moved, media=MERGE)["http"] == 422
    services = kube.path("services")
    kube.ok("POST", services, {"metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}]}})
    assert kube.call("PATCH", f"{services}/svc", {"spec": {"clusterIP": "10.0.0.77"}}, media=MERGE)["http"] == 422
    bindings = kube.path("rolebindings", group=RBAC)
    body = {"metadata": {"name": "b"}, "roleRef": {"apiGroup": RBAC[:-3], "kind": "Role", "name": "r"}}
    kube.ok("POST", bindings, body)
    assert kube.call("PATCH", f"{bindings}/b", {"roleRef": {"name": "x"}}, media=MERGE)["http"] == 422
    secrets = kube.path("secrets")
    kube.ok("POST", secrets, {"metadata": {"name": "s"}, "immutable": True, "data": {"a": "Yg=="}})
    assert kube.call("PATCH", f"{secrets}/s", {"data": {"a": "Yw=="}}, media=MERGE)["http"] == 422
    assert kube.call("PATCH", f"{secrets}/s", {"type": "other"}, media=MERGE)["http"] == 422
    kube.record.clear()


def case_workloads_require_selector_and_template(kube: Kube) -> None:
    deployments = kube.path("deployments", group=APPS)
    bare = deployment()
    del bare["spec"]["selector"]
    assert kube.call("POST", deployments, bare)["http"] == 422
    bare = deployment()
    bare["spec"]["template"]["spec"]["containers"] = []
    assert kube.call("POST", deployments, bare)["http"] == 422
    bare = deployment(selector={"matchLabels": {"app": "other"}})
    assert kube.call("POST", deployments, bare)["http"] == 422
    assert kube.call("POST", kube.path("services"), {"metadata": {"name": "s"}, "spec": {}})["http"] == 422
    kube.record.clear()


def allowed(kube: Kube, account: str, **attributes: str) -> bool:
    user = f"system:serviceaccount:{kube.namespace}:{account}"
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    is_allowed: bool = kube.api.post(path, json=body).json()["status"]["allowed"]
    return is_allowed


def grant(kube: Kube, name: str, *rules: Json) -> None:
    kube.ok("POST", kube.path("serviceaccounts"), {"metadata": {"name": name}})
    kube.ok("POST", kube.path("roles", group=RBAC), {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": kube.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    kube.ok("POST", kube.path("rolebindings", group=RBAC), binding)


def case_subject_access_review_follows_roles(kube: Kube) -> None:
    grant(kube, "reader", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"]})
    here = {"namespace": kube.namespace, "resource": "configmaps"}
    kube.eventually(lambda: allowed(kube, "reader", **here, verb="get", name="one"), what="right")
    assert not allowed(kube, "reader", **here, verb="get", name="two")
    assert not allowed(kube, "reader", **here, verb="create")
    assert not allowed(kube, "reader", namespace="default", resource="configmaps", verb="get", name="one")


def case_service_account_is_authorized_by_its_roles(kube: Kube) -> None:
    grant(kube, "writer", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]})
    token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = kube.api.post(kube.path("serviceaccounts", "writer") + "/token", json=token_request).json()["status"][
        "token"
    ]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = kube.api.post("/apis/authentication.k8s.io/v1/tokenreviews", json=review).json()["status"]
    assert status["user"]["username"] == f"system:serviceaccount:{kube.namespace}:writer"
    with kube.token_client(token) as api:
        kube.eventually(lambda: api.get(kube.path("configmaps", "none")).status_code == 404, what="right")
        assert api.post(kube.path("configmaps"), json=config_map()).status_code == 201
        rejected = api.delete(kube.path("configmaps", "one"))
        assert (rejected.status_code, rejected.json()["reason"]) == (403, "Forbidden")
        kube.record.append(("forbidden", 403, kube.comparable(rejected.json())))
    with kube.token_client("nonsense") as stranger:
        assert stranger.get("/api/v1/namespaces").status_code == 401


def case_privilege_escalation_is_rejected(kube: Kube) -> None:
    grant(kube, "giver", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]})
    user = {"Impersonate-User": f"system:serviceaccount:{kube.namespace}:giver"}
    roles = kube.path("roles", group=RBAC)
    more = {"metadata": {"name": "more"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    attributes = {
        "namespace": kube.namespace,
        "group": "rbac.authorization.k8s.io",
        "resource": "roles",
        "verb": "create",
    }
    kube.eventually(lambda: allowed(kube, "giver", **attributes), what="right")
    rejected = kube.api.post(roles, json=more, headers=user, params={"dryRun": "All"})
    assert rejected.status_code == 403
    own = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    fine = kube.api.post(roles, json={**more, "rules": [own]}, headers=user, params={"dryRun": "All"})
    assert fine.status_code == 201
