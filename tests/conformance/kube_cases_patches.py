"""How patches and server-side apply change an object, and who owns what afterwards."""

from conformance.kube_bodies import APPS, CONTAINER, config_map, deployment
from conformance.kube_client import JSON, MERGE, STRATEGIC, Json, Kube


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
