"""How objects are written: once, always, on the server's side, never."""

from typing import Any

from conformance import objects_wanted as want
from conformance.fleet import Fleet, condition, owners, values

Json = dict[str, Any]
HASH = "open-cluster-management.io/config-spec-hash"


def treated(kind: str, *, name: str = "web", **server_side_apply: Any) -> list[Json]:
    return [want.config("deployments", name, group="apps", updateStrategy=want.strategy(kind, **server_side_apply))]


async def case_30_create_only(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    fleet.publish("w", web, manifestConfigs=treated("CreateOnly"))
    await fleet.is_applied("w")
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=3), manifestConfigs=treated("CreateOnly"))
    await fleet.is_applied("w")
    await fleet.settles()
    live = await fleet.exists(web)
    assert live["spec"]["replicas"] == 1
    assert len(owners(live)) == 1


async def case_30_create_only_owns_what_was_there(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    await fleet.cluster.create(web)
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=3), manifestConfigs=treated("CreateOnly"))
    await fleet.is_applied("w")
    live = await fleet.exists(web)
    assert (live["spec"]["replicas"], len(owners(live))) == (1, 1)


async def case_31_98_read_only_follows_edits(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    rules = want.json_paths(test=".data.test", all=".data")
    look = [want.config("configmaps", "cm", feedbackRules=rules, updateStrategy=want.strategy("ReadOnly"))]
    fleet.publish("w", cm, manifestConfigs=look)
    await fleet.sees("w", applied="T:T", available="F:F")
    await fleet.cluster.create(cm)
    report = await fleet.sees("w", applied="T:T", available="T:T")
    assert values(report) == {"test": "testdata", "all": '{"test":"testdata"}'}
    assert [each.type for each in report.status.manifests[0].feedback] == ["String", "JsonRaw"]
    await fleet.cluster.edit(cm, {"data": {"test": "testdata-updated"}})
    await fleet.report("w", lambda found: values(found)["test"] == "testdata-updated", what="the edited value")
    live = await fleet.exists(cm)
    assert owners(live) == []
    assert {each["manager"] for each in live["metadata"]["managedFields"]} == {"administrator"}


async def case_32_server_side_apply(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    fleet.publish("w", web, manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("w")
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=3), manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("w")
    live = await fleet.exists(web, spec__replicas=3)
    assert len(owners(live)) == 1
    managers = {(each["manager"], each["operation"]) for each in live["metadata"]["managedFields"]}
    assert ("work-agent", "Apply") in managers


async def case_33_server_side_apply_conflict(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    fleet.publish("w", web, manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("w")
    other = {key: web[key] for key in ("apiVersion", "kind", "metadata")} | {"spec": {"replicas": 2}}
    await fleet.cluster.apply(other, manager="other-actor", force=True)
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=3), manifestConfigs=treated("ServerSideApply"))
    report = await fleet.sees("w", applied="F:F", available="T:T")
    failed = condition(report.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestFailed"
    assert failed.message.startswith("Failed to apply manifest: Apply failed with 1 conflict")
    assert ".spec.replicas" in failed.message
    without = want.deployment(fleet.namespace, "web", replicas=None)
    fleet.publish("w", without, manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("w")
    assert (await fleet.exists(web))["spec"]["replicas"] == 2


async def case_34_35_two_managers_of_one_object(fleet: Fleet) -> None:
    name = fleet.namespace
    web, other = want.deployment(name, "web"), want.deployment(name, "web", replicas=None)
    fleet.publish("one", web, manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("one")
    another = treated("ServerSideApply", force=True, fieldManager="work-agent-another")
    fleet.publish("two", other, manifestConfigs=another)
    await fleet.is_applied("two")
    assert len(owners(await fleet.exists(web))) == 2
    fleet.publish("one", want.deployment(name, "web", replicas=3), manifestConfigs=treated("ServerSideApply"))
    await fleet.is_applied("one")
    await fleet.exists(web, spec__replicas=3)
    # A field that both own can only be changed by force.
    changed = want.deployment(name, "web", replicas=3)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web.test/other"
    fleet.publish("one", changed, manifestConfigs=treated("ServerSideApply"))
    await fleet.sees("one", applied="F:F")
    fleet.publish(
        "one",
        want.deployment(name, "web", replicas=3),
        manifestConfigs=treated("ServerSideApply"),
        deleteOption={"propagationPolicy": "Orphan"},
    )
    await fleet.is_applied("one")
    assert [each["name"] for each in owners(await fleet.exists(web))] == [fleet.record_name("two")]


def ignoring(when: str, **fields: Any) -> dict[str, Any]:
    return {"ignoreFields": [{"condition": when, **fields}]}


async def case_36_86_fields_ignored_until_the_wish_changes(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    ignored = ignoring("OnSpokeChange", jsonPaths=[".spec.replicas"])
    fleet.publish("w", web, manifestConfigs=treated("ServerSideApply", **ignored))
    await fleet.is_applied("w")
    live = await fleet.exists(web)
    assert live["metadata"]["annotations"][HASH]
    await fleet.cluster.edit(web, {"spec": {"replicas": 2}})
    fleet.publish("w", web, manifestConfigs=treated("ServerSideApply", force=True, **ignored))
    await fleet.is_applied("w")
    await fleet.settles()
    assert (await fleet.exists(web))["spec"]["replicas"] == 2
    grown = want.deployment(fleet.namespace, "web", replicas=3)
    fleet.publish("w", grown, manifestConfigs=treated("ServerSideApply", force=True, **ignored))
    await fleet.is_applied("w")
    await fleet.exists(web, spec__replicas=3)


async def _keeps_what_is_there(fleet: Fleet, **fields: Any) -> None:
    web = want.deployment(fleet.namespace, "web")
    configs = treated("ServerSideApply", force=True, **ignoring("OnSpokePresent", **fields))
    fleet.publish("w", web, manifestConfigs=configs)
    await fleet.is_applied("w")
    await fleet.exists(web, spec__replicas=1)
    await fleet.cluster.edit(web, {"spec": {"replicas": 2}})
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=3), manifestConfigs=configs)
    await fleet.is_applied("w")
    await fleet.settles()
    assert (await fleet.exists(web))["spec"]["replicas"] == 2


async def case_37_fields_ignored_by_json_path(fleet: Fleet) -> None:
    await _keeps_what_is_there(fleet, jsonPaths=[".spec.replicas"])


async def case_38_fields_ignored_by_json_pointer(fleet: Fleet) -> None:
    await _keeps_what_is_there(fleet, jsonPointers=["/spec/replicas"])


async def case_39_list_items_ignored_by_jq(fleet: Fleet) -> None:
    name = fleet.namespace
    expression = '.spec.template.spec.containers[].env[] | select(.name == "JAVA_OPTS")'
    configs = treated("ServerSideApply", force=True, **ignoring("OnSpokePresent", jqPathExpressions=[expression]))
    web = want.deployment(name, "web", env={"JAVA_OPTS": "hub", "OTHER": "hub"})
    fleet.publish("w", web, manifestConfigs=configs)
    await fleet.is_applied("w")
    live = await fleet.exists(web)
    container = live["spec"]["template"]["spec"]["containers"][0]
    assert {each["name"]: each["value"] for each in container["env"]} == {"JAVA_OPTS": "hub", "OTHER": "hub"}
    # Another manager must own the whole item: one that only changed its value does not keep it alive.
    part = {"name": "web", "env": [{"name": "JAVA_OPTS", "value": "spoke"}]}
    spoke = {key: web[key] for key in ("apiVersion", "kind", "metadata")}
    await fleet.cluster.apply(
        {**spoke, "spec": {"template": {"spec": {"containers": [part]}}}}, manager="spoke", force=True
    )
    changed = want.deployment(name, "web", env={"JAVA_OPTS": "hub2", "OTHER": "hub2"})
    fleet.publish("w", changed, manifestConfigs=configs)
    await fleet.is_applied("w")
    (container,) = (await fleet.exists(web))["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {"JAVA_OPTS": "spoke", "OTHER": "hub2"}


async def case_40_invalid_jq(fleet: Fleet) -> None:
    configs = treated("ServerSideApply", **ignoring("OnSpokePresent", jqPathExpressions=[".spec.[["]))
    fleet.publish("w", want.deployment(fleet.namespace, "web"), manifestConfigs=configs)
    report = await fleet.sees("w", applied="F:F", available="F:F")
    failed = condition(report.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestSSAIgnoreFieldError"
    assert failed.message.startswith("Failed to process ignoreFields: JQ expression error in '.spec.[['")


async def case_41_99_null_timestamps_change_nothing(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    gadget = want.gadget(group, fleet.namespace, "g1", creationTimestamp=None)
    inner = want.config_map(fleet.namespace, "inner", creationTimestamp=None)
    gadget["spec"] = {"workload": {"manifests": [inner]}}
    configs = [want.config("gadgets", "g1", group=group, updateStrategy=want.strategy("ServerSideApply"))]
    fleet.publish("w", want.crd(group), gadget, manifestConfigs=configs)
    await fleet.is_applied("w")
    await fleet.cluster.edit(gadget, {"metadata": {"labels": {"wake": "up"}}})
    await fleet.settles()
    fleet.publish("w", want.crd(group), gadget, manifestConfigs=configs)
    await fleet.is_applied("w")
    live = await fleet.exists(gadget)
    assert live["metadata"]["generation"] == 1


async def case_unknown_strategy_is_refused(fleet: Fleet) -> None:
    web, cm = want.deployment(fleet.namespace, "web"), want.config_map(fleet.namespace, "cm")
    fleet.publish("w", web, cm, manifestConfigs=treated("Sideways"))
    report = await fleet.sees("w", applied="F:FT", available="F:FT")
    assert "Sideways" in condition(report.status.manifests[0], "Applied").message


async def case_update_recreates_a_secret_of_another_type(fleet: Fleet) -> None:
    def secret(kind: str) -> Json:
        meta = {"name": "s", "namespace": fleet.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "stringData": {"a": "b"}}

    fleet.publish("w", secret("Opaque"))
    await fleet.is_applied("w")
    old = await fleet.exists(secret("Opaque"))
    fleet.publish("w", secret("suite.test/other"))
    await fleet.is_applied("w")
    live = await fleet.exists(secret("Opaque"), type="suite.test/other", data={"a": "Yg=="})
    assert live["metadata"]["uid"] != old["metadata"]["uid"]


async def case_update_leaves_what_an_autoscaler_set(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web", replicas=None)
    fleet.publish("w", web)
    await fleet.is_applied("w")
    await fleet.cluster.edit(web, {"spec": {"replicas": 4}})
    await fleet.settles()
    # The slow round may reset it, as the Go agent's does; at the speed of watches that would be a fight.
    assert (await fleet.exists(web))["spec"]["replicas"] == 4


async def case_two_works_fight_slowly(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("one", want.config_map(fleet.namespace, "cm", data={"k": "one"}))
    await fleet.is_applied("one")
    fleet.publish("two", want.config_map(fleet.namespace, "cm", data={"k": "two"}))
    await fleet.is_applied("two")
    before = int((await fleet.exists(cm))["metadata"]["resourceVersion"])
    await fleet.settles()
    writes = fleet.log.count('"Updated resource"')
    assert writes <= 10, f"{writes} writes since version {before}"
