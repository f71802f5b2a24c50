"""Delivery of events: repeated, late, out of order or lost, and agents that are killed meanwhile."""

from tests.conformance import memory_server
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition_summary


async def case_redelivered_spec_event_changes_nothing(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    before = await env.wait_for_object(cm)
    count = len(env.server.statuses[uid])
    for _ in range(3):
        env.server.send(memory_server.spec_event(env.server.works[uid]))
    await env.wait_until_idle()
    assert (await env.wait_for_object(cm))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert len(env.server.statuses[uid]) == count


async def case_stale_spec_event_is_ignored(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    old, published = env.server.works[uid], env.server.times[uid]
    await env.wait_until_applied("w")
    env.publish("w", samples.config_map(env.namespace, "cm", data={"k": "new"}))
    env.server.send(memory_server.spec_event(old, time=published))
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    assert (await env.wait_for_object(cm))["data"] == {"k": "new"}


async def case_spec_event_after_deletion_is_ignored(env: AgentEnvironment) -> None:
    blocked = samples.config_map(env.namespace, "cm", finalizers=["suite.test/hold"])
    uid = env.publish("w", blocked)
    original = env.server.works[uid]
    await env.wait_until_applied("w")
    env.delete("w")
    await env.wait_for_status(
        "w", lambda reported: condition_summary(reported, "Deleting").startswith("T"), what="Deleting"
    )
    # Late spec events of any version do not revive the work.
    for generation in (1, 2, 99):
        env.server.send(memory_server.spec_event(original.with_metadata(generation=generation)))
    await env.wait_until_idle()
    assert condition_summary(env.latest_status("w") or original, "Deleting").startswith("T")
    await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
    await env.wait_until_deleted("w")
    await env.wait_until_gone(blocked)


async def case_deletion_before_spec_event_is_confirmed(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    await env.stop()
    uid = env.publish("w", cm)
    original = env.server.works[uid]
    env.server.works.clear()
    await env.start()
    env.server.works[uid] = original
    env.delete("w")
    await env.wait_until_deleted("w")
    assert await env.cluster.get(cm) is None


async def case_repeated_deletion_is_confirmed_again(env: AgentEnvironment) -> None:
    uid = env.publish("w", samples.config_map(env.namespace, "cm"))
    await env.wait_until_applied("w")
    env.delete("w")
    deleting_work = env.server.works[uid]
    await env.wait_until_deleted("w")
    env.server.send(memory_server.deletion_event(deleting_work))
    await env.wait_until_idle()
    # The server may have missed the first confirmation, so every deletion request is confirmed.
    assert len([status for status in env.server.statuses[uid] if status.status.is_deleted]) == 2


async def case_work_recreated_before_deleted_status_is_acknowledged(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    env.delete("w")
    reported = env.server.receive

    async def slow(received: object) -> None:
        await reported(received)  # type: ignore[arg-type]  # an event
        if uid not in env.server.works and not env.server.statuses[uid][-1].deletion_timestamp == "":
            # The server has the deleted status and a new work, but its acknowledgement is lost.
            env.server.receive = reported  # type: ignore[method-assign]  # back to normal
            env.publish("w", cm)
            await env.wait_until_idle(has_server=False)
            env.server.disconnect()

    env.server.receive = slow  # type: ignore[method-assign]  # one slow acknowledgement
    await env.wait_for_conditions("w", applied="T:T", available="T:T")
    await env.wait_until_idle()
    assert await env.cluster.get(cm)


async def case_status_resync_sends_changed_hashes_only(env: AgentEnvironment) -> None:
    first, second = (env.publish(name, samples.config_map(env.namespace, name)) for name in ("one", "two"))
    one, two = await env.wait_until_applied("one"), await env.wait_until_applied("two")
    await env.wait_until_idle()
    counts = {uid: len(env.server.statuses[uid]) for uid in (first, second)}

    async def is_reported_again(uid: str) -> bool:
        return len(env.server.statuses[uid]) == counts[uid] + 1

    env.server.request_statuses({first: one.status.hash(), second: "another"})
    await env.wait_until(lambda: is_reported_again(second), what="the status whose hash differs")
    assert len(env.server.statuses[first]) == counts[first]
    counts[second] += 1
    env.server.request_statuses({})
    await env.wait_until(lambda: is_reported_again(first), what="all statuses")
    await env.wait_until(lambda: is_reported_again(second), what="all statuses")
    assert env.server.statuses[second][-1].status.hash() == two.status.hash()


async def case_every_connection_starts_with_spec_resync(env: AgentEnvironment) -> None:
    uid = env.publish("w", samples.config_map(env.namespace, "cm"))
    await env.wait_until_applied("w")
    env.publish("w", samples.config_map(env.namespace, "cm", data={"k": "new"}))
    await env.wait_until_applied("w")
    env.server.disconnect()

    async def is_resynced() -> bool:
        return len(env.server.resync_requests) == 2

    await env.wait_until(is_resynced, what="a second spec resync request")
    assert env.server.resync_requests == [{}, {uid: 2}]


async def case_lost_spec_events_are_resent_on_reconnect(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    unsent_work = env.manifest_work("w", cm).with_metadata(generation=1)
    env.server.works[unsent_work.uid] = unsent_work
    await env.wait_until_idle()
    assert await env.cluster.get(cm) is None
    env.server.disconnect()
    await env.wait_until_applied("w")


async def case_rejected_status_update_does_not_block_others(env: AgentEnvironment) -> None:
    env.server.rejections_left = 1
    env.publish("one", samples.config_map(env.namespace, "one"))
    await env.wait_for_object(samples.config_map(env.namespace, "one"))
    env.publish("two", samples.config_map(env.namespace, "two"))
    await env.wait_until_applied("two")


async def case_postponed_status_update_does_not_block_others(env: AgentEnvironment) -> None:
    env.server.postponements_left[env.id_of("one")] = 3
    env.publish("one", samples.config_map(env.namespace, "one"))
    env.publish("two", samples.config_map(env.namespace, "two"))
    await env.wait_until_applied("two")
    await env.wait_until_applied("one")
    assert env.server.postponements_left == {env.id_of("one"): 0}
    assert len(env.server.resync_requests) == 1


async def case_server_outage_loses_nothing(env: AgentEnvironment) -> None:
    env.server.is_unreachable = True
    env.server.disconnect()
    await env.wait_until_idle(has_server=False)
    names = [f"w{number}" for number in range(5)]
    for name in names:
        env.publish(name, samples.config_map(env.namespace, name))
    env.server.is_unreachable = False
    for name in names:
        await env.wait_until_applied(name)
    env.server.is_unreachable = True
    env.server.disconnect()
    for name in names:
        env.delete(name)
    await env.wait_until_idle(has_server=False)
    env.server.is_unreachable = False
    for name in names:
        await env.wait_until_deleted(name)


async def case_restart_changes_no_object(env: AgentEnvironment) -> None:
    name = env.namespace
    web, cm, account = (
        samples.deployment(name, "web"),
        samples.config_map(name, "cm"),
        samples.service_account(name, "sa"),
    )
    applied = samples.deployment(name, "applied")
    configs = [
        samples.config(
            "deployments", "applied", group="apps", updateStrategy=samples.strategy("ServerSideApply", force=True)
        )
    ]
    env.publish("w", web, cm, account, applied, manifestConfigs=configs)
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    before = [await env.wait_for_object(manifest) for manifest in (web, cm, account, applied)]
    applied_work = await env.applied_work("w") or {}
    await env.restart()
    env.server.statuses.clear()
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    after = [await env.wait_for_object(manifest) for manifest in (web, cm, account, applied)]
    for old, new in zip(before, after, strict=True):
        for field in ("uid", "generation", "ownerReferences"):
            assert new["metadata"].get(field) == old["metadata"].get(field)
        assert new["spec" if "spec" in new else "kind"] == old["spec" if "spec" in old else "kind"]
    # The eviction start time was not set while the work was on its way.
    assert await env.applied_work("w") == applied_work


async def case_agent_killed_while_applying(env: AgentEnvironment) -> None:
    cms = [samples.config_map(env.namespace, f"cm{number}") for number in range(6)]
    env.publish("w", *cms)
    for number in range(4):
        await env.wait_for_object(cms[number])
        await env.restart()
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", *(f"configmaps/cm{number}" for number in range(6)))


async def case_agent_killed_while_deleting(env: AgentEnvironment) -> None:
    blocked = samples.config_map(env.namespace, "held", finalizers=["suite.test/hold"])
    cms = [samples.config_map(env.namespace, f"cm{number}") for number in range(5)]
    env.publish("w", *cms, blocked)
    await env.wait_until_applied("w")
    env.delete("w")
    for cm in cms:
        await env.restart()
        await env.wait_until_gone(cm)
    await env.wait_for_status(
        "w", lambda reported: "suite.test/hold" in str(reported.status.body), what="the finalizer that holds"
    )
    await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
    await env.restart()
    await env.wait_until_deleted("w")
    await env.wait_until_gone(blocked)
    assert await env.applied_work("w") is None


async def case_burst_of_updates_ends_with_last_version(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    for number in range(30):
        env.publish("w", samples.config_map(env.namespace, "cm", data={"k": str(number)}))
    await env.wait_until_applied("w")
    assert (await env.wait_for_object(cm))["data"] == {"k": "29"}


async def case_burst_of_works_changed_right_after_first_status(env: AgentEnvironment) -> None:
    """Objects are listed after the first status; all created objects are deleted anyway."""
    names = [f"w{number}" for number in range(12)]
    old = {name: samples.config_map(env.namespace, f"old-{name}") for name in names}
    new = {name: samples.config_map(env.namespace, f"new-{name}") for name in names}
    for name in names:
        env.publish(name, old[name])
    for name in names[:6]:
        await env.wait_until_applied(name)
        env.publish(name, new[name])
    for name in names[6:]:
        await env.wait_until_applied(name)
        env.delete(name)
    for name in names[:6]:
        await env.wait_until_applied(name)
        await env.wait_for_applied_resources(name, f"configmaps/new-{name}")
    for name in names[6:]:
        await env.wait_until_deleted(name)
    await env.wait_until_gone(*old.values())


async def case_burst_of_works_changed_while_agent_is_down(env: AgentEnvironment) -> None:
    names = [f"w{number}" for number in range(12)]
    old = {name: samples.config_map(env.namespace, f"old-{name}") for name in names}
    for name in names:
        env.publish(name, old[name])
    for name in names:
        await env.wait_until_applied(name)
    await env.stop()
    for name in names[:6]:
        env.publish(name, samples.config_map(env.namespace, f"new-{name}"))
    for name in names[6:]:
        env.delete(name)
    await env.start()
    for name in names[:6]:
        await env.wait_until_applied(name)
        await env.wait_for_applied_resources(name, f"configmaps/new-{name}")
    for name in names[6:]:
        await env.wait_until_deleted(name)
    await env.wait_until_gone(*old.values())


async def case_work_deleted_while_being_applied(env: AgentEnvironment) -> None:
    for number in range(10):
        cms = [samples.config_map(env.namespace, f"cm{number}-{index}") for index in range(3)]
        env.publish("w", *cms)
        if number % 2:
            await env.wait_for_object(cms[0])
        env.delete("w")
        await env.wait_until_deleted("w")
        await env.wait_until_gone(*cms)
        env.server.statuses.clear()


async def case_log_messages_match_go_agent(env: AgentEnvironment) -> None:
    read_only, applied, created = (samples.config_map(env.namespace, name) for name in ("seen", "applied", "created"))
    await env.cluster.create(read_only)
    configs = [
        samples.config("configmaps", "seen", updateStrategy=samples.strategy("ReadOnly")),
        samples.config("configmaps", "applied", updateStrategy=samples.strategy("ServerSideApply")),
    ]
    work_id = env.publish("w", read_only, applied, created, manifestConfigs=configs)
    await env.wait_until_applied("w")
    await env.wait_until_idle()
    lines = env.log.splitlines()

    def line(phrase: str, *parts: str) -> str:
        first, *_ = [line for line in lines if f'] "{phrase}"' in line and all(part in line for part in parts)]
        return first

    for phrase in ("Received event", "Sending event"):
        assert f'"resourceid":"{work_id}"' in line(phrase, work_id)
    namespace_field = f'resourceNamespace="{env.namespace}"'
    line("Noop because its read-only", namespace_field, 'resourceName="seen"')
    line("Server side applied", namespace_field, 'resourceName="applied"', 'fieldManager="work-agent"')
    line("Created resource because it was missing", namespace_field, 'resourceName="created"')
