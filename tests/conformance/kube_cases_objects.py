"""Cases of create, update, list, watch, discovery and representations."""

import itertools
from typing import Any

from tests.conformance.kube_bodies import APPS, BATCH, CONTAINER, RBAC, config_map, deployment
from tests.conformance.kube_client import MERGE, Kube

NETWORK, LEASES = "networking.k8s.io/v1", "coordination.k8s.io/v1"


def case_object_is_created_read_and_deleted(kube: Kube) -> None:
    maps = kube.path("configmaps")
    created = kube.ok("POST", maps, config_map(data={"a": "b"}))
    assert created["http"] == 201
    assert created["metadata"]["namespace"] == kube.namespace
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(created["metadata"])
    assert "generation" not in created["metadata"]
    assert kube.ok("GET", f"{maps}/one")["data"] == {"a": "b"}
    is_not_found = kube.ok("DELETE", f"{maps}/one")
    assert (is_not_found["kind"], is_not_found["status"], is_not_found["details"]["uid"]) == (
        "Status",
        "Success",
        created["metadata"]["uid"],
    )
    missing = kube.rejected(404, "GET", f"{maps}/one")
    assert (missing["reason"], missing["details"]) == ("NotFound", {"name": "one", "kind": "configmaps"})
    kube.rejected(404, "DELETE", f"{maps}/one")


def case_name_is_unique(kube: Kube) -> None:
    kube.ok("POST", kube.path("configmaps"), config_map())
    again = kube.rejected(409, "POST", kube.path("configmaps"), config_map())
    assert again["reason"] == "AlreadyExists"


def case_generate_name_makes_a_unique_name(kube: Kube) -> None:
    created = [
        kube.api.post(kube.path("configmaps"), json={"metadata": {"generateName": "made-"}}).json() for _ in "ab"
    ]
    assert all(obj["metadata"]["name"].startswith("made-") for obj in created)
    assert created[0]["metadata"]["name"] != created[1]["metadata"]["name"]


def case_update_with_old_resource_version_conflicts(kube: Kube) -> None:
    path = kube.path("configmaps", "one")
    first = kube.ok("POST", kube.path("configmaps"), config_map(data={"n": "1"}))
    version = first["metadata"]["resourceVersion"]
    body = config_map(data={"n": "2"})
    body["metadata"]["resourceVersion"] = version
    second = kube.ok("PUT", path, body)
    assert second["metadata"]["resourceVersion"] != version
    stale = kube.rejected(409, "PUT", path, body)
    assert stale["reason"] == "Conflict"
    blind = kube.ok("PUT", path, config_map(data={"n": "3"}))
    assert blind["data"] == {"n": "3"}
    same = kube.ok("PUT", path, config_map(data={"n": "3"}))
    assert same["metadata"]["resourceVersion"] == blind["metadata"]["resourceVersion"]
    replacement = config_map(data={"n": "4"})
    replacement["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    kube.rejected(409, "PUT", path, replacement)
    kube.rejected(404, "PUT", kube.path("configmaps", "none"), config_map("none"))


def case_generation_changes_with_the_spec_only(kube: Kube) -> None:
    path = kube.path("deployments", "web", group=APPS)
    created = kube.ok("POST", kube.path("deployments", group=APPS), deployment())
    assert created["metadata"]["generation"] == 1
    labelled = kube.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, media=MERGE)
    assert labelled["metadata"]["generation"] == 1
    changed = kube.ok("PATCH", path, {"spec": {"minReadySeconds": 5}}, media=MERGE)
    assert changed["metadata"]["generation"] == 2


