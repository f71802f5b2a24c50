"""Works become objects: created, changed, pruned, recorded, reported."""

from conformance import objects_wanted as want
from conformance.fleet import Fleet, at, condition, letters, owners

from maestropy.wire import status, work


async def case_01_one_config_map(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm1")
    fleet.publish("w", cm)
    report = await fleet.is_applied("w")
    live = await fleet.exists(cm, data={"test": "testdata"})
    assert {each["manager"] for each in live["metadata"]["managedFields"]} == {"work-agent"}
    (owner,) = owners(live)
    record = await fleet.record("w")
    assert record is not None
    assert owner == {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "name": fleet.record_name("w"),
        "uid": record["metadata"]["uid"],
    }
    (manifest,) = report.status.manifests
    assert manifest.resource_meta == status.ResourceMeta(
        ordinal=0, version="v1", kind="ConfigMap", resource="configmaps", name="cm1", namespace=fleet.namespace
    )
    applied, available = condition(manifest, "Applied"), condition(manifest, "Available")
    assert (applied.reason, applied.message) == ("AppliedManifestComplete", "Apply manifest complete")
    assert (available.reason, available.message) == ("ResourceAvailable", "Resource is available")
    assert condition(report, "Applied").reason == "AppliedManifestWorkComplete"
    assert condition(report, "Available").reason == "ResourcesAvailable"


async def case_01_record_is_like_the_go_agents(fleet: Fleet) -> None:
    fleet.publish("w", want.config_map(fleet.namespace, "cm1"))
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "configmaps/cm1")
    record = await fleet.record("w")
    live = await fleet.exists(want.config_map(fleet.namespace, "cm1"))
    assert record is not None
    hub = fleet.record_name("w").partition("-")[0]
    assert record["metadata"]["finalizers"] == ["cluster.open-cluster-management.io/applied-manifest-work-cleanup"]
    assert record["spec"] == {"hubHash": hub, "agentID": hub, "manifestWorkName": fleet.id_of("w")}
    assert record["status"]["appliedResources"] == [
        {
            "version": "v1",
            "resource": "configmaps",
            "namespace": fleet.namespace,
            "name": "cm1",
            "uid": live["metadata"]["uid"],
        }
    ] or record["status"]["appliedResources"] == [
        {
            "group": "",
            "version": "v1",
            "resource": "configmaps",
            "namespace": fleet.namespace,
            "name": "cm1",
            "uid": live["metadata"]["uid"],
        }
    ]


async def case_02_100_manifest_is_replaced(fleet: Fleet) -> None:
    old, new = want.config_map(fleet.namespace, "cm1"), want.config_map(fleet.namespace, "cm2")
    fleet.publish("w", old)
    await fleet.is_applied("w")
    fleet.publish("w", new)
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "configmaps/cm2")
    await fleet.is_gone(old)
    assert await fleet.cluster.get(new)


async def case_03_work_is_deleted(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm1")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    fleet.delete("w")
    report = await fleet.is_deleted("w")
    assert await fleet.cluster.get(cm) is None
    assert await fleet.record("w") is None
    gone = condition(report, "Deleted")
    assert (gone.reason, gone.message) == (
        "ManifestsDeleted",
        f"The manifests are deleted from the cluster {fleet.server.consumer}",
    )
    assert gone.observed_generation == 0
    assert condition(report, "Deleting").reason == "WorkDeleting"
    assert len(report.status.manifests) == 1


async def case_04_05_06_one_bad_manifest_blocks_nobody(fleet: Fleet) -> None:
    name = fleet.namespace
    bad, cm2, cm3 = want.config_map(f"{name}-none", "cm1"), want.config_map(name, "cm2"), want.config_map(name, "cm3")
    fleet.publish("w", bad, cm2, cm3)
    report = await fleet.sees("w", applied="F:FTT", available="F:FTT")
    failed = condition(report.status.manifests[0], "Applied")
    assert failed.reason == "AppliedManifestFailed"
    assert failed.message == f'Failed to apply manifest: namespaces "{name}-none" not found'
    assert condition(report, "Applied").message == "Failed to apply manifest work"
    assert condition(report, "Available").message == "1 of 3 resources are not available"
    await fleet.records_exactly("w", "configmaps/cm2", "configmaps/cm3")

    fleet.publish(
        "w", want.config_map(name, "cm1"), want.config_map(name, "cm2", data={"k": "2"}), want.config_map(name, "cm4")
    )
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "configmaps/cm1", "configmaps/cm2", "configmaps/cm4")
    await fleet.is_gone(cm3)
    await fleet.exists(cm2, data={"k": "2"})

    fleet.publish("never", bad)
    await fleet.sees("never", applied="F:F", available="F:F")
    fleet.delete("never")
    await fleet.is_deleted("never")


