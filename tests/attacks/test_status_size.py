"""Attacks by the author of a work: statuses so large that encoding them holds the agent."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maestropy.agent.decide.status import feedback
from maestropy.agent.expressions import budget
from maestropy.agent.telemetry import log_fields
from maestropy.journal.fields import LogKey
from maestropy.wire import json_types
from maestropy.wire.events import event
from maestropy.wire.works import options, status, status_hash
from tests.attacks.test_expressions import NAME, agent_under_attack, assert_others_go_on
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition

MESSAGE_BYTES = 4 * 1024 * 1024
"""What servers accept."""
HELD_SECONDS = 0.6
"""Processor time; four times what was measured, with the sandbox in the same event loop."""
WORKS = 20
GROWING = {
    "quotes": '"' * 480_000,
    "separators": "\u2028" * 300_000,
    "angles": "<" * 480_000,
    "nulls": "\x01" * 200_000,
}
RULES = samples.json_paths(
    **{f"v{index}": path for index, path in zip(range(480), itertools.cycle([".data", ".data.b", "."]), strict=False)}
)


@asynccontextmanager
async def event_loop_is_free() -> AsyncIterator[None]:
    """Fail if the agent, or the sandbox beside it, ever takes much processor time before other tasks can run."""
    held = 0.0

    async def watch() -> None:
        nonlocal held
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0.005)
            held = max(held, time.thread_time() - begun)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
    print(f"the event loop was held for at most {held:.2f} s")
    assert held < HELD_SECONDS, f"the event loop was held for {held:.2f} s"


def sizes(env: AgentEnvironment) -> list[int]:
    reported = itertools.chain.from_iterable(env.server.statuses.values())
    return [len(json_types.encode(dict(one.status.body))) for one in reported]


async def test_many_large_statuses() -> None:
    """Works with hundreds of feedback rules on values that grow when encoded -> few values, and why; others go on"""
    async with agent_under_attack() as env:
        for name, text in GROWING.items():
            await env.cluster.create(samples.config_map(NAME, name, data={"b": text}))
        async with event_loop_is_free():
            for index, name in zip(range(WORKS), itertools.cycle(GROWING), strict=False):
                options = samples.config(
                    "configmaps", name, feedbackRules=RULES, updateStrategy=samples.strategy("ReadOnly")
                )
                env.publish(f"large{index}", samples.config_map(NAME, name), manifestConfigs=[options])
            await assert_others_go_on(env, "first")
            for index in range(WORKS):
                reported = await env.wait_for_conditions(f"large{index}", applied="T:T", available="T:T")
                synced = condition(reported.status.manifests[0], "StatusFeedbackSynced")
                assert synced.status == "False"
                assert "and 4" in synced.message
                assert "more with error: the expressions of the manifest take more than" in synced.message
            # Whoever changes the objects wakes the agent for all of these works.
            for number, name in enumerate(GROWING):
                await env.cluster.edit(samples.config_map(NAME, name), {"metadata": {"labels": {"n": f"{number}"}}})
                await assert_others_go_on(env, f"edit {number}")
        assert max(sizes(env)) < MESSAGE_BYTES


@pytest.mark.parametrize("character", ["z", '"', "<", "\u2028", "\x01"])
def test_values_that_grow(character: str) -> None:
    """Values whose characters take up to six bytes each -> counted as they are sent: no status exceeds the limits"""
    text = character * 200_000
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"b": text}}
    paths = tuple(options.JsonPath(name=f"v{index}", path=".data.b") for index in range(30))
    spent = budget.Budget()
    entries = []
    for ordinal in range(6):
        with spent.manifest() as own:
            read = feedback.read(
                [options.FeedbackRule(type=options.JSON_PATHS, json_paths=paths)],
                live,
                json_raw_max_bytes=1 << 20,
                budget=own,
            )
        entry = status.manifest_status(status.ResourceMeta(ordinal=ordinal), feedback=read.values)
        assert len(status_hash.canonical(entry.body)) < budget.RESULT_BYTES_PER_MANIFEST + 1024
        assert read.condition.status == "False"
        assert "v29" in read.condition.message or "more with error" in read.condition.message
        entries.append(entry)
    whole = status.WorkStatus().with_manifests(entries)
    assert whole.size < budget.RESULT_BYTES_PER_WORK + 6 * 1024
    assert whole.size > budget.RESULT_BYTES_PER_WORK // 2


def test_one_value_that_is_too_large() -> None:
    """One value larger than the limit beside small ones -> it is left out with the limit; the small ones stay"""
    live = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"big": "<" * 400_000, "small": "x"}}
    paths = (options.JsonPath(name="big", path=".data.big"), options.JsonPath(name="small", path=".data.small"))
    spent = budget.Budget()
    with spent.manifest() as own:
        rule = options.FeedbackRule(type=options.JSON_PATHS, json_paths=paths)
        read = feedback.read([rule], live, json_raw_max_bytes=1 << 20, budget=own)
    assert [(value.name, value.value) for value in read.values] == [("small", "x")]
    assert "failed to find value for big with error: the value takes more than 2097152 bytes" in read.condition.message
    # The value stays as large: a pause would make the small one old.
    assert not spent.exceeded


def test_names_of_values() -> None:
    """Thousands of feedback values with long names -> the names count too"""
    live = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": 1}}
    paths = tuple(options.JsonPath(name=f"{index}" + "n" * 40_000, path=".data.n") for index in range(500))
    spent = budget.Budget()
    with spent.manifest() as own:
        rule = options.FeedbackRule(type=options.JSON_PATHS, json_paths=paths)
        read = feedback.read([rule], live, json_raw_max_bytes=1 << 20, budget=own)
    entry = status.manifest_status(status.ResourceMeta(ordinal=0), feedback=read.values)
    assert len(status_hash.canonical(entry.body)) < budget.RESULT_BYTES_PER_MANIFEST + 1024
    assert len(read.condition.message) < 8192


def test_log_of_large_events() -> None:
    """An event with many or long attributes, at -v=10 -> a short log line with how much was left out"""
    names = {f"x{index}": "v" for index in range(100_000)}
    passing = event.CloudEvent(
        id="1", source="s", type="t" * 1_000_000, extensions={event.METADATA: "m" * 3_000_000, **names}
    )
    fields = log_fields.event_fields(passing)
    assert len(str(fields)) < 16_384
    extensions = fields[LogKey.EXTENSIONS]
    assert isinstance(extensions, dict)
    assert extensions[event.METADATA].endswith("… (3000000 characters)")
    assert extensions["…"] == "99937 more"
