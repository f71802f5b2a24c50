"""What works say about their objects: feedback values and conditions by rules."""

from typing import Any

from conformance import objects_wanted as want
from conformance.fleet import Fleet, condition, letters, values

Json = dict[str, Any]
SYNCED = "StatusFeedbackSynced"


async def make_ready(fleet: Fleet, app: str, *, phase: str = "Running") -> None:
    """Let the pods of an app come up, where no kubelet does it."""
    pods = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "", "namespace": fleet.namespace}}

    async def found() -> list[Json]:
        return [each for each in await fleet.cluster.list(pods) if each["metadata"].get("labels", {}).get("app") == app]

    for pod in await fleet.until(found, what=f"the pods of {app}"):
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        done = {"phase": phase, "conditions": [ready]}
        await fleet.cluster.edit(pod, {"status": done}, subresource="status")


def told(resource: str, name: str, *rules: Any, group: str = "apps", **options: Any) -> Json:
    return want.config(resource, name, group=group, feedbackRules=[*rules], **options)


async def case_43_82_well_known_deployment(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    paths = want.json_paths(wanted=".spec.replicas", name=".metadata.name", none=".status.nothing")
    fleet.publish("w", web, manifestConfigs=[told("deployments", "web", *want.WELL_KNOWN, *paths)])
    await fleet.is_applied("w")
    await make_ready(fleet, "web")
    complete = {"ReadyReplicas": 1, "Replicas": 1, "AvailableReplicas": 1, "wanted": 1, "name": "web"}
    report = await fleet.report("w", lambda found: values(found) == complete, what=f"{complete}")
    assert list(values(report)) == ["ReadyReplicas", "Replicas", "AvailableReplicas", "wanted", "name"]
    assert [each.type for each in report.status.manifests[0].feedback] == ["Integer"] * 4 + ["String"]
    assert letters(report, SYNCED) == "-:T"
    assert condition(report.status.manifests[0], SYNCED).reason == SYNCED


async def case_16_value_moves_its_condition(fleet: Fleet) -> None:
    web = want.deployment(fleet.namespace, "web")
    configs = [told("deployments", "web", *want.json_paths(wanted=".spec.replicas"))]
    fleet.publish("w", web, manifestConfigs=configs)
    first = await fleet.is_applied("w")
    # Transition times have whole seconds.
    begun = condition(first.status.manifests[0], SYNCED).last_transition_time
    await fleet.until(_is_later_than(begun), what="the next second")
    fleet.publish("w", want.deployment(fleet.namespace, "web", replicas=5), manifestConfigs=configs)
    second = await fleet.report("w", lambda found: values(found) == {"wanted": 5}, what="the new value")
    assert condition(second.status.manifests[0], SYNCED).last_transition_time > begun


def _is_later_than(moment: str) -> Any:
    from conformance.memory_server import now

    async def is_later() -> bool:
        return now().rfc3339_seconds() > moment

    return is_later


async def case_44_45_bad_rules_keep_the_good_values(fleet: Fleet) -> None:
    account, web = want.service_account(fleet.namespace, "sa"), want.deployment(fleet.namespace, "web")
    configs = [
        want.config("serviceaccounts", "*", feedbackRules=want.WELL_KNOWN),
        told("deployments", "w*b", *want.json_paths(good=".metadata.name", bad="metadata.name", index=".spec.none[0]")),
    ]
    fleet.publish("w", account, web, manifestConfigs=configs)
    report = await fleet.sees("w", applied="T:TT", available="T:TT")
    assert letters(report, SYNCED) == "-:FF"
    unknown = condition(report.status.manifests[0], SYNCED)
    assert unknown.reason == "StatusFeedbackSyncFailed"
    assert unknown.message.endswith("cannot find the wellknown statuses for resource with gvk /v1, Kind=ServiceAccount")
    assert "unrecognized identifier metadata" in condition(report.status.manifests[1], SYNCED).message
    assert values(report, 1) == {"good": "web"}


async def case_47_structures_are_raw_json(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm", data={"b": "<2>", "a": "1"})
    configs = [want.config("configmaps", "cm", feedbackRules=want.json_paths(data=".data"))]
    fleet.publish("w", cm, manifestConfigs=configs)
    report = await fleet.is_applied("w")
    assert values(report) == {"data": '{"a":"1","b":"\\u003c2\\u003e"}'}
    assert letters(report, SYNCED) == "-:T"


async def case_48_well_known_daemon_set(fleet: Fleet) -> None:
    agent = want.daemon_set(fleet.namespace, "agent")
    fleet.publish("w", agent, manifestConfigs=[told("daemonsets", "agent", *want.WELL_KNOWN)])
    await fleet.is_applied("w")

    async def agrees() -> bool:
        status = (await fleet.exists(agent)).get("status") or {}
        names = {
            "NumberReady": "numberReady",
            "DesiredNumberScheduled": "desiredNumberScheduled",
            "NumberAvailable": "numberAvailable",
        }
        shown = {name: status[field] for name, field in names.items() if field in status}
        report = fleet.told("w")
        return bool(status.get("observedGeneration") and report and values(report) == shown)

    await fleet.until(agrees, what="the values to be the object's")


async def case_49_50_42_first_matching_config_wins(fleet: Fleet) -> None:
    one, two = want.deployment(fleet.namespace, "deploy1"), want.deployment(fleet.namespace, "deploy2")
    configs = [
        told("deployments", "deploy1", *want.json_paths(mine=".metadata.name")),
        told("deployments", "deploy*", *want.WELL_KNOWN, *want.json_paths(name=".metadata.name")),
        told("deployments", "*", *want.json_paths(last=".metadata.name")),
    ]
    fleet.publish("w", one, two, manifestConfigs=configs)
    report = await fleet.report("w", lambda found: "Replicas" in values(found, 1), what="well-known values")
    assert values(report, 0) == {"mine": "deploy1"}
    assert values(report, 1)["name"] == "deploy2"
    assert "last" not in values(report, 1)


async def case_51_52_watched_namespace(fleet: Fleet) -> None:
    inner = want.namespace(f"{fleet.namespace}-inner")
    rules = want.json_paths(phase=".status.phase", name=".metadata.name")
    configs = [want.config("namespaces", "*", namespace="", feedbackRules=rules, feedbackScrapeType="Watch")]
    fleet.publish("w", inner, manifestConfigs=configs)
    wanted = {"phase": "Active", "name": inner["metadata"]["name"]}
    report = await fleet.report("w", lambda found: values(found) == wanted, what=f"{wanted}")
    assert letters(report, SYNCED) == "-:T"


async def case_53_85_job_completes(fleet: Fleet) -> None:
    rule = {"type": "WellKnownConditions", "condition": "Complete"}
    configs = [
        want.config(
            "jobs", "job", group="batch", conditionRules=[rule], updateStrategy=want.strategy("ServerSideApply")
        )
    ]
    fleet.publish("w", want.job(fleet.namespace, "job"), manifestConfigs=configs)
    report = await fleet.sees("w", applied="T:T", Complete="F:F")
    complete = condition(report.status.manifests[0], "Complete")
    assert (complete.reason, complete.message) == ("ConditionRuleEvaluated", "Job is not finished")
    assert complete.observed_generation == report.generation
    assert condition(report, "Complete").reason == "ConditionRulesAggregated"
    fleet.publish("w", want.job(fleet.namespace, "job", suspend=False), manifestConfigs=configs)
    await fleet.sees("w", applied="T:T")
    await make_ready(fleet, "job", phase="Succeeded")
    report = await fleet.sees("w", Complete="T:T")
    assert condition(report, "Complete").message == "Job is finished"


async def case_54_cel_with_messages(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm", data={"count": "0"})
    rule = {
        "type": "CEL",
        "condition": "Busy",
        "celExpressions": ['object.data.count == "1"'],
        "messageExpression": 'result ? "One pod is active" : "There is not only one pod active"',
    }
    configs = [want.config("configmaps", "cm", conditionRules=[rule])]
    fleet.publish("w", cm, manifestConfigs=configs)
    report = await fleet.sees("w", applied="T:T", Busy="F:F")
    assert condition(report, "Busy").message == "There is not only one pod active"
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"count": "1"}), manifestConfigs=configs)
    report = await fleet.sees("w", Busy="T:T")
    assert condition(report, "Busy").message == "One pod is active"
    # A rule that left the wish takes its condition along.
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"count": "1"}))
    await fleet.sees("w", applied="T:T", Busy="-:-")


