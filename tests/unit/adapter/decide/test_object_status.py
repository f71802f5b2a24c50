"""Whose status describes an older spec, and where the kit asks for the generations."""

import json
from typing import Any

import pytest

from maestropy.adapter.decide import object_status
from maestropy.sdk.work import Work
from maestropy.wire.works.work import ManifestWork

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}}
GENERATION = {"name": "objectGeneration", "path": ".metadata.generation"}
OBSERVED = {"name": "observedGeneration", "path": ".status.observedGeneration"}


def rules(work: Work) -> list[dict[str, str]]:
    config = work.to_dict()["spec"]["manifestConfigs"][0]
    return [path for rule in config["feedbackRules"] for path in rule["jsonPaths"]]


def observed(work: Work, **values: Any) -> Work:
    """The work with these feedback values: numbers and JSON."""
    fields = [
        {"name": name, "fieldValue": {"type": "Integer", "integer": value}}
        if isinstance(value, int)
        else {"name": name, "fieldValue": {"type": "JsonRaw", "jsonRaw": json.dumps(value)}}
        for name, value in values.items()
    ]
    meta = {"ordinal": 0, "kind": "Deployment", "name": "d", "namespace": "default"}
    manifest = {"resourceMeta": meta, "conditions": [], "statusFeedback": {"values": fields}}
    body = {**work.to_dict(), "status": {"resourceStatus": {"manifests": [manifest]}}}
    return Work.wrap(ManifestWork(body), observed_version=1)


@pytest.mark.parametrize(
    ("feedback", "added"),
    [
        pytest.param({"status": ".status"}, [GENERATION], id="whole-status"),
        pytest.param({"state": "{.status}"}, [GENERATION], id="whole-status-in-braces"),
        pytest.param({"ready": ".status.readyReplicas"}, [GENERATION, OBSERVED], id="one-field"),
        pytest.param({"data": ".data"}, [], id="no-status"),
        pytest.param({"status": ".status", "objectGeneration": ".spec.x"}, [], id="the-name-is-taken"),
    ],
)
def test_generation_rules_follow_the_rules_that_read_a_status(
    feedback: dict[str, str], added: list[dict[str, str]]
) -> None:
    work = Work("w").add(DEPLOYMENT, feedback=feedback)
    assert rules(object_status.with_generation_rules(work)) == [*rules(work), *added]


def test_malformed_configs_are_left_to_the_validation() -> None:
    work = Work.wrap(Work("w").add(DEPLOYMENT).manifest_work.with_spec(manifestConfigs=["x"]))
    assert object_status.with_generation_rules(work) == work


def available(generation: int) -> dict[str, Any]:
    return {"conditions": [{"type": "Available", "status": "True", "observedGeneration": generation}]}


@pytest.mark.parametrize(
    ("feedback", "values", "is_outdated"),
    [
        pytest.param({"status": ".status"}, {"status": {"observedGeneration": 2}}, True, id="older-status"),
        pytest.param({"status": ".status"}, {"status": {"observedGeneration": 3}}, False, id="current-status"),
        pytest.param({"status": ".status"}, {"status": {"ready": 1}}, False, id="controller-without-generations"),
        pytest.param({"status": ".status"}, {"status": available(2)}, True, id="older-condition"),
        pytest.param({"status": ".status"}, {"status": available(3)}, False, id="current-condition"),
        pytest.param({"part": ".status.version"}, {"part": {"observedGeneration": 2}}, False, id="another-number"),
        pytest.param({"ready": ".status.ready"}, {"ready": 1, "observedGeneration": 2}, True, id="older-field"),
        pytest.param({"ready": ".status.ready"}, {"ready": 1, "observedGeneration": 3}, False, id="current-field"),
    ],
)
def test_status_is_outdated_if_it_names_an_older_generation(
    feedback: dict[str, str], values: dict[str, Any], is_outdated: bool
) -> None:
    work = object_status.with_generation_rules(Work("w").add(DEPLOYMENT, feedback=feedback))
    message = object_status.outdated([observed(work, objectGeneration=3, **values)])
    assert message.startswith("Deployment d has generation 3, and its status is of generation 2") is is_outdated
    assert bool(message) is is_outdated
