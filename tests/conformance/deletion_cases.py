"""Whose objects are they, and what happens to them when works leave?"""

from conformance import objects_wanted as want
from conformance.fleet import Fleet, owners


async def case_24_83_object_of_two_works_goes_with_the_last(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("one", cm)
    await fleet.is_applied("one")
    fleet.publish("two", cm)
    await fleet.is_applied("two")
    live = await fleet.exists(cm)
    assert {each["name"] for each in owners(live)} == {fleet.record_name("one"), fleet.record_name("two")}
    fleet.delete("one")
    await fleet.is_deleted("one")
    assert await fleet.record("one") is None
    left = await fleet.exists(cm)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert [each["name"] for each in owners(left)] == [fleet.record_name("two")]
    await fleet.records_exactly("two", "configmaps/cm")
    fleet.delete("two")
    await fleet.is_deleted("two")
    await fleet.is_gone(cm)


async def case_25_shared_object_leaves_one_work(fleet: Fleet) -> None:
    cm, other = want.config_map(fleet.namespace, "cm"), want.config_map(fleet.namespace, "other")
    fleet.publish("one", cm, other)
    fleet.publish("two", cm)
    await fleet.is_applied("one")
    await fleet.is_applied("two")
    live = await fleet.exists(cm)
    fleet.publish("one", other)
    await fleet.is_applied("one")
    await fleet.records_exactly("one", "configmaps/other")
    await fleet.settles()
    left = await fleet.exists(cm)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert [each["name"] for each in owners(left)] == [fleet.record_name("two")]
    await fleet.records_exactly("two", "configmaps/cm")


async def case_26_orphaned_objects_stay(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm, deleteOption={"propagationPolicy": "Orphan"})
    await fleet.is_applied("w")
    assert owners(await fleet.exists(cm)) == []
    await fleet.records_exactly("w", "configmaps/cm")
    fleet.delete("w")
    await fleet.is_deleted("w")
    assert await fleet.cluster.get(cm)


async def case_27_selectively_orphaned(fleet: Fleet) -> None:
    kept, goes = want.config_map(fleet.namespace, "cm1"), want.config_map(fleet.namespace, "cm2")
    fleet.publish("w", kept, goes, deleteOption=want.selectively(("configmaps", "cm1"), namespace=fleet.namespace))
    await fleet.is_applied("w")
    assert owners(await fleet.exists(kept)) == []
    assert len(owners(await fleet.exists(goes))) == 1
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(goes)
    assert await fleet.cluster.get(kept)


async def case_28_selectively_orphaned_and_removed(fleet: Fleet) -> None:
    kept, stays = want.config_map(fleet.namespace, "cm1"), want.config_map(fleet.namespace, "cm2")
    option = want.selectively(("configmaps", "cm1"), namespace=fleet.namespace)
    fleet.publish("w", kept, stays, deleteOption=option)
    await fleet.is_applied("w")
    fleet.publish("w", stays, deleteOption=option)
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "configmaps/cm2")
    await fleet.settles()
    assert await fleet.cluster.get(kept)


async def case_29_no_longer_orphaned(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm1")
    fleet.publish("w", cm, deleteOption=want.selectively(("configmaps", "cm1"), namespace=fleet.namespace))
    await fleet.is_applied("w")
    assert owners(await fleet.exists(cm)) == []
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    assert len(owners(await fleet.exists(cm))) == 1
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(cm)


async def case_29_orphaned_later(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm1")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    fleet.publish("w", cm, deleteOption={"propagationPolicy": "Orphan"})
    await fleet.is_applied("w")
    assert owners(await fleet.exists(cm)) == []
    fleet.delete("w")
    await fleet.is_deleted("w")
    assert await fleet.cluster.get(cm)


async def case_80_pods_go_with_their_job(fleet: Fleet) -> None:
    job = want.job(fleet.namespace, "job", suspend=False)
    fleet.publish("w", job)
    await fleet.is_applied("w")
    any_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "", "namespace": fleet.namespace}}

    async def has_pods() -> bool:
        return bool(await fleet.cluster.list(any_pod))

    await fleet.until(has_pods, what="the pod of the job")
    fleet.delete("w")
    await fleet.is_deleted("w")

    async def has_none() -> bool:
        return not await fleet.cluster.list(any_pod)

    await fleet.until(has_none, what="the garbage collector to take the pods", seconds=40)


