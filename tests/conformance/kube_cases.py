"""What a Kubernetes API does, as cases that run on any cluster: `case_*(kube)`.

The sandbox must pass them; a real API server defines them. Cases hold in a cluster without nodes: no Pod needs to run.
"""

import itertools
from collections.abc import Callable
from typing import Any

from conformance.kube_client import JSON, MERGE, STRATEGIC, Json, Kube

NUMBERS = itertools.count(1)
APPS, BATCH, RBAC = "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONTAINER = {"name": "web", "image": "registry.test/web:1"}


def config_map(name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def deployment(name: str = "web", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        # Nothing to do for any controller, so that answers do not depend on its speed.
        "spec": {
            "paused": True,
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            **spec,
        },
    }


def definition(plural: str, schema: Json | None = None, **version: Any) -> Json:
    structure = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kind = plural.capitalize()
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": structure}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.conformance.test"},
        "spec": {
            "group": "conformance.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


def install(kube: Kube, crd: Json) -> str:
    """Install a custom kind and return the path of its objects."""
    kube.ok("POST", CRDS, crd)
    path = kube.path(crd["spec"]["names"]["plural"], group="conformance.test/v1")
    kube.eventually(lambda: kube.call("GET", path)["http"] == 200, what="custom kind")
    return path


def custom(plural: str, name: str = "one", **fields: Any) -> Json:
    return {"apiVersion": "conformance.test/v1", "kind": plural.capitalize(), "metadata": {"name": name}, **fields}


# --- objects --------------------------------------------------------------------------------------------------------


def case_an_object_is_created_read_and_deleted(kube: Kube) -> None:
    maps = kube.path("configmaps")
    made = kube.ok("POST", maps, config_map(data={"a": "b"}))
    assert made["http"] == 201
    assert made["metadata"]["namespace"] == kube.namespace
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(made["metadata"])
    assert "generation" not in made["metadata"]
    assert kube.ok("GET", f"{maps}/one")["data"] == {"a": "b"}
    gone = kube.ok("DELETE", f"{maps}/one")
    assert (gone["kind"], gone["status"], gone["details"]["uid"]) == ("Status", "Success", made["metadata"]["uid"])
    missing = kube.refused(404, "GET", f"{maps}/one")
    assert (missing["reason"], missing["details"]) == ("NotFound", {"name": "one", "kind": "configmaps"})
    kube.refused(404, "DELETE", f"{maps}/one")


def case_a_name_is_taken_once(kube: Kube) -> None:
    kube.ok("POST", kube.path("configmaps"), config_map())
    again = kube.refused(409, "POST", kube.path("configmaps"), config_map())
    assert again["reason"] == "AlreadyExists"


def case_a_name_is_made_from_a_prefix(kube: Kube) -> None:
    made = [kube.api.post(kube.path("configmaps"), json={"metadata": {"generateName": "made-"}}).json() for _ in "ab"]
    assert all(each["metadata"]["name"].startswith("made-") for each in made)
    assert made[0]["metadata"]["name"] != made[1]["metadata"]["name"]


def case_a_replacement_must_be_based_on_the_newest_version(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    first = kube.ok("POST", kube.path("configmaps"), config_map(data={"n": "1"}))
    version = first["metadata"]["resourceVersion"]
    body = config_map(data={"n": "2"})
    body["metadata"]["resourceVersion"] = version
    second = kube.ok("PUT", path, body)
    assert second["metadata"]["resourceVersion"] != version
    stale = kube.refused(409, "PUT", path, body)
    assert stale["reason"] == "Conflict"
    blind = kube.ok("PUT", path, config_map(data={"n": "3"}))
    assert blind["data"] == {"n": "3"}
    same = kube.ok("PUT", path, config_map(data={"n": "3"}))
    assert same["metadata"]["resourceVersion"] == blind["metadata"]["resourceVersion"]
    other = config_map(data={"n": "4"})
    other["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    kube.refused(409, "PUT", path, other)
    kube.refused(404, "PUT", kube.path("configmaps", "none"), config_map("none"))


def case_generation_moves_with_the_spec_only(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    made = kube.ok("POST", kube.path("deployments", group=APPS), deployment())
    assert made["metadata"]["generation"] == 1
    labelled = kube.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    assert labelled["metadata"]["generation"] == 1
    changed = kube.ok("PATCH", path, {"spec": {"minReadySeconds": 5}}, media=MERGE)
    assert changed["metadata"]["generation"] == 2


def case_a_deployment_gets_its_defaults(kube: Kube) -> None:
    spec = kube.ok("POST", kube.path("deployments", group=APPS), deployment())["spec"]
    assert (spec["revisionHistoryLimit"], spec["strategy"]["type"]) == (10, "RollingUpdate")
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Always"
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def case_other_kinds_get_their_defaults(kube: Kube) -> None:
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    suspended = {"suspend": True, "template": {"spec": pod}}
    labels = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
    chosen = {"selector": {"matchLabels": {"app": "web"}}, "template": labels}
    service = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    for path, body in [
        (kube.path("services"), {"metadata": {"name": "svc"}, "spec": service}),
        (kube.path("secrets"), {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
        (kube.path("serviceaccounts"), {"metadata": {"name": "sa"}}),
        (kube.path("jobs", group=BATCH), {"metadata": {"name": "j"}, "spec": suspended}),
        (kube.path("cronjobs", group=BATCH), {"metadata": {"name": "c"}, "spec": {"schedule": "1 1 1 1 1", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": pod}}}}}),
        (kube.path("statefulsets", group=APPS), {"metadata": {"name": "s"}, "spec": {**chosen, "replicas": 0, "serviceName": "x"}}),
        (kube.path("replicasets", group=APPS), {"metadata": {"name": "r"}, "spec": {**chosen, "replicas": 0}}),
        (kube.path("networkpolicies", group="networking.k8s.io/v1"), {"metadata": {"name": "n"}, "spec": {"podSelector": {}}}),
        (kube.path("poddisruptionbudgets", group="policy/v1"), {"metadata": {"name": "p"}, "spec": {"minAvailable": 1}}),
        (kube.path("leases", group="coordination.k8s.io/v1"), {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
        (kube.path("roles", group=RBAC), {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        (kube.path("rolebindings", group=RBAC), {"metadata": {"name": "r"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
    ]:  # fmt: skip
        assert kube.ok("POST", path, body)["http"] == 201


def case_a_dry_run_changes_nothing(kube: Kube) -> None:
    maps = kube.path("configmaps")
    tried = kube.ok("POST", maps, config_map(), dryRun="All")
    assert tried["metadata"]["uid"]
    assert "resourceVersion" not in tried["metadata"]
    kube.refused(404, "GET", f"{maps}/one")
    made = kube.ok("POST", maps, config_map())
    kube.refused(409, "POST", maps, config_map(), dryRun="All")
    kube.ok("PATCH", f"{maps}/one", {"data": {"a": "b"}}, media=MERGE, dryRun="All")
    kube.ok("DELETE", f"{maps}/one", dryRun="All")
    assert kube.ok("GET", f"{maps}/one")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def case_lists_select_and_page(kube: Kube) -> None:
    maps = kube.path("configmaps")
    for number in range(5):
        body = config_map(f"m{number}")
        body["metadata"]["labels"] = {"odd": str(number % 2), "kind": "test"}
        kube.ok("POST", maps, body)

    def names(**query: str) -> list[str]:
        items = kube.api.get(maps, params={"labelSelector": "kind=test", **query}).json()["items"]
        return [item["metadata"]["name"] for item in items]

    assert names() == ["m0", "m1", "m2", "m3", "m4"]
    assert names(labelSelector="odd=1") == ["m1", "m3"]
    assert names(labelSelector="odd!=1,kind") == ["m0", "m2", "m4"]
    assert names(labelSelector="odd in (1,2),kind notin (x)") == ["m1", "m3"]
    assert names(labelSelector="kind,!none", fieldSelector="metadata.name!=m0") == ["m1", "m2", "m3", "m4"]
    assert names(fieldSelector="metadata.name=m2") == ["m2"]
    assert kube.api.get(maps, params={"labelSelector": "odd in 1"}).status_code == 400
    kube.refused(400, "GET", maps, fieldSelector="data.a=b")
    first = kube.ok("GET", maps, labelSelector="kind=test", limit="2")
    assert first["kind"] == "ConfigMapList"
    assert "kind" not in first["items"][0]
    kube.ok("DELETE", f"{maps}/m3")
    token = first["metadata"]["continue"]
    rest = kube.ok("GET", maps, labelSelector="kind=test", limit="9", **{"continue": token})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["m2", "m3", "m4"]
    assert "continue" not in rest["metadata"]
    kube.ok("DELETE", maps, labelSelector="odd=0")
    assert names() == ["m1"]


# --- watches --------------------------------------------------------------------------------------------------------


def case_a_watch_tells_what_happens(kube: Kube) -> None:
    maps = kube.path("configmaps")
    before = kube.api.get(maps).json()["metadata"]["resourceVersion"]
    with kube.watch(maps, resourceVersion=before) as events:
        kube.ok("POST", maps, config_map(data={"n": "1"}))
        kube.ok("PATCH", f"{maps}/one", {"data": {"n": "2"}}, media=MERGE)
        kube.ok("DELETE", f"{maps}/one")
        seen = [event for event in itertools.islice(named(events, "one"), 3)]
    assert [(each["type"], each["object"]["data"]["n"]) for each in seen] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
        ("DELETED", "2"),
    ]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert versions == sorted(set(versions))
    assert seen[0]["object"]["kind"] == "ConfigMap"


def named(events: Any, *names: str) -> Any:
    return (event for event in events if event["object"]["metadata"].get("name") in names)


def case_a_watch_resumes_where_it_left(kube: Kube) -> None:
    maps = kube.path("configmaps")
    first = kube.ok("POST", maps, config_map("one"))["metadata"]["resourceVersion"]
    kube.ok("POST", maps, config_map("two"))
    with kube.watch(maps, resourceVersion=first) as events:
        assert next(named(events, "one", "two"))["object"]["metadata"]["name"] == "two"
    with kube.watch(maps) as events:
        seen = list(itertools.islice(named(events, "one", "two"), 2))
    assert {each["type"] for each in seen} == {"ADDED"}


def case_a_watch_sees_objects_enter_and_leave_its_selector(kube: Kube) -> None:
    maps = kube.path("configmaps")
    before = kube.ok("POST", maps, config_map())["metadata"]["resourceVersion"]
    with kube.watch(maps, resourceVersion=before, labelSelector="in=yes") as events:
        kube.ok("PATCH", f"{maps}/one", {"metadata": {"labels": {"in": "yes"}}}, media=MERGE)
        kube.ok("PATCH", f"{maps}/one", {"metadata": {"labels": {"in": "no"}}}, media=MERGE)
        seen = list(itertools.islice(events, 2))
    assert [(each["type"], each["object"]["metadata"]["labels"]["in"]) for each in seen] == [
        ("ADDED", "yes"),
        ("DELETED", "yes"),
    ]


def case_a_watch_ends_with_its_time_and_a_bookmark(kube: Kube) -> None:
    with kube.watch(kube.path("configmaps"), timeoutSeconds="1") as events:
        assert all(event["type"] == "ADDED" for event in events)


def case_a_list_can_be_streamed(kube: Kube) -> None:
    maps = kube.path("configmaps")
    kube.ok("POST", maps, config_map())
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with kube.watch(maps, **query) as events:
        seen = list(itertools.takewhile(lambda event: event["type"] != "BOOKMARK", events))
    assert "one" in [event["object"]["metadata"]["name"] for event in seen]


# --- patches --------------------------------------------------------------------------------------------------------


def case_a_merge_patch_merges_and_removes(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    made = kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1", "b": "2"}))
    assert kube.ok("PATCH", path, {"data": {"a": None, "c": "3"}}, media=MERGE)["data"] == {"b": "2", "c": "3"}
    version = made["metadata"]["resourceVersion"]
    kube.refused(409, "PATCH", path, {"metadata": {"resourceVersion": version}, "data": {"x": "y"}}, media=MERGE)
    uid = "11111111-2222-3333-4444-555555555555"
    kube.refused(422, "PATCH", path, {"metadata": {"uid": uid}, "data": {"x": "y"}}, media=MERGE)
    kube.refused(404, "PATCH", kube.path("configmaps", "none"), {}, media=MERGE)
    kube.refused(400, "PATCH", path, b"[]", media=MERGE)


def case_a_json_patch_works_step_by_step(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}))
    steps = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b~1c", "value": "2"}]
    kube.refused(422, "PATCH", path, steps, media=JSON)
    steps[1]["path"] = "/data/b"
    assert kube.ok("PATCH", path, steps, media=JSON)["data"] == {"a": "1", "b": "2"}
    kube.refused(422, "PATCH", path, [{"op": "test", "path": "/data/a", "value": "2"}], media=JSON)
    kube.refused(422, "PATCH", path, [{"op": "remove", "path": "/data/none"}], media=JSON)


def case_a_strategic_patch_merges_lists_by_key(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    kube.ok("POST", kube.path("deployments", group=APPS), deployment())
    pod = {"containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "i:1"}]}
    patched = kube.ok("PATCH", path, {"spec": {"template": {"spec": pod}}}, media=STRATEGIC)
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["image"] for each in containers} == {"web": CONTAINER["image"], "side": "i:1"}
    gone = {"containers": [{"name": "side", "$patch": "delete"}]}
    patched = kube.ok("PATCH", path, {"spec": {"template": {"spec": gone}}}, media=STRATEGIC)
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == ["web"]
    replaced = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert kube.ok("PATCH", path, {"spec": replaced}, media=STRATEGIC)["spec"]["strategy"] == {"type": "Recreate"}


def case_a_patch_of_an_unknown_kind_is_refused(kube: Kube) -> None:
    kube.ok("POST", kube.path("configmaps"), config_map())
    kube.refused(415, "PATCH", kube.path("configmaps", "one"), {}, media="application/unknown")


# --- server-side apply ----------------------------------------------------------------------------------------------


def owners(obj: Json) -> dict[str, Json]:
    return {each["manager"]: each["fieldsV1"] for each in obj["metadata"]["managedFields"]}


def case_apply_creates_and_says_who_owns_what(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    made = kube.apply(path, deployment(), manager="one")
    assert made["http"] == 201
    assert owners(made)["one"]["f:spec"]["f:replicas"] == {}
    again = kube.apply(path, deployment(), manager="one")
    assert (again["http"], again["metadata"]["generation"]) == (200, 1)
    kube.ok("PATCH", path, {"spec": {"replicas": 0, "minReadySeconds": 7}}, media=MERGE)
    kept = kube.path("configmaps", "kept")
    made = kube.apply(kept, config_map("kept", data={"a": "b"}), manager="one")
    again = kube.apply(kept, config_map("kept", data={"a": "b"}), manager="one")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def case_the_first_apply_finds_earlier_writers(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.ok("POST", kube.path("configmaps"), config_map())
    written = kube.ok("PATCH", path, {"data": {"a": "1"}}, media=MERGE)
    assert "managedFields" not in written["metadata"]
    assert kube.apply(path, config_map(data={"a": "2"}), manager="one")["http"] == 409
    both = kube.apply(path, config_map(data={"b": "2"}), manager="one")
    assert set(owners(both)) == {"before-first-apply", "one"}


def case_apply_conflicts_until_forced(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    kube.apply(path, deployment(minReadySeconds=1), manager="one")
    refused = kube.apply(path, deployment(minReadySeconds=2), manager="two")
    assert (refused["http"], refused["reason"]) == (409, "Conflict")
    (cause,) = refused["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.minReadySeconds")
    forced = kube.apply(path, deployment(minReadySeconds=2), manager="two", force=True)
    assert forced["spec"]["minReadySeconds"] == 2
    assert "f:minReadySeconds" not in owners(forced)["one"]["f:spec"]
    changed = deployment(minReadySeconds=9, revisionHistoryLimit=3)
    changed["spec"]["template"]["spec"]["containers"][0] = {**CONTAINER, "image": "other:1"}
    many = kube.apply(path, changed, manager="three")
    assert len(many["details"]["causes"]) > 2


def case_apply_conflicts_with_ordinary_writers_too(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}))
    refused = kube.apply(path, config_map(data={"a": "2"}), manager="one")
    assert refused["message"].endswith('conflict with "conformance" using v1: .data.a')
    shared = kube.apply(path, config_map(data={"a": "1"}), manager="one")
    assert set(owners(shared)) == {"conformance", "one"}


def case_apply_removes_what_is_no_longer_wished(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.apply(path, config_map(data={"a": "1", "b": "2"}), manager="one")
    kube.apply(path, config_map(data={"b": "2", "c": "3"}), manager="two")
    left = kube.apply(path, config_map(data={"a": "1"}), manager="one")
    assert left["data"] == {"a": "1", "b": "2", "c": "3"}
    left = kube.apply(path, config_map(), manager="two")
    assert left["data"] == {"a": "1"}
    left = kube.apply(path, config_map(), manager="one")
    assert "data" not in left


def case_apply_merges_lists_by_their_keys(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    first = deployment()
    first["spec"]["template"]["spec"]["containers"] = [
        {**CONTAINER, "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}], "args": ["x"]}
    ]
    kube.apply(path, first, manager="one")
    second = {**deployment(), "spec": {"template": {"spec": {}}}}
    second["spec"]["template"]["spec"]["containers"] = [
        {"name": "web", "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 80, "protocol": "UDP"}]},
        {"name": "side", "image": "side:1"},
    ]
    merged = kube.apply(path, second, manager="two")
    containers = merged["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["web", "side"]
    assert [each["name"] for each in containers[0]["env"]] == ["A", "B"]
    assert len(containers[0]["ports"]) == 2
    second["spec"]["template"]["spec"] = {"containers": [{"name": "side", "image": "side:1"}]}
    left = kube.apply(path, second, manager="two")["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in left[0]["env"]] == ["A"]


def case_apply_of_finalizers_and_owners(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    wish = config_map()
    wish["metadata"]["finalizers"] = ["example.com/a"]
    kube.apply(path, wish, manager="one")
    wish["metadata"]["finalizers"] = ["example.com/b"]
    both = kube.apply(path, wish, manager="two")
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    wish["metadata"]["finalizers"] = []
    assert kube.apply(path, wish, manager="one")["metadata"]["finalizers"] == ["example.com/b"]
    kube.apply(path, wish, manager="two")
    kube.ok("DELETE", path)


def case_apply_is_refused_when_it_makes_no_sense(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    unnamed = kube.call("PATCH", path, config_map(), media="application/apply-patch+yaml")
    assert unnamed["http"] == 422
    kube.call("PATCH", path, {"kind": "ConfigMap"}, media="application/apply-patch+yaml", fieldManager="x")
    assert kube.apply(path, config_map("other"), manager="x")["http"] == 400
    unknown = kube.apply(path, config_map(none={"a": "b"}), manager="x")
    assert unknown["http"] == 500
    typed = deployment()
    typed["spec"]["replicas"] = "three"
    assert kube.apply(kube.path("deployments", "web", group=APPS), typed, manager="x")["http"] == 500
    kube.refused(422, "PATCH", path, {}, media=MERGE, force="true")


def case_ordinary_writes_are_owned_too(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    made = kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}), fieldManager="first")
    assert owners(made) == {"first": {"f:data": {".": {}, "f:a": {}}}}
    changed = kube.ok("PATCH", path, {"data": {"a": "2", "b": "3"}}, media=MERGE, fieldManager="second")
    assert owners(changed)["second"] == {"f:data": {"f:a": {}, "f:b": {}}}
    assert owners(changed)["first"] == {"f:data": {}}
    kube.ok("PATCH", path, {"metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]}}, media=MERGE)
    kube.ok("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE)


# --- status ---------------------------------------------------------------------------------------------------------


def case_spec_and_status_are_written_apart(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    kube.ok("POST", kube.path("deployments", group=APPS), {**deployment(), "status": {"replicas": 5}})
    kube.eventually(lambda: kube.call("GET", path)["status"].get("conditions"), what="first status")
    conditions = [{"type": "Custom", "status": "True"}]
    kube.ok("PATCH", f"{path}/status", {"status": {"conditions": conditions}, "spec": {"replicas": 9}}, media=MERGE)
    seen = kube.api.get(path).json()
    assert seen["spec"]["replicas"] == 0
    assert seen["metadata"]["generation"] == 1
    assert seen["status"]["conditions"][0]["type"] == "Custom"
    kube.refused(404, "GET", kube.path("configmaps", "none") + "/status")


def case_a_status_can_be_applied(kube: Kube) -> None:
    plural = f"applied{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED, subresources={"status": {}, "scale": SCALED}))
    kube.record.clear()
    kube.apply(f"{things}/one", custom(plural, spec={"size": 1}), manager="one")
    kube.apply(f"{things}/one/status", custom(plural, spec={"size": 2}, status={"count": 7}), manager="two")
    seen = kube.ok("GET", f"{things}/one")
    assert (seen["spec"]["size"], seen["status"]["count"], seen["metadata"]["generation"]) == (1, 7, 1)
    kube.ok("PATCH", f"{things}/one/status", {"status": {"count": 8}}, media=MERGE)
    kube.ok("PUT", f"{things}/one/status", {**kube.ok("GET", f"{things}/one"), "status": {"count": 9}})
    assert kube.ok("GET", f"{things}/one/scale")["spec"]["replicas"] == 1
    assert kube.ok("PATCH", f"{things}/one/scale", {"spec": {"replicas": 4}}, media=MERGE)["spec"]["replicas"] == 4
    assert kube.call("GET", f"{things}/one")["spec"]["size"] == 4
    kube.record.pop()
    assert kube.apply(f"{things}/none/status", custom(plural, "none", status={}), manager="x")["http"] == 404
    kube.record.pop()
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


def case_a_kind_has_several_versions(kube: Kube) -> None:
    plural = f"versions{kube.namespace.replace('-', '')}"
    crd = definition(plural)
    older = {**crd["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    crd["spec"]["versions"].append(older)
    things = install(kube, crd)
    kube.record.clear()
    beta = things.replace("/v1/", "/v1beta1/")
    kube.eventually(lambda: kube.call("GET", beta)["http"] == 200, what="older version")
    made = kube.ok("POST", beta, {**custom(plural, spec={"a": 1}), "apiVersion": "conformance.test/v1beta1"})
    assert made["apiVersion"] == "conformance.test/v1beta1"
    seen = kube.ok("GET", f"{things}/one")
    assert (seen["apiVersion"], seen["metadata"]["uid"]) == ("conformance.test/v1", made["metadata"]["uid"])
    kube.ok("PATCH", f"{beta}/one", {"spec": {"a": 2}}, media=MERGE)
    assert kube.ok("GET", f"{things}/one")["metadata"]["generation"] == 2
    assert kube.ok("GET", beta)["items"][0]["apiVersion"] == "conformance.test/v1beta1"
    kube.apply(f"{things}/one", custom(plural, spec={"b": [1, 2], "c": {"d": "e"}}), manager="one")
    kube.apply(f"{things}/one", custom(plural, spec={"b": [3]}), manager="one")
    kube.ok("PATCH", f"{things}/one", {"metadata": {"finalizers": ["a.b/c"]}}, media=MERGE)
    kube.ok("DELETE", f"{things}/one")
    kube.ok("PATCH", f"{things}/one", {"metadata": {"finalizers": []}}, media=MERGE)
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


# --- deletion -------------------------------------------------------------------------------------------------------


def case_finalizers_hold_an_object_back(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    body = config_map()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    kube.ok("POST", kube.path("configmaps"), body)
    deleting = kube.ok("DELETE", path)
    assert deleting["metadata"]["deletionTimestamp"]
    again = kube.ok("DELETE", path)
    assert again["metadata"]["resourceVersion"] == deleting["metadata"]["resourceVersion"]
    kube.refused(422, "PATCH", path, {"metadata": {"finalizers": ["example.com/hold", "a.b/more"]}}, media=MERGE)
    kube.ok("PATCH", path, {"data": {"still": "writable"}}, media=MERGE)
    kube.ok("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE)
    kube.refused(404, "GET", path)


def case_a_deletion_can_name_what_it_means(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    made = kube.ok("POST", kube.path("configmaps"), config_map())
    wrong = {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    assert kube.refused(409, "DELETE", path, wrong)["reason"] == "Conflict"
    kube.refused(409, "DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    kube.refused(422, "DELETE", path, propagationPolicy="Sideways")
    kube.ok("DELETE", path, {"preconditions": {"uid": made["metadata"]["uid"]}, "propagationPolicy": "Background"})


def owned_by(owner: Json, name: str, **reference: Any) -> Json:
    body = config_map(name)
    link = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    body["metadata"]["ownerReferences"] = [{**link, **reference}]
    return body


def case_an_owner_takes_its_own_along(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    kube.ok("POST", maps, owned_by(owner, "child"))
    kube.ok("DELETE", f"{maps}/owner", propagationPolicy="Background")
    kube.eventually(lambda: kube.gone(f"{maps}/child"), what="end of the child")


def case_an_owner_can_leave_its_own_behind(kube: Kube) -> None:
    maps = kube.path("configmaps")
    owner = kube.ok("POST", maps, config_map("owner"))
    kube.ok("POST", maps, owned_by(owner, "child"))
    kube.ok("DELETE", f"{maps}/owner", propagationPolicy="Orphan")
    kube.eventually(lambda: kube.gone(f"{maps}/owner"), what="end of the owner")
    assert "ownerReferences" not in kube.ok("GET", f"{maps}/child")["metadata"]


def case_an_owner_can_wait_for_its_own(kube: Kube) -> None:
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
    kube.eventually(lambda: kube.gone(f"{maps}/owner"), what="end of the owner")
    kube.record.clear()


def case_a_namespace_takes_everything_along(kube: Kube) -> None:
    name = f"{kube.namespace}-more"
    kube.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    maps = kube.path("configmaps", namespace=name)
    kube.ok("POST", maps, held)
    leaving = kube.ok("DELETE", f"/api/v1/namespaces/{name}")
    assert leaving["status"]["phase"] == "Terminating"
    refused = kube.refused(403, "POST", maps, config_map("late"))
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    kube.eventually(lambda: kube.call("GET", f"{maps}/held")["metadata"].get("deletionTimestamp"), what="end of held")
    kube.call("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, media=MERGE)
    kube.eventually(lambda: kube.gone(f"/api/v1/namespaces/{name}"), what="end of the namespace")
    kube.record.clear()


# --- refusals -------------------------------------------------------------------------------------------------------


def case_a_namespace_must_exist(kube: Kube) -> None:
    refused = kube.refused(404, "POST", kube.path("configmaps", namespace="nowhere"), config_map())
    assert refused["message"] == 'namespaces "nowhere" not found'
    assert kube.ok("GET", kube.path("configmaps", namespace="nowhere"))["items"] == []


def case_nonsense_is_refused_with_a_reason(kube: Kube) -> None:
    maps = kube.path("configmaps")
    for name in ("Upper", "under_score", "-dash", "a" * 254, ""):
        kube.refused(422, "POST", maps, config_map(name))
    labelled = config_map()
    labelled["metadata"]["labels"] = {"a": "not a value"}
    kube.refused(422, "POST", maps, labelled)
    labelled["metadata"]["labels"] = {"bad key": "a"}
    kube.refused(422, "POST", maps, labelled)
    held = config_map()
    held["metadata"]["finalizers"] = ["unqualified"]
    kube.refused(422, "POST", maps, held)
    kube.refused(422, "POST", maps, config_map(data={"bad key": "x"}))
    owned = config_map()
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]
    kube.refused(422, "POST", maps, owned)


def case_an_unreadable_request_is_refused(kube: Kube) -> None:
    maps = kube.path("configmaps")
    assert kube.call("POST", maps, b"{")["http"] == 400
    kube.record.clear()
    assert kube.call("POST", maps, b"{}", media="text/html")["http"] == 415
    wrong = {**config_map(), "apiVersion": "v2"}
    assert kube.call("POST", maps, wrong)["http"] == 400
    elsewhere = config_map()
    elsewhere["metadata"]["namespace"] = "elsewhere"
    kube.refused(400, "POST", maps, elsewhere)
    kube.refused(400, "PUT", f"{maps}/other", config_map("one"))
    typed = deployment()
    typed["spec"]["replicas"] = "three"
    assert kube.call("POST", kube.path("deployments", group=APPS), typed)["http"] == 400
    kube.record.clear()
    big = config_map(data={"a": "x" * 3_200_000})
    assert kube.api.post(maps, json=big).status_code == 413
    big = config_map(data={"a": "x" * 1_900_000})
    assert kube.api.post(maps, json=big).status_code in (413, 422)


def case_unknown_kinds_and_methods_are_refused(kube: Kube) -> None:
    for path in ("/api/v1/nothings", "/apis/none.test/v1/things", "/apis/apps/v9/deployments"):
        assert kube.api.get(path).status_code == 404
    assert kube.api.get("/apis/none.test/v1").status_code == 404
    assert kube.call("PUT", kube.path("configmaps"), config_map())["http"] == 405
    assert kube.call("POST", kube.path("configmaps", "one"), config_map())["http"] in (404, 405)


def case_unknown_fields_are_dropped_warned_of_or_refused(kube: Kube) -> None:
    maps = kube.path("configmaps")
    made = kube.ok("POST", maps, config_map(surprise=1))
    assert "surprise" not in made
    refused = kube.refused(400, "POST", maps, config_map("two", surprise=1), fieldValidation="Strict")
    assert 'unknown field "surprise"' in refused["message"]
    warned = kube.api.post(maps, json=config_map("three", surprise=1), params={"fieldValidation": "Warn"})
    assert "unknown field" in warned.headers["Warning"]


def case_empty_lists_and_maps_are_left_out(kube: Kube) -> None:
    body = config_map(data={}, binaryData={})
    body["metadata"] |= {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    made = kube.ok("POST", kube.path("configmaps"), body)
    assert "data" not in made
    assert "labels" not in made["metadata"]
    spec = {"containers": [{**CONTAINER, "env": [], "args": [], "volumeMounts": [], "resources": {}}], "volumes": []}
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {}}, "spec": spec}
    kube.ok("POST", kube.path("deployments", group=APPS), deployment(template=template))
    kube.ok("POST", kube.path("roles", group=RBAC), {"metadata": {"name": "r"}, "rules": []})


def case_some_fields_never_change(kube: Kube) -> None:
    deployments = kube.path("deployments", group=APPS)
    kube.ok("POST", deployments, deployment())
    other = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    assert kube.call("PATCH", f"{deployments}/web", other, media=MERGE)["http"] == 422
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


def case_workloads_need_their_parts(kube: Kube) -> None:
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


SCALED = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.count"}

# --- custom kinds ---------------------------------------------------------------------------------------------------


SIZED = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3, "minimum": 1},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
                    },
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def case_pods_are_kept_as_written(kube: Kube) -> None:
    pods = kube.path("pods")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
    made = kube.call("POST", pods, pod)
    assert made["status"]["phase"] == "Pending"
    kube.record.clear()
    assert kube.call("PATCH", f"{pods}/p", {"spec": {"hostNetwork": True}}, media=MERGE)["http"] == 422
    kube.record.clear()
    moved = kube.ok("PATCH", f"{pods}/p", {"spec": {"containers": [{"name": "web", "image": "x:2"}]}}, media=STRATEGIC)
    assert moved["spec"]["containers"][0]["image"] == "x:2"
    kube.record.clear()
    kube.call("DELETE", f"{pods}/p", {"gracePeriodSeconds": 0})
    kube.eventually(lambda: kube.gone(f"{pods}/p"), what="end of the pod")
    kube.record.clear()


def case_jobs_leave_their_pods_unless_told(kube: Kube) -> None:
    jobs, pods = kube.path("jobs", group=BATCH), kube.path("pods")
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    for policy in ("", "Background"):
        kube.ok("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}})
        (found,) = kube.eventually(lambda: kube.api.get(pods).json()["items"], what="pod")
        kube.call("DELETE", f"{jobs}/j", **({"propagationPolicy": policy} if policy else {}))
        kube.eventually(lambda: kube.gone(f"{jobs}/j"), what="end of the job")
        one = f"{pods}/{found['metadata']['name']}"
        if policy:
            kube.eventually(lambda: kube.gone(one), what="end of the pod")
        else:
            assert "ownerReferences" not in kube.api.get(one).json()["metadata"]
            kube.api.delete(one)
            kube.eventually(lambda: kube.gone(one), what="end of the pod")
    kube.record.clear()


def case_cluster_scoped_objects(kube: Kube) -> None:
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


def case_namespaces_keep_their_own_fields(kube: Kube) -> None:
    path = f"/api/v1/namespaces/{kube.namespace}"
    seen = kube.ok("GET", path)
    assert seen["metadata"]["labels"] == {"kubernetes.io/metadata.name": kube.namespace}
    assert (seen["spec"], seen["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    kube.ok("PATCH", path, {"spec": {"finalizers": []}, "metadata": {"labels": {"a": "b"}}}, media=MERGE)
    kube.refused(422, "POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}})


def case_a_custom_kind_is_served_pruned_and_judged(kube: Kube) -> None:
    plural = f"sized{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED, subresources={"status": {}}))
    kube.record.clear()
    made = kube.ok("POST", things, custom(plural, spec={"unknown": 1}, status={"a": 1}))
    assert made["spec"] == {"size": 3}
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    kube.refused(422, "POST", things, custom(plural, "two", spec={"size": 0}))
    kube.refused(422, "POST", things, custom(plural, "two", spec={"mode": "c"}))
    kube.refused(422, "POST", things, custom(plural, "two", spec={"size": "x"}))
    kube.refused(422, "POST", things, custom(plural, "two"))
    assert kube.call("POST", things, {"metadata": {"name": "two"}})["http"] == 400
    status = kube.ok("PATCH", f"{things}/one/status", {"status": {"any": 1}, "spec": {"size": 9}}, media=MERGE)
    assert (status["spec"]["size"], status["metadata"]["generation"]) == (3, 1)
    kube.refused(415, "PATCH", f"{things}/one", {"spec": {"size": 4}}, media=STRATEGIC)
    kube.refused(422, "PUT", f"{things}/one", custom(plural, spec={"size": 4}))
    assert kube.ok("PATCH", f"{things}/one", {"spec": {"size": 4}}, media=MERGE)["metadata"]["generation"] == 2
    kube.ok("DELETE", f"{CRDS}/{plural}.conformance.test")
    kube.eventually(lambda: kube.gone(f"{CRDS}/{plural}.conformance.test"), what="end of the kind")
    assert kube.eventually(lambda: kube.gone(things), what="end of service")
    kube.record.clear()


def case_apply_knows_the_lists_of_custom_kinds(kube: Kube) -> None:
    plural = f"listed{kube.namespace.replace('-', '')}"
    things = install(kube, definition(plural, SIZED))
    kube.record.clear()
    kube.apply(f"{things}/one", custom(plural, spec={"items": [{"name": "a", "value": "1"}]}), manager="one")
    both = kube.apply(f"{things}/one", custom(plural, spec={"items": [{"name": "b"}]}), manager="two")
    assert [each["name"] for each in both["spec"]["items"]] == ["a", "b"]
    left = kube.apply(f"{things}/one", custom(plural, spec={}), manager="one")
    assert [each["name"] for each in left["spec"]["items"]] == ["b"]
    kube.api.delete(f"{CRDS}/{plural}.conformance.test")


def case_a_custom_kind_is_established_and_discovered(kube: Kube) -> None:
    plural = f"found{kube.namespace.replace('-', '')}"
    install(kube, definition(plural))
    name = f"{CRDS}/{plural}.conformance.test"
    kube.record.clear()
    seen = kube.eventually(
        lambda: {each["type"]: each["status"] for each in kube.call("GET", name)["status"].get("conditions", [])}.get("Established") == "True",
        what="established",
    )  # fmt: skip
    assert seen
    kube.eventually(
        lambda: plural in [each["name"] for each in kube.call("GET", "/apis/conformance.test/v1").get("resources", [])],
        what="discovery",
    )
    kube.api.delete(name)


# --- access ---------------------------------------------------------------------------------------------------------


def allowed(kube: Kube, account: str, **attributes: str) -> bool:
    user = f"system:serviceaccount:{kube.namespace}:{account}"
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    found: bool = kube.api.post(path, json=body).json()["status"]["allowed"]
    return found


def grant(kube: Kube, name: str, *rules: Json) -> None:
    kube.ok("POST", kube.path("serviceaccounts"), {"metadata": {"name": name}})
    kube.ok("POST", kube.path("roles", group=RBAC), {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": kube.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    kube.ok("POST", kube.path("rolebindings", group=RBAC), binding)


def case_access_follows_roles(kube: Kube) -> None:
    grant(kube, "reader", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"]})
    here = {"namespace": kube.namespace, "resource": "configmaps"}
    kube.eventually(lambda: allowed(kube, "reader", **here, verb="get", name="one"), what="right")
    assert not allowed(kube, "reader", **here, verb="get", name="two")
    assert not allowed(kube, "reader", **here, verb="create")
    assert not allowed(kube, "reader", namespace="default", resource="configmaps", verb="get", name="one")


def case_a_service_account_does_what_its_roles_allow(kube: Kube) -> None:
    grant(kube, "writer", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = kube.api.post(kube.path("serviceaccounts", "writer") + "/token", json=asked).json()["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    known = kube.api.post("/apis/authentication.k8s.io/v1/tokenreviews", json=review).json()["status"]
    assert known["user"]["username"] == f"system:serviceaccount:{kube.namespace}:writer"
    with kube.token_client(token) as api:
        kube.eventually(lambda: api.get(kube.path("configmaps", "none")).status_code == 404, what="right")
        assert api.post(kube.path("configmaps"), json=config_map()).status_code == 201
        refused = api.delete(kube.path("configmaps", "one"))
        assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
        kube.record.append(("forbidden", 403, kube.comparable(refused.json())))
    with kube.token_client("nonsense") as stranger:
        assert stranger.get("/api/v1/namespaces").status_code == 401


def case_nobody_gives_what_they_do_not_have(kube: Kube) -> None:
    grant(kube, "giver", {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]})
    user = {"Impersonate-User": f"system:serviceaccount:{kube.namespace}:giver"}
    roles = kube.path("roles", group=RBAC)
    more = {"metadata": {"name": "more"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    kube.eventually(lambda: allowed(kube, "giver", namespace=kube.namespace, group="rbac.authorization.k8s.io", resource="roles", verb="create"), what="right")  # fmt: skip
    refused = kube.api.post(roles, json=more, headers=user, params={"dryRun": "All"})
    assert refused.status_code == 403
    own = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    fine = kube.api.post(roles, json={**more, "rules": [own]}, headers=user, params={"dryRun": "All"})
    assert fine.status_code == 201


# --- discovery ------------------------------------------------------------------------------------------------------


def case_discovery_tells_what_is_served(kube: Kube) -> None:
    core = {each["name"]: each for each in kube.api.get("/api/v1").json()["resources"]}
    assert core["configmaps"]["namespaced"]
    assert not core["namespaces"]["namespaced"]
    assert {"pods/status", "namespaces/finalize", "serviceaccounts/token"} <= set(core)
    groups = {each["name"] for each in kube.api.get("/apis").json()["groups"]}
    assert {"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "policy"} <= groups
    wanted = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    aggregated = kube.api.get("/apis", headers=wanted).json()
    assert aggregated["kind"] == "APIGroupDiscoveryList"
    apps = next(each for each in aggregated["items"] if each["metadata"]["name"] == "apps")
    resources = {each["resource"]: each for each in apps["versions"][0]["resources"]}
    assert resources["deployments"]["responseKind"]["kind"] == "Deployment"
    assert "deploy" in resources["deployments"]["shortNames"]
    assert kube.api.get("/version").json()["major"] == "1"


def case_objects_come_as_metadata_or_tables_too(kube: Kube) -> None:
    maps = kube.path("configmaps")
    kube.ok("POST", maps, config_map())
    form = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    only = kube.api.get(f"{maps}/one", headers=form).json()
    assert (only["kind"], sorted(only)) == ("PartialObjectMetadata", ["apiVersion", "kind", "metadata"])
    table = kube.api.get(maps, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).json()
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["name"] == "Name"


# --- controllers ----------------------------------------------------------------------------------------------------


def case_a_deployment_gets_its_pods_and_takes_them_along(kube: Kube) -> None:
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


def case_a_namespace_gets_its_account(kube: Kube) -> None:
    kube.eventually(lambda: not kube.gone(kube.path("serviceaccounts", "default")), what="account")


CASES: dict[str, Callable[[Kube], None]] = {
    name.removeprefix("case_"): found for name, found in dict(globals()).items() if name.startswith("case_")
}
