"""Applying works: objects are created, updated, pruned, listed and reported."""

from maestropy.wire.works import status, work
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, at, condition, condition_summary, owners


async def case_config_map_is_applied(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm1")
    env.publish("w", cm)
    reported = await env.wait_until_applied("w")
    live = await env.wait_for_object(cm, data={"test": "testdata"})
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {"work-agent"}
    (owner,) = owners(live)
    applied_work = await env.applied_work("w")
    assert applied_work is not None
    assert owner == {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "name": env.applied_work_name("w"),
        "uid": applied_work["metadata"]["uid"],
    }
    (manifest,) = reported.status.manifests
    assert manifest.resource_meta == status.ResourceMeta(
        ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace=env.namespace
    )
    applied, available = condition(manifest, "Applied"), condition(manifest, "Available")
    assert (applied.reason, applied.message) == ("AppliedManifestComplete", "Apply manifest complete")
    assert (available.reason, available.message) == ("ResourceAvailable", "Resource is available")
    assert condition(reported, "Applied").reason == "AppliedManifestWorkComplete"
    assert condition(reported, "Available").reason == "ResourcesAvailable"


async def case_applied_work_matches_go_agent(env: AgentEnvironment) -> None:
    env.publish("w", samples.config_map(env.namespace, "cm1"))
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "configmaps/cm1")
    applied_work = await env.applied_work("w")
    live = await env.wait_for_object(samples.config_map(env.namespace, "cm1"))
    assert applied_work is not None
    hub = env.applied_work_name("w").partition("-")[0]
    assert applied_work["metadata"]["finalizers"] == [
        "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
    ]
    assert applied_work["spec"] == {"hubHash": hub, "agentID": hub, "manifestWorkName": env.id_of("w")}
    assert applied_work["status"]["appliedResources"] == [
        {
            "version": "v1",
            "resource": "configmaps",
            "namespace": env.namespace,
            "name": "cm1",
            "uid": live["metadata"]["uid"],
        }
    ] or applied_work["status"]["appliedResources"] == [
        {
            "group": "",
            "version": "v1",
            "resource": "configmaps",
            "namespace": env.namespace,
            "name": "cm1",
            "uid": live["metadata"]["uid"],
        }
    ]


async def case_replaced_manifest_is_pruned(env: AgentEnvironment) -> None:
    old, new = samples.config_map(env.namespace, "cm1"), samples.config_map(env.namespace, "cm2")
    env.publish("w", old)
    await env.wait_until_applied("w")
    env.publish("w", new)
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "configmaps/cm2")
    await env.wait_until_gone(old)
    assert await env.cluster.get(new)