async def case_04_missing_namespace_appears(fleet: Fleet) -> None:
    later = f"{fleet.namespace}-later"
    fleet.publish("w", want.config_map(later, "cm1"))
    await fleet.sees("w", applied="F:F")
    await fleet.cluster.create(want.namespace(later))
    try:
        await fleet.is_applied("w")
    finally:
        await fleet.cluster.delete(want.namespace(later))


async def case_07_10_custom_kind_and_its_object_in_one_work(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    crd, gadget = want.crd(group), want.gadget(group, fleet.namespace, "g1")
    fleet.publish("w", gadget, crd)
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "customresourcedefinitions/gadgets." + group, "gadgets/g1")
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(gadget, crd)


async def case_08_09_annotations_merge_and_finalizers_stay(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    crd, gadget = want.crd(group), want.gadget(group, fleet.namespace, "g1")
    fleet.publish("w", crd, gadget)
    await fleet.is_applied("w")
    before = await fleet.cluster.edit(
        gadget, {"metadata": {"annotations": {"foo": "bar"}, "finalizers": ["suite.test/hold"]}}
    )
    fleet.publish("w", crd, want.gadget(group, fleet.namespace, "g1", annotations={"foo1": "bar1"}))
    await fleet.is_applied("w")
    live = await fleet.exists(gadget, metadata__annotations={"foo": "bar", "foo1": "bar1"})
    assert live["metadata"]["finalizers"] == ["suite.test/hold"]
    assert live["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    await fleet.cluster.edit(gadget, {"metadata": {"finalizers": None}})


async def case_11_cluster_scoped_kind_with_a_namespace(fleet: Fleet) -> None:
    role = want.cluster_role(f"{fleet.namespace}-role", namespace=fleet.namespace)
    fleet.publish("w", role)
    report = await fleet.is_applied("w")
    assert report.status.manifests[0].resource_meta.namespace == ""
    await fleet.records_exactly("w", f"clusterroles/{fleet.namespace}-role")
    record = await fleet.record("w")
    assert record is not None
    (entry,) = record["status"]["appliedResources"]
    assert not entry.get("namespace")
    fleet.delete("w")
    await fleet.is_deleted("w")
    assert await fleet.cluster.get(want.cluster_role(f"{fleet.namespace}-role")) is None


async def case_12_13_accounts_roles_and_a_deployment_move_and_change(fleet: Fleet) -> None:
    name = fleet.namespace
    account, role = want.service_account(name, "sa"), want.role(name, "role", "get")
    binding, web = want.role_binding(name, "binding", role="role", account="sa"), want.deployment(name, "web")
    fleet.publish("w", account, role, binding, web)
    first = await fleet.is_applied("w")
    recorded = ["deployments/web", "rolebindings/binding", "roles/role"]
    await fleet.records_exactly("w", "serviceaccounts/sa", *recorded)

    renamed, grown = want.service_account(name, "admin"), want.deployment(name, "web", replicas=2)
    fleet.publish("w", grown, role, binding, renamed)
    second = await fleet.is_applied("w")
    await fleet.exists(web, spec__replicas=2)
    await fleet.is_gone(account)
    await fleet.records_exactly("w", "serviceaccounts/admin", *recorded)
    for report in (first, second):
        assert {condition(report, kind).observed_generation for kind in ("Applied", "Available")} == {report.generation}
        assert all(
            [each.type for each in manifest.conditions if each.type != "Applied"]
            == ["Available", "StatusFeedbackSynced"]
            for manifest in report.status.manifests
        )
    # The Deployment moved from the last place to the first and kept its history.
    was, moved = condition(first.status.manifests[3], "Available"), condition(second.status.manifests[0], "Available")
    assert moved.last_transition_time == was.last_transition_time


async def case_14_generations_follow(fleet: Fleet) -> None:
    fleet.publish("w", want.config_map(fleet.namespace, "cm"))
    first = await fleet.is_applied("w")
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"k": "new"}))
    second = await fleet.is_applied("w")
    for kind in ("Applied", "Available"):
        old, new = condition(first, kind), condition(second, kind)
        assert (old.observed_generation, new.observed_generation) == (1, 2)
        assert new.last_transition_time >= old.last_transition_time
    assert condition(second.status.manifests[0], "Applied").observed_generation == 2


