"""Attacks by the author of a work: an executor covers what the agent reads for the work, not only what it writes.

The agent runs on the sandbox Kubernetes API with RBAC; its own account may read everything.
"""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maestropy.kube.config import load as config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.store.dsn import Dsn
from maestropy.wire import codec, errors
from maestropy.wire.events import grpc_binding
from maestropy.wire.works import status, validation
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, Cluster, agent_environment, condition
from tests.stack.secure_server import CONSUMER, add_consumers, bundle, refusal, running, spec

VALUE = "hunter2-of-kube-system"
WRITE = ("create", "update", "patch")
NUMBERS = itertools.count(1)
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "stolen", "namespace": "kube-system"},
    "stringData": {"password": VALUE},
}
FEEDBACK = samples.json_paths(password=".stringData.password", data=".data.password", all=".metadata")
RULES = [
    {
        "condition": "Ready",
        "type": "CEL",
        "celExpressions": ["object.metadata.name == 'stolen'"],
        "messageExpression": "object.data.password",
    }
]


@asynccontextmanager
async def environment() -> AsyncIterator[AgentEnvironment]:
    """An agent on a cluster that has a Secret in kube-system."""
    async with (
        SandboxCluster(delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        agent_environment(cluster, f"reads{next(NUMBERS)}") as env,
    ):
        if await cluster.get(samples.namespace("kube-system")) is None:
            await cluster.create(samples.namespace("kube-system"))
        await cluster.create(SECRET)
        yield env


async def grant(env: AgentEnvironment, *verbs: str, namespace: str = "kube-system", name: str = "rights") -> None:
    """Allow the executor these verbs on Secrets."""
    await env.cluster.create(samples.role(namespace, name, *verbs, groups={"": ["secrets", "configmaps"]}))
    binding = samples.role_binding(namespace, name, role=name, account="sa")
    binding["subjects"][0]["namespace"] = env.namespace
    await env.cluster.create(binding)


def publish(env: AgentEnvironment, *, strategy: str = "Update", executor: bool = True, **spec: Any) -> None:
    options = samples.config(
        "secrets",
        "stolen",
        namespace="kube-system",
        feedbackRules=FEEDBACK,
        conditionRules=RULES,
        updateStrategy=samples.strategy(strategy),
    )
    account = {"executor": samples.executor(env.namespace, "sa")} if executor else {}
    manifest = {key: value for key, value in SECRET.items() if key != "stringData"}
    env.publish("w", manifest, manifestConfigs=[options], **account, **spec)


def assert_nothing_is_told(env: AgentEnvironment) -> status.ManifestStatus:
    """Fail if any status that the server ever got has a value of the Secret, or whether it exists."""
    for reported in env.server.statuses[env.id_of("w")]:
        text = json.dumps(dict(reported.status.body), default=dict)
        assert VALUE not in text
        assert "aHVudGVyMi" not in text
        assert "creationTimestamp" not in text
        (entry,) = reported.status.manifests
        assert entry.feedback == ()
    latest = env.latest_status("w")
    assert latest is not None
    (entry,) = latest.status.manifests
    reason = f"system:serviceaccount:{env.namespace}:sa is not allowed to get"
    for kind in ("Available", "StatusFeedbackSynced", "Ready"):
        assert reason in condition(entry, kind).message
    assert condition(entry, "Available").status == "False"
    assert condition(entry, "Ready").status == "Unknown"
    return entry


@pytest.mark.parametrize("strategy", ["Update", "CreateOnly", "ServerSideApply", "ReadOnly"])
async def test_secret_of_another_namespace(strategy: str) -> None:
    """A work whose executor may not read a Secret asks for its values, by feedback and CEL -> no value, and why"""
    async with environment() as env:
        publish(env, strategy=strategy)
        await env.wait_for_conditions("w", applied="F:F", available="F:F", Ready="U:U")
        assert_nothing_is_told(env)


async def test_existence_of_an_object() -> None:
    """A work asks whether an object exists that its executor may not read -> the answer is the same if it does not"""
    async with environment() as env:
        publish(env)
        await env.wait_for_conditions("w", applied="F:F", available="F:F")
        there = condition(assert_nothing_is_told(env), "Available")
        await env.cluster.delete(SECRET)
        publish(env, deleteOption={"propagationPolicy": "Orphan"})
        await env.wait_for_conditions("w", applied="F:F", available="F:F")
        assert condition(assert_nothing_is_told(env), "Available").message == there.message


async def test_object_that_the_work_applied_itself() -> None:
    """The executor lost its permissions -> the work's own object is still available; its values are taken back"""
    async with environment() as env:
        await env.cluster.delete(SECRET)
        await grant(env, *WRITE, "get", "delete")
        publish(env)
        reported = await env.wait_for_conditions("w", applied="T:T", available="T:T", Ready="T:T")
        assert reported.status.manifests[0].feedback
        await env.cluster.delete(samples.role_binding("kube-system", "rights", role="rights", account="sa"))
        publish(env, deleteOption={"propagationPolicy": "Foreground"})
        latest = await env.wait_for_conditions("w", applied="F:F", available="T:T", Ready="U:U")
        assert latest.status.manifests[0].feedback == ()
        # Another object with its name is not the work's.
        await env.cluster.delete(SECRET)
        await env.cluster.create(SECRET)
        await env.restart()
        latest = await env.wait_for_conditions("w", applied="F:F", available="F:F", Ready="U:U")
        assert "is not allowed to get" in condition(latest.status.manifests[0], "Available").message


async def test_executor_that_may_write_but_not_read() -> None:
    """An executor with create, update, patch and delete, but without get -> nothing is applied and nothing read"""
    async with environment() as env:
        await grant(env, *WRITE, "delete")
        publish(env, strategy="ReadOnly")
        await env.wait_for_conditions("w", applied="F:F", available="F:F")
        assert_nothing_is_told(env)


async def test_completed_work() -> None:
    """A completed work, which is not applied again, whose executor lost get -> its values are taken back"""
    async with environment() as env:
        await grant(env, *WRITE, "get", "delete")
        rules = [{"condition": "Complete", "type": "CEL", "celExpressions": ["true"], "message": "done"}]
        options = samples.config(
            "secrets", "stolen", namespace="kube-system", feedbackRules=FEEDBACK, conditionRules=[*RULES, *rules],
            updateStrategy=samples.strategy("ReadOnly"),
        )  # fmt: skip
        manifest = {key: value for key, value in SECRET.items() if key != "stringData"}
        env.publish("w", manifest, manifestConfigs=[options], executor=samples.executor(env.namespace, "sa"))
        reported = await env.wait_for_conditions("w", applied="T:T", available="T:T", Complete="T:T")
        assert reported.status.manifests[0].feedback
        await env.cluster.delete(samples.role_binding("kube-system", "rights", role="rights", account="sa"))
        await env.restart()
        latest = await env.wait_for_status(
            "w", lambda reported: not reported.status.manifests[0].feedback, what="no feedback values"
        )
        (entry,) = latest.status.manifests
        assert "is not allowed to get" in condition(entry, "Available").message


async def test_executor_with_get_reads_what_it_may_not_write() -> None:
    """An executor that may get a Secret but not write it -> not applied, but its values are reported"""
    async with environment() as env:
        await grant(env, "get")
        publish(env)
        reported = await env.wait_for_conditions("w", applied="F:F", available="T:T", Ready="T:T")
        assert {value.name for value in reported.status.manifests[0].feedback} >= {"data"}


async def test_permission_granted_later() -> None:
    """The executor is allowed to get later -> values are reported within the retry time, without a new spec"""
    async with environment() as env:
        publish(env)
        await env.wait_for_conditions("w", applied="F:F", available="F:F")
        await grant(env, *WRITE, "get", "delete")
        reported = await env.wait_for_conditions("w", applied="T:T", available="T:T")
        assert reported.status.manifests[0].feedback


async def test_work_without_an_executor() -> None:
    """A work without an executor -> the agent reads with its own permissions, as before"""
    async with environment() as env:
        publish(env, strategy="ReadOnly", executor=False)
        reported = await env.wait_for_conditions("w", applied="T:T", available="T:T")
        assert reported.status.manifests[0].feedback


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param({"executor": {}}, 'unknown field "executor", did you mean "executer"?', id="executor"),
        pytest.param({"Executer": {}}, 'unknown field "Executer", did you mean "executer"?', id="other-case"),
        pytest.param(
            {"executer": {"subject": {"type": "ServiceAccount", "serviceaccount": {}}}},
            'unknown field "executer.subject.serviceaccount", did you mean "serviceAccount"?',
            id="account",
        ),
        pytest.param(
            {"manifestConfigs": [{"updateStrategies": {"type": "ReadOnly"}}]},
            'unknown field "manifestConfigs[0].updateStrategies", did you mean "updateStrategy"?',
            id="strategy",
        ),
    ],
)
async def test_misspelt_option(database: Dsn, options: dict[str, Any], reason: str) -> None:
    """A misspelt executor or option, which would be ignored -> rejected with its path and the field that was meant"""
    await add_consumers(database, CONSUMER)
    async with running(database) as server, server.sources() as sources:
        data = json.dumps({**json.loads(bundle()), **options}).encode()
        code, text = await refusal(sources, grpc_binding.encode_publish(spec("misspelt", data=data)))
        assert code != "OK"
        assert reason in text
        assert await refusal(sources, grpc_binding.encode_publish(spec("correct"))) == ("OK", "")


