"""Ownership and deletion of applied objects."""

from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, owners


async def case_shared_object_is_deleted_with_last_work(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("one", cm)
    await env.wait_until_applied("one")
    env.publish("two", cm)
    await env.wait_until_applied("two")
    live = await env.wait_for_object(cm)
    assert {owner["name"] for owner in owners(live)} == {env.applied_work_name("one"), env.applied_work_name("two")}
    env.delete("one")
    await env.wait_until_deleted("one")
    assert await env.applied_work("one") is None
    left = await env.wait_for_object(cm)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert [owner["name"] for owner in owners(left)] == [env.applied_work_name("two")]
    await env.wait_for_applied_resources("two", "configmaps/cm")
    env.delete("two")
    await env.wait_until_deleted("two")
    await env.wait_until_gone(cm)


async def case_shared_object_removed_from_one_work_stays(env: AgentEnvironment) -> None:
    cm, other = samples.config_map(env.namespace, "cm"), samples.config_map(env.namespace, "other")
    env.publish("one", cm, other)
    env.publish("two", cm)
    await env.wait_until_applied("one")
    await env.wait_until_applied("two")
    live = await env.wait_for_object(cm)
    env.publish("one", other)
    await env.wait_until_applied("one")
    await env.wait_for_applied_resources("one", "configmaps/other")
    await env.wait_until_idle()
    left = await env.wait_for_object(cm)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert [owner["name"] for owner in owners(left)] == [env.applied_work_name("two")]
    await env.wait_for_applied_resources("two", "configmaps/cm")


async def case_orphaned_objects_stay(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm, deleteOption={"propagationPolicy": "Orphan"})
    await env.wait_until_applied("w")
    assert owners(await env.wait_for_object(cm)) == []
    await env.wait_for_applied_resources("w", "configmaps/cm")
    env.delete("w")
    await env.wait_until_deleted("w")
    assert await env.cluster.get(cm)


async def case_selectively_orphaned_object_stays(env: AgentEnvironment) -> None:
    kept, goes = samples.config_map(env.namespace, "cm1"), samples.config_map(env.namespace, "cm2")
    env.publish("w", kept, goes, deleteOption=samples.selectively(("configmaps", "cm1"), namespace=env.namespace))
    await env.wait_until_applied("w")
    assert owners(await env.wait_for_object(kept)) == []
    assert len(owners(await env.wait_for_object(goes))) == 1
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(goes)
    assert await env.cluster.get(kept)


async def case_selectively_orphaned_object_stays_when_removed_from_work(env: AgentEnvironment) -> None:
    kept, stays = samples.config_map(env.namespace, "cm1"), samples.config_map(env.namespace, "cm2")
    option = samples.selectively(("configmaps", "cm1"), namespace=env.namespace)
    env.publish("w", kept, stays, deleteOption=option)
    await env.wait_until_applied("w")
    env.publish("w", stays, deleteOption=option)
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "configmaps/cm2")
    await env.wait_until_idle()
    assert await env.cluster.get(kept)


async def case_object_no_longer_orphaned_is_owned(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm1")
    env.publish("w", cm, deleteOption=samples.selectively(("configmaps", "cm1"), namespace=env.namespace))
    await env.wait_until_applied("w")
    assert owners(await env.wait_for_object(cm)) == []
    env.publish("w", cm)
    await env.wait_until_applied("w")
    assert len(owners(await env.wait_for_object(cm))) == 1
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(cm)


async def case_object_orphaned_later_stays(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm1")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    env.publish("w", cm, deleteOption={"propagationPolicy": "Orphan"})
    await env.wait_until_applied("w")
    assert owners(await env.wait_for_object(cm)) == []
    env.delete("w")
    await env.wait_until_deleted("w")
    assert await env.cluster.get(cm)


async def case_pods_are_deleted_with_their_job(env: AgentEnvironment) -> None:
    job = samples.job(env.namespace, "job", suspend=False)
    env.publish("w", job)
    await env.wait_until_applied("w")
    any_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "", "namespace": env.namespace}}

    async def has_pods() -> bool:
        return bool(await env.cluster.list(any_pod))

    await env.wait_until(has_pods, what="the pod of the job")
    env.delete("w")
    await env.wait_until_deleted("w")

    async def has_none() -> bool:
        return not await env.cluster.list(any_pod)

    await env.wait_until(has_none, what="the garbage collector to take the pods", seconds=40)


