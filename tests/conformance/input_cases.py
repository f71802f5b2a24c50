"""Invalid input: undecodable specs, unknown kinds, oversized feedback values."""

from dataclasses import replace
from typing import Any

from maestropy.kube import errors
from maestropy.wire import json_types
from maestropy.wire.events import event
from maestropy.wire.works import work
from tests.conformance import memory_server
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, condition, condition_summary, values

Json = dict[str, Any]


async def rejection_message(env: AgentEnvironment, bundle: object) -> str:
    """Send event data as the newest spec of work `w`; return why it is not applied."""
    invalid_work = env.manifest_work("w", samples.config_map(env.namespace, "unused"))
    known = env.server.works.get(invalid_work.uid)
    stored = invalid_work.with_metadata(generation=(known.generation if known else 0) + 1)
    env.server.works[invalid_work.uid] = stored
    data = bundle if isinstance(bundle, bytes) else json_types.encode(bundle)
    env.server.send(memory_server.spec_event(stored, data=data))
    reported = await env.wait_for_status(
        "w",
        lambda reported: (
            reported.generation == stored.generation and condition_summary(reported, "Applied").startswith("F")
        ),
        what="Applied=False",
    )
    applied = condition(reported, "Applied")
    assert applied.reason == "AppliedManifestWorkFailed"
    assert applied.observed_generation == stored.generation
    return applied.message


async def case_invalid_specs_are_reported(env: AgentEnvironment) -> None:
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm)
    await env.wait_until_applied("w")
    nameless = {**cm, "metadata": {"namespace": env.namespace}}
    generated = {**cm, "metadata": {"namespace": env.namespace, "name": "cm", "generateName": "cm-"}}
    assert "should not be empty" in await rejection_message(env, {"manifests": []})
    assert "name must be set in manifest" in await rejection_message(env, {"manifests": [nameless]})
    assert "generateName must not be set" in await rejection_message(env, {"manifests": [generated]})
    assert "'Kind' is missing" in await rejection_message(env, {"manifests": [{"metadata": {"name": "x"}}]})
    assert "exceeds the 512000 limit" in await rejection_message(
        env, {"manifests": [{**cm, "data": {"k": "x" * 512000}}]}
    )
    await rejection_message(env, b"not json")
    await rejection_message(env, b'{"manifests": ' + b"[" * 100_000)
    await rejection_message(env, {"manifests": "none"})
    await rejection_message(env, {"manifests": [1, None, "x"]})
    await rejection_message(env, {"manifests": [cm], "manifestConfigs": "none"})
    await rejection_message(env, {"manifests": [cm], "deleteOption": [1]})
    # The last valid spec stays applied, and the next valid one is applied.
    assert await env.cluster.get(cm)
    env.publish("w", samples.config_map(env.namespace, "cm", data={"k": "better"}))
    await env.wait_until_applied("w")
    await env.wait_for_object(cm, data={"k": "better"})
    env.delete("w")
    await env.wait_until_deleted("w")


async def case_work_that_kubernetes_cannot_record_is_reported(env: AgentEnvironment) -> None:
    """An AppliedManifestWork has the work's resource ID in its name, and its labels."""
    cm = samples.config_map(env.namespace, "cm")
    env.publish("w", cm, labels={"key": "not a label value"})
    reported = await env.wait_for_status(
        "w", lambda latest: condition_summary(latest, "Applied").startswith("F"), what="Applied=False"
    )
    message = condition(reported, "Applied").message
    assert message.startswith("Failed to apply manifest work:")
    assert "not a label value" in message
    for resource_id in ("A B", "\N{LATIN SMALL LETTER E WITH ACUTE}"):
        env.server.put(
            work.new(resource_id, namespace=env.server.consumer, manifests=[cm]).with_metadata(uid=resource_id)
        )

        async def is_rejected(resource_id: str = resource_id) -> bool:
            statuses = env.server.statuses.get(resource_id, [])
            return any(condition_summary(reported, "Applied").startswith("F") for reported in statuses)

        await env.wait_until(is_rejected, what=f"Applied=False of {resource_id!r}")
        assert "nvalid" in condition(env.server.statuses[resource_id][-1], "Applied").message
    assert await env.cluster.get(cm) is None
    # The source corrects it.
    env.publish("w", cm, labels={"key": "value"})
    await env.wait_until_applied("w")


async def case_work_with_invalid_spec_can_be_deleted(env: AgentEnvironment) -> None:
    await rejection_message(env, {"manifests": []})
    env.delete("w")
    await env.wait_until_deleted("w")