async def case_15_drift_is_repaired_at_once(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    before = await fleet.is_applied("w")
    await fleet.cluster.edit(cm, {"data": {"test": "edited", "more": "x"}})
    await fleet.exists(cm, data={"test": "testdata"})
    await fleet.settles()
    after = fleet.told("w")
    assert after is not None
    assert after.status.manifests[0].conditions == before.status.manifests[0].conditions


async def case_15_deleted_object_comes_back_at_once(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    old = await fleet.exists(cm)
    await fleet.cluster.delete(cm)
    live = await fleet.exists(cm)
    assert live["metadata"]["uid"] != old["metadata"]["uid"]

    async def is_recorded_anew() -> bool:
        record = await fleet.record("w") or {}
        return [each["uid"] for each in record["status"]["appliedResources"]] == [live["metadata"]["uid"]]

    await fleet.until(is_recorded_anew, what="the record to list the new uid")


async def case_17_removed_manifest_waits_for_its_finalizer(fleet: Fleet) -> None:
    kept, held = (
        want.config_map(fleet.namespace, "kept"),
        want.config_map(fleet.namespace, "held", finalizers=["suite.test/hold"]),
    )
    fleet.publish("w", kept, held)
    await fleet.is_applied("w")
    fleet.publish("w", kept)
    await fleet.is_applied("w")

    async def is_terminating() -> bool:
        live = await fleet.cluster.get(held)
        return live is not None and "deletionTimestamp" in live["metadata"]

    await fleet.until(is_terminating, what="the deletion of what left the work")
    await fleet.records_exactly("w", "configmaps/held", "configmaps/kept")
    await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
    await fleet.records_exactly("w", "configmaps/kept")
    await fleet.is_gone(held)


async def case_18_removed_manifest_with_finalizer_then_the_work_goes(fleet: Fleet) -> None:
    kept, held = (
        want.config_map(fleet.namespace, "kept"),
        want.config_map(fleet.namespace, "held", finalizers=["suite.test/hold"]),
    )
    fleet.publish("w", kept, held)
    await fleet.is_applied("w")
    fleet.publish("w", kept)
    await fleet.is_applied("w")
    fleet.delete("w")
    report = await fleet.report(
        "w", lambda found: "suite.test/hold" in _message(found), what="the finalizer that holds"
    )
    assert f"configmaps {fleet.namespace}/held (finalizers: suite.test/hold)" in _message(report)
    await fleet.is_gone(kept)
    await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
    await fleet.is_deleted("w")
    await fleet.is_gone(held)


async def case_19_deletion_waits_for_all_finalizers(fleet: Fleet) -> None:
    held = [want.config_map(fleet.namespace, f"cm{number}", finalizers=["suite.test/hold"]) for number in (1, 2)]
    fleet.publish("w", *held)
    await fleet.is_applied("w")
    fleet.delete("w")
    report = await fleet.report("w", lambda found: _message(found).count("suite.test/hold") == 2, what="both blockers")
    assert letters(report, "Deleting") == "T:--"
    await fleet.cluster.edit(held[0], {"metadata": {"finalizers": None}})
    await fleet.is_gone(held[0])
    await fleet.report("w", lambda found: _message(found).count("suite.test/hold") == 1, what="one blocker")
    assert not (fleet.told("w") or report).status.is_deleted
    assert await fleet.record("w")
    await fleet.cluster.edit(held[1], {"metadata": {"finalizers": None}})
    await fleet.is_deleted("w")
    assert await fleet.record("w") is None


async def case_22_labels_are_copied_to_the_record(fleet: Fleet) -> None:
    fleet.publish("w", want.config_map(fleet.namespace, "cm"), labels={"team": "blue"})
    await fleet.is_applied("w")
    record = await fleet.record("w")
    assert record is not None
    assert record["metadata"]["labels"] == {
        "team": "blue",
        "cloudevents.open-cluster-management.io/originalsource": "maestro",
    }


async def case_23_role_of_a_binding_cannot_change(fleet: Fleet) -> None:
    name = fleet.namespace
    fleet.publish("w", want.role_binding(name, "binding", role="one", account="sa"))
    await fleet.is_applied("w")
    for role in ("two", "three"):
        fleet.publish("w", want.role_binding(name, "binding", role=role, account="sa"))
        report = await fleet.sees("w", applied="F:F", available="T:T")
        assert {condition(report, kind).observed_generation for kind in ("Applied", "Available")} == {report.generation}


async def case_79_kinds_are_applied_in_their_order(fleet: Fleet) -> None:
    inner = f"{fleet.namespace}-inner"
    held = want.config_map(fleet.namespace, "cm3", finalizers=["suite.test/hold"])
    cm1, cm2, space = want.config_map(inner, "cm1"), want.config_map(inner, "cm2"), want.namespace(inner)
    fleet.publish("w", cm1, space, cm2, held)
    report = await fleet.is_applied("w")
    assert [each.resource_meta.kind for each in report.status.manifests] == [
        "ConfigMap",
        "Namespace",
        "ConfigMap",
        "ConfigMap",
    ]
    assert [each.resource_meta.ordinal for each in report.status.manifests] == [0, 1, 2, 3]
    # Sorted by namespace within a kind.
    expected = sorted([(inner, "configmaps/cm1"), (inner, "configmaps/cm2"), (fleet.namespace, "configmaps/cm3")])
    await fleet.records_exactly("w", *(entry for _, entry in expected), f"namespaces/{inner}")
    changed = want.config_map(fleet.namespace, "cm3", data={"k": "new"}, finalizers=["suite.test/hold"])
    fleet.publish("w", space, cm2, changed)
    await fleet.is_applied("w")
    await fleet.exists(held, data={"k": "new"})
    await fleet.is_gone(cm1)
    fleet.delete("w")
    await fleet.report("w", lambda found: "suite.test/hold" in _message(found), what="the finalizer that holds")
    await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
    await fleet.is_deleted("w")
    await fleet.is_gone(cm2, held, space)


async def case_81_another_version_of_a_kind_is_the_same_object(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    crd = want.crd(group, versions=("v1", "v2"))
    fleet.publish("w", crd, want.gadget(group, fleet.namespace, "g1"))
    await fleet.is_applied("w")
    old = await fleet.exists(want.gadget(group, fleet.namespace, "g1"))
    newer = want.gadget(group, fleet.namespace, "g1", version="v2", labels={"a": "b"})
    fleet.publish("w", crd, newer)
    await fleet.is_applied("w")
    live = await fleet.exists(newer, metadata__labels={"a": "b"})
    assert live["metadata"]["uid"] == old["metadata"]["uid"]

    async def is_v2() -> bool:
        record = await fleet.record("w") or {}
        found = [each for each in record["status"]["appliedResources"] if each["resource"] == "gadgets"]
        return [each["version"] for each in found] == ["v2"]

    await fleet.until(is_v2, what="the record to name v2")


async def case_97_created_anew_under_the_same_id(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    fleet.publish("w", web)
    await fleet.is_applied("w")
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=2))
    await fleet.is_applied("w")
    await fleet.exists(web, spec__replicas=2)
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(web)
    fleet.publish("w", web)
    report = await fleet.sees("w", applied="T:T")
    assert report.generation == 1
    assert letters(report, "Deleted") == "-:-"


async def case_101_wishes_made_while_the_agent_is_down(fleet: Fleet) -> None:
    cms = {name: want.config_map(fleet.namespace, name) for name in ("a", "b", "c")}
    fleet.publish("a", cms["a"])
    fleet.publish("b", cms["b"])
    await fleet.is_applied("a")
    await fleet.is_applied("b")
    await fleet.stop()
    fleet.publish("a", want.config_map(fleet.namespace, "a", data={"k": "new"}))
    fleet.delete("b")
    fleet.publish("c", cms["c"])
    assert at(await fleet.exists(cms["a"]), ["data"]) == {"test": "testdata"}
    await fleet.start()
    await fleet.is_applied("a")
    await fleet.exists(cms["a"], data={"k": "new"})
    await fleet.is_deleted("b")
    await fleet.is_gone(cms["b"])
    await fleet.is_applied("c")


async def case_102_status_changes_while_the_server_is_away(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    rules = want.json_paths(value=".data.test")
    fleet.publish(
        "w",
        cm,
        manifestConfigs=[
            want.config("configmaps", "cm", feedbackRules=rules, updateStrategy=want.strategy("CreateOnly"))
        ],
    )
    await fleet.is_applied("w")
    fleet.server.is_away = True
    fleet.server.hang_up()
    await fleet.cluster.edit(cm, {"data": {"test": "meanwhile"}})
    await fleet.settles(has_server=False)
    fleet.server.is_away = False
    report = await fleet.report("w", lambda found: "meanwhile" in str(found.status.body), what="the missed value")
    assert letters(report, "Applied") == "T:T"


def _message(report: work.ManifestWork) -> str:
    found = [each.message for each in report.status.conditions if each.type == "Deleting"]
    return found[0] if found else ""
