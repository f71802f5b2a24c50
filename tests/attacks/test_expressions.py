"""Expressions of one work cannot stop the agent, its probes or other works."""

import asyncio
import contextlib
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from maestropy.agent.controllers import evaluation
from maestropy.agent.decide import ignored_fields
from maestropy.agent.decide.status import condition_rules, feedback
from maestropy.agent.expressions import budget
from maestropy.agent.runtime import health
from maestropy.agent.settings import ListenAddress
from maestropy.agent.telemetry.metrics import AgentMetrics
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube.config import load as kube_config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.wire.works import options, work
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, Cluster, agent_environment, condition, values

Json = dict[str, Any]
NAME = "attack"
PROMPT_SECONDS = 10.0
"""Seconds for a healthy work, on a busy machine; without the attack it takes a tenth of one."""
LIVEZ_SECONDS = 3.0


class Probes:
    """Asks /livez all the time, from a thread of its own, and remembers the slowest answer."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._context = ssl._create_unverified_context()
        self._is_stopped = False
        self.slowest = 0.0
        self.answers = 0

    def run(self) -> None:
        while not self._is_stopped:
            begun = time.monotonic()
            with urllib.request.urlopen(f"{self._address}/livez", context=self._context, timeout=60) as answer:
                assert answer.read() == b"ok"
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.answers += 1
            time.sleep(0.05)

    def stop(self) -> None:
        self._is_stopped = True


@asynccontextmanager
async def agent_under_attack() -> AsyncIterator[AgentEnvironment]:
    """Run an agent with its probes; fail if /livez was ever slow."""
    app = health.create_app(
        readiness=health.AgentReadiness, metrics=AgentMetrics(CollectorRegistry()), metrics_access=None
    )
    loopback = ListenAddress(host="127.0.0.1", port=0)
    async with (
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(kube_config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        agent_environment(cluster, NAME) as env,
        health.serving(loopback, app, now=datetime.now(UTC), on_problem=print) as address,
    ):
        probes = Probes(address)
        task = asyncio.create_task(asyncio.to_thread(probes.run))
        try:
            yield env
        finally:
            probes.stop()
            await task
        assert probes.answers
        assert probes.slowest < LIVEZ_SECONDS, f"/livez took {probes.slowest:.1f} s"


async def assert_others_go_on(env: AgentEnvironment, value: str) -> None:
    """Publish a healthy work, and wait for its object and its status."""
    rules = samples.json_paths(value=".data.key")
    configs = [
        samples.config(
            "configmaps", "healthy", feedbackRules=rules, conditionRules=[cel("Ready", "object.data.key != ''")]
        )
    ]
    env.publish("healthy", samples.config_map(NAME, "healthy", data={"key": value}), manifestConfigs=configs)
    reported = await env.wait_for_status(
        "healthy", lambda reported: values(reported) == {"value": value}, what="the value", seconds=PROMPT_SECONDS
    )
    assert condition(reported.status.manifests[0], "Ready").status == "True"


def cel(kind: str, *expressions: str) -> Json:
    return {"type": "CEL", "condition": kind, "celExpressions": [*expressions]}


def attack(env: AgentEnvironment, *, name: str = "attack", data: Json | None = None, **config: Any) -> None:
    manifest = samples.config_map(NAME, name, data=data or {"key": "value"})
    env.publish(name, manifest, manifestConfigs=[samples.config("configmaps", name, **config)])


async def reported_condition(env: AgentEnvironment, kind: str, name: str = "attack") -> Any:
    def has_condition(reported: work.ManifestWork) -> bool:
        return any(entry.type == kind for manifest in reported.status.manifests for entry in manifest.conditions)

    reported = await env.wait_for_status(name, has_condition, what=kind)
    return condition(reported.status.manifests[0], kind)


async def test_freezing_regular_expression() -> None:
    """A regular expression that froze the agent, also after a restart -> the rule is False; the rest goes on"""
    async with agent_under_attack() as env:
        rules = [
            cel("Frozen", '"x".matches("(?:){4294967294}")'),
            cel("Branches", f'"{"x" * 500}".matches("{"|" * 650}")'),
        ]
        attack(env, conditionRules=rules)
        await assert_others_go_on(env, "first")
        frozen = await reported_condition(env, "Frozen")
        assert frozen.status == "False"
        assert (await reported_condition(env, "Branches")).status in ("True", "Unknown")
        await env.restart()
        await assert_others_go_on(env, "after the restart")


def nested_map(depth: int) -> str:
    return "[1]" + ".map(a,[a,a])" * depth


async def test_value_of_two_to_the_thirtieth_elements() -> None:
    """A list that doubles thirty times, compared, searched and printed -> Unknown, with the limit and the remedy"""
    async with agent_under_attack() as env:
        doubled = nested_map(30)
        rules = [
            cel("Compared", f"{doubled} == {doubled}"),
            cel("Searched", f"{doubled} in [{doubled}]"),
            cel("Printed", f"'%s'.format([{doubled}]) == ''"),
            cel("Text", "['aaaaaaaa']" + ".map(a,a+a)" * 30 + " == ['']"),
        ]
        attack(env, conditionRules=rules)
        await assert_others_go_on(env, "first")
        for kind in ("Compared", "Searched", "Printed", "Text"):
            exceeded = await reported_condition(env, kind)
            assert (exceeded.status, exceeded.reason) == ("Unknown", "ConditionRuleBudgetExceeded")
            assert exceeded.message.startswith("CEL evaluation budget exceeded: the expression")
            assert "steps" in exceeded.message
        await env.restart()
        await assert_others_go_on(env, "after the restart")


async def test_comparisons_of_whole_objects() -> None:
    """Comparing a large object with itself for every pair of its fields -> Unknown, and a pause that doubles"""
    async with agent_under_attack() as env:
        data = {f"key{index}": "x" * 100 for index in range(1000)}
        rule = cel("Equal", "object.data.all(a, object.data.all(b, object == object))")
        attack(env, data=data, conditionRules=[rule])
        await assert_others_go_on(env, "first")
        assert (await reported_condition(env, "Equal")).reason == "ConditionRuleBudgetExceeded"
        # Whoever changes the object wakes the agent, which does not evaluate the work again before its pause ends.
        for number in range(30):
            await env.cluster.edit(samples.config_map(NAME, "attack"), {"metadata": {"labels": {"n": f"{number}"}}})
            await assert_others_go_on(env, f"edit {number}")
        assert env.log.count(AgentPhrase.BUDGET_EXCEEDED) <= 3


async def test_many_works_that_exceed_their_budgets() -> None:
    """Twenty works with hundreds of expensive rules each -> every one is Unknown; others are reported in seconds"""
    async with agent_under_attack() as env:
        costly = "object.data.all(a, object.data.all(b, object.data.all(c, object == object)))"
        data = {f"key{index}": "x" for index in range(300)}
        for number in range(20):
            rules = [cel(f"Rule{index}", f"{index} == {index} && {costly}") for index in range(200)]
            attack(env, name=f"attack{number}", data=data, conditionRules=rules)
        await assert_others_go_on(env, "first")
        for number in range(20):
            reported = await reported_condition(env, "Rule199", f"attack{number}")
            assert (reported.status, reported.reason) == ("Unknown", "ConditionRuleBudgetExceeded")
            assert "of the manifest" in reported.message
        await assert_others_go_on(env, "second")


async def test_feedback_path_that_visits_everything() -> None:
    """A JSONPath that visits an object many times over -> StatusFeedbackSynced=False, with the limit and the remedy"""
    async with agent_under_attack() as env:
        data = {f"key{index}": "x" for index in range(1000)}
        twice = "['data','data','data','data','data','data']"
        paths = samples.json_paths(good=".data.key1", wide=f"..{twice}.*", **dict.fromkeys("abcdefgh", "..['data'].*"))
        attack(env, data=data, feedbackRules=paths)
        await assert_others_go_on(env, "first")
        synced = await reported_condition(env, "StatusFeedbackSynced")
        assert (synced.status, synced.reason) == ("False", "StatusFeedbackSyncFailed")
        assert "the expressions of the manifest take more than" in synced.message
        latest = env.latest_status("attack")
        assert latest is not None
        assert values(latest)["good"] == "x"


async def test_ignored_fields_that_explode() -> None:
    """A jq expression of many recursions in ignoreFields -> Applied=False; the fields are not overwritten"""
    async with agent_under_attack() as env:
        fields = [{"condition": "OnSpokePresent", "jqPathExpressions": [".data[]|..|..|select(..==..)"]}]
        strategy = samples.strategy("ServerSideApply", ignoreFields=fields)
        attack(env, data={f"key{index}": "x" for index in range(2000)}, updateStrategy=strategy)
        await assert_others_go_on(env, "first")
        reported = await env.wait_for_conditions("attack", applied="F:F")
        applied = condition(reported.status.manifests[0], "Applied")
        assert applied.reason == "AppliedManifestSSAIgnoreFieldError"
        assert f"takes more than {budget.STEPS_PER_EXPRESSION} steps" in applied.message
        await env.restart()
        await assert_others_go_on(env, "after the restart")


async def test_thousands_of_rules() -> None:
    """A work with thousands of rules, or an endless expression -> the work is rejected, or the rule says why"""
    async with agent_under_attack() as env:
        attack(env, conditionRules=[cel(f"Rule{index}", "true") for index in range(6000)])
        wildcard = samples.config(
            "configmaps", "*", conditionRules=[cel(f"Rule{index}", "true") for index in range(240)]
        )
        many = [samples.config_map(NAME, f"cm{index}") for index in range(400)]
        env.publish("wildcard", *many, manifestConfigs=[wildcard])
        attack(env, name="long", conditionRules=[cel("Long", "true" + " && true" * 20_000), cel("Deep", "(" * 4000)])
        await assert_others_go_on(env, "first")
        rejected = await env.wait_for_status(
            "attack", lambda reported: bool(reported.status.conditions), what="Applied"
        )
        assert "expressions, more than the 500 allowed" in condition(rejected, "Applied").message
        rejected = await env.wait_for_status(
            "wildcard", lambda reported: bool(reported.status.conditions), what="Applied"
        )
        assert "expressions, more than the 10000 allowed" in condition(rejected, "Applied").message
        assert "more than the 4096 allowed" in (await reported_condition(env, "Long", "long")).message
        assert "nested more than 40 deep" in (await reported_condition(env, "Deep", "long")).message


LIVE: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm"},
    "list": [*range(2000)],
    "texts": [f"{index}" * 20 for index in range(500)],
    "text": "ab" * 10_000,
    "map": {f"key{index}": {"a": index, "b": [index, "x" * 50]} for index in range(1000)},
}
SLOWEST_SECONDS = 1.0
"""Processor time for one manifest, twenty times what was measured: a failure means minutes, not milliseconds."""
SOURCES = st.sampled_from(["object.list", "object.texts", "object.map", "[object]", "[object.text]", "[1]"])
BODIES = st.sampled_from(
    [
        "[a,a]",
        "a == object",
        "[a] + object.list",
        "a in object.list",
        "string(a) + object.text",
        "object.map == object.map",
        "object.texts.join(object.text)",
        "object.text.split('a')",
        "object.text.replace('a', object.text)",
        "object.text.matches('(a|b)*c')",
        "object.text.findAll('a|b')",
        "'%s%s'.format([a, object])",
        "object.text.lastIndexOf('ba' + object.text)",
        "quantity('1Gi').add(quantity('1')) == a",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "url('https://h/' + object.text).getQuery()",
        "{'k': a}",
        "object.list.map(b, a == b)",
        "object.texts.min() + object.texts.max()",
    ]
)


@given(source=SOURCES, bodies=st.lists(BODIES, min_size=1, max_size=8), macro=st.sampled_from(["map", "filter", "all"]))
def test_any_cel_expression_ends_within_its_budget(source: str, bodies: list[str], macro: str) -> None:
    """Any combination of growing, comparing and searching in CEL -> milliseconds, then Unknown"""
    expression = source + "".join(f".map(a, {body})" for body in bodies[:-1]) + f".{macro}(a, {bodies[-1]})"
    rule = options.ConditionRule(condition="C", type=options.CEL, cel_expressions=(f"{expression} == [1]",) * 20)
    assert_ends(lambda spent: condition_rules.evaluate([rule] * 20, LIVE, generation=1, budget=spent))


PATH_PARTS = [
    "..",
    ".*",
    ".list",
    ".map",
    "[*]",
    "[:]",
    "['map','list','map']",
    "[?(@.a==1)]",
    "[?(@.b[?(@>1)])]",
    "}{",
]
PATH_PARTS += [" range ", "end", "@", "'text'", "..a", ".b[0]"]


@given(st.lists(st.sampled_from(PATH_PARTS), min_size=1, max_size=20).map("".join))
def test_any_json_path_ends_within_its_budget(path: str) -> None:
    """Any combination of JSONPath steps -> milliseconds, then StatusFeedbackSynced=False"""
    rule = options.FeedbackRule(type=options.JSON_PATHS, json_paths=(options.JsonPath(name="v", path=path),) * 20)
    assert_ends(lambda spent: feedback.read([rule], LIVE, json_raw_max_bytes=1 << 20, budget=spent))


JQ_PARTS = [
    "..",
    "|",
    ",",
    "[]",
    "?",
    ".map",
    ".list",
    "select(",
    ")",
    "==",
    "<",
    "(",
    " and ",
    'test("(a|b)*c")',
    "not",
]


@given(st.lists(st.sampled_from(JQ_PARTS), min_size=1, max_size=20).map("".join))
def test_any_jq_expression_ends_within_its_budget(expression: str) -> None:
    """Any combination of jq operations -> milliseconds, then Applied=False"""
    entry = options.IgnoreFields(condition=options.ON_SPOKE_PRESENT, jq_path_expressions=(expression,) * 20)

    def remove(spent: budget.Budget) -> None:
        with contextlib.suppress(ignored_fields.IgnoreFieldsError):
            ignored_fields.without_fields(LIVE, [entry], budget=spent)

    assert_ends(remove)


def assert_ends(evaluate: Any) -> None:
    """Evaluate with the budget of one manifest, and measure it."""
    root = budget.Budget()
    begun = time.process_time()
    with root.manifest() as spent:
        evaluate(spent)
    assert time.process_time() - begun < SLOWEST_SECONDS
    assert root.steps_taken <= budget.STEPS_PER_MANIFEST


def test_no_slice_is_longer_than_its_limit() -> None:
    """The limits themselves -> the event loop is never held for more than 50,000 steps"""
    assert evaluation.SLICE_STEPS + budget.STEPS_PER_MANIFEST == 50_000
    assert budget.STEPS_PER_EXPRESSION < budget.STEPS_PER_MANIFEST < budget.STEPS_PER_WORK
    with pytest.raises(budget.BudgetExceeded, match="split the work"):
        budget.Budget(0).spend(1)
