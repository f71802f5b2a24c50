"""Works to events and back, on both ends."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import codec, errors, event, instant, jsonevent, status, work

DATA = Path(__file__).parents[2] / "data"
STAMP = codec.Stamp(id="id-1", source="src", time=instant.parse("2026-01-02T03:04:05.678Z"))
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


def sample_event(name: str) -> event.Event:
    return jsonevent.decode((DATA / f"{name}.json").read_bytes())


def wanted(**metadata: Any) -> work.ManifestWork:
    return work.new("w", namespace="c1", manifests=[MANIFEST]).with_metadata(uid="u1", **metadata)


def spec_of(found: event.Event) -> Any:
    return json.loads(found.data)


# --- source: work → spec event ---------------------------------------------------------------------------------------


def test_create_request_equals_the_real_one() -> None:
    expected = sample_event("wire_spec_from_source")
    found = codec.spec_event(
        work.from_object(sample("wire_manifestwork")).with_metadata(
            uid=expected.text("resourceid"), namespace=expected.text("clustername")
        ),
        action=event.Action.CREATE_REQUEST,
        stamp=codec.Stamp(id=expected.id, source=expected.source, time=expected.time or STAMP.time),
    )
    assert spec_of(found) == spec_of(expected)
    assert json.loads(found.text("metadata")) == json.loads(expected.text("metadata"))
    assert {**found.extensions, "metadata": ""} == {**expected.extensions, "metadata": ""}
    assert (found.id, found.source, found.type, found.time) == (
        expected.id,
        expected.source,
        expected.type,
        expected.time,
    )


def test_update_request_carries_the_version_the_caller_believes_in() -> None:
    update = event.Action.UPDATE_REQUEST
    assert codec.spec_event(wanted(generation=3), action=update, stamp=STAMP).integer("resourceversion") == 3
    pinned = wanted(generation=3).with_annotations({work.VERSION_ANNOTATION: "0"})
    assert codec.spec_event(pinned, action=update, stamp=STAMP).integer("resourceversion") == 0


def test_delete_request_has_a_timestamp_and_no_data() -> None:
    found = codec.spec_event(
        wanted(deletionTimestamp="2026-01-02T03:04:05Z"), action=event.Action.DELETE_REQUEST, stamp=STAMP
    )
    assert found.timestamp("deletiontimestamp") == instant.parse("2026-01-02T03:04:05Z")
    assert found.data == b""
    assert found.type == event.SPEC_DELETE


def test_spellings_and_tracing() -> None:
    executor = {"subject": {"type": "ServiceAccount"}}
    found = codec.spec_event(
        wanted()
        .with_spec(executor=executor, deleteOption={"propagationPolicy": "Orphan"})
        .with_annotations({OP_ID: "42", "other": "x", work.SEQUENCE_ID_ANNOTATION: "7"}),
        action=event.Action.CREATE_REQUEST,
        stamp=STAMP,
    )
    assert spec_of(found) == {
        "manifests": [MANIFEST],
        "executer": executor,
        "deleteOption": {"propagationPolicy": "Orphan"},
    }
    assert json.loads(found.text("logtracing")) == {OP_ID: "42"}
    assert json.loads(found.text("metadata"))["annotations"] == {OP_ID: "42", "other": "x"}


# --- agent: spec event → work ----------------------------------------------------------------------------------------


def test_agent_reads_the_real_event() -> None:
    received = sample_event("wire_spec_to_agent")
    found = codec.work_from_spec_event(received)
    assert found.uid == found.name == received.text("resourceid")
    assert (found.namespace, found.generation) == (received.text("clustername"), 1)
    assert "resourceVersion" not in found.metadata
    assert found.labels[work.ORIGINAL_SOURCE_LABEL] == "maestro"
    assert found.annotations[work.DATA_TYPE_ANNOTATION] == event.MANIFEST_BUNDLES
    assert found.manifests == spec_of(received)["manifests"]
    assert found.manifest_configs[0].update_strategy is not None


def spec_event(**changes: Any) -> event.Event:
    extensions = {"resourceid": "u1", "resourceversion": 2, "clustername": "c1"} | changes.pop("extensions", {})
    extensions = {name: value for name, value in extensions.items() if value is not None}
    data = changes.pop("data", json.dumps({"manifests": [MANIFEST]}).encode())
    return event.Event(id="i", source="maestro", type=event.SPEC_UPDATE, extensions=extensions, data=data, **changes)


def test_agent_without_metadata_names_the_work_by_its_id() -> None:
    found = codec.work_from_spec_event(spec_event(extensions={"logtracing": json.dumps({OP_ID: "1", "x": "2"})}))
    assert (found.name, found.namespace, found.generation) == ("u1", "c1", 2)
    assert found.tracing == {OP_ID: "1"}
    assert "x" not in found.annotations


@pytest.mark.parametrize("version", [None, 5], ids=["without-version", "with-version"])
def test_agent_takes_deletes_with_and_without_version(version: int | None) -> None:
    gone = spec_event(
        data=b"not looked at",
        extensions={"deletiontimestamp": "2026-01-02T03:04:05.678Z", "resourceversion": version},
    )
    found = codec.work_from_spec_event(gone)
    assert found.deletion_timestamp == "2026-01-02T03:04:05Z"
    assert found.finalizers == [work.FINALIZER]
    assert found.generation == (version or 0)
    assert found.spec == {}


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
        pytest.param(spec_event(extensions={"logtracing": '{"a":1}'}), "logtracing must be a map", id="odd-tracing"),
        pytest.param(spec_event(data=b"{x"), "failed to unmarshal event data {x, ", id="bad-json"),
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
def test_agent_refuses(received: event.Event, text: str) -> None:
    with pytest.raises(errors.WireError, match=text):
        codec.work_from_spec_event(received)


def manifest_of_size(size: int) -> bytes:
    head = b'{"kind":"A","metadata":{"name":"x"},"data":"'
    return head + b"a" * (size - len(head) - 2) + b'"}'


def test_size_limit_counts_bytes_on_the_wire() -> None:
    # tag 1 + length 3 + bytes
    assert codec.check_manifests([manifest_of_size(512000 - 4)])
    with pytest.raises(errors.Invalid, match="the size of manifests is 512001 bytes which exceeds the 512000 limit"):
        codec.check_manifests([manifest_of_size(512000 - 3)])
    with pytest.raises(errors.Invalid, match="512001 bytes"):
        codec.check_manifests([manifest_of_size(100), manifest_of_size(512000 - 3 - 102)])


# --- agent: status → event, source: status event → work --------------------------------------------------------------


def test_agent_report_equals_the_real_one() -> None:
    expected = sample_event("wire_status_from_agent")
    body = spec_of(expected)
    reported = work.ManifestWork(
        {
            "metadata": {**json.loads(expected.text("metadata")), "resourceVersion": "9"},
            "status": {
                "conditions": body["conditions"],
                "resourceStatus": {"manifests": body["resourceStatus"]},
            },
        }
    )
    found = codec.status_event(
        reported,
        action=event.Action.UPDATE_REQUEST,
        sequence_id=expected.text("sequenceid"),
        stamp=codec.Stamp(id=expected.id, source=expected.source, time=expected.time or STAMP.time),
    )
    assert spec_of(found) == body
    assert json.loads(found.text("metadata")) == json.loads(expected.text("metadata"))
    assert {**found.extensions, "metadata": ""} == {**expected.extensions, "metadata": ""}
    assert found.type == expected.type


def test_agent_cannot_report_a_work_from_nowhere() -> None:
    with pytest.raises(errors.Malformed, match="failed to find originalsource from the work u1"):
        codec.status_event(wanted(), action=event.Action.UPDATE_REQUEST, sequence_id="1", stamp=STAMP)


def test_an_empty_status_is_still_a_report() -> None:
    reported = wanted().with_labels({work.ORIGINAL_SOURCE_LABEL: "maestro"})
    found = codec.status_event(reported, action=event.Action.RESYNC_RESPONSE, sequence_id="1", stamp=STAMP)
    assert spec_of(found) == {"conditions": []}
    assert found.type == event.STATUS_RESYNC_RESPONSE


def test_source_reads_the_real_report() -> None:
    received = sample_event("wire_status_to_source")
    body = spec_of(received)
    found = codec.work_from_status_event(received)
    assert found.uid == received.text("resourceid")
    assert (found.generation, found.metadata["resourceVersion"]) == (1, "1")
    assert found.annotations[work.SEQUENCE_ID_ANNOTATION] == received.text("sequenceid")
    assert found.manifests == body["manifestBundle"]["manifests"]
    assert found.status.body == {
        "conditions": body["conditions"],
        "resourceStatus": {"manifests": body["resourceStatus"]},
    }
    assert found.status.hash() == received.text("statushash")


@pytest.mark.parametrize("missing", ["resourceid", "resourceversion", "sequenceid"])
def test_source_needs_its_extensions(missing: str) -> None:
    extensions = {"resourceid": "u", "resourceversion": "1", "sequenceid": "5"}
    del extensions[missing]
    received = event.Event(id="i", source="a", type=event.STATUS_UPDATE, extensions=extensions)
    with pytest.raises(errors.Malformed, match=f"failed to get {missing} extension"):
        codec.work_from_status_event(received)


@given(extras, extras, st.lists(extras, max_size=3))
def test_spec_round_trip_keeps_everything(metadata: Any, bundle: Any, manifests: list[Any]) -> None:
    body = {
        **bundle,
        "manifests": [{**MANIFEST, **extra} for extra in manifests] or [MANIFEST],
        "manifestConfigs": [{"resourceIdentifier": {}, **bundle}],
        "executer": {"subject": {}, **bundle},
    }
    meta = {"name": "w", "labels": {"a": "b"}, **metadata}
    received = spec_event(data=json.dumps(body).encode(), extensions={"metadata": json.dumps(meta)})
    found = codec.work_from_spec_event(received)
    again = codec.spec_event(found, action=event.Action.UPDATE_REQUEST, stamp=STAMP)
    assert spec_of(again) == body
    assert json.loads(again.text("metadata")).items() >= metadata.items()
    assert again.integer("resourceversion") == 2
    assert codec.work_from_spec_event(replace(again, source="maestro")).body == found.body


@given(extras, st.lists(extras, max_size=3), st.lists(extras, max_size=3))
def test_status_round_trip_keeps_everything(extra: Any, conditions: list[Any], manifests: list[Any]) -> None:
    reported = (
        wanted(generation=4)
        .with_labels({work.ORIGINAL_SOURCE_LABEL: "maestro"})
        .with_status(status.WorkStatus({**extra, "conditions": conditions, "resourceStatus": {"manifests": manifests}}))
    )
    sent = codec.status_event(reported, action=event.Action.UPDATE_REQUEST, sequence_id="5", stamp=STAMP)
    found = codec.work_from_status_event(sent)
    assert found.status.hash() == reported.status.hash() == sent.text("statushash")
    assert found.status.body.items() >= extra.items()
    assert found.status.body["conditions"] == conditions
    assert [manifest.body for manifest in found.status.manifests] == manifests
    assert found.generation == 4


# --- REST ------------------------------------------------------------------------------------------------------------


def test_rest_bundle_becomes_a_work() -> None:
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
    found = codec.work_from_bundle(bundle)
    assert found.name == watched["metadata"]["name"]
    assert (found.generation, found.metadata["resourceVersion"]) == (3, "3")
    assert found.manifests == watched["spec"]["workload"]["manifests"]
    assert found.spec["manifestConfigs"] == watched["spec"]["manifestConfigs"]
    assert found.delete_option is not None
    assert found.annotations[work.SEQUENCE_ID_ANNOTATION] == "2000808179729960960"
    assert found.status.body == watched["status"]


def test_rest_bundle_of_a_client_without_metadata() -> None:
    found = codec.work_from_bundle(
        {"id": "i", "consumer_name": "c", "version": 1, "manifests": [], "manifest_configs": [], "delete_option": {}}
    )
    assert (found.uid, found.name, found.namespace) == ("i", "i", "c")
    assert found.spec == {"workload": {"manifests": []}}
    assert "status" not in found.body
