"""The status of bundles is decoded, including nested works; documents are recognised by content."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.trace.hcp.documents import decode, document_types
from maestropy.trace.hcp.documents.decode import ObjectCondition
from maestropy.trace.hcp.hops import expected_conditions
from maestropy.trace.hcp.query import Topic
from tests.unit.trace.hcp.hcp_documents import CID, DATA, MAIN_BUNDLE, document

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["status", "resourceStatus", "manifests", "statusFeedback", "values", "fieldValue", "jsonRaw", "kind",
             "items", "conditions", "type", "resourceMeta", "metadata", "labels", "name", "id", "ObservedVersion",
             "error", "x"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


def bundles() -> dict[str, decode.Bundle]:
    return {each["id"]: decode.bundle(each) for each in document("11-maestro-bundles.json")["items"]}


def test_nested_manifestwork_is_decoded() -> None:
    bundle = bundles()[MAIN_BUNDLE]
    outer = bundle.observed[0]
    secret, hosted = outer.inner
    assert (outer.kind, outer.namespace, outer.name) == ("ManifestWork", "local-cluster", CID)
    assert [str(each) for each in outer.own] == [
        "Applied=True (AppliedManifestWorkComplete: Apply manifest work complete)",
        "Available=True (ResourcesAvailable: All resources are available)",
    ]
    assert (secret.kind, secret.own, secret.has_feedback) == ("Secret", (), False)
    assert decode.named(hosted.own, "Available") == ObjectCondition(
        type="Available",
        status="False",
        reason="EtcdWaitingForQuorum",
        message="Waiting for etcd to reach quorum",
        since=hosted.own[0].since,
    )
    assert hosted.values == {"Version-Desired": "4.21.9", "progress": "Partial"}
    assert (bundle.version, bundle.observed_version, bundle.cid, bundle.deleted) == (2, 2, CID, None)


def test_other_object_is_decoded() -> None:
    managed = bundles()["9329e2ab-3d77-5114-9580-5a7cccc81baf"].observed[0]
    assert managed.kind == "ManagedCluster"
    assert decode.is_true(managed.own, "HubAcceptedManagedCluster")
    assert managed.inner == ()


def test_read_only_bundle_has_the_whole_object() -> None:
    bundle = decode.bundle(document("12-maestro-readonly-bundle.json"))
    assert bundle.read_only
    assert [each.reason for each in bundle.observed[0].own] == ["EtcdWaitingForQuorum"]


def test_null_status() -> None:
    bundle = decode.bundle(document("13-maestro-undelivered-bundle.json"))
    assert not bundle.has_status
    assert bundle.observed == ()


def test_soft_deleted_at_the_root() -> None:
    bundle = decode.bundle(document("14-maestro-softdeleted-bundle.json"))
    assert bundle.deleted is not None
    assert bundle.deleted.isoformat() == "2026-08-20T12:00:00+00:00"


@pytest.mark.parametrize("key", ["ObservedVersion", "observedVersion"])
def test_capitalised_keys(key: str) -> None:
    assert decode.bundle({"version": 3, "status": {key: 2}}).observed_version == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "String", "string": "x"}, "x"),
        ({"type": "Integer", "integer": 0}, 0),
        ({"type": "Boolean", "boolean": False}, False),
        ({"type": "JsonRaw", "jsonRaw": "{not json"}, "{not json"),
        ({"type": "JsonRaw", "jsonRaw": "[1]"}, [1]),
        ({}, None),
    ],
)
def test_values(field: dict[str, Any], value: object) -> None:
    assert decode.feedback({"statusFeedback": {"values": [{"name": "n", "fieldValue": field}]}}) == {"n": value}


def test_fold_keeps_other_values() -> None:
    folded, rest = decode.fold(
        {"A-Status": "True", "A-Reason": "R", "A-Other": "o", "B-Reason": "alone", "-Status": "x"}
    )
    assert [(each.type, each.status, each.reason) for each in folded] == [("A", "True", "R")]
    assert rest == {"A-Other": "o", "B-Reason": "alone", "-Status": "x"}


def test_very_deep_nesting_ends() -> None:
    inner: dict[str, Any] = {}
    for _ in range(30):
        value: dict[str, Any] = {"name": "status", "fieldValue": {"jsonRaw": json.dumps(inner)}}
        inner = {"resourceStatus": [{"resourceMeta": {"kind": "ManifestWork"}, "statusFeedback": {"values": [value]}}]}
        if len(value["fieldValue"]["jsonRaw"]) > 100_000:  # quoting doubles with every level
            break
    assert len(list(decode.every(decode.bundle({"status": inner}).observed))) <= 10


@given(ANYTHING)
def test_any_document_is_decoded(value: Any) -> None:
    for each in document_types.recognise(value):
        decode.bundle(each.value)
        decode.observed(each.value)


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("01-frontend-cluster.json", {Topic.ARM_CLUSTER}),
        ("02-frontend-operationstatus.json", {Topic.OPERATION}),
        ("03-frontend-404.json", {Topic.ARM_CLUSTER}),
        ("04-cosmos-cluster.json", {Topic.COSMOS}),
        ("05-cosmos-serviceprovidercluster.json", {Topic.COSMOS}),
        ("06-cs-clusters.json", {Topic.CS_CLUSTER}),
        ("07-cs-cluster-status.json", {Topic.CS_STATUS}),
        ("08-cs-provision-shard.json", {Topic.SHARD}),
        ("09-cs-inflight-checks-failed.json", {Topic.CS_CHECKS}),
        ("10-maestro-consumers.json", {Topic.CONSUMER}),
        ("11-maestro-bundles.json", {Topic.BUNDLE}),
        ("12-maestro-readonly-bundle.json", {Topic.BUNDLE}),
        ("15-maestro-error-404.json", {None}),
        ("16-mc-manifestworks.json", {Topic.WORK}),
        ("17-mc-appliedmanifestwork.json", {Topic.APPLIED_WORK}),
        ("18-mc-managedcluster.json", {Topic.MANAGED_CLUSTER}),
        ("19-mc-hostedcluster.json", {Topic.HOSTED_CLUSTER}),
        ("20-mc-nodepool.json", {Topic.NODE_POOL}),
        ("21-mc-pods.json", {Topic.POD}),
        ("30-hyperfleet-event.json", {None}),
        ("31-hyperfleet-status-put.json", {None}),
        ("32-adapter-result.json", {None}),
    ],
)
def test_recognised_by_content(name: str, topics: set[Topic | None]) -> None:
    assert {each.topic for each in document_types.recognise(document(name))} == topics


def test_mixed_list_is_split() -> None:
    kinds = [document(f"{name}.json") for name in ("18-mc-managedcluster", "19-mc-hostedcluster", "20-mc-nodepool")]
    found = list(
        document_types.recognise({"apiVersion": "v1", "kind": "List", "items": [*kinds, None, 5, {"kind": "X"}]})
    )
    assert [each.topic for each in found] == [Topic.MANAGED_CLUSTER, Topic.HOSTED_CLUSTER, Topic.NODE_POOL, None]


@pytest.mark.parametrize(
    ("document", "topic"),
    [
        ({"apiVersion": "v1", "kind": "PodList", "items": []}, Topic.POD),
        ({"kind": "ResourceBundleList", "items": [], "total": 0}, Topic.BUNDLE),
        ({"kind": "ClusterList", "items": [], "total": 0}, Topic.CS_CLUSTER),
        (
            {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedClusterList", "items": []},
            Topic.HOSTED_CLUSTER,
        ),
    ],
    ids=lambda value: value.get("kind") if isinstance(value, dict) else "",
)
def test_empty_list_is_an_absence(document: dict[str, Any], topic: Topic) -> None:
    (found,) = document_types.recognise(document)
    assert (found.topic, found.is_absence) == (topic, True)


def test_all_shipped_documents_are_covered() -> None:
    assert len(list(DATA.glob("*.json"))) == 25


def test_only_expected_conditions_count() -> None:
    informational = [
        ObjectCondition(type=each, status="False") for each in ("ClusterVersionUpgradeable", "EtcdRecoveryActive")
    ]
    unconfigured = [ObjectCondition(type="ExternalDNSReachable", status="Unknown")]
    assert expected_conditions.HOSTED_CLUSTER.deviations([*informational, *unconfigured]) == ()


def test_deviations_are_in_order_of_causes() -> None:
    found = [
        ObjectCondition(type=name, status=status)
        for name, status in (("Degraded", "True"), ("Available", "False"), ("EtcdAvailable", "False"))
    ]
    assert [deviation.type for deviation in expected_conditions.HOSTED_CLUSTER.deviations(found)] == [
        "EtcdAvailable",
        "Available",
        "Degraded",
    ]


@pytest.mark.parametrize(
    ("condition", "owner"),
    [("ValidConfiguration", "input"), ("ValidAzureKMSConfig", "cloud"), ("EtcdAvailable", "platform")],
)
def test_owner_of_a_condition(condition: str, owner: str) -> None:
    assert expected_conditions.owner(condition) == owner