async def case_events_without_required_attributes_are_ignored(env: AgentEnvironment) -> None:
    good = memory_server.spec_event(env.manifest_work("w", samples.config_map(env.namespace, "cm")))
    for name in (event.RESOURCE_ID, event.RESOURCE_VERSION, event.CLUSTER_NAME):
        env.server.send(
            replace(good, extensions={key: extension for key, extension in good.extensions.items() if key != name})
        )
    for name, value in (
        (event.CLUSTER_NAME, "another"),
        (event.METADATA, "{not json"),
        (event.METADATA, '{"labels": 5}'),
        (event.RESOURCE_VERSION, "many"),
        (event.RESOURCE_VERSION, "99999999999"),
        (event.LOG_TRACING, "[]"),
        (event.DELETION_TIMESTAMP, "yesterday"),
    ):
        env.server.send(replace(good, extensions={**good.extensions, name: value}))
    for kind in ("x", "a.b.c.d.e", f"{event.MANIFEST_BUNDLES}.status.create_request", event.SPEC_RESYNC_REQUEST):
        env.server.send(replace(good, type=kind))
    env.server.send(replace(good, type=event.STATUS_RESYNC_REQUEST, data=b"nonsense"))
    env.publish("next", samples.config_map(env.namespace, "next"))
    await env.wait_until_applied("next")


async def case_invalid_manifests_do_not_block_others(env: AgentEnvironment) -> None:
    name = env.namespace
    unknown = {"apiVersion": "none.test/v1", "kind": "Nothing", "metadata": {"name": "x", "namespace": name}}
    old = {**samples.deployment(name, "web"), "apiVersion": "apps/v1beta9"}
    rejected_by_api = {**samples.deployment(name, "bad"), "spec": {}}
    odd = {**samples.config_map(name, "odd"), "data": {"k": {"not": "text"}}}
    slash = {**samples.config_map(name, "odd"), "metadata": {"name": "a/b", "namespace": name}}
    env.publish("w", unknown, old, rejected_by_api, odd, slash, samples.config_map(name, "good"))
    reported = await env.wait_for_conditions("w", applied="F:FFFFFT")
    assert condition_summary(reported, "Available") == "F:UUFFFT"
    assert condition(reported.status.manifests[0], "Applied").message == (
        'Failed to apply manifest: the server doesn\'t have a resource type "Nothing"'
    )
    assert condition(reported.status.manifests[0], "Available").reason == "IncompleteResourceMeta"
    await env.wait_for_applied_resources("w", "configmaps/good")
    # An unknown kind blocks neither pruning nor deletion.
    env.publish("w", unknown, samples.config_map(name, "better"))
    await env.wait_for_conditions("w", applied="F:FT")
    await env.wait_for_applied_resources("w", "configmaps/better")
    env.delete("w")
    await env.wait_until_deleted("w")


async def case_kind_installed_later_is_applied(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    crd, gadget = samples.crd(group), samples.gadget(group, env.namespace, "g1")
    env.publish("w", gadget)
    await env.wait_for_conditions("w", applied="F:F", available="U:U")
    # As after hours of waiting: only the new CRD, not a retry, can be in time.
    await env.cancel_retries()
    await env.cluster.create(crd)
    try:
        await env.wait_for_conditions("w", applied="T:T", available="T:T", seconds=10)
    finally:
        env.delete("w")
        await env.wait_until_deleted("w")
        await env.cluster.delete(crd)


async def case_work_of_removed_kind_can_be_deleted(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    crd, gadget = samples.crd(group), samples.gadget(group, env.namespace, "g1")
    await env.cluster.create(crd)
    env.publish("w", gadget)
    await env.wait_until_applied("w")
    await env.cluster.delete(crd)
    await env.wait_until_gone(crd)
    await env.wait_for_conditions("w", available="F:F")
    env.delete("w")
    await env.wait_until_deleted("w")


async def case_large_feedback_values_are_reported(env: AgentEnvironment) -> None:
    value = "x" * 300_000
    cm = samples.config_map(env.namespace, "cm", data={"a": value, "b": value})
    read_only = samples.strategy("ReadOnly")
    await env.cluster.create(cm)
    small = samples.config_map(env.namespace, "cm")
    rules = samples.json_paths(all=".data", one=".data.a", twice=".data['a','b']")
    configs = [samples.config("configmaps", "cm", feedbackRules=rules, updateStrategy=read_only)]
    env.publish("w", small, manifestConfigs=configs)
    reported = await env.wait_until_applied("w")
    assert {name: len(value) for name, value in values(reported).items()} == {
        "all": 600_015,
        "one": 300_000,
        "twice": 600_007,
    }


async def case_feedback_value_over_limit_is_rejected(env: AgentEnvironment) -> None:
    group = f"{env.namespace}.test"
    gadget = samples.gadget(group, env.namespace, "g1")
    gadget["spec"] = {"list": ["x" * 1000] * 1060}
    await env.cluster.create(samples.crd(group))
    read_only = samples.strategy("ReadOnly")

    async def is_created() -> bool:
        try:
            return bool(await env.cluster.create(gadget))
        except (errors.NotFound, errors.UnknownKind):
            return False

    await env.wait_until(is_created, what="the object of a new kind")
    rules = samples.json_paths(all=".spec.list", name=".metadata.name")
    configs = [samples.config("gadgets", "g1", group=group, feedbackRules=rules, updateStrategy=read_only)]
    env.publish("w", samples.gadget(group, env.namespace, "g1"), manifestConfigs=configs)
    reported = await env.wait_until_applied("w")
    assert values(reported) == {"name": "g1"}
    assert (
        "is larger than the maximum length 1048576"
        in condition(reported.status.manifests[0], "StatusFeedbackSynced").message
    )
    await env.cluster.delete(samples.crd(group))
