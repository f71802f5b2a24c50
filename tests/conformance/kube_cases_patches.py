"""Cases of patches, server-side apply and managedFields."""

from tests.conformance.kube_bodies import APPS, CONTAINER, config_map, deployment
from tests.conformance.kube_client import JSON, MERGE, STRATEGIC, Json, Kube


def case_merge_patch_merges_and_removes(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    created = kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1", "b": "2"}))
    assert kube.ok("PATCH", path, {"data": {"a": None, "c": "3"}}, media=MERGE)["data"] == {"b": "2", "c": "3"}
    version = created["metadata"]["resourceVersion"]
    kube.rejected(409, "PATCH", path, {"metadata": {"resourceVersion": version}, "data": {"x": "y"}}, media=MERGE)
    uid = "11111111-2222-3333-4444-555555555555"
    kube.rejected(422, "PATCH", path, {"metadata": {"uid": uid}, "data": {"x": "y"}}, media=MERGE)
    kube.rejected(404, "PATCH", kube.path("configmaps", "none"), {}, media=MERGE)
    kube.rejected(400, "PATCH", path, b"[]", media=MERGE)


def case_json_patch_runs_its_operations_in_order(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}))
    steps = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b~1c", "value": "2"}]
    kube.rejected(422, "PATCH", path, steps, media=JSON)
    steps[1]["path"] = "/data/b"
    assert kube.ok("PATCH", path, steps, media=JSON)["data"] == {"a": "1", "b": "2"}
    kube.rejected(422, "PATCH", path, [{"op": "test", "path": "/data/a", "value": "2"}], media=JSON)
    kube.rejected(422, "PATCH", path, [{"op": "remove", "path": "/data/none"}], media=JSON)


def case_strategic_merge_patch_merges_lists_by_key(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    kube.ok("POST", kube.path("deployments", group=APPS), deployment())
    pod = {"containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "i:1"}]}
    patched = kube.ok("PATCH", path, {"spec": {"template": {"spec": pod}}}, media=STRATEGIC)
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert {container["name"]: container["image"] for container in containers} == {
        "web": CONTAINER["image"],
        "side": "i:1",
    }
    is_not_found = {"containers": [{"name": "side", "$patch": "delete"}]}
    patched = kube.ok("PATCH", path, {"spec": {"template": {"spec": is_not_found}}}, media=STRATEGIC)
    assert [container["name"] for container in patched["spec"]["template"]["spec"]["containers"]] == ["web"]
    replaced = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert kube.ok("PATCH", path, {"spec": replaced}, media=STRATEGIC)["spec"]["strategy"] == {"type": "Recreate"}


def case_patch_of_unknown_media_type_is_rejected(kube: Kube) -> None:
    kube.ok("POST", kube.path("configmaps"), config_map())
    kube.rejected(415, "PATCH", kube.path("configmaps", "one"), {}, media="application/unknown")


def owners(obj: Json) -> dict[str, Json]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def case_apply_creates_object_with_managed_fields(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    created = kube.apply(path, deployment(), manager="one")
    assert created["http"] == 201
    assert owners(created)["one"]["f:spec"]["f:replicas"] == {}
    again = kube.apply(path, deployment(), manager="one")
    assert (again["http"], again["metadata"]["generation"]) == (200, 1)
    kube.ok("PATCH", path, {"spec": {"replicas": 0, "minReadySeconds": 7}}, media=MERGE)
    kept = kube.path("configmaps", "kept")
    created = kube.apply(kept, config_map("kept", data={"a": "b"}), manager="one")
    again = kube.apply(kept, config_map("kept", data={"a": "b"}), manager="one")
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def case_first_apply_records_earlier_writers(kube: Kube) -> None:
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
    rejected = kube.apply(path, deployment(minReadySeconds=2), manager="two")
    assert (rejected["http"], rejected["reason"]) == (409, "Conflict")
    (cause,) = rejected["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.minReadySeconds")
    forced = kube.apply(path, deployment(minReadySeconds=2), manager="two", force=True)
    assert forced["spec"]["minReadySeconds"] == 2
    assert "f:minReadySeconds" not in owners(forced)["one"]["f:spec"]
    changed = deployment(minReadySeconds=9, revisionHistoryLimit=3)
    changed["spec"]["template"]["spec"]["containers"][0] = {**CONTAINER, "image": "other:1"}
    many = kube.apply(path, changed, manager="three")
    assert len(many["details"]["causes"]) > 2


def case_apply_conflicts_with_updates(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}))
    rejected = kube.apply(path, config_map(data={"a": "2"}), manager="one")
    assert rejected["message"].endswith('conflict with "conformance" using v1: .data.a')
    shared = kube.apply(path, config_map(data={"a": "1"}), manager="one")
    assert set(owners(shared)) == {"conformance", "one"}


def case_apply_removes_fields_no_longer_applied(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    kube.apply(path, config_map(data={"a": "1", "b": "2"}), manager="one")
    kube.apply(path, config_map(data={"b": "2", "c": "3"}), manager="two")
    remaining = kube.apply(path, config_map(data={"a": "1"}), manager="one")
    assert remaining["data"] == {"a": "1", "b": "2", "c": "3"}
    remaining = kube.apply(path, config_map(), manager="two")
    assert remaining["data"] == {"a": "1"}
    remaining = kube.apply(path, config_map(), manager="one")
    assert "data" not in remaining


def case_apply_merges_lists_by_key(kube: Kube) -> None:
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
    assert [container["name"] for container in containers] == ["web", "side"]
    assert [variable["name"] for variable in containers[0]["env"]] == ["A", "B"]
    assert len(containers[0]["ports"]) == 2
    second["spec"]["template"]["spec"] = {"containers": [{"name": "side", "image": "side:1"}]}
    remaining = kube.apply(path, second, manager="two")["spec"]["template"]["spec"]["containers"]
    assert [variable["name"] for variable in remaining[0]["env"]] == ["A"]


def case_apply_of_finalizers_and_owner_references(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    config = config_map()
    config["metadata"]["finalizers"] = ["example.com/a"]
    kube.apply(path, config, manager="one")
    config["metadata"]["finalizers"] = ["example.com/b"]
    both = kube.apply(path, config, manager="two")
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    config["metadata"]["finalizers"] = []
    assert kube.apply(path, config, manager="one")["metadata"]["finalizers"] == ["example.com/b"]
    kube.apply(path, config, manager="two")
    kube.ok("DELETE", path)


def case_invalid_apply_is_rejected(kube: Kube) -> None:
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
    kube.rejected(422, "PATCH", path, {}, media=MERGE, force="true")


def case_updates_have_managed_fields(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    created = kube.ok("POST", kube.path("configmaps"), config_map(data={"a": "1"}), fieldManager="first")
    assert owners(created) == {"first": {"f:data": {".": {}, "f:a": {}}}}
    changed = kube.ok("PATCH", path, {"data": {"a": "2", "b": "3"}}, media=MERGE, fieldManager="second")
    assert owners(changed)["second"] == {"f:data": {"f:a": {}, "f:b": {}}}
    assert owners(changed)["first"] == {"f:data": {}}
    kube.ok("PATCH", path, {"metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]}}, media=MERGE)
    kube.ok("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE)
