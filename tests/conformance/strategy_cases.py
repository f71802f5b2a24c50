"""Update strategies: Update, CreateOnly, ServerSideApply and ReadOnly."""

from typing import Any

from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition, owners, values

Json = dict[str, Any]
HASH = "open-cluster-management.io/config-spec-hash"


def strategy_configs(kind: str, *, name: str = "web", **server_side_apply: Any) -> list[Json]:
    return [
        samples.config("deployments", name, group="apps", updateStrategy=samples.strategy(kind, **server_side_apply))
    ]


async def case_create_only_is_not_updated(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    env.publish("w", web, manifestConfigs=strategy_configs("CreateOnly"))
    await env.wait_until_applied("w")
    env.publish(
        "w", samples.deployment(env.namespace, "web", replicas=3), manifestConfigs=strategy_configs("CreateOnly")
    )
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    live = await env.wait_for_object(web)
    assert live["spec"]["replicas"] == 1
    assert len(owners(live)) == 1


async def case_create_only_adopts_existing_object(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    await env.cluster.create(web)
    env.publish(
        "w", samples.deployment(env.namespace, "web", replicas=3), manifestConfigs=strategy_configs("CreateOnly")
    )
    await env.wait_until_applied("w")
    live = await env.wait_for_object(web)
    assert (live["spec"]["replicas"], len(owners(live))) == (1, 1)


async def case_read_only_feedback_follows_changes(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    rules = samples.json_paths(test=".data.test", all=".data")
    read_only = [samples.config("configmaps", "cm", feedbackRules=rules, updateStrategy=samples.strategy("ReadOnly"))]
    env.publish("w", cm, manifestConfigs=read_only)
    await env.wait_for_conditions("w", applied="T:T", available="F:F")
    await env.cluster.create(cm)
    reported = await env.wait_for_conditions("w", applied="T:T", available="T:T")
    assert values(reported) == {"test": "testdata", "all": '{"test":"testdata"}'}
    assert [value.type for value in reported.status.manifests[0].feedback] == ["String", "JsonRaw"]
    await env.cluster.edit(cm, {"data": {"test": "testdata-updated"}})
    await env.wait_for_status(
        "w", lambda reported: values(reported)["test"] == "testdata-updated", what="the edited value"
    )
    live = await env.wait_for_object(cm)
    assert owners(live) == []
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {"administrator"}


async def case_server_side_apply_updates_fields(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    env.publish("w", web, manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_until_applied("w")
    env.publish(
        "w", samples.deployment(env.namespace, "web", replicas=3), manifestConfigs=strategy_configs("ServerSideApply")
    )
    await env.wait_until_applied("w")
    live = await env.wait_for_object(web, spec__replicas=3)
    assert len(owners(live)) == 1
    managers = {(entry["manager"], entry["operation"]) for entry in live["metadata"]["managedFields"]}
    assert ("work-agent", "Apply") in managers


async def case_server_side_apply_conflict_is_reported(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    env.publish("w", web, manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_until_applied("w")
    other = {key: web[key] for key in ("apiVersion", "kind", "metadata")} | {"spec": {"replicas": 2}}
    await env.cluster.apply(other, manager="other-actor", force=True)
    env.publish(
        "w", samples.deployment(env.namespace, "web", replicas=3), manifestConfigs=strategy_configs("ServerSideApply")
    )
    reported = await env.wait_for_conditions("w", applied="F:F", available="T:T")
    failed = condition(reported.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestFailed"
    assert failed.message.startswith("Failed to apply manifest: Apply failed with 1 conflict")
    assert ".spec.replicas" in failed.message
    without = samples.deployment(env.namespace, "web", replicas=None)
    env.publish("w", without, manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_until_applied("w")
    assert (await env.wait_for_object(web))["spec"]["replicas"] == 2


async def case_two_field_managers_share_object(env: AgentEnvironment) -> None:
    name = env.namespace
    web, other = samples.deployment(name, "web"), samples.deployment(name, "web", replicas=None)
    env.publish("one", web, manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_until_applied("one")
    another = strategy_configs("ServerSideApply", force=True, fieldManager="work-agent-another")
    env.publish("two", other, manifestConfigs=another)
    await env.wait_until_applied("two")
    assert len(owners(await env.wait_for_object(web))) == 2
    env.publish("one", samples.deployment(name, "web", replicas=3), manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_until_applied("one")
    await env.wait_for_object(web, spec__replicas=3)
    # A field with two owners changes only by force.
    changed = samples.deployment(name, "web", replicas=3)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web.test/other"
    env.publish("one", changed, manifestConfigs=strategy_configs("ServerSideApply"))
    await env.wait_for_conditions("one", applied="F:F")
    env.publish(
        "one",
        samples.deployment(name, "web", replicas=3),
        manifestConfigs=strategy_configs("ServerSideApply"),
        deleteOption={"propagationPolicy": "Orphan"},
    )
    await env.wait_until_applied("one")
    assert [owner["name"] for owner in owners(await env.wait_for_object(web))] == [env.applied_work_name("two")]


def ignoring(when: str, **fields: Any) -> dict[str, Any]:
    return {"ignoreFields": [{"condition": when, **fields}]}


async def case_on_spoke_change_fields_are_kept_until_manifest_changes(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    ignored = ignoring("OnSpokeChange", jsonPaths=[".spec.replicas"])
    env.publish("w", web, manifestConfigs=strategy_configs("ServerSideApply", **ignored))
    await env.wait_until_applied("w")
    live = await env.wait_for_object(web)
    assert live["metadata"]["annotations"][HASH]
    await env.cluster.edit(web, {"spec": {"replicas": 2}})
    env.publish("w", web, manifestConfigs=strategy_configs("ServerSideApply", force=True, **ignored))
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    assert (await env.wait_for_object(web))["spec"]["replicas"] == 2
    grown = samples.deployment(env.namespace, "web", replicas=3)
    env.publish("w", grown, manifestConfigs=strategy_configs("ServerSideApply", force=True, **ignored))
    await env.wait_until_applied("w")
    await env.wait_for_object(web, spec__replicas=3)


async def _keeps_what_is_there(env: AgentEnvironment, **fields: Any) -> None:
    web = samples.deployment(env.namespace, "web")
    configs = strategy_configs("ServerSideApply", force=True, **ignoring("OnSpokePresent", **fields))
    env.publish("w", web, manifestConfigs=configs)
    await env.wait_until_applied("w")
    await env.wait_for_object(web, spec__replicas=1)
    await env.cluster.edit(web, {"spec": {"replicas": 2}})
    env.publish("w", samples.deployment(env.namespace, "web", replicas=3), manifestConfigs=configs)
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    assert (await env.wait_for_object(web))["spec"]["replicas"] == 2


async def case_on_spoke_present_field_by_json_path(env: AgentEnvironment) -> None:
    await _keeps_what_is_there(env, jsonPaths=[".spec.replicas"])


async def case_on_spoke_present_field_by_json_pointer(env: AgentEnvironment) -> None:
    await _keeps_what_is_there(env, jsonPointers=["/spec/replicas"])


async def case_on_spoke_present_list_item_by_jq(env: AgentEnvironment) -> None:
    name = env.namespace
    expression = '.spec.template.spec.containers[].env[] | select(.name == "JAVA_OPTS")'
    configs = strategy_configs(
        "ServerSideApply", force=True, **ignoring("OnSpokePresent", jqPathExpressions=[expression])
    )
    web = samples.deployment(name, "web", env={"JAVA_OPTS": "hub", "OTHER": "hub"})
    env.publish("w", web, manifestConfigs=configs)
    await env.wait_until_applied("w")
    live = await env.wait_for_object(web)
    container = live["spec"]["template"]["spec"]["containers"][0]
    assert {variable["name"]: variable["value"] for variable in container["env"]} == {
        "JAVA_OPTS": "hub",
        "OTHER": "hub",
    }
    # The other manager must own the whole list item; owning its value only does not keep it.
    part = {"name": "web", "env": [{"name": "JAVA_OPTS", "value": "spoke"}]}
    spoke = {key: web[key] for key in ("apiVersion", "kind", "metadata")}
    await env.cluster.apply(
        {**spoke, "spec": {"template": {"spec": {"containers": [part]}}}}, manager="spoke", force=True
    )
    changed = samples.deployment(name, "web", env={"JAVA_OPTS": "hub2", "OTHER": "hub2"})
    env.publish("w", changed, manifestConfigs=configs)
    await env.wait_until_applied("w")
    (container,) = (await env.wait_for_object(web))["spec"]["template"]["spec"]["containers"]
    assert {variable["name"]: variable["value"] for variable in container["env"]} == {
        "JAVA_OPTS": "spoke",
        "OTHER": "hub2",
    }


async def case_invalid_jq_is_reported(env: AgentEnvironment) -> None:
    configs = strategy_configs("ServerSideApply", **ignoring("OnSpokePresent", jqPathExpressions=[".spec.[["]))
    env.publish("w", samples.deployment(env.namespace, "web"), manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", applied="F:F", available="F:F")
    failed = condition(reported.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestSSAIgnoreFieldError"
    assert failed.message.startswith("Failed to process ignoreFields: JQ expression error in '.spec.[['")


async def case_null_creation_timestamps_do_not_change_generation(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    gadget = samples.gadget(group, env.namespace, "g1", creationTimestamp=None)
    inner = samples.config_map(env.namespace, "inner", creationTimestamp=None)
    gadget["spec"] = {"workload": {"manifests": [inner]}}
    configs = [samples.config("gadgets", "g1", group=group, updateStrategy=samples.strategy("ServerSideApply"))]
    env.publish("w", samples.crd(group), gadget, manifestConfigs=configs)
    await env.wait_until_applied("w")
    await env.cluster.edit(gadget, {"metadata": {"labels": {"wake": "up"}}})
    await env.wait_until_idle()
    env.publish("w", samples.crd(group), gadget, manifestConfigs=configs)
    await env.wait_until_applied("w")
    live = await env.wait_for_object(gadget)
    assert live["metadata"]["generation"] == 1


async def case_unknown_update_strategy_is_rejected(env: AgentEnvironment) -> None:
    web, cm = samples.deployment(env.namespace, "web"), samples.config_map(env.namespace, "cm")
    env.publish("w", web, cm, manifestConfigs=strategy_configs("Sideways"))
    reported = await env.wait_for_conditions("w", applied="F:FT", available="F:FT")
    assert "Sideways" in condition(reported.status.manifests[0], "Applied").message


async def case_update_recreates_secret_of_other_type(env: AgentEnvironment) -> None:
    def secret(kind: str) -> Json:
        meta = {"name": "s", "namespace": env.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "stringData": {"a": "b"}}

    env.publish("w", secret("Opaque"))
    await env.wait_until_applied("w")
    old = await env.wait_for_object(secret("Opaque"))
    env.publish("w", secret("suite.test/other"))
    await env.wait_until_applied("w")
    live = await env.wait_for_object(secret("Opaque"), type="suite.test/other", data={"a": "Yg=="})
    assert live["metadata"]["uid"] != old["metadata"]["uid"]


async def case_update_keeps_replicas_set_by_autoscaler(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web", replicas=None)
    env.publish("w", web)
    await env.wait_until_applied("w")
    await env.cluster.edit(web, {"spec": {"replicas": 4}})
    await env.wait_until_idle()
    # The periodic resync may reset it, as in the Go agent; a watch event must not.
    assert (await env.wait_for_object(web))["spec"]["replicas"] == 4


async def case_conflicting_works_back_off(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("one", samples.config_map(env.namespace, "cm", data={"k": "one"}))
    await env.wait_until_applied("one")
    env.publish("two", samples.config_map(env.namespace, "cm", data={"k": "two"}))
    await env.wait_until_applied("two")
    before = int((await env.wait_for_object(cm))["metadata"]["resourceVersion"])
    await env.wait_until_idle()
    writes = env.log.count('"Updated resource"')
    assert writes <= 10, f"{writes} writes since version {before}"
