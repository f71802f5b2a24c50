"""Limits of a message broker: metadata and packet size."""

import json

import pytest

from maestropy.server.decide import broker_limits
from maestropy.wire.events import event, pubsub_binding
from maestropy.wire.events.stored_event import StoredParts


@pytest.mark.parametrize(
    ("metadata", "data", "prefix"),
    [
        pytest.param(0, 0, "", id="nothing"),
        pytest.param(1000, 7000, "", id="fits"),
        pytest.param(1000, 9000, "it needs about 11026 bytes and the message broker takes at most 10000", id="large"),
        pytest.param(65536, 0, "its metadata has 65536 bytes and MQTT carries at most 65535", id="metadata"),
    ],
)
def test_resource_beyond_a_broker_limit_is_rejected(metadata: int, data: int, prefix: str) -> None:
    parts = StoredParts(envelope=b"{}", metadata=b"m" * metadata, data=b"d" * data)
    problem_text = broker_limits.problem(parts, max_packet_bytes=10_000)
    assert problem_text.startswith(prefix)
    assert bool(problem_text) == bool(prefix)


@pytest.mark.parametrize(
    ("metadata", "data", "prefix"),
    [
        pytest.param(0, 5_000_000, "", id="no-metadata"),
        pytest.param(924, 0, "", id="metadata-fits-with-its-times"),
        pytest.param(
            925,
            0,
            "its attribute metadata has 1025 bytes, Pub/Sub carries at most 1024; make labels and annotations smaller",
            id="metadata",
        ),
        pytest.param(10, 9_999_000, "it needs about 10000036 bytes and Pub/Sub carries at most 10000000", id="large"),
    ],
)
def test_resource_beyond_a_limit_of_pubsub_is_rejected(metadata: int, data: int, prefix: str) -> None:
    parts = StoredParts(envelope=b"{}", metadata=b"m" * metadata, data=b"d" * data)
    problem_text = broker_limits.pubsub_problem(parts)
    assert problem_text.startswith(prefix)
    assert bool(problem_text) == bool(prefix)


def deletion(**extensions: str) -> event.CloudEvent:
    return event.CloudEvent(id="i", source="s", type=event.SPEC_DELETE, extensions=extensions)


def test_deletion_of_a_resource_with_large_metadata_is_sent_with_its_name_and_times() -> None:
    metadata = {"name": "w", "labels": {"a": "b" * 2000}, "creationTimestamp": "t1", "deletionTimestamp": "t2"}
    sent = broker_limits.fitting_deletion(deletion(metadata=json.dumps(metadata), deletiontimestamp="t2"))
    pubsub_binding.encode(sent)
    assert json.loads(sent.text(event.METADATA)) == {
        "name": "w",
        "creationTimestamp": "t1",
        "deletionTimestamp": "t2",
    }


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(deletion(metadata='{"name":"w"}', deletiontimestamp="t"), id="small-metadata"),
        pytest.param(deletion(deletiontimestamp="t"), id="no-metadata"),
        pytest.param(deletion(metadata=json.dumps({"name": "w" * 2000})), id="no-deletion"),
    ],
)
def test_other_events_are_sent_as_they_are(sent: event.CloudEvent) -> None:
    assert broker_limits.fitting_deletion(sent) is sent