async def case_84_foreign_owner_does_not_save_an_object(fleet: Fleet) -> None:
    cm, friend = want.config_map(fleet.namespace, "cm"), want.config_map(fleet.namespace, "friend")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    other = await fleet.cluster.create(friend)
    live = await fleet.exists(cm)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": other["metadata"]["uid"]}
    await fleet.cluster.edit(cm, {"metadata": {"ownerReferences": [*owners(live), reference]}})
    await fleet.settles()
    assert len(owners(await fleet.exists(cm))) == 2
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(cm)


async def case_84_owners_in_a_circle_and_of_the_manifest_itself(fleet: Fleet) -> None:
    strange = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"}
    one, two = want.config_map(fleet.namespace, "one"), want.config_map(fleet.namespace, "two")
    one["metadata"]["ownerReferences"] = [strange]
    fleet.publish("w", one, two)
    await fleet.is_applied("w")
    lives = [await fleet.exists(one), await fleet.exists(two)]
    # Who owns an object of a work is not for its manifest to say.
    assert [each["name"] for each in owners(lives[0])] == [fleet.record_name("w")]
    for owned, owner in ((0, 1), (1, 0)):
        metadata = lives[owner]["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
        await fleet.cluster.edit(lives[owned], {"metadata": {"ownerReferences": [*owners(lives[owned]), reference]}})
    await fleet.settles()
    assert [len(owners(await fleet.exists(each))) for each in (one, two)] == [2, 2]
    fleet.delete("w")
    await fleet.is_deleted("w")
    await fleet.is_gone(one, two)


async def case_103_two_read_only_works_on_one_object(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    live = await fleet.cluster.create(web)
    look = [want.config("deployments", "web", group="apps", updateStrategy=want.strategy("ReadOnly"))]
    for name in ("one", "two"):
        fleet.publish(name, web, manifestConfigs=look)
        await fleet.is_applied(name)
        await fleet.records_exactly(name, "deployments/web")
    fleet.delete("one")
    await fleet.is_deleted("one")
    await fleet.settles()
    left = await fleet.exists(web)
    assert left["metadata"]["uid"] == live["metadata"]["uid"]
    assert left["metadata"]["generation"] == live["metadata"]["generation"]
    assert await fleet.record("two")


async def case_5_1_delete_of_an_unknown_work_is_answered(fleet: Fleet) -> None:
    fleet.publish("w", want.config_map(fleet.namespace, "cm"))
    await fleet.is_applied("w")
    await fleet.stop()
    fleet.delete("w")
    await fleet.start()
    report = await fleet.is_deleted("w")
    assert report.deletion_timestamp
    assert not report.finalizers
    await fleet.is_gone(want.config_map(fleet.namespace, "cm"))


async def case_5_1_delete_without_a_version(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    fleet.delete("w", has_version=False)
    report = await fleet.is_deleted("w")
    assert report.generation == 1
    await fleet.is_gone(cm)


async def case_5_4_object_created_anew_by_somebody_else_stays(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    look = [want.config("configmaps", "cm", updateStrategy=want.strategy("ReadOnly"))]
    await fleet.cluster.create(cm)
    fleet.publish("w", cm, manifestConfigs=look)
    await fleet.is_applied("w")
    await fleet.cluster.delete(cm)
    await fleet.sees("w", available="F:F")
    await fleet.cluster.create(cm)
    await fleet.sees("w", available="T:T")
    fleet.delete("w")
    await fleet.is_deleted("w")
    assert await fleet.cluster.get(cm)


async def case_record_deleted_by_hand_comes_back_with_its_objects(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    old = await fleet.record("w") or {}
    await fleet.cluster.delete(fleet.record_of("w"))

    async def is_new() -> bool:
        record = await fleet.record("w")
        live = await fleet.cluster.get(cm)
        if record is None or live is None or record["metadata"]["uid"] == old["metadata"]["uid"]:
            return False
        return [each["uid"] for each in owners(live)] == [record["metadata"]["uid"]]

    await fleet.until(is_new, what="a new record that owns the object")