def test_misspelt_executor_from_a_server_that_ignores_it() -> None:
    """A Go server passes a bundle on with `executor` for `executer` -> the agent applies nothing, and says why"""
    data = json.dumps({**json.loads(bundle()), "executor": samples.executor("a", "sa")}).encode()
    with pytest.raises(errors.InvalidContent, match='did you mean "executer"'):
        codec.work_from_spec_event(spec("misspelt", data=data))


def test_misspelt_executor_in_a_manifest_work() -> None:
    """A ManifestWork with `executer`, the name in bundles, for `executor` -> the SDK rejects it"""
    document = {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1"},
        "spec": {"workload": {"manifests": [samples.config_map("default", "cm")]}, "executer": {}},
    }
    with pytest.raises(Invalid, match='did you mean "executor"'):
        Work.from_dict(document).validate()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"manifests":[],"executer":%s,"executer":null}', "executer"),
        ('{"manifests":[],"executer":%s,"execute\\u0072":null}', "executer"),
        ('{"executer":%s,"manifests":[],"manifests":[]}', "manifests"),
        (
            '{"manifests":[],"executer":%s,"deleteOption":{},"deleteOption":{"propagationPolicy":"Orphan"}}',
            "deleteOption",
        ),
        ('{"manifests":[],"executer":{"subject":{"type":"ServiceAccount"},"subject":null}}', "executer.subject"),
        (
            '{"manifests":[],"manifestConfigs":[{"updateStrategy":{"type":"ReadOnly"},"updateStrategy":null}]}',
            r"manifestConfigs\[0\].updateStrategy",
        ),
    ],
    ids=["executor", "escaped", "manifests", "deletion", "subject", "strategy"],
)
def test_repeated_option_is_rejected(text: str, field: str) -> None:
    """a bundle with two executors, of which a proxy checks the first -> rejected with the field that is repeated"""
    executor = '{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":"default","name":"nobody"}}}'
    with pytest.raises(errors.InvalidContent, match=f'duplicate field "{field}"'):
        validation.validate_manifest_bundle(text.replace("%s", executor).encode())


def test_field_names_inside_manifests_may_repeat() -> None:
    """a work that contains other works, with options of their own -> is accepted"""
    inner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}, "executer": 1, "manifests": []}
    manifests = [inner, {**inner, "metadata": {"name": "other"}}]
    validation.validate_manifest_bundle(json.dumps({"manifests": manifests, "executer": None}).encode())
