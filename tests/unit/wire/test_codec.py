"""ManifestWorks are converted to CloudEvents and back, for sources and agents."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import codec, errors, timestamps
from maestropy.wire.events import event, json_format
from maestropy.wire.works import status, validation, work

DATA = Path(__file__).parents[2] / "data"
ATTRIBUTES = codec.ContextAttributes(id="id-1", source="src", time=timestamps.parse("2026-01-02T03:04:05.678Z"))
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
OP_ID = "logging.open-cluster-management.io/op-id"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
present_values = json_values.filter(lambda value: value is not None)
extras = st.dictionaries(st.text(max_size=5).map("x-".__add__), present_values, max_size=3)


def sample(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def sample_event(name: str) -> event.CloudEvent:
    return json_format.decode((DATA / f"{name}.json").read_bytes())


def new_work(**metadata: Any) -> work.ManifestWork:
    return work.new("w", namespace="c1", manifests=[MANIFEST]).with_metadata(uid="u1", **metadata)


def data_of(sent_event: event.CloudEvent) -> Any:
    return json.loads(sent_event.data)


# --- source: work → spec event ---------------------------------------------------------------------------------------


def test_create_request_equals_a_recorded_one() -> None:
    expected = sample_event("wire_spec_from_source")
    sent = codec.spec_event(
        work.from_object(sample("wire_manifestwork")).with_metadata(
            uid=expected.text("resourceid"), namespace=expected.text("clustername")
        ),
        action=event.EventAction.CREATE_REQUEST,
        attributes=codec.ContextAttributes(
            id=expected.id, source=expected.source, time=expected.time or ATTRIBUTES.time
        ),
    )
    assert data_of(sent) == data_of(expected)
    assert json.loads(sent.text("metadata")) == json.loads(expected.text("metadata"))
    assert {**sent.extensions, "metadata": ""} == {**expected.extensions, "metadata": ""}
    assert (sent.id, sent.source, sent.type, sent.time) == (
        expected.id,
        expected.source,
        expected.type,
        expected.time,
    )


def test_update_request_carries_the_resource_version_of_the_work() -> None:
    update = event.EventAction.UPDATE_REQUEST
    assert (
        codec.spec_event(new_work(generation=3), action=update, attributes=ATTRIBUTES).integer("resourceversion") == 3
    )
    pinned = new_work(generation=3).with_annotations({work.VERSION_ANNOTATION: "0"})
    assert codec.spec_event(pinned, action=update, attributes=ATTRIBUTES).integer("resourceversion") == 0


def test_delete_request_has_deletion_timestamp_and_no_data() -> None:
    sent = codec.spec_event(
        new_work(deletionTimestamp="2026-01-02T03:04:05Z"),
        action=event.EventAction.DELETE_REQUEST,
        attributes=ATTRIBUTES,
    )
    assert sent.timestamp("deletiontimestamp") == timestamps.parse("2026-01-02T03:04:05Z")
    assert sent.data == b""
    assert sent.type == event.SPEC_DELETE


def test_spec_event_uses_bundle_spelling_and_forwards_tracing() -> None:
    executor = {"subject": {"type": "ServiceAccount"}}
    sent = codec.spec_event(
        new_work()
        .with_spec(executor=executor, deleteOption={"propagationPolicy": "Orphan"})
        .with_annotations({OP_ID: "42", "other": "x", work.SEQUENCE_ID_ANNOTATION: "7"}),
        action=event.EventAction.CREATE_REQUEST,
        attributes=ATTRIBUTES,
    )
    assert data_of(sent) == {
        "manifests": [MANIFEST],
        "executer": executor,
        "deleteOption": {"propagationPolicy": "Orphan"},
    }
    assert json.loads(sent.text("logtracing")) == {OP_ID: "42"}
    assert json.loads(sent.text("metadata"))["annotations"] == {OP_ID: "42", "other": "x"}


# --- agent: spec event → work ----------------------------------------------------------------------------------------


def test_agent_reads_a_recorded_spec_event() -> None:
    received = sample_event("wire_spec_to_agent")
    decoded = codec.work_from_spec_event(received)
    assert decoded.uid == decoded.name == received.text("resourceid")
    assert (decoded.namespace, decoded.generation) == (received.text("clustername"), 1)
    assert "resourceVersion" not in decoded.metadata
    assert decoded.labels[work.ORIGINAL_SOURCE_LABEL] == "maestro"
    assert decoded.annotations[work.DATA_TYPE_ANNOTATION] == event.MANIFEST_BUNDLES
    assert decoded.manifests == data_of(received)["manifests"]
    assert decoded.manifest_configs[0].update_strategy is not None


def spec_event(**changes: Any) -> event.CloudEvent:
    extensions = {"resourceid": "u1", "resourceversion": 2, "clustername": "c1"} | changes.pop("extensions", {})
    extensions = {name: value for name, value in extensions.items() if value is not None}
    data = changes.pop("data", json.dumps({"manifests": [MANIFEST]}).encode())
    return event.CloudEvent(
        id="i", source="maestro", type=event.SPEC_UPDATE, extensions=extensions, data=data, **changes
    )


def test_work_without_metadata_is_named_by_its_resource_id() -> None:
    decoded = codec.work_from_spec_event(spec_event(extensions={"logtracing": json.dumps({OP_ID: "1", "x": "2"})}))
    assert (decoded.name, decoded.namespace, decoded.generation) == ("u1", "c1", 2)
    assert decoded.tracing == {OP_ID: "1"}
    assert "x" not in decoded.annotations


@pytest.mark.parametrize("version", [None, 5], ids=["without-version", "with-version"])
def test_agent_accepts_delete_request_with_and_without_version(version: int | None) -> None:
    delete_request = spec_event(
        data=b"ignored",
        extensions={"deletiontimestamp": "2026-01-02T03:04:05.678Z", "resourceversion": version},
    )
    decoded = codec.work_from_spec_event(delete_request)
    assert decoded.deletion_timestamp == "2026-01-02T03:04:05Z"
    assert decoded.finalizers == [work.FINALIZER]
    assert decoded.generation == (version or 0)
    assert decoded.spec == {}


@pytest.mark.parametrize(
    ("received", "text"),
    [
        pytest.param(spec_event(extensions={"resourceid": None}), "failed to get resourceid extension", id="no-id"),
        pytest.param(
            spec_event(extensions={"resourceversion": None}), "failed to get resourceversion extension", id="no-version"
        ),
        pytest.param(
            spec_event(extensions={"clustername": None}), "failed to get clustername extension", id="no-cluster"
        ),
        pytest.param(spec_event(extensions={"metadata": "[]"}), "metadata extension", id="bad-metadata"),
        pytest.param(spec_event(extensions={"logtracing": "{"}), "logtracing extension", id="bad-tracing"),
        pytest.param(
            spec_event(extensions={"logtracing": '{"a":1}'}), "logtracing must be a map", id="tracing-of-wrong-type"
        ),
        pytest.param(spec_event(data=b"{x"), r"failed to unmarshal event data of 2 bytes, .*\(byte 1\)", id="bad-json"),
        pytest.param(spec_event(data=b'{"manifests":{}}'), "failed to unmarshal event data", id="no-list"),
        pytest.param(
            spec_event(data=b'{"manifests":[]}'),
            "manifests are invalid, Workload manifests should not be empty",
            id="empty",
        ),
        pytest.param(spec_event(data=b'{"manifests":[1]}'), "expected a JSON object", id="not-an-object"),
        pytest.param(spec_event(data=b'{"manifests":[{"metadata":{"name":"x"}}]}'), "'Kind' is missing", id="no-kind"),
        pytest.param(spec_event(data=b'{"manifests":[{"kind":"A"}]}'), "name must be set in manifest", id="no-name"),
        pytest.param(
            spec_event(data=b'{"manifests":[{"kind":"A","metadata":{"name":"x","generateName":"y"}}]}'),
            "generateName must not be set in manifest",
            id="generate-name",
        ),
        pytest.param(
            replace(spec_event(), type="io.x.v1.others.spec.create_request"),
            "unsupported cloudevents data type io.x.v1.others",
            id="data-type",
        ),
    ],
)
def test_agent_rejects_invalid_spec_event(received: event.CloudEvent, text: str) -> None:
    with pytest.raises(errors.WireError, match=text):
        codec.work_from_spec_event(received)


SECRET_DATA = b'{"manifests":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"p":"hunter2"}}]}'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(SECRET_DATA[:-2], id="cut-off"),
        pytest.param(SECRET_DATA[:-1] + b"}}", id="two-documents"),
        pytest.param(SECRET_DATA.replace(b"hunter2", b"hunter2\xff"), id="not-utf-8"),
        pytest.param(SECRET_DATA.replace(b'"hunter2"', b"hunter2"), id="no-json"),
        pytest.param(SECRET_DATA.replace(b'"hunter2"', b'"hunter2\\ud800"'), id="lone-surrogate"),
        pytest.param(SECRET_DATA.replace(b'[{"api', b'["hunter2",{"api'), id="manifest-of-text"),
        pytest.param(SECRET_DATA.replace(b'{"name":"s"}', b'{"name":"s","generateName":"hunter2"}'), id="generate"),
        pytest.param(SECRET_DATA.replace(b'"kind":"Secret"', b'"kind":null'), id="without-kind"),
        pytest.param(b'"hunter2"', id="text"),
    ],
)
def test_error_about_event_data_holds_none_of_it(data: bytes) -> None:
    """Errors are logged and reported, and the data may be a Secret."""
    with pytest.raises(errors.WireError) as agent:
        codec.work_from_spec_event(spec_event(data=data))
    with pytest.raises(errors.WireError) as server:
        validation.validate_manifest_bundle(data)
    assert "hunter2" not in f"{agent.value} {server.value}"


def manifest_of_size(size: int) -> bytes:
    head = b'{"kind":"A","metadata":{"name":"x"},"data":"'
    return head + b"a" * (size - len(head) - 2) + b'"}'


def test_size_limit_applies_to_bytes_on_the_wire() -> None:
    # tag 1 + length 3 + bytes
    assert codec.check_manifests([manifest_of_size(512000 - 4)])
    with pytest.raises(
        errors.InvalidContent, match="the size of manifests is 512001 bytes which exceeds the 512000 limit"
    ):
        codec.check_manifests([manifest_of_size(512000 - 3)])
    with pytest.raises(errors.InvalidContent, match="512001 bytes"):
        codec.check_manifests([manifest_of_size(100), manifest_of_size(512000 - 3 - 102)])


# --- agent: status → event, source: status event → work --------------------------------------------------------------


def test_status_update_equals_a_recorded_one() -> None:
    expected = sample_event("wire_status_from_agent")
    body = data_of(expected)
    reported = work.ManifestWork(
        {
            "metadata": {**json.loads(expected.text("metadata")), "resourceVersion": "9"},
            "status": {
                "conditions": body["conditions"],
                "resourceStatus": {"manifests": body["resourceStatus"]},
            },
        }
    )
    sent = codec.status_event(
        reported,
        action=event.EventAction.UPDATE_REQUEST,
        sequence_id=expected.text("sequenceid"),
        attributes=codec.ContextAttributes(
            id=expected.id, source=expected.source, time=expected.time or ATTRIBUTES.time
        ),
    )
    assert data_of(sent) == body
    assert json.loads(sent.text("metadata")) == json.loads(expected.text("metadata"))
    assert {**sent.extensions, "metadata": ""} == {**expected.extensions, "metadata": ""}
    assert sent.type == expected.type


def test_status_update_needs_the_original_source() -> None:
    with pytest.raises(errors.MalformedMessage, match="failed to find originalsource from the work u1"):
        codec.status_event(new_work(), action=event.EventAction.UPDATE_REQUEST, sequence_id="1", attributes=ATTRIBUTES)


def test_empty_status_is_sent_with_empty_conditions() -> None:
    reported = new_work().with_labels({work.ORIGINAL_SOURCE_LABEL: "maestro"})
    sent = codec.status_event(
        reported, action=event.EventAction.RESYNC_RESPONSE, sequence_id="1", attributes=ATTRIBUTES
    )
    assert data_of(sent) == {"conditions": []}
    assert sent.type == event.STATUS_RESYNC_RESPONSE


def test_source_reads_a_recorded_status_update() -> None:
    received = sample_event("wire_status_to_source")
    body = data_of(received)
    decoded = codec.work_from_status_event(received)
    assert decoded.uid == received.text("resourceid")
    assert (decoded.generation, decoded.metadata["resourceVersion"]) == (1, "1")
    assert decoded.annotations[work.SEQUENCE_ID_ANNOTATION] == received.text("sequenceid")
    assert decoded.manifests == body["manifestBundle"]["manifests"]
    assert decoded.status.body == {
        "conditions": body["conditions"],
        "resourceStatus": {"manifests": body["resourceStatus"]},
    }
    assert decoded.status.hash() == received.text("statushash")


@pytest.mark.parametrize("missing", ["resourceid", "resourceversion", "sequenceid"])
def test_status_event_without_extension_is_rejected(missing: str) -> None:
    extensions = {"resourceid": "u", "resourceversion": "1", "sequenceid": "5"}
    del extensions[missing]
    received = event.CloudEvent(id="i", source="a", type=event.STATUS_UPDATE, extensions=extensions)
    with pytest.raises(errors.MalformedMessage, match=f"failed to get {missing} extension"):
        codec.work_from_status_event(received)


@given(extras, extras, st.lists(extras, max_size=3))
def test_spec_round_trip_keeps_unknown_members(metadata: Any, bundle: Any, manifests: list[Any]) -> None:
    body = {
        **bundle,
        "manifests": [{**MANIFEST, **extra} for extra in manifests] or [MANIFEST],
        "manifestConfigs": [{"resourceIdentifier": {}, **bundle}],
        "executer": {"subject": {}, **bundle},
    }
    meta = {"name": "w", "labels": {"a": "b"}, **metadata}
    received = spec_event(data=json.dumps(body).encode(), extensions={"metadata": json.dumps(meta)})
    decoded = codec.work_from_spec_event(received)
    again = codec.spec_event(decoded, action=event.EventAction.UPDATE_REQUEST, attributes=ATTRIBUTES)
    assert data_of(again) == body
    assert json.loads(again.text("metadata")).items() >= metadata.items()
    assert again.integer("resourceversion") == 2
    assert codec.work_from_spec_event(replace(again, source="maestro")).body == decoded.body


@given(extras, st.lists(extras, max_size=3), st.lists(extras, max_size=3))
def test_status_round_trip_keeps_unknown_members(extra: Any, conditions: list[Any], manifests: list[Any]) -> None:
    reported = (
        new_work(generation=4)
        .with_labels({work.ORIGINAL_SOURCE_LABEL: "maestro"})
        .with_status(status.WorkStatus({**extra, "conditions": conditions, "resourceStatus": {"manifests": manifests}}))
    )
    sent = codec.status_event(reported, action=event.EventAction.UPDATE_REQUEST, sequence_id="5", attributes=ATTRIBUTES)
    decoded = codec.work_from_status_event(sent)
    assert decoded.status.hash() == reported.status.hash() == sent.text("statushash")
    assert decoded.status.body.items() >= extra.items()
    assert decoded.status.body["conditions"] == conditions
    assert [manifest.body for manifest in decoded.status.manifests] == manifests
    assert decoded.generation == 4


# --- REST ------------------------------------------------------------------------------------------------------------


def test_resource_bundle_is_converted_to_a_work() -> None:
    watched = sample("wire_manifestwork_watched")
    bundle = {
        "id": watched["metadata"]["uid"],
        "consumer_name": "c1",
        "version": 3,
        "manifests": watched["spec"]["workload"]["manifests"],
        "manifest_configs": watched["spec"]["manifestConfigs"],
        "delete_option": {"propagationPolicy": "Orphan"},
        "metadata": watched["metadata"],
        "status": {
            "ObservedVersion": 3,
            "SequenceID": "2000808179729960960",
            "conditions": watched["status"]["conditions"],
            "resourceStatus": watched["status"]["resourceStatus"]["manifests"],
        },
    }
    converted = codec.work_from_resource_bundle(bundle)
    assert converted.name == watched["metadata"]["name"]
    assert (converted.generation, converted.metadata["resourceVersion"]) == (3, "3")
    assert converted.manifests == watched["spec"]["workload"]["manifests"]
    assert converted.spec["manifestConfigs"] == watched["spec"]["manifestConfigs"]
    assert converted.delete_option is not None
    assert converted.annotations[work.SEQUENCE_ID_ANNOTATION] == "2000808179729960960"
    assert converted.status.body == watched["status"]


def test_resource_bundle_without_metadata_is_named_by_its_id() -> None:
    converted = codec.work_from_resource_bundle(
        {"id": "i", "consumer_name": "c", "version": 1, "manifests": [], "manifest_configs": [], "delete_option": {}}
    )
    assert (converted.uid, converted.name, converted.namespace) == ("i", "i", "c")
    assert converted.spec == {"workload": {"manifests": []}}
    assert "status" not in converted.body
