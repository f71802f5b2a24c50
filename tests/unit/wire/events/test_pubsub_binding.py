"""CloudEvents are converted to Pub/Sub messages and back; what Pub/Sub would reject is rejected before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, timestamps
from maestropy.wire.events import event, pubsub_binding
from maestropy.wire.events.pubsub_binding import PubsubMessage

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
filled_texts = texts.filter(bool)
events = st.builds(
    event.CloudEvent,
    id=filled_texts,
    source=filled_texts,
    type=filled_texts,
    time=st.none() | st.builds(timestamps.Timestamp, st.integers(0, 4_000_000_000), st.integers(0, 999_999_999)),
    content_type=st.just("application/json"),
    subject=texts,
    data_schema=texts,
    extensions=st.dictionaries(st.from_regex(r"\Ax[a-z0-9]{0,9}\Z"), texts, max_size=5),
    data=st.binary(max_size=50),
)
LEAST = {"ce-id": "i", "ce-source": "s", "ce-type": "t"}


@given(events)
def test_event_round_trip(value: event.CloudEvent) -> None:
    assert pubsub_binding.decode(pubsub_binding.encode(value)) == value


def test_attributes_are_those_of_the_go_programs() -> None:
    value = event.CloudEvent(
        id="i",
        source="maestro",
        type=event.SPEC_DELETE,
        time=timestamps.Timestamp(1765864817, 921082037),
        extensions={
            event.RESOURCE_VERSION: 7,
            event.DELETION_TIMESTAMP: timestamps.Timestamp(0),
            event.ORPHAN: True,
            event.ORIGINAL_SOURCE: "",
        },
        data=b"{}",
    )
    assert pubsub_binding.encode(value) == PubsubMessage(
        attributes={
            "Content-Type": "application/json",
            "ce-specversion": "1.0",
            "ce-id": "i",
            "ce-source": "maestro",
            "ce-type": event.SPEC_DELETE,
            "ce-time": "2025-12-16T06:00:17.921082037Z",
            "ce-resourceversion": "7",
            "ce-deletiontimestamp": "1970-01-01T00:00:00Z",
            "ce-orphan": "true",
            "ce-originalsource": "",
        },
        data=b"{}",
    )


def test_defaults_of_a_received_message() -> None:
    message = PubsubMessage(attributes={**LEAST, "googclient_schemaencoding": "JSON"}, data=b"")
    assert pubsub_binding.decode(message) == event.CloudEvent(id="i", source="s", type="t")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"ce-id": ""}, "CloudEvent missing required attribute: id", id="no-id"),
        pytest.param({"ce-source": ""}, "CloudEvent missing required attribute: source", id="no-source"),
        pytest.param({"ce-type": ""}, "CloudEvent missing required attribute: type", id="no-type"),
        pytest.param({"ce-specversion": "2.0"}, "specversion '2.0'; set ce-specversion to 1.0", id="specversion"),
        pytest.param({"ce-time": "yesterday"}, "yesterday", id="time"),
        pytest.param({"ce-b ad": "1"}, "attribute 'ce-b ad' is not allowed", id="name"),
        pytest.param({f"ce-x{number}": "1" for number in range(70)}, "has 73 attributes", id="too-many"),
    ],
)
def test_malformed_message_is_rejected(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=problem):
        pubsub_binding.decode(PubsubMessage(attributes={**LEAST, **changes}, data=b"{}"))


@pytest.mark.parametrize(
    ("extensions", "data", "problem"),
    [
        pytest.param(
            {event.METADATA: "x" * 1025},
            b"",
            "attribute metadata has 1025 bytes, Pub/Sub carries at most 1024; make labels and annotations smaller",
            id="metadata",
        ),
        pytest.param({event.LOG_TRACING: "ä" * 513}, b"", "attribute logtracing has 1026 bytes", id="bytes-count"),
        pytest.param({}, b"x" * 10_000_000, "the event has 10000", id="message"),
    ],
)
def test_what_pubsub_would_reject_is_not_sent(extensions: dict[str, str], data: bytes, problem: str) -> None:
    value = event.CloudEvent(id="i", source="s", type="t", extensions=extensions, data=data)
    with pytest.raises(errors.MalformedMessage, match=problem):
        pubsub_binding.encode(value)


def test_largest_attribute_is_sent() -> None:
    value = event.CloudEvent(id="i", source="s", type="t", extensions={event.METADATA: "x" * 1024})
    assert pubsub_binding.encode(value).attributes["ce-metadata"] == "x" * 1024


@pytest.mark.parametrize(
    ("event_type", "is_broadcast"),
    [
        (event.SPEC_CREATE, False),
        (event.SPEC_UPDATE, False),
        (event.SPEC_DELETE, False),
        (event.SPEC_RESYNC_RESPONSE, False),
        (event.STATUS_UPDATE, False),
        (event.STATUS_RESYNC_RESPONSE, False),
        (event.SPEC_RESYNC_REQUEST, True),
        (event.STATUS_RESYNC_REQUEST, True),
    ],
)
def test_only_resync_requests_are_broadcast(event_type: str, is_broadcast: bool) -> None:
    assert pubsub_binding.is_broadcast(event.CloudEvent(id="i", source="s", type=event_type)) is is_broadcast