def case_deployment_is_defaulted(kube: Kube) -> None:
    spec = kube.ok("POST", kube.path("deployments", group=APPS), deployment())["spec"]
    assert (spec["revisionHistoryLimit"], spec["strategy"]["type"]) == (10, "RollingUpdate")
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Always"
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def case_other_kinds_are_defaulted(kube: Kube) -> None:
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
    suspended = {"suspend": True, "template": {"spec": pod}}
    labels = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
    chosen = {"selector": {"matchLabels": {"app": "web"}}, "template": labels}
    service = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    timed = {"schedule": "1 1 1 1 1", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    sets = {**chosen, "replicas": 0}
    for path, body in [
        (kube.path("services"), {"metadata": {"name": "svc"}, "spec": service}),
        (kube.path("secrets"), {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
        (kube.path("serviceaccounts"), {"metadata": {"name": "sa"}}),
        (kube.path("jobs", group=BATCH), {"metadata": {"name": "j"}, "spec": suspended}),
        (kube.path("cronjobs", group=BATCH), {"metadata": {"name": "c"}, "spec": timed}),
        (kube.path("statefulsets", group=APPS), {"metadata": {"name": "s"}, "spec": {**sets, "serviceName": "x"}}),
        (kube.path("replicasets", group=APPS), {"metadata": {"name": "r"}, "spec": sets}),
        (kube.path("networkpolicies", group=NETWORK), {"metadata": {"name": "n"}, "spec": {"podSelector": {}}}),
        (
            kube.path("poddisruptionbudgets", group="policy/v1"),
            {"metadata": {"name": "p"}, "spec": {"minAvailable": 1}},
        ),
        (kube.path("leases", group=LEASES), {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
        (kube.path("roles", group=RBAC), {"metadata": {"name": "r"}, "rules": [rule]}),
        (
            kube.path("rolebindings", group=RBAC),
            {"metadata": {"name": "r"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects},
        ),
    ]:
        assert kube.ok("POST", path, body)["http"] == 201


def case_dry_run_changes_nothing(kube: Kube) -> None:
    maps = kube.path("configmaps")
    tried = kube.ok("POST", maps, config_map(), dryRun="All")
    assert tried["metadata"]["uid"]
    assert "resourceVersion" not in tried["metadata"]
    kube.rejected(404, "GET", f"{maps}/one")
    created = kube.ok("POST", maps, config_map())
    kube.rejected(409, "POST", maps, config_map(), dryRun="All")
    kube.ok("PATCH", f"{maps}/one", {"data": {"a": "b"}}, media=MERGE, dryRun="All")
    kube.ok("DELETE", f"{maps}/one", dryRun="All")
    assert kube.ok("GET", f"{maps}/one")["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def case_list_with_selectors_and_pages(kube: Kube) -> None:
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
    kube.rejected(400, "GET", maps, fieldSelector="data.a=b")
    first = kube.ok("GET", maps, labelSelector="kind=test", limit="2")
    assert first["kind"] == "ConfigMapList"
    assert "kind" not in first["items"][0]
    kube.ok("DELETE", f"{maps}/m3")
    token = first["metadata"]["continue"]
    last_page = kube.ok("GET", maps, labelSelector="kind=test", limit="9", **{"continue": token})
    assert [item["metadata"]["name"] for item in last_page["items"]] == ["m2", "m3", "m4"]
    assert "continue" not in last_page["metadata"]
    kube.ok("DELETE", maps, labelSelector="odd=0")
    assert names() == ["m1"]


def case_watch_sends_events(kube: Kube) -> None:
    maps = kube.path("configmaps")
    before = kube.api.get(maps).json()["metadata"]["resourceVersion"]
    with kube.watch(maps, resourceVersion=before) as events:
        kube.ok("POST", maps, config_map(data={"n": "1"}))
        kube.ok("PATCH", f"{maps}/one", {"data": {"n": "2"}}, media=MERGE)
        kube.ok("DELETE", f"{maps}/one")
        received = list(itertools.islice(named(events, "one"), 3))
    assert [(event["type"], event["object"]["data"]["n"]) for event in received] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
        ("DELETED", "2"),
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in received]
    assert versions == sorted(set(versions))
    assert received[0]["object"]["kind"] == "ConfigMap"


def named(events: Any, *names: str) -> Any:
    return (event for event in events if event["object"]["metadata"].get("name") in names)


def case_watch_resumes_at_resource_version(kube: Kube) -> None:
    maps = kube.path("configmaps")
    first = kube.ok("POST", maps, config_map("one"))["metadata"]["resourceVersion"]
    kube.ok("POST", maps, config_map("two"))
    with kube.watch(maps, resourceVersion=first) as events:
        assert next(named(events, "one", "two"))["object"]["metadata"]["name"] == "two"
    with kube.watch(maps) as events:
        received = list(itertools.islice(named(events, "one", "two"), 2))
    assert {event["type"] for event in received} == {"ADDED"}


def case_watch_sends_added_and_deleted_at_its_selector(kube: Kube) -> None:
    maps = kube.path("configmaps")
    before = kube.ok("POST", maps, config_map())["metadata"]["resourceVersion"]
    with kube.watch(maps, resourceVersion=before, labelSelector="in=yes") as events:
        kube.ok("PATCH", f"{maps}/one", {"metadata": {"labels": {"in": "yes"}}}, media=MERGE)
        kube.ok("PATCH", f"{maps}/one", {"metadata": {"labels": {"in": "no"}}}, media=MERGE)
        received = list(itertools.islice(events, 2))
    assert [(event["type"], event["object"]["metadata"]["labels"]["in"]) for event in received] == [
        ("ADDED", "yes"),
        ("DELETED", "yes"),
    ]


def case_watch_ends_with_timeout_and_bookmark(kube: Kube) -> None:
    with kube.watch(kube.path("configmaps"), timeoutSeconds="1") as events:
        assert all(event["type"] == "ADDED" for event in events)


def case_watch_sends_initial_events(kube: Kube) -> None:
    maps = kube.path("configmaps")
    kube.ok("POST", maps, config_map())
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with kube.watch(maps, **query) as events:
        initial = list(itertools.takewhile(lambda event: event["type"] != "BOOKMARK", events))
    assert "one" in [event["object"]["metadata"]["name"] for event in initial]


def case_discovery_lists_served_kinds(kube: Kube) -> None:
    core = {resource["name"]: resource for resource in kube.api.get("/api/v1").json()["resources"]}
    assert core["configmaps"]["namespaced"]
    assert not core["namespaces"]["namespaced"]
    assert {"pods/status", "namespaces/finalize", "serviceaccounts/token"} <= set(core)
    groups = {group["name"] for group in kube.api.get("/apis").json()["groups"]}
    assert {"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "policy"} <= groups
    headers = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    aggregated = kube.api.get("/apis", headers=headers).json()
    assert aggregated["kind"] == "APIGroupDiscoveryList"
    apps = next(group for group in aggregated["items"] if group["metadata"]["name"] == "apps")
    resources = {resource["resource"]: resource for resource in apps["versions"][0]["resources"]}
    assert resources["deployments"]["responseKind"]["kind"] == "Deployment"
    assert "deploy" in resources["deployments"]["shortNames"]
    assert kube.api.get("/version").json()["major"] == "1"


def case_objects_as_partial_metadata_and_tables(kube: Kube) -> None:
    maps = kube.path("configmaps")
    kube.ok("POST", maps, config_map())
    form = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    only = kube.api.get(f"{maps}/one", headers=form).json()
    assert (only["kind"], sorted(only)) == ("PartialObjectMetadata", ["apiVersion", "kind", "metadata"])
    table = kube.api.get(maps, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).json()
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["name"] == "Name"
