"""Records without a work: kept, marked, ended; and never before the server has spoken."""

from dataclasses import replace
from datetime import timedelta

from conformance import objects_wanted as want
from conformance.fleet import RHYTHM, Fleet, owners
from conformance.memory_server import MemoryServer

from maestropy.agent.decide import ownership

SHORT = replace(RHYTHM, eviction_grace=timedelta(seconds=1))
LONG = replace(RHYTHM, eviction_grace=timedelta(hours=1))
NEVER = replace(RHYTHM, eviction_grace=timedelta(days=100 * 365))


async def abandoned(fleet: Fleet) -> dict[str, object]:
    """Let a work vanish from the server while the agent is down, without a word."""
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    await fleet.stop()
    del fleet.server.wishes[fleet.id_of("w")]
    return cm


async def case_20_71_stray_record_ends_after_its_grace(fleet: Fleet) -> None:
    cm = await abandoned(fleet)
    await fleet.start(SHORT)
    await fleet.is_gone(cm, fleet.record_of("w"))
    assert not fleet.server.reports[fleet.id_of("w")][-1].status.is_deleted


async def case_72_work_comes_back_in_time(fleet: Fleet) -> None:
    cm = await abandoned(fleet)
    await fleet.start(LONG)

    async def is_marked() -> bool:
        return bool(((await fleet.record("w") or {}).get("status") or {}).get("evictionStartTime"))

    await fleet.until(is_marked, what="the mark of eviction")
    fleet.publish("w", cm)
    await fleet.is_applied("w")

    async def is_unmarked() -> bool:
        return not await is_marked()

    await fleet.until(is_unmarked, what="the mark to go")


async def case_73_never_evicted(fleet: Fleet) -> None:
    cm = await abandoned(fleet)
    await fleet.cluster.edit(
        fleet.record_of("w"), {"status": {"evictionStartTime": "2020-01-01T00:00:00Z"}}, subresource="status"
    )
    await fleet.start(NEVER)

    async def is_unmarked() -> bool:
        return "evictionStartTime" not in ((await fleet.record("w") or {}).get("status") or {})

    await fleet.until(is_unmarked, what="the mark to go")
    await fleet.settles()
    assert await fleet.cluster.get(cm)


async def case_5_6_nothing_is_evicted_before_the_server_spoke(fleet: Fleet) -> None:
    cm = await abandoned(fleet)
    # An earlier run left a mark, long ago.
    await fleet.cluster.edit(
        fleet.record_of("w"), {"status": {"evictionStartTime": "2020-01-01T00:00:00Z"}}, subresource="status"
    )
    fleet.server.answers_resyncs = False
    await fleet.start(replace(SHORT, eviction_grace=timedelta(seconds=0)), is_awaited=False)

    async def has_greeted() -> bool:
        return len(fleet.server.greetings) >= 4

    await fleet.until(has_greeted, what="two connections without an answer")
    assert await fleet.cluster.get(cm)
    fleet.server.answers_resyncs = True
    await fleet.is_gone(cm, fleet.record_of("w"))


async def case_5_6_silence_behind_a_broker_is_no_answer(fleet: Fleet) -> None:
    cm = await abandoned(fleet)
    fleet.publish("kept", want.config_map(fleet.namespace, "kept"))
    fleet.server.has_answered.clear()
    await fleet.start(replace(SHORT, eviction_grace=timedelta(seconds=0), arrival=timedelta(seconds=0)))
    # The server lives and says something else.
    fleet.publish("new", want.config_map(fleet.namespace, "new"))
    await fleet.is_applied("new")
    await fleet.settles()
    assert await fleet.cluster.get(cm)
    assert not ((await fleet.record("w") or {}).get("status") or {}).get("evictionStartTime")
    fleet.server.has_answered.set()
    await fleet.is_gone(cm, fleet.record_of("w"))


async def case_69_record_of_another_hub_is_left_alone(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    await fleet.records_exactly("w", "configmaps/cm")
    old = await fleet.record("w") or {}
    await fleet.stop()
    # The same cluster, another address of the server: another identity.
    moved = Fleet(fleet.cluster, namespace=fleet.namespace)
    moved.server = MemoryServer(f"moved.{fleet.namespace}.test:8091", consumer=fleet.namespace)
    await moved.start(SHORT)
    try:
        moved.publish("w", cm)
        await moved.is_applied("w")
        await moved.settles()
        live = await moved.exists(cm)
        assert {each["name"] for each in owners(live)} == {fleet.record_name("w"), moved.record_name("w")}
        assert ((await fleet.record("w")) or {})["metadata"]["uid"] == old["metadata"]["uid"]
        # Not even when it is on its way out: its own agent has to end what it lists.
        await moved.cluster.delete(fleet.record_of("w"))
        moved.publish("next", want.config_map(fleet.namespace, "next"))
        await moved.is_applied("next")
        await moved.settles()
        left = await fleet.record("w")
        assert left is not None
        assert left["metadata"]["finalizers"] == [ownership.FINALIZER]
        assert left["status"]["appliedResources"]
    finally:
        await moved.stop()
        await fleet.cluster.edit(fleet.record_of("w"), {"metadata": {"finalizers": None}})


async def case_70_record_of_an_old_hub_with_our_agent_id_ends(fleet: Fleet) -> None:
    await fleet.stop()
    identity = ownership.Identity(hub_hash="0" * 64, agent_id=ownership.hub_hash(fleet.server.address))
    record = ownership.new_record(fleet.wish("w"), identity=identity)
    await fleet.cluster.create_record(record)
    await fleet.start(SHORT)
    await fleet.is_gone(record)
