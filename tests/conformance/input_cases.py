"""What strangers send: specs that cannot be read, kinds nobody knows, values without end."""

from dataclasses import replace
from typing import Any

from conformance import memory_server
from conformance import objects_wanted as want
from conformance.fleet import Fleet, condition, letters, values

from maestropy.kube import errors
from maestropy.wire import event, jsontypes

Json = dict[str, Any]


async def refused(fleet: Fleet, bundle: object) -> str:
    """Send a bundle as the newest wish of work `w`; return why it is not applied."""
    wanted = fleet.wish("w", want.config_map(fleet.namespace, "unused"))
    known = fleet.server.wishes.get(wanted.uid)
    stored = wanted.with_metadata(generation=(known.generation if known else 0) + 1)
    fleet.server.wishes[wanted.uid] = stored
    data = bundle if isinstance(bundle, bytes) else jsontypes.encode(bundle)
    fleet.server.send(memory_server.spec_event(stored, data=data))
    report = await fleet.report(
        "w",
        lambda found: found.generation == stored.generation and letters(found, "Applied").startswith("F"),
        what="Applied=False",
    )
    applied = condition(report, "Applied")
    assert applied.reason == "AppliedManifestWorkFailed"
    assert applied.observed_generation == stored.generation
    return applied.message


async def case_87_88_94_unreadable_specs_are_answered(fleet: Fleet) -> None:
    cm = want.config_map(fleet.namespace, "cm")
    fleet.publish("w", cm)
    await fleet.is_applied("w")
    nameless = {**cm, "metadata": {"namespace": fleet.namespace}}
    generated = {**cm, "metadata": {"namespace": fleet.namespace, "name": "cm", "generateName": "cm-"}}
    assert "should not be empty" in await refused(fleet, {"manifests": []})
    assert "name must be set in manifest" in await refused(fleet, {"manifests": [nameless]})
    assert "generateName must not be set" in await refused(fleet, {"manifests": [generated]})
    assert "'Kind' is missing" in await refused(fleet, {"manifests": [{"metadata": {"name": "x"}}]})
    assert "exceeds the 512000 limit" in await refused(fleet, {"manifests": [{**cm, "data": {"k": "x" * 512000}}]})
    await refused(fleet, b"not json")
    await refused(fleet, b'{"manifests": ' + b"[" * 100_000)
    await refused(fleet, {"manifests": "none"})
    await refused(fleet, {"manifests": [1, None, "x"]})
    await refused(fleet, {"manifests": [cm], "manifestConfigs": "none"})
    await refused(fleet, {"manifests": [cm], "deleteOption": [1]})
    # The last wish that could be read stands, and the next one is followed.
    assert await fleet.cluster.get(cm)
    fleet.publish("w", want.config_map(fleet.namespace, "cm", data={"k": "better"}))
    await fleet.is_applied("w")
    await fleet.exists(cm, data={"k": "better"})
    fleet.delete("w")
    await fleet.is_deleted("w")


async def case_88_unreadable_from_the_start_can_be_deleted(fleet: Fleet) -> None:
    await refused(fleet, {"manifests": []})
    fleet.delete("w")
    await fleet.is_deleted("w")


async def case_94_events_without_what_they_need(fleet: Fleet) -> None:
    good = memory_server.spec_event(fleet.wish("w", want.config_map(fleet.namespace, "cm")))
    for name in (event.RESOURCE_ID, event.RESOURCE_VERSION, event.CLUSTER_NAME):
        fleet.server.send(replace(good, extensions={key: each for key, each in good.extensions.items() if key != name}))
    for name, value in (
        (event.CLUSTER_NAME, "another"),
        (event.METADATA, "{not json"),
        (event.METADATA, '{"labels": 5}'),
        (event.RESOURCE_VERSION, "many"),
        (event.RESOURCE_VERSION, "99999999999"),
        (event.LOG_TRACING, "[]"),
        (event.DELETION_TIMESTAMP, "yesterday"),
    ):
        fleet.server.send(replace(good, extensions={**good.extensions, name: value}))
    for kind in ("x", "a.b.c.d.e", f"{event.MANIFEST_BUNDLES}.status.create_request", event.SPEC_RESYNC_REQUEST):
        fleet.server.send(replace(good, type=kind))
    fleet.server.send(replace(good, type=event.STATUS_RESYNC_REQUEST, data=b"nonsense"))
    fleet.publish("next", want.config_map(fleet.namespace, "next"))
    await fleet.is_applied("next")


