"""Eviction of AppliedManifestWorks without a work, never before a spec resync is answered."""

import re
from dataclasses import replace
from datetime import timedelta

from maestropy.agent.decide import ownership
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import INTERVALS, AgentEnvironment, owners
from tests.conformance.memory_server import MemoryServer

SHORT = replace(INTERVALS, eviction_grace=timedelta(seconds=1))
LONG = replace(INTERVALS, eviction_grace=timedelta(hours=1))
NEVER = replace(INTERVALS, eviction_grace=timedelta(days=100 * 365))


async def publish_others(env: AgentEnvironment) -> None:
    """Publish works that stay: of few works, half may not be missing."""
    for name in ("other", "another"):
        env.publish(name, samples.config_map(env.namespace, name))
        await env.wait_until_applied(name)


async def lose_work_while_agent_is_down(env: AgentEnvironment) -> dict[str, object]:
    """Remove a work from the server while the agent is down, without a deletion event."""
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    await publish_others(env)
    await env.stop()
    del env.server.works[env.id_of("w")]
    return cm


async def case_unknown_applied_work_is_evicted_after_grace_period(env: AgentEnvironment) -> None:
    cm = await lose_work_while_agent_is_down(env)
    await env.start(SHORT)
    await env.wait_until_gone(cm, env.applied_work_ref("w"))
    assert not env.server.statuses[env.id_of("w")][-1].status.is_deleted


async def case_eviction_is_cancelled_when_work_returns(env: AgentEnvironment) -> None:
    cm = await lose_work_while_agent_is_down(env)
    await env.start(LONG)

    async def has_eviction_start() -> bool:
        return bool(((await env.applied_work("w") or {}).get("status") or {}).get("evictionStartTime"))

    await env.wait_until(has_eviction_start, what="the eviction start time")
    env.publish("w", cm)
    await env.wait_until_applied("w")

    async def has_no_eviction_start() -> bool:
        return not await has_eviction_start()

    await env.wait_until(has_no_eviction_start, what="the eviction start time to be cleared")


async def case_eviction_is_disabled_by_long_grace_period(env: AgentEnvironment) -> None:
    cm = await lose_work_while_agent_is_down(env)
    await env.cluster.edit(
        env.applied_work_ref("w"), {"status": {"evictionStartTime": "2020-01-01T00:00:00Z"}}, subresource="status"
    )
    await env.start(NEVER)

    async def has_no_eviction_start() -> bool:
        return "evictionStartTime" not in ((await env.applied_work("w") or {}).get("status") or {})

    await env.wait_until(has_no_eviction_start, what="the eviction start time to be cleared")
    await env.wait_until_idle()
    assert await env.cluster.get(cm)


async def case_nothing_is_evicted_before_spec_resync(env: AgentEnvironment) -> None:
    cm = await lose_work_while_agent_is_down(env)
    # An eviction start time of an earlier run.
    await env.cluster.edit(
        env.applied_work_ref("w"), {"status": {"evictionStartTime": "2020-01-01T00:00:00Z"}}, subresource="status"
    )
    env.server.accepts_resyncs = False
    await env.start(replace(SHORT, eviction_grace=timedelta(seconds=0)), is_awaited=False)

    async def has_resynced() -> bool:
        return len(env.server.resync_requests) >= 4

    await env.wait_until(has_resynced, what="two connections without an answer")
    assert await env.cluster.get(cm)
    env.server.accepts_resyncs = True
    await env.wait_until_gone(cm, env.applied_work_ref("w"))


async def case_unanswered_spec_resync_evicts_nothing(env: AgentEnvironment) -> None:
    cm = await lose_work_while_agent_is_down(env)
    env.publish("kept", samples.config_map(env.namespace, "kept"))
    env.server.answers_resync.clear()
    await env.start(replace(SHORT, eviction_grace=timedelta(seconds=0), spec_arrival=timedelta(seconds=0)))
    # The server is connected and sends another event.
    env.publish("new", samples.config_map(env.namespace, "new"))
    await env.wait_until_applied("new")
    await env.wait_until_idle()
    assert await env.cluster.get(cm)
    assert not ((await env.applied_work("w") or {}).get("status") or {}).get("evictionStartTime")
    env.server.answers_resync.set()
    await env.wait_until_gone(cm, env.applied_work_ref("w"))


async def case_applied_work_of_other_agent_is_not_evicted(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    await env.wait_for_applied_resources("w", "configmaps/cm")
    old = await env.applied_work("w") or {}
    await env.stop()
    # Another server address is another hub, hence another agent identity.
    moved = AgentEnvironment(env.cluster, namespace=env.namespace)
    moved.server = MemoryServer(f"moved.{env.namespace}.test:8091", consumer=env.namespace)
    await moved.start(SHORT)
    try:
        moved.publish("w", cm)
        await moved.wait_until_applied("w")
        await moved.wait_until_idle()
        live = await moved.wait_for_object(cm)
        (warning,) = [line for line in moved.log.splitlines() if "of another agent identity" in line]
        # Other cases may share the cluster.
        assert re.search(r"count=[1-9]", warning)
        assert {owner["name"] for owner in owners(live)} == {env.applied_work_name("w"), moved.applied_work_name("w")}
        assert ((await env.applied_work("w")) or {})["metadata"]["uid"] == old["metadata"]["uid"]
        # Its own agent finalizes it, also when it is being deleted.
        await moved.cluster.delete(env.applied_work_ref("w"))
        moved.publish("next", samples.config_map(env.namespace, "next"))
        await moved.wait_until_applied("next")
        await moved.wait_until_idle()
        left = await env.applied_work("w")
        assert left is not None
        assert left["metadata"]["finalizers"] == [ownership.FINALIZER]
        assert left["status"]["appliedResources"]
    finally:
        await moved.stop()
        await env.cluster.edit(env.applied_work_ref("w"), {"metadata": {"finalizers": None}})


async def case_applied_work_of_old_hub_is_evicted(env: AgentEnvironment) -> None:
    await env.stop()
    identity = ownership.AgentIdentity(hub_hash="0" * 64, agent_id=ownership.hub_hash(env.server.address))
    applied_work = ownership.new_applied_work(env.manifest_work("w"), identity=identity)
    await env.cluster.create_applied_work(applied_work)
    await env.start(SHORT)
    await env.wait_until_gone(applied_work)
