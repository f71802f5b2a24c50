"""The MQTT binding."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, event, instant, jsonevent, mqtt

DATA = Path(__file__).parents[2] / "data"

texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=30)
filled_texts = texts.filter(bool)
moments = st.builds(instant.Timestamp, st.integers(0, 4_000_000_000), st.integers(0, 999_999_999))
events = st.builds(
    event.Event,
    id=filled_texts,
    source=filled_texts,
    type=filled_texts,
    time=st.none() | moments,
    content_type=st.just("application/json"),
    subject=texts,
    data_schema=texts,
    extensions=st.dictionaries(st.from_regex(r"\Ax[a-z0-9]{0,9}\Z"), texts, max_size=5),
    data=st.binary(max_size=50),
)


@given(events)
def test_round_trip(value: event.Event) -> None:
    message = mqtt.encode(value)
    assert mqtt.decode(message.content_type, properties=message.properties, payload=message.payload) == value


def test_attributes_become_text() -> None:
    value = event.Event(
        id="i",
        source="s",
        type="t",
        time=instant.Timestamp(1765864817, 921082037),
        extensions={
            "resourceversion": 7,
            "deletiontimestamp": instant.Timestamp(0),
            "flag": True,
            "raw": b"\x00\x01",
            "originalsource": "",
        },
        data=b"{}",
    )
    message = mqtt.encode(value)
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
    found = mqtt.decode(message.content_type, properties=message.properties, payload=message.payload)
    assert found.integer("resourceversion") == 7
    assert found.timestamp("deletiontimestamp") == instant.Timestamp(0)


def test_other_properties_are_ignored_and_names_are_lower_case() -> None:
    properties = [("ce-specversion", "1.0"), ("ce-id", "i"), ("ce-source", "s"), ("ce-type", "t")]
    found = mqtt.decode("x", properties=[*properties, ("trace", "1"), ("ce-ResourceID", "r")], payload=b"")
    assert found.extensions == {"resourceid": "r"}


@pytest.mark.parametrize(
    "content_type", ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"]
)
def test_structured_mode_is_read(content_type: str) -> None:
    payload = (DATA / "wire_status_from_agent.json").read_bytes()
    found = mqtt.decode(content_type, properties=(), payload=payload)
    assert found == jsonevent.decode(payload)
    assert found.id == json.loads(payload)["id"]


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
def test_refused_on_read(properties: list[tuple[str, str]], text: str) -> None:
    with pytest.raises(errors.Malformed, match=text):
        mqtt.decode("application/json", properties=properties, payload=b"")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 65536, "attribute metadata has 65536 bytes"),
        ("é" * 40000, "attribute metadata has 80000 bytes"),
        ("a\x00", "attribute metadata holds a NUL"),
    ],
)
def test_what_mqtt_cannot_carry_is_refused_by_name(value: str, text: str) -> None:
    with pytest.raises(errors.Malformed, match=text):
        mqtt.encode(event.Event(id="i", source="s", type="t", extensions={"metadata": value}))


def test_the_longest_text_fits() -> None:
    mqtt.encode(event.Event(id="i", source="s", type="t", extensions={"metadata": "x" * 65535}))