async def case_bad_manifests_block_nobody(fleet: Fleet) -> None:
    name = fleet.namespace
    unknown = {"apiVersion": "none.test/v1", "kind": "Nothing", "metadata": {"name": "x", "namespace": name}}
    old = {**want.deployment(name, "web"), "apiVersion": "apps/v1beta9"}
    refused_by_api = {**want.deployment(name, "bad"), "spec": {}}
    odd = {**want.config_map(name, "odd"), "data": {"k": {"not": "text"}}}
    slash = {**want.config_map(name, "odd"), "metadata": {"name": "a/b", "namespace": name}}
    fleet.publish("w", unknown, old, refused_by_api, odd, slash, want.config_map(name, "good"))
    report = await fleet.sees("w", applied="F:FFFFFT")
    assert letters(report, "Available") == "F:UUFFFT"
    assert condition(report.status.manifests[0], "Applied").message == (
        'Failed to apply manifest: the server doesn\'t have a resource type "Nothing"'
    )
    assert condition(report.status.manifests[0], "Available").reason == "IncompleteResourceMeta"
    await fleet.records_exactly("w", "configmaps/good")
    # What nobody knows blocks neither pruning nor the end.
    fleet.publish("w", unknown, want.config_map(name, "better"))
    await fleet.sees("w", applied="F:FT")
    await fleet.records_exactly("w", "configmaps/better")
    fleet.delete("w")
    await fleet.is_deleted("w")


async def case_kind_comes_later(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    crd, gadget = want.crd(group), want.gadget(group, fleet.namespace, "g1")
    fleet.publish("w", gadget)
    await fleet.sees("w", applied="F:F", available="U:U")
    # As if it had waited for hours: only the news, not the next retry, can be in time.
    await fleet.forget_retries()
    await fleet.cluster.create(crd)
    try:
        await fleet.sees("w", applied="T:T", available="T:T", seconds=10)
    finally:
        fleet.delete("w")
        await fleet.is_deleted("w")
        await fleet.cluster.delete(crd)


async def case_kind_goes_and_the_work_can_still_end(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    crd, gadget = want.crd(group), want.gadget(group, fleet.namespace, "g1")
    await fleet.cluster.create(crd)
    fleet.publish("w", gadget)
    await fleet.is_applied("w")
    await fleet.cluster.delete(crd)
    await fleet.is_gone(crd)
    await fleet.sees("w", available="F:F")
    fleet.delete("w")
    await fleet.is_deleted("w")


async def case_large_feedback(fleet: Fleet) -> None:
    value = "x" * 300_000
    cm = want.config_map(fleet.namespace, "cm", data={"a": value, "b": value})
    look = want.strategy("ReadOnly")
    await fleet.cluster.create(cm)
    small = want.config_map(fleet.namespace, "cm")
    rules = want.json_paths(all=".data", one=".data.a", twice=".data['a','b']")
    configs = [want.config("configmaps", "cm", feedbackRules=rules, updateStrategy=look)]
    fleet.publish("w", small, manifestConfigs=configs)
    report = await fleet.is_applied("w")
    assert {name: len(each) for name, each in values(report).items()} == {
        "all": 600_015,
        "one": 300_000,
        "twice": 600_007,
    }


async def case_feedback_beyond_the_limit(fleet: Fleet) -> None:
    group = f"{fleet.namespace}.test"
    gadget = want.gadget(group, fleet.namespace, "g1")
    gadget["spec"] = {"list": ["x" * 1000] * 1060}
    await fleet.cluster.create(want.crd(group))
    look = want.strategy("ReadOnly")

    async def is_created() -> bool:
        try:
            return bool(await fleet.cluster.create(gadget))
        except (errors.NotFound, errors.UnknownKind):
            return False

    await fleet.until(is_created, what="the object of a new kind")
    rules = want.json_paths(all=".spec.list", name=".metadata.name")
    configs = [want.config("gadgets", "g1", group=group, feedbackRules=rules, updateStrategy=look)]
    fleet.publish("w", want.gadget(group, fleet.namespace, "g1"), manifestConfigs=configs)
    report = await fleet.is_applied("w")
    assert values(report) == {"name": "g1"}
    assert (
        "is larger than the maximum length 1048576"
        in condition(report.status.manifests[0], "StatusFeedbackSynced").message
    )
    await fleet.cluster.delete(want.crd(group))