async def case_foreign_owner_does_not_prevent_deletion(env: AgentEnvironment) -> None:
    cm, friend = samples.config_map(env.namespace, "cm"), samples.config_map(env.namespace, "friend")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    other = await env.cluster.create(friend)
    live = await env.wait_for_object(cm)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": other["metadata"]["uid"]}
    await env.cluster.edit(cm, {"metadata": {"ownerReferences": [*owners(live), reference]}})
    await env.wait_until_idle()
    assert len(owners(await env.wait_for_object(cm))) == 2
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(cm)


async def case_circular_owner_references_do_not_prevent_deletion(env: AgentEnvironment) -> None:
    foreign_reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "unknown",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    one, two = samples.config_map(env.namespace, "one"), samples.config_map(env.namespace, "two")
    one["metadata"]["ownerReferences"] = [foreign_reference]
    env.publish("w", one, two)
    await env.wait_until_applied("w")
    live_objects = [await env.wait_for_object(one), await env.wait_for_object(two)]
    # Owner references of a manifest are replaced by ours.
    assert [owner["name"] for owner in owners(live_objects[0])] == [env.applied_work_name("w")]
    for owned, owner in ((0, 1), (1, 0)):
        metadata = live_objects[owner]["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
        await env.cluster.edit(
            live_objects[owned], {"metadata": {"ownerReferences": [*owners(live_objects[owned]), reference]}}
        )
    await env.wait_until_idle()
    assert [len(owners(await env.wait_for_object(owner))) for owner in (one, two)] == [2, 2]
    env.delete("w")
    await env.wait_until_deleted("w")
    await env.wait_until_gone(one, two)


async def case_read_only_works_share_one_object(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    live = await env.cluster.create(web)
    read_only = [samples.config("deployments", "web", group="apps", updateStrategy=samples.strategy("ReadOnly"))]
    for name in ("one", "two"):
        env.publish(name, web, manifestConfigs=read_only)
        await env.wait_until_applied(name)
        await env.wait_for_applied_resources(name, "deployments/web")
    env.delete("one")
    await env.wait_until_deleted("one")
    await env.wait_until_idle()
    left = await env.wait_for_object(web)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert left["metadata"]["generation"] == live["metadata"]["generation"]
    assert await env.applied_work("two")


async def case_deletion_of_unknown_work_is_confirmed(env: AgentEnvironment) -> None:
    env.publish("w", samples.config_map(env.namespace, "cm"))
    await env.wait_until_applied("w")
    await env.stop()
    env.delete("w")
    await env.start()
    reported = await env.wait_until_deleted("w")
    assert reported.deletion_timestamp
    assert not reported.finalizers
    await env.wait_until_gone(samples.config_map(env.namespace, "cm"))


async def case_deletion_without_resource_version_is_accepted(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    env.delete("w", has_version=False)
    reported = await env.wait_until_deleted("w")
    assert reported.generation == 1
    await env.wait_until_gone(cm)


async def case_object_recreated_by_other_client_stays(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    read_only = [samples.config("configmaps", "cm", updateStrategy=samples.strategy("ReadOnly"))]
    await env.cluster.create(cm)
    env.publish("w", cm, manifestConfigs=read_only)
    await env.wait_until_applied("w")
    await env.cluster.delete(cm)
    await env.wait_for_conditions("w", available="F:F")
    await env.cluster.create(cm)
    await env.wait_for_conditions("w", available="T:T")
    env.delete("w")
    await env.wait_until_deleted("w")
    assert await env.cluster.get(cm)


async def case_applied_work_deleted_manually_is_recreated(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    old = await env.applied_work("w") or {}
    await env.cluster.delete(env.applied_work_ref("w"))

    async def is_new() -> bool:
        applied_work = await env.applied_work("w")
        live = await env.cluster.get(cm)
        if applied_work is None or live is None or applied_work["metadata"]["uid"] == old["metadata"]["uid"]:
            return False
        return [owner["uid"] for owner in owners(live)] == [applied_work["metadata"]["uid"]]

    await env.wait_until(is_new, what="a new AppliedManifestWork that owns the object")