async def case_55_unknown_well_known_condition(fleet: Fleet) -> None:
    rule = {"type": "WellKnownConditions", "condition": "Glorious"}
    configs = [want.config("jobs", "job", group="batch", conditionRules=[rule])]
    fleet.publish("w", want.job(fleet.namespace, "job"), manifestConfigs=configs)
    report = await fleet.is_applied("w")
    assert letters(report, "Glorious") == "-:-"


async def case_56_57_first_rules_win_and_bad_cel_hurts_only_its_own(fleet: Fleet) -> None:
    one, two = want.config_map(fleet.namespace, "one"), want.config_map(fleet.namespace, "two")

    def rule(expression: str) -> list[Json]:
        return [{"type": "CEL", "condition": "Fine", "celExpressions": [expression]}]

    configs = [
        want.config("configmaps", "one", conditionRules=rule("has(object.data)")),
        want.config("configmaps", "*", conditionRules=rule("object.missing.field == 1")),
    ]
    fleet.publish("w", one, two, manifestConfigs=configs)
    report = await fleet.sees("w", applied="T:TT", Fine="F:TF")
    assert condition(report.status.manifests[1], "Fine").reason == "ConditionRuleExpressionError"
    assert "no such key: missing" in condition(report.status.manifests[1], "Fine").message
    assert condition(report, "Fine").message == "Aggregated from 2 manifest conditions"