async def case_deleted_work_deletes_its_objects(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm1")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    env.delete("w")
    reported = await env.wait_until_deleted("w")
    assert await env.cluster.get(cm) is None
    assert await env.applied_work("w") is None
    gone = condition(reported, "Deleted")
    assert (gone.reason, gone.message) == (
        "ManifestsDeleted",
        f"The manifests are deleted from the cluster {env.server.consumer}",
    )
    assert gone.observed_generation == 0
    assert condition(reported, "Deleting").reason == "WorkDeleting"
    assert len(reported.status.manifests) == 1


async def case_failing_manifest_does_not_block_others(env: AgentEnvironment) -> None:
    name = env.namespace
    bad, cm2, cm3 = (
        samples.config_map(f"{name}-none", "cm1"),
        samples.config_map(name, "cm2"),
        samples.config_map(name, "cm3"),
    )
    env.publish("w", bad, cm2, cm3)
    reported = await env.wait_for_conditions("w", applied="F:FTT", available="F:FTT")
    failed = condition(reported.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestFailed"
    assert failed.message == f'Failed to apply manifest: namespaces "{name}-none" not found'
    assert condition(reported, "Applied").message == "Failed to apply manifest work"
    assert condition(reported, "Available").message == "1 of 3 resources are not available"
    await env.wait_for_applied_resources("w", "configmaps/cm2", "configmaps/cm3")

    env.publish(
        "w",
        samples.config_map(name, "cm1"),
        samples.config_map(name, "cm2", data={"k": "2"}),
        samples.config_map(name, "cm4"),
    )
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "configmaps/cm1", "configmaps/cm2", "configmaps/cm4")
    await env.wait_until_gone(cm3)
    await env.wait_for_object(cm2, data={"k": "2"})

    env.publish("never", bad)
    await env.wait_for_conditions("never", applied="F:F", available="F:F")
    env.delete("never")
    await env.wait_until_deleted("never")


async def case_manifest_is_applied_when_namespace_appears(env: AgentEnvironment) -> None:
    later = f"{env.namespace}-later"
    env.publish("w", samples.config_map(later, "cm1"))
    await env.wait_for_conditions("w", applied="F:F")
    await env.cluster.create(samples.namespace(later))
    try:
        await env.wait_until_applied("w")
    finally:
        await env.cluster.delete(samples.namespace(later))


async def case_crd_and_custom_resource_in_one_work(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    crd, gadget = samples.crd(group), samples.gadget(group, env.namespace, "g1")
    env.publish("w", gadget, crd)
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "customresourcedefinitions/gadgets." + group, "gadgets/g1")
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(gadget, crd)


async def case_annotations_are_merged_and_finalizers_kept(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    crd, gadget = samples.crd(group), samples.gadget(group, env.namespace, "g1")
    env.publish("w", crd, gadget)
    await env.wait_until_applied("w")
    before = await env.cluster.edit(
        gadget, {"metadata": {"annotations": {"foo": "bar"}, "finalizers": ["suite.test/hold"]}}
    )
    env.publish("w", crd, samples.gadget(group, env.namespace, "g1", annotations={"foo1": "bar1"}))
    await env.wait_until_applied("w")
    live = await env.wait_for_object(gadget, metadata__annotations={"foo": "bar", "foo1": "bar1"})
    assert live["metadata"]["finalizers"] == ["suite.test/hold"]
    assert live["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    await env.cluster.edit(gadget, {"metadata": {"finalizers": None}})


async def case_cluster_scoped_manifest_with_namespace_is_applied(env: AgentEnvironment) -> None:
    role = samples.cluster_role(f"{env.namespace}-role", namespace=env.namespace)
    env.publish("w", role)
    reported = await env.wait_until_applied("w")
    assert reported.status.manifests[0].resource_meta.namespace == ""
    await env.wait_for_applied_resources("w", f"clusterroles/{env.namespace}-role")
    applied_work = await env.applied_work("w")
    assert applied_work is not None
    (entry,) = applied_work["status"]["appliedResources"]
    assert not entry.get("namespace")
    env.delete("w")
    await env.wait_until_deleted("w")
    assert await env.cluster.get(samples.cluster_role(f"{env.namespace}-role")) is None


async def case_moved_manifests_keep_transition_times(env: AgentEnvironment) -> None:
    name = env.namespace
    account, role = samples.service_account(name, "sa"), samples.role(name, "role", "get")
    binding, web = samples.role_binding(name, "binding", role="role", account="sa"), samples.deployment(name, "web")
    env.publish("w", account, role, binding, web)
    first = await env.wait_until_applied("w")
    recorded = ["deployments/web", "rolebindings/binding", "roles/role"]
    await env.wait_for_applied_resources("w", "serviceaccounts/sa", *recorded)

    renamed, grown = samples.service_account(name, "admin"), samples.deployment(name, "web", replicas=2)
    env.publish("w", grown, role, binding, renamed)
    second = await env.wait_until_applied("w")
    await env.wait_for_object(web, spec__replicas=2)
    await env.wait_until_gone(account)
    await env.wait_for_applied_resources("w", "serviceaccounts/admin", *recorded)
    for reported in (first, second):
        assert {condition(reported, kind).observed_generation for kind in ("Applied", "Available")} == {
            reported.generation
        }
        assert all(
            [entry.type for entry in manifest.conditions if entry.type != "Applied"]
            == ["Available", "StatusFeedbackSynced"]
            for manifest in reported.status.manifests
        )
    # The Deployment moved from the last position to the first and kept its transition times.
    was, moved = condition(first.status.manifests[3], "Available"), condition(second.status.manifests[0], "Available")
    assert moved.last_transition_time == was.last_transition_time


async def case_observed_generation_follows_spec(env: AgentEnvironment) -> None:
    env.publish("w", samples.config_map(env.namespace, "cm"))
    first = await env.wait_until_applied("w")
    env.publish("w", samples.config_map(env.namespace, "cm", data={"k": "new"}))
    second = await env.wait_until_applied("w")
    for kind in ("Applied", "Available"):
        old, new = condition(first, kind), condition(second, kind)
        assert (old.observed_generation, new.observed_generation) == (1, 2)
        assert new.last_transition_time >= old.last_transition_time
    assert condition(second.status.manifests[0], "Applied").observed_generation == 2


async def case_drift_is_corrected_at_once(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    before = await env.wait_until_applied("w")
    await env.cluster.edit(cm, {"data": {"test": "edited", "more": "x"}})
    await env.wait_for_object(cm, data={"test": "testdata"})
    await env.wait_until_idle()
    after = env.latest_status("w")
    assert after is not None
    assert after.status.manifests[0].conditions == before.status.manifests[0].conditions


async def case_deleted_object_is_recreated_at_once(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    old = await env.wait_for_object(cm)
    await env.cluster.delete(cm)
    live = await env.wait_for_object(cm)
    assert live["metadata"]["uid"] != old["metadata"]["uid"]

    async def lists_new_uid() -> bool:
        applied_work = await env.applied_work("w") or {}
        return [resource["uid"] for resource in applied_work["status"]["appliedResources"]] == [live["metadata"]["uid"]]

    await env.wait_until(lists_new_uid, what="the AppliedManifestWork to list the new uid")


async def case_pruning_waits_for_finalizer(env: AgentEnvironment) -> None:
    kept, blocked = (
        samples.config_map(env.namespace, "kept"),
        samples.config_map(env.namespace, "held", finalizers=["suite.test/hold"]),
    )
    env.publish("w", kept, blocked)
    await env.wait_until_applied("w")
    env.publish("w", kept)
    await env.wait_until_applied("w")

    async def is_terminating() -> bool:
        live = await env.cluster.get(blocked)
        return live is not None and "deletionTimestamp" in live["metadata"]

    await env.wait_until(is_terminating, what="the deletion of what left the work")
    await env.wait_for_applied_resources("w", "configmaps/held", "configmaps/kept")
    await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
    await env.wait_for_applied_resources("w", "configmaps/kept")
    await env.wait_until_gone(blocked)


async def case_deletion_of_work_waits_for_pruned_object_with_finalizer(env: AgentEnvironment) -> None:
    kept, blocked = (
        samples.config_map(env.namespace, "kept"),
        samples.config_map(env.namespace, "held", finalizers=["suite.test/hold"]),
    )
    env.publish("w", kept, blocked)
    await env.wait_until_applied("w")
    env.publish("w", kept)
    await env.wait_until_applied("w")
    env.delete("w")
    reported = await env.wait_for_status(
        "w", lambda reported: "suite.test/hold" in _message(reported), what="the finalizer that holds"
    )
    assert f"configmaps {env.namespace}/held (finalizers: suite.test/hold)" in _message(reported)
    await env.wait_until_gone(kept)
    await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
    await env.wait_until_deleted("w")
    await env.wait_until_gone(blocked)


async def case_deletion_waits_for_all_finalizers(env: AgentEnvironment) -> None:
    blocked = [samples.config_map(env.namespace, f"cm{number}", finalizers=["suite.test/hold"]) for number in (1, 2)]
    env.publish("w", *blocked)
    await env.wait_until_applied("w")
    env.delete("w")
    reported = await env.wait_for_status(
        "w", lambda reported: _message(reported).count("suite.test/hold") == 2, what="both blockers"
    )
    assert condition_summary(reported, "Deleting") == "T:--"
    await env.cluster.edit(blocked[0], {"metadata": {"finalizers": None}})
    await env.wait_until_gone(blocked[0])
    await env.wait_for_status(
        "w", lambda reported: _message(reported).count("suite.test/hold") == 1, what="one blocker"
    )
    assert not (env.latest_status("w") or reported).status.is_deleted
    assert await env.applied_work("w")
    await env.cluster.edit(blocked[1], {"metadata": {"finalizers": None}})
    await env.wait_until_deleted("w")
    assert await env.applied_work("w") is None


async def case_labels_are_copied_to_applied_work(env: AgentEnvironment) -> None:
    env.publish("w", samples.config_map(env.namespace, "cm"), labels={"team": "blue"})
    await env.wait_until_applied("w")
    applied_work = await env.applied_work("w")
    assert applied_work is not None
    assert applied_work["metadata"]["labels"] == {
        "team": "blue",
        "cloudevents.open-cluster-management.io/originalsource": "maestro",
    }


async def case_changed_role_ref_is_not_applied(env: AgentEnvironment) -> None:
    name = env.namespace
    env.publish("w", samples.role_binding(name, "binding", role="one", account="sa"))
    await env.wait_until_applied("w")
    for role in ("two", "three"):
        env.publish("w", samples.role_binding(name, "binding", role=role, account="sa"))
        reported = await env.wait_for_conditions("w", applied="F:F", available="T:T")
        assert {condition(reported, kind).observed_generation for kind in ("Applied", "Available")} == {
            reported.generation
        }


async def case_manifests_are_applied_in_kind_order(env: AgentEnvironment) -> None:
    inner = f"{env.namespace}-inner"
    blocked = samples.config_map(env.namespace, "cm3", finalizers=["suite.test/hold"])
    cm1, cm2, space = samples.config_map(inner, "cm1"), samples.config_map(inner, "cm2"), samples.namespace(inner)
    env.publish("w", cm1, space, cm2, blocked)
    reported = await env.wait_until_applied("w")
    assert [manifest.resource_meta.kind for manifest in reported.status.manifests] == [
        "ConfigMap",
        "Namespace",
        "ConfigMap",
        "ConfigMap",
    ]
    assert [manifest.resource_meta.ordinal for manifest in reported.status.manifests] == [0, 1, 2, 3]
    # Sorted by namespace within a kind.
    expected = sorted([(inner, "configmaps/cm1"), (inner, "configmaps/cm2"), (env.namespace, "configmaps/cm3")])
    await env.wait_for_applied_resources("w", *(entry for _, entry in expected), f"namespaces/{inner}")
    changed = samples.config_map(env.namespace, "cm3", data={"k": "new"}, finalizers=["suite.test/hold"])
    env.publish("w", space, cm2, changed)
    await env.wait_until_applied("w")
    await env.wait_for_object(blocked, data={"k": "new"})
    await env.wait_until_gone(cm1)
    env.delete("w")
    await env.wait_for_status(
        "w", lambda reported: "suite.test/hold" in _message(reported), what="the finalizer that holds"
    )
    await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
    await env.wait_until_deleted("w")
    await env.wait_until_gone(cm2, blocked, space)


async def case_other_api_version_updates_same_object(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    crd = samples.crd(group, versions=("v1", "v2"))
    env.publish("w", crd, samples.gadget(group, env.namespace, "g1"))
    await env.wait_until_applied("w")
    old = await env.wait_for_object(samples.gadget(group, env.namespace, "g1"))
    newer = samples.gadget(group, env.namespace, "g1", version="v2", labels={"a": "b"})
    env.publish("w", crd, newer)
    await env.wait_until_applied("w")
    live = await env.wait_for_object(newer, metadata__labels={"a": "b"})
    assert live["metadata"]["uid"] == old["metadata"]["uid"]

    async def is_v2() -> bool:
        applied_work = await env.applied_work("w") or {}
        gadgets = [
            resource for resource in applied_work["status"]["appliedResources"] if resource["resource"] == "gadgets"
        ]
        return [resource["version"] for resource in gadgets] == ["v2"]

    await env.wait_until(is_v2, what="the AppliedManifestWork to name v2")


async def case_recreated_work_starts_at_generation_1(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    env.publish("w", web)
    await env.wait_until_applied("w")
    env.publish("w", samples.deployment(env.namespace, "web", replicas=2))
    await env.wait_until_applied("w")
    await env.wait_for_object(web, spec__replicas=2)
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(web)
    env.publish("w", web)
    reported = await env.wait_for_conditions("w", applied="T:T")
    assert reported.generation == 1
    assert condition_summary(reported, "Deleted") == "-:-"


async def case_requests_made_while_agent_is_down_are_applied(env: AgentEnvironment) -> None:
    cms = {name: samples.config_map(env.namespace, name) for name in ("a", "b", "c")}
    env.publish("a", cms["a"])
    env.publish("b", cms["b"])
    await env.wait_until_applied("a")
    await env.wait_until_applied("b")
    await env.stop()
    env.publish("a", samples.config_map(env.namespace, "a", data={"k": "new"}))
    env.delete("b")
    env.publish("c", cms["c"])
    assert at(await env.wait_for_object(cms["a"]), ["data"]) == {"test": "testdata"}
    await env.start()
    await env.wait_until_applied("a")
    await env.wait_for_object(cms["a"], data={"k": "new"})
    await env.wait_until_deleted("b")
    await env.wait_until_gone(cms["b"])
    await env.wait_until_applied("c")


async def case_status_change_during_server_outage_is_reported(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    rules = samples.json_paths(value=".data.test")
    env.publish(
        "w",
        cm,
        manifestConfigs=[
            samples.config("configmaps", "cm", feedbackRules=rules, updateStrategy=samples.strategy("CreateOnly"))
        ],
    )
    await env.wait_until_applied("w")
    env.server.is_unreachable = True
    env.server.disconnect()
    await env.cluster.edit(cm, {"data": {"test": "meanwhile"}})
    await env.wait_until_idle(has_server=False)
    env.server.is_unreachable = False
    reported = await env.wait_for_status(
        "w", lambda reported: "meanwhile" in str(reported.status.body), what="the missed value"
    )
    assert condition_summary(reported, "Applied") == "T:T"


def _message(reported: work.ManifestWork) -> str:
    messages = [entry.message for entry in reported.status.conditions if entry.type == "Deleting"]
    return messages[0] if messages else ""
