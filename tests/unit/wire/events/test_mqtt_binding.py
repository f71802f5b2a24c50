"""CloudEvents are converted to MQTT messages and back; invalid attributes are rejected."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, timestamps
from maestropy.wire.events import event, json_format, mqtt_binding

DATA = Path(__file__).parents[3] / "data"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
filled_texts = texts.filter(bool)
times = st.builds(timestamps.Timestamp, st.integers(0, 4_000_000_000), st.integers(0, 999_999_999))
events = st.builds(
    event.CloudEvent,
    id=filled_texts,
    source=filled_texts,
    type=filled_texts,
    time=st.none() | times,
    content_type=st.just("application/json"),
    subject=texts,
    data_schema=texts,
    extensions=st.dictionaries(st.from_regex(r"\Ax[a-z0-9]{0,9}\Z"), texts, max_size=5),
    data=st.binary(max_size=50),
)


@given(events)
def test_event_round_trip(value: event.CloudEvent) -> None:
    message = mqtt_binding.encode(value)
    assert mqtt_binding.decode(message.content_type, properties=message.properties, payload=message.payload) == value


def test_attributes_are_sent_as_text() -> None:
    value = event.CloudEvent(
        id="i",
        source="s",
        type="t",
        time=timestamps.Timestamp(1765864817, 921082037),
        extensions={
            "resourceversion": 7,
            "deletiontimestamp": timestamps.Timestamp(0),
            "flag": True,
            "raw": b"\x00\x01",
            "originalsource": "",
        },
        data=b"{}",
    )
    message = mqtt_binding.encode(value)
    assert message.content_type == "application/json"
    assert message.properties == (
        ("ce-specversion", "1.0"),
        ("ce-id", "i"),
        ("ce-source", "s"),
        ("ce-type", "t"),
        ("ce-time", "2025-12-16T06:00:17.921082037Z"),
        ("ce-resourceversion", "7"),
        ("ce-deletiontimestamp", "1970-01-01T00:00:00Z"),
        ("ce-flag", "true"),
        ("ce-raw", "AAE="),
        ("ce-originalsource", ""),
    )
    decoded = mqtt_binding.decode(message.content_type, properties=message.properties, payload=message.payload)
    assert decoded.integer("resourceversion") == 7
    assert decoded.timestamp("deletiontimestamp") == timestamps.Timestamp(0)


def test_properties_without_prefix_are_ignored_and_names_are_lower_case() -> None:
    properties = [("ce-specversion", "1.0"), ("ce-id", "i"), ("ce-source", "s"), ("ce-type", "t")]
    decoded = mqtt_binding.decode("x", properties=[*properties, ("trace", "1"), ("ce-ResourceID", "r")], payload=b"")
    assert decoded.extensions == {"resourceid": "r"}


@pytest.mark.parametrize(
    "content_type", ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"]
)
def test_structured_mode_is_decoded(content_type: str) -> None:
    payload = (DATA / "wire_status_from_agent.json").read_bytes()
    decoded = mqtt_binding.decode(content_type, properties=(), payload=payload)
    assert decoded == json_format.decode(payload)
    assert decoded.id == json.loads(payload)["id"]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ([], "no specversion"),
        ([("ce-specversion", "2.0")], "specversion '2.0'"),
        ([("ce-specversion", "1.0"), ("ce-source", "s"), ("ce-type", "t")], "no id"),
        ([("ce-specversion", "1.0"), ("ce-id", "i"), ("ce-type", "t")], "no source"),
        ([("ce-specversion", "1.0"), ("ce-id", "i"), ("ce-source", "s")], "no type"),
        ([("ce-specversion", "1.0"), ("ce-a_b", "i")], "ce-a_b"),
        (
            [("ce-specversion", "1.0"), ("ce-id", "i"), ("ce-source", "s"), ("ce-type", "t"), ("ce-time", "now")],
            "RFC 3339",
        ),
    ],
)
def test_invalid_message_is_rejected(properties: list[tuple[str, str]], text: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=text):
        mqtt_binding.decode("application/json", properties=properties, payload=b"")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 65536, "attribute metadata has 65536 bytes"),
        ("é" * 40000, "attribute metadata has 80000 bytes"),
        ("a\x00", "attribute metadata holds a NUL"),
    ],
)
def test_attribute_that_mqtt_cannot_carry_is_rejected_by_name(value: str, text: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=text):
        mqtt_binding.encode(event.CloudEvent(id="i", source="s", type="t", extensions={"metadata": value}))


def test_longest_mqtt_string_is_accepted() -> None:
    mqtt_binding.encode(event.CloudEvent(id="i", source="s", type="t", extensions={"metadata": "x" * 65535}))