async def case_21_complete_work_is_frozen(fleet: Fleet) -> None:
    def cms(value: str, other: str) -> tuple[Json, Json]:
        return want.config_map(fleet.namespace, "cm1", data={"done": value}), want.config_map(
            fleet.namespace, "cm2", data={"k": other}
        )

    rule = {"type": "CEL", "condition": "Complete", "celExpressions": ['object.data.done == "yes"']}
    configs = [want.config("configmaps", "cm1", conditionRules=[rule])]
    fleet.publish("w", *cms("no", "1"), manifestConfigs=configs)
    await fleet.sees("w", applied="T:TT", Complete="F:F-")
    fleet.publish("w", *cms("yes", "2"), manifestConfigs=configs)
    report = await fleet.sees("w", Complete="T:T-")
    assert condition(report, "Complete").reason == "ConditionRulesAggregated"
    fleet.publish("w", *cms("yes", "3"), manifestConfigs=configs)
    await fleet.sees("w", Complete="T:T-")
    await fleet.settles()
    assert (await fleet.exists(cms("", "")[1]))["data"] == {"k": "2"}
    fleet.delete("w")
    await fleet.is_deleted("w")


async def case_4_8_rule_for_available_overrides_it(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm", data={"up": "no"})
    rule = {"type": "CEL", "condition": "Available", "celExpressions": ['object.data.up == "yes"']}
    fleet.publish("w", cm, manifestConfigs=[want.config("configmaps", "cm", conditionRules=[rule])])
    report = await fleet.sees("w", applied="T:T", available="F:F")
    assert condition(report.status.manifests[0], "Available").reason == "ConditionRuleEvaluated"
    await fleet.settles()
    assert fleet.server.reports[fleet.id_of("w")][-1] == report


async def case_4_8_bad_rules_are_told(fleet: Fleet) -> None:
    rules = [
        {"type": "CEL", "condition": "Broken", "celExpressions": ["object.("]},
        {"type": "CEL", "condition": "Text", "celExpressions": ["'text'"]},
        {"type": "Guess", "condition": "Guessed"},
        {"type": "CEL", "condition": "Costly", "celExpressions": [_COSTLY]},
    ]
    configs = [want.config("configmaps", "cm", conditionRules=rules)]
    fleet.publish("w", want.config_map(fleet.namespace, "cm"), manifestConfigs=configs)
    report = await fleet.sees(
        "w", applied="T:T", available="T:T", Broken="F:F", Text="F:F", Guessed="U:U", Costly="F:F"
    )
    (manifest,) = report.status.manifests
    assert condition(manifest, "Text").message == "expected bool result, got string"
    assert condition(manifest, "Guessed").reason == "ConditionRuleInvalid"
    assert condition(manifest, "Guessed").message == "unrecognized condition rule type Guess"
    assert "budget exceeded" in condition(manifest, "Costly").message


_TEN = "[1,2,3,4,5,6,7,8,9,10]"
_COSTLY = f"{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, {_TEN}.all(d, {_TEN}.all(e, {_TEN}.all(f, a+b+c+d+e+f > 0))))))"
