"""Status feedback and condition rules."""

from typing import Any

from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition, condition_summary, values

Json = dict[str, Any]
SYNCED = "StatusFeedbackSynced"


async def make_ready(env: AgentEnvironment, app: str, *, phase: str = "Running") -> None:
    """Set the pods of an app to ready, in place of a kubelet."""
    pods = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "", "namespace": env.namespace}}

    async def found() -> list[Json]:
        return [pod for pod in await env.cluster.list(pods) if pod["metadata"].get("labels", {}).get("app") == app]

    for pod in await env.wait_until(found, what=f"the pods of {app}"):
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        done = {"phase": phase, "conditions": [ready]}
        await env.cluster.edit(pod, {"status": done}, subresource="status")


def feedback_config(resource: str, name: str, *rules: Any, group: str = "apps", **options: Any) -> Json:
    return samples.config(resource, name, group=group, feedbackRules=[*rules], **options)


async def case_well_known_status_of_deployment(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    paths = samples.json_paths(desired=".spec.replicas", name=".metadata.name", none=".status.nothing")
    env.publish("w", web, manifestConfigs=[feedback_config("deployments", "web", *samples.WELL_KNOWN, *paths)])
    await env.wait_until_applied("w")
    await make_ready(env, "web")
    complete = {"ReadyReplicas": 1, "Replicas": 1, "AvailableReplicas": 1, "desired": 1, "name": "web"}
    reported = await env.wait_for_status("w", lambda reported: values(reported) == complete, what=f"{complete}")
    assert list(values(reported)) == ["ReadyReplicas", "Replicas", "AvailableReplicas", "desired", "name"]
    assert [value.type for value in reported.status.manifests[0].feedback] == ["Integer"] * 4 + ["String"]
    assert condition_summary(reported, SYNCED) == "-:T"
    assert condition(reported.status.manifests[0], SYNCED).reason == SYNCED


async def case_feedback_transition_time_moves_with_values(env: AgentEnvironment) -> None:
    web = samples.deployment(env.namespace, "web")
    configs = [feedback_config("deployments", "web", *samples.json_paths(desired=".spec.replicas"))]
    env.publish("w", web, manifestConfigs=configs)
    first = await env.wait_until_applied("w")
    # Transition times have whole seconds.
    begun = condition(first.status.manifests[0], SYNCED).last_transition_time
    await env.wait_until(_is_later_than(begun), what="the next second")
    env.publish("w", samples.deployment(env.namespace, "web", replicas=5), manifestConfigs=configs)
    second = await env.wait_for_status("w", lambda reported: values(reported) == {"desired": 5}, what="the new value")
    assert condition(second.status.manifests[0], SYNCED).last_transition_time > begun


def _is_later_than(moment: str) -> Any:
    from tests.conformance.memory_server import now

    async def is_later() -> bool:
        return now().rfc3339_seconds() > moment

    return is_later


async def case_failing_feedback_rules_keep_other_values(env: AgentEnvironment) -> None:
    account, web = samples.service_account(env.namespace, "sa"), samples.deployment(env.namespace, "web")
    configs = [
        samples.config("serviceaccounts", "*", feedbackRules=samples.WELL_KNOWN),
        feedback_config(
            "deployments", "w*b", *samples.json_paths(good=".metadata.name", bad="metadata.name", index=".spec.none[0]")
        ),
    ]
    env.publish("w", account, web, manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", applied="T:TT", available="T:TT")
    assert condition_summary(reported, SYNCED) == "-:FF"
    unknown = condition(reported.status.manifests[0], SYNCED)
    assert unknown.reason == "StatusFeedbackSyncFailed"
    assert unknown.message.endswith("cannot find the wellknown statuses for resource with gvk /v1, Kind=ServiceAccount")
    assert "unrecognized identifier metadata" in condition(reported.status.manifests[1], SYNCED).message
    assert values(reported, 1) == {"good": "web"}


async def case_structures_are_json_raw(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm", data={"b": "<2>", "a": "1"})
    configs = [samples.config("configmaps", "cm", feedbackRules=samples.json_paths(data=".data"))]
    env.publish("w", cm, manifestConfigs=configs)
    reported = await env.wait_until_applied("w")
    assert values(reported) == {"data": '{"a":"1","b":"\\u003c2\\u003e"}'}
    assert condition_summary(reported, SYNCED) == "-:T"


async def case_well_known_status_of_daemon_set(env: AgentEnvironment) -> None:
    agent = samples.daemon_set(env.namespace, "agent")
    env.publish("w", agent, manifestConfigs=[feedback_config("daemonsets", "agent", *samples.WELL_KNOWN)])
    await env.wait_until_applied("w")

    async def agrees() -> bool:
        status = (await env.wait_for_object(agent)).get("status") or {}
        names = {
            "NumberReady": "numberReady",
            "DesiredNumberScheduled": "desiredNumberScheduled",
            "NumberAvailable": "numberAvailable",
        }
        shown = {name: status[field] for name, field in names.items() if field in status}
        reported = env.latest_status("w")
        return bool(status.get("observedGeneration") and reported and values(reported) == shown)

    await env.wait_until(agrees, what="the values to be the object's")


async def case_first_matching_manifest_config_wins(env: AgentEnvironment) -> None:
    one, two = samples.deployment(env.namespace, "deploy1"), samples.deployment(env.namespace, "deploy2")
    configs = [
        feedback_config("deployments", "deploy1", *samples.json_paths(mine=".metadata.name")),
        feedback_config("deployments", "deploy*", *samples.WELL_KNOWN, *samples.json_paths(name=".metadata.name")),
        feedback_config("deployments", "*", *samples.json_paths(last=".metadata.name")),
    ]
    env.publish("w", one, two, manifestConfigs=configs)
    reported = await env.wait_for_status(
        "w", lambda reported: "Replicas" in values(reported, 1), what="well-known values"
    )
    assert values(reported, 0) == {"mine": "deploy1"}
    assert values(reported, 1)["name"] == "deploy2"
    assert "last" not in values(reported, 1)


async def case_feedback_of_watched_namespace(env: AgentEnvironment) -> None:
    inner = samples.namespace(f"{env.namespace}-inner")
    rules = samples.json_paths(phase=".status.phase", name=".metadata.name")
    configs = [samples.config("namespaces", "*", namespace="", feedbackRules=rules, feedbackScrapeType="Watch")]
    env.publish("w", inner, manifestConfigs=configs)
    desired = {"phase": "Active", "name": inner["metadata"]["name"]}
    reported = await env.wait_for_status("w", lambda reported: values(reported) == desired, what=f"{desired}")
    assert condition_summary(reported, SYNCED) == "-:T"


async def case_well_known_condition_completes_job(env: AgentEnvironment) -> None:
    rule = {"type": "WellKnownConditions", "condition": "Complete"}
    configs = [
        samples.config(
            "jobs", "job", group="batch", conditionRules=[rule], updateStrategy=samples.strategy("ServerSideApply")
        )
    ]
    env.publish("w", samples.job(env.namespace, "job"), manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", applied="T:T", Complete="F:F")
    complete = condition(reported.status.manifests[0], "Complete")
    assert (complete.reason, complete.message) == ("ConditionRuleEvaluated", "Job is not finished")
    assert complete.observed_generation == reported.generation
    assert condition(reported, "Complete").reason == "ConditionRulesAggregated"
    env.publish("w", samples.job(env.namespace, "job", suspend=False), manifestConfigs=configs)
    await env.wait_for_conditions("w", applied="T:T")
    await make_ready(env, "job", phase="Succeeded")
    reported = await env.wait_for_conditions("w", Complete="T:T")
    assert condition(reported, "Complete").message == "Job is finished"


async def case_cel_rule_with_message_expression(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm", data={"count": "0"})
    rule = {
        "type": "CEL",
        "condition": "Busy",
        "celExpressions": ['object.data.count == "1"'],
        "messageExpression": 'result ? "One pod is active" : "There is not only one pod active"',
    }
    configs = [samples.config("configmaps", "cm", conditionRules=[rule])]
    env.publish("w", cm, manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", applied="T:T", Busy="F:F")
    assert condition(reported, "Busy").message == "There is not only one pod active"
    env.publish("w", samples.config_map(env.namespace, "cm", data={"count": "1"}), manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", Busy="T:T")
    assert condition(reported, "Busy").message == "One pod is active"
    # Removing a rule removes its condition.
    env.publish("w", samples.config_map(env.namespace, "cm", data={"count": "1"}))
    await env.wait_for_conditions("w", applied="T:T", Busy="-:-")


async def case_unknown_well_known_condition_is_not_set(env: AgentEnvironment) -> None:
    rule = {"type": "WellKnownConditions", "condition": "Glorious"}
    configs = [samples.config("jobs", "job", group="batch", conditionRules=[rule])]
    env.publish("w", samples.job(env.namespace, "job"), manifestConfigs=configs)
    reported = await env.wait_until_applied("w")
    assert condition_summary(reported, "Glorious") == "-:-"


async def case_failing_cel_rule_affects_only_its_manifest(env: AgentEnvironment) -> None:
    one, two = samples.config_map(env.namespace, "one"), samples.config_map(env.namespace, "two")

    def rule(expression: str) -> list[Json]:
        return [{"type": "CEL", "condition": "Fine", "celExpressions": [expression]}]

    configs = [
        samples.config("configmaps", "one", conditionRules=rule("has(object.data)")),
        samples.config("configmaps", "*", conditionRules=rule("object.missing.field == 1")),
    ]
    env.publish("w", one, two, manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", applied="T:TT", Fine="F:TF")
    assert condition(reported.status.manifests[1], "Fine").reason == "ConditionRuleExpressionError"
    assert "no such key: missing" in condition(reported.status.manifests[1], "Fine").message
    assert condition(reported, "Fine").message == "Aggregated from 2 manifest conditions"


async def case_complete_work_is_not_applied_again(env: AgentEnvironment) -> None:
    def cms(value: str, other: str) -> tuple[Json, Json]:
        return samples.config_map(env.namespace, "cm1", data={"done": value}), samples.config_map(
            env.namespace, "cm2", data={"k": other}
        )

    rule = {"type": "CEL", "condition": "Complete", "celExpressions": ['object.data.done == "yes"']}
    configs = [samples.config("configmaps", "cm1", conditionRules=[rule])]
    env.publish("w", *cms("no", "1"), manifestConfigs=configs)
    await env.wait_for_conditions("w", applied="T:TT", Complete="F:F-")
    env.publish("w", *cms("yes", "2"), manifestConfigs=configs)
    reported = await env.wait_for_conditions("w", Complete="T:T-")
    assert condition(reported, "Complete").reason == "ConditionRulesAggregated"
    env.publish("w", *cms("yes", "3"), manifestConfigs=configs)
    await env.wait_for_conditions("w", Complete="T:T-")
    await env.wait_until_idle()
    assert (await env.wait_for_object(cms("", "")[1]))["data"] == {"k": "2"}
    env.delete("w")
    await env.wait_until_deleted("w")


async def case_condition_rule_overrides_available(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm", data={"up": "no"})
    rule = {"type": "CEL", "condition": "Available", "celExpressions": ['object.data.up == "yes"']}
    env.publish("w", cm, manifestConfigs=[samples.config("configmaps", "cm", conditionRules=[rule])])
    reported = await env.wait_for_conditions("w", applied="T:T", available="F:F")
    assert condition(reported.status.manifests[0], "Available").reason == "ConditionRuleEvaluated"
    await env.wait_until_idle()
    assert env.server.statuses[env.id_of("w")][-1] == reported


async def case_invalid_condition_rules_are_reported(env: AgentEnvironment) -> None:
    rules = [
        {"type": "CEL", "condition": "Broken", "celExpressions": ["object.("]},
        {"type": "CEL", "condition": "Text", "celExpressions": ["'text'"]},
        {"type": "Guess", "condition": "Guessed"},
        {"type": "CEL", "condition": "Costly", "celExpressions": [_COSTLY]},
    ]
    configs = [samples.config("configmaps", "cm", conditionRules=rules)]
    env.publish("w", samples.config_map(env.namespace, "cm"), manifestConfigs=configs)
    reported = await env.wait_for_conditions(
        "w", applied="T:T", available="T:T", Broken="F:F", Text="F:F", Guessed="U:U", Costly="U:U"
    )
    (manifest,) = reported.status.manifests
    assert condition(manifest, "Text").message == "expected bool result, got string"
    assert condition(manifest, "Guessed").reason == "ConditionRuleInvalid"
    assert condition(manifest, "Guessed").message == "unrecognized condition rule type Guess"
    costly = condition(manifest, "Costly")
    assert costly.reason == "ConditionRuleBudgetExceeded"
    assert costly.message.startswith("CEL evaluation budget exceeded: the expression takes more than")


_TEN = "[1,2,3,4,5,6,7,8,9,10]"
_COSTLY = f"{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, {_TEN}.all(d, {_TEN}.all(e, {_TEN}.all(f, a+b+c+d+e+f > 0))))))"
