"""Data safety: a server on an empty, older or other database makes the agent delete nothing."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from maestropy.agent.decide import data_safety
from maestropy.wire import timestamps
from maestropy.wire.works import work
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import INTERVALS, AgentEnvironment, condition, condition_summary
from tests.conformance.eviction_cases import LONG, publish_others
from tests.conformance.memory_server import MemoryServer

AT_ONCE = replace(
    INTERVALS,
    eviction_grace=timedelta(seconds=0),
    spec_arrival=timedelta(seconds=0.2),
    hold_poll=timedelta(seconds=0.2),
)
"""Nothing but the rules of data safety delays an eviction."""
MANY = 12
"""More works than may be orphans at once."""


async def publish_many(env: AgentEnvironment, count: int) -> list[dict[str, object]]:
    objects = [samples.config_map(env.namespace, f"cm-{number}") for number in range(count)]
    for number, config_map in enumerate(objects):
        env.publish(f"w-{number}", config_map)
    for number in range(count):
        await env.wait_until_applied(f"w-{number}")
    return objects


async def start_with_database(env: AgentEnvironment, database: str = "first") -> None:
    env.server.database = database
    await env.restart(AT_ONCE)


def replace_database(env: AgentEnvironment, database: str) -> None:
    """Let the server come back on another database, which is empty."""
    env.server.works.clear()
    env.server.database = database
    env.server.disconnect()


async def wait_for_hold(env: AgentEnvironment, reason: data_safety.HoldReason, *, works: int) -> None:
    async def is_reported() -> bool:
        hold = env.server.holds[-1] if env.server.holds else None
        return hold is not None and hold.reason == reason and hold.count == works

    await env.wait_until(is_reported, what=f"the report of {works} held works, {reason}")
    assert env.agent is not None
    assert reason in env.agent.data_safety.summary()

    async def is_logged() -> bool:
        return "data-safety hold" in env.log

    await env.wait_until(is_logged, what="the log of the hold")


async def assert_nothing_was_deleted(env: AgentEnvironment, objects: list[dict[str, object]]) -> None:
    for manifest in objects:
        live = await env.cluster.get(manifest)
        assert live is not None
        assert "deletionTimestamp" not in live["metadata"]


async def case_orphan_of_resync_is_kept_for_the_grace_period(env: AgentEnvironment) -> None:
    for database in ("", "first"):
        env.server.database = database
        await env.restart(replace(LONG, spec_arrival=timedelta(seconds=0.2)))
        name = f"w{database}"
        cm = samples.config_map(env.namespace, name)
        uid = env.publish(name, cm)
        await env.wait_until_applied(name)
        await publish_others(env)
        stored = env.server.works.pop(uid)
        env.server.disconnect()

        async def has_eviction_start(name: str = name) -> bool:
            return bool(((await env.applied_work(name) or {}).get("status") or {}).get("evictionStartTime"))

        await env.wait_until(has_eviction_start, what="the eviction start time")
        started = ((await env.applied_work(name) or {}).get("status") or {})["evictionStartTime"]

        async def is_countdown_reported(uid: str = uid, started: str = started) -> bool:
            hold = env.server.holds[-1]
            pending = hold.pending if hold is not None else None
            return (
                pending is not None and (pending.works, pending.since) == ((uid,), started) and bool(pending.deadline)
            )

        if database:
            await env.wait_until(is_countdown_reported, what="the report of the countdown")
        await assert_nothing_was_deleted(env, [cm])
        env.server.works[uid] = stored
        env.server.disconnect()

        async def has_no_eviction_start(name: str = name) -> bool:
            return not ((await env.applied_work(name) or {}).get("status") or {}).get("evictionStartTime")

        await env.wait_until(has_no_eviction_start, what="the end of the eviction")


async def case_orphan_of_resync_is_deleted_after_the_grace_period(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    await publish_others(env)
    del env.server.works[uid]
    env.server.disconnect()
    await env.wait_until_gone(cm, env.applied_work_ref("w"))
    evicted = next(line for line in env.log.splitlines() if "evicted after eviction grace period" in line)
    assert env.applied_work_name("w") in evicted


async def case_late_spec_of_the_previous_database_is_held(env: AgentEnvironment) -> None:
    """A broker delivers it after the resync with the new database, and no other event follows."""
    await start_with_database(env)
    await env.wait_until_idle()
    replace_database(env, "second")

    async def is_resynced() -> bool:
        return env.agent is not None and env.agent.data_safety.database == "second"

    await env.wait_until(is_resynced, what="the resync with the new database")
    cm = samples.config_map(env.namespace, "cm")
    env.server.database = "first"
    uid = env.publish("late", cm)
    env.server.database = "second"
    del env.server.works[uid]

    async def is_applied() -> bool:
        return await env.cluster.get(cm) is not None

    await env.wait_until(is_applied, what="the object of the late spec")
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=1)
    await assert_nothing_was_deleted(env, [cm])


async def case_works_of_another_consumer_are_left_to_its_agent(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, 2)
    # An agent of another consumer with the same server address has the same identity.
    neighbour = AgentEnvironment(env.cluster, namespace=env.namespace)
    neighbour.server = MemoryServer(env.server.address, consumer="neighbour")
    neighbour.server.database = "first"
    await neighbour.start(AT_ONCE)
    try:
        neighbour.publish("mine", samples.config_map(env.namespace, "mine"))
        for name in ("mine-1", "mine-2", "mine-3"):
            neighbour.publish(name, samples.config_map(env.namespace, name))
        await neighbour.wait_until_applied("mine-3")
        neighbour.server.disconnect()
        await neighbour.wait_until_idle()
        await asyncio.sleep(2)
        await neighbour.wait_until_idle()
        await assert_nothing_was_deleted(neighbour, objects)
        assert neighbour.server.holds == [None] * len(neighbour.server.holds)
        assert neighbour.agent is not None
        assert f"{env.server.consumer} 2" in neighbour.agent.readiness_note()
        warnings = [line for line in neighbour.log.splitlines() if "agents of other consumers" in line]
        assert len(warnings) == 1
        assert f"{env.server.consumer} 2" in warnings[0]
        # Its own agent finalizes it.
        await env.cluster.delete(env.applied_work_ref("w-0"))
        env.delete("w-0")
        await env.wait_until_deleted("w-0")
    finally:
        await neighbour.stop()


async def case_nothing_is_evicted_while_the_server_is_away(env: AgentEnvironment) -> None:
    env.server.database = "first"
    short = replace(AT_ONCE, eviction_grace=timedelta(seconds=2))
    await env.restart(short)
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    await publish_others(env)
    stored = env.server.works.pop(uid)
    env.server.disconnect()

    async def has_eviction_start() -> bool:
        return bool(((await env.applied_work("w") or {}).get("status") or {}).get("evictionStartTime"))

    await env.wait_until(has_eviction_start, what="the eviction start time")
    env.server.is_unreachable = True
    env.server.disconnect()
    await asyncio.sleep(short.eviction_grace.total_seconds() + 1.5)
    await assert_nothing_was_deleted(env, [cm])
    # The server comes back with the work: it was never to be deleted.
    env.server.works[uid] = stored
    env.server.is_unreachable = False

    async def is_kept() -> bool:
        return not await has_eviction_start()

    await env.wait_until(is_kept, what="the end of the eviction")
    await assert_nothing_was_deleted(env, [cm])
    del env.server.works[uid]
    env.server.disconnect()
    await env.wait_until_gone(cm, env.applied_work_ref("w"))


async def case_other_database_deletes_nothing(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, 3)
    replace_database(env, "second")
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=3)
    await env.restart(AT_ONCE)
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=3)
    await assert_nothing_was_deleted(env, objects)
    env.server.database = "first"
    for number, config_map in enumerate(objects):
        env.publish(f"w-{number}", config_map)

    async def is_over() -> bool:
        return env.server.holds[-1] is None

    await env.wait_until(is_over, what="the end of the hold")


async def case_new_works_of_other_database_are_applied_and_old_ones_not_overwritten(env: AgentEnvironment) -> None:
    await start_with_database(env)
    old = samples.config_map(env.namespace, "old")
    env.publish("w", old)
    await env.wait_until_applied("w")
    replace_database(env, "second")
    env.publish("new", samples.config_map(env.namespace, "new"))
    env.publish("w", samples.config_map(env.namespace, "other"))
    await env.wait_until_applied("new")
    reported = await env.wait_for_status(
        "w", lambda latest: condition_summary(latest, data_safety.HOLD_CONDITION).startswith("T"), what="the hold"
    )
    assert condition(reported, data_safety.HOLD_CONDITION).reason == "OtherDatabase"
    assert condition_summary(reported, "Applied").startswith("F")
    assert await env.cluster.get(old)
    assert await env.cluster.get(samples.config_map(env.namespace, "other")) is None
    env.delete("w")
    await env.wait_until_idle()
    assert await env.cluster.get(old)


async def case_held_deletion_of_other_database_ends_when_the_right_one_is_back(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    stored = env.server.works[uid]
    replace_database(env, "second")
    env.publish("w", cm)
    env.delete("w")
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=1)
    replace_database(env, "first")
    env.server.works[uid] = stored
    env.server.disconnect()

    async def is_over() -> bool:
        return env.server.holds[-1] is None

    await env.wait_until(is_over, what="the end of the hold")
    await assert_nothing_was_deleted(env, [cm])
    other = samples.config_map(env.namespace, "other")
    env.publish("w", cm, other)
    await env.wait_for_object(other)


async def case_object_of_a_held_work_is_not_overwritten_by_another_work(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    before = await env.cluster.get(cm)
    replace_database(env, "second")
    env.publish("clash", samples.config_map(env.namespace, "cm", data={"test": "other"}))
    reported = await env.wait_for_conditions("clash", applied="F:F")
    message = condition(reported.status.manifests[0], "Applied").message
    assert f"the object belongs to work {env.id_of('w')}" in message
    assert await env.cluster.get(cm) == before
    # Its deletion does not touch the object either.
    env.delete("clash")
    await env.wait_until_deleted("clash")
    assert await env.cluster.get(cm) == before


async def case_deletion_in_another_database_ends_with_it(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "cm")
    uid = env.publish("w", cm)
    env.publish("absent", samples.config_map(env.namespace, "absent"))
    await env.wait_until_applied("w")
    await env.wait_until_applied("absent")
    stored, published = dict(env.server.works), (env.server.event_ids[uid], env.server.times[uid])
    replace_database(env, "second")
    for name in ("w", "absent"):
        env.publish(name, samples.config_map(env.namespace, "other"))
        env.delete(name)
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=2)
    # The right database again; meanwhile it has lost one of the two works.
    env.server.works.clear()
    env.server.works[uid] = stored[uid]
    env.server.event_ids[uid], env.server.times[uid] = published
    env.server.database = "first"
    env.server.disconnect()
    env.publish("w", samples.config_map(env.namespace, "cm", data={"test": "next"}))
    await env.wait_until_applied("w")
    await env.wait_for_object(cm, data__test="next")
    await wait_for_hold(env, data_safety.HoldReason.TOO_MANY_ORPHANS, works=1)


async def case_adoption_ends_the_hold(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, MANY)
    replace_database(env, "second")
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=MANY)
    env.publish("w-0", objects[0])
    hold = env.server.holds[-1]
    assert hold is not None
    assert hold.database == "first"
    env.server.adopted_hold = hold.id
    await env.wait_until_gone(*objects[1:])
    await env.wait_until_applied("w-0")

    async def is_over() -> bool:
        return env.server.holds[-1] is None

    await env.wait_until(is_over, what="the end of the hold")
    assert "adopted" in env.log


async def case_adopted_works_are_listed_until_they_are_evicted(env: AgentEnvironment) -> None:
    env.server.database = "first"
    await env.restart(replace(AT_ONCE, eviction_grace=timedelta(hours=1)))
    objects = await publish_many(env, 3)
    replace_database(env, "second")
    await wait_for_hold(env, data_safety.HoldReason.OTHER_DATABASE, works=3)
    hold = env.server.holds[-1]
    assert hold is not None
    env.server.adopted_hold = hold.id
    await wait_for_hold(env, data_safety.HoldReason.EVICTION_PENDING, works=3)
    await assert_nothing_was_deleted(env, objects)


async def case_too_many_orphans_are_held(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, MANY)
    replace_database(env, "first")
    await wait_for_hold(env, data_safety.HoldReason.TOO_MANY_ORPHANS, works=MANY)
    await env.restart(AT_ONCE)
    await wait_for_hold(env, data_safety.HoldReason.TOO_MANY_ORPHANS, works=MANY)
    await assert_nothing_was_deleted(env, objects)


async def case_too_many_orphans_of_server_without_identity_are_held(env: AgentEnvironment) -> None:
    await env.restart(AT_ONCE)
    objects = await publish_many(env, MANY)
    replace_database(env, "")
    await wait_for_hold(env, data_safety.HoldReason.TOO_MANY_ORPHANS, works=MANY)
    await assert_nothing_was_deleted(env, objects)


async def case_unknown_consumer_deletes_nothing(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, 2)
    stored = dict(env.server.works)
    env.server.is_consumer_known = False
    replace_database(env, "first")
    await env.restart(AT_ONCE)
    await wait_for_hold(env, data_safety.HoldReason.UNKNOWN_CONSUMER, works=2)
    await assert_nothing_was_deleted(env, objects)
    env.server.is_consumer_known = True
    env.server.works.update(stored)
    env.server.disconnect()
    await env.wait_until_applied("w-0")


async def case_consumer_created_on_a_database_without_its_works_deletes_nothing(env: AgentEnvironment) -> None:
    await start_with_database(env)
    objects = await publish_many(env, 10)
    env.server.is_consumer_known = False
    replace_database(env, "first")
    await wait_for_hold(env, data_safety.HoldReason.UNKNOWN_CONSUMER, works=10)
    # What an operator may do who sees only that the consumer is missing.
    reported = len(env.server.holds)
    env.server.is_consumer_known = True
    await wait_for_hold(env, data_safety.HoldReason.TOO_MANY_ORPHANS, works=10)
    assert None not in env.server.holds[reported:], "the agent said that nothing is held"
    assert "data-safety hold ended" not in env.log
    await assert_nothing_was_deleted(env, objects)


async def case_start_of_a_healthy_agent_reports_no_hold(env: AgentEnvironment) -> None:
    await start_with_database(env)
    await publish_many(env, MANY)
    await env.restart(AT_ONCE)
    for number in range(MANY):
        await env.wait_until_applied(f"w-{number}")
    await env.wait_until_idle()
    assert "data-safety hold" not in env.log
    assert env.server.holds == [None] * len(env.server.holds)


def restored(manifest_work: work.ManifestWork, version: int) -> work.ManifestWork:
    return manifest_work.with_metadata(generation=version)


async def case_version_that_went_back_is_held_until_it_is_published_again(env: AgentEnvironment) -> None:
    await start_with_database(env)
    first, second = samples.config_map(env.namespace, "one"), samples.config_map(env.namespace, "two")
    uid = env.publish("w", first)
    await env.wait_until_applied("w")
    backup = env.server.works[uid], env.server.event_ids[uid], env.server.times[uid]
    env.publish("w", first, second)
    await env.wait_until_applied("w")
    # A backup is restored: version 1, without the second object.
    env.server.works[uid], env.server.event_ids[uid], env.server.times[uid] = backup
    env.server.disconnect()
    reported = await env.wait_for_status(
        "w", lambda latest: condition_summary(latest, data_safety.HOLD_CONDITION).startswith("T"), what="the hold"
    )
    assert reported.generation == 1
    assert condition(reported, data_safety.HOLD_CONDITION).reason == "OlderVersion"
    await env.restart(AT_ONCE)
    await wait_for_hold(env, data_safety.HoldReason.OLDER_VERSION, works=1)
    assert await env.cluster.get(second), "the restored spec must not prune"
    # The source publishes again: the version counts up to one that the agent has seen with other contents.
    third = samples.config_map(env.namespace, "three")
    env.publish("w", first, third)
    assert env.server.works[uid].generation == 2
    reported = await env.wait_until_applied("w")
    assert condition_summary(reported, data_safety.HOLD_CONDITION).startswith("-")
    await env.wait_until_gone(second)
    assert await env.cluster.get(third)


async def case_other_spec_of_the_same_version_is_applied(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "one")
    uid = env.publish("w", cm)
    await env.wait_until_applied("w")
    env.server.is_unreachable = True
    env.server.disconnect()
    other = samples.config_map(env.namespace, "other")
    env.server.works[uid] = restored(env.manifest_work("w", other), version=1)
    env.server.event_ids[uid] = "another-event"
    env.server.times[uid] = timestamps.Timestamp(env.server.times[uid].seconds + 5, 0)
    env.server.is_unreachable = False
    await env.wait_for_object(other)
    await env.wait_until_gone(cm)


async def case_deletion_of_older_incarnation_is_held(env: AgentEnvironment) -> None:
    await start_with_database(env)
    cm = samples.config_map(env.namespace, "cm")
    created = env.manifest_work("w", cm).with_metadata(creationTimestamp="2026-02-02T00:00:00Z")
    uid = env.server.put(created).uid
    await env.wait_until_applied("w")
    env.server.works[uid] = env.server.works[uid].with_metadata(creationTimestamp="2026-02-01T00:00:00Z")
    env.delete("w")
    await wait_for_hold(env, data_safety.HoldReason.OLDER_INCARNATION, works=1)
    assert await env.cluster.get(cm)
