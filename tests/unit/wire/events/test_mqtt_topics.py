"""MQTT topics are built from patterns and parsed; invalid patterns are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors
from maestropy.wire.events import mqtt_topics

SERVER = mqtt_topics.Topics(
    source_events="sources/maestro/consumers/+/sourceevents",
    agent_events="$share/statussubscribers/sources/maestro/consumers/+/agentevents",
)
AGENT = mqtt_topics.Topics(
    source_events="sources/+/consumers/+/sourceevents",
    agent_events="sources/+/consumers/cluster1/agentevents",
    source_broadcast="sources/+/sourcebroadcast",
    agent_broadcast="clusters/+/agentbroadcast",
)
segments = st.from_regex(r"\A[a-z0-9-]{1,20}\Z")


def test_valid_patterns_are_accepted() -> None:
    assert mqtt_topics.check_patterns(SERVER) is SERVER
    assert mqtt_topics.check_patterns(AGENT) is AGENT


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"source_events": ""}, "topics.sourceEvents is required"),
        ({"source_events": "sources/maestro/consumers/+/agentevents"}, "topics.sourceEvents 'sources/maestro"),
        ({"agent_events": "sources/#/agentevents"}, "topics.agentEvents"),
        ({"agent_events": "Sources/maestro/consumers/+/agentevents"}, "topics.agentEvents"),
        ({"agent_events": "sources/maestro/consumers/+/agentevents\n"}, "topics.agentEvents"),
        ({"source_broadcast": "sources/+/+/sourcebroadcast"}, "topics.sourceBroadcast"),
        ({"agent_broadcast": "clusters/+/sourcebroadcast"}, "topics.agentBroadcast"),
    ],
)
def test_invalid_pattern_is_named_by_its_key(changes: dict[str, str], text: str) -> None:
    given_topics = mqtt_topics.Topics(
        **({"source_events": SERVER.source_events, "agent_events": SERVER.agent_events} | changes)
    )
    with pytest.raises(errors.InvalidContent, match=text):
        mqtt_topics.check_patterns(given_topics)


def test_pattern_of_another_source_is_rejected() -> None:
    mqtt_topics.check_source(SERVER, "maestro")
    mqtt_topics.check_source(AGENT, "anything")
    with pytest.raises(
        errors.InvalidContent, match='the topic source "maestro" does not match the client sourceID "other"'
    ):
        mqtt_topics.check_source(SERVER, "other")


def test_specs_of_another_consumer_are_rejected() -> None:
    other = mqtt_topics.Topics(source_events="$share/g/sources/+/consumers/c1/sourceevents", agent_events="")
    assert mqtt_topics.check_consumer(other, "c1") == ()
    with pytest.raises(
        errors.InvalidContent, match=r'topics.sourceEvents names the consumer "c1".*"c9".*write \+ or "c9" in its place'
    ):
        mqtt_topics.check_consumer(other, "c9")


def test_statuses_under_the_name_of_another_consumer_are_noted() -> None:
    topics = mqtt_topics.Topics(
        source_events="sources/+/consumers/+/sourceevents",
        agent_events="sources/maestro/consumers/c1/agentevents",
        source_broadcast="sources/c1/sourcebroadcast",
        agent_broadcast="clusters/c2/agentbroadcast",
    )
    notes = mqtt_topics.check_consumer(topics, "c9")
    assert [note.partition(",")[0] for note in notes] == [
        'topics.agentEvents names the consumer "c1"',
        'topics.agentBroadcast names the consumer "c2"',
    ]
    assert len(mqtt_topics.check_consumer(topics, "c1")) == 1


def test_topic_is_built_from_pattern() -> None:
    assert (
        mqtt_topics.source_events(SERVER, source="maestro", consumer="c1")
        == "sources/maestro/consumers/c1/sourceevents"
    )
    assert (
        mqtt_topics.agent_events(SERVER, source="maestro", consumer="c1") == "sources/maestro/consumers/c1/agentevents"
    )
    assert mqtt_topics.source_events(AGENT, source="m", consumer="c1") == "sources/m/consumers/c1/sourceevents"
    assert mqtt_topics.agent_events(AGENT, source="m", consumer="ignored") == "sources/m/consumers/cluster1/agentevents"
    assert mqtt_topics.agent_subscription(AGENT, "c1") == "sources/+/consumers/c1/sourceevents"
    assert mqtt_topics.agent_subscription(SERVER, "c1") == "sources/maestro/consumers/c1/sourceevents"


def test_broadcast_topics() -> None:
    assert mqtt_topics.source_broadcast(AGENT, "m") == "sources/m/sourcebroadcast"
    assert mqtt_topics.agent_broadcast(AGENT, source="m", consumer="c1") == "clusters/c1/agentbroadcast"
    assert mqtt_topics.agent_broadcast(SERVER, source="m", consumer="c1") == "sources/maestro/consumers/c1/agentevents"
    with pytest.raises(errors.InvalidContent, match=r"topics\.sourceBroadcast is not set"):
        mqtt_topics.source_broadcast(SERVER, "m")


@pytest.mark.parametrize("consumer", ["", "a/b", "+", "#", "a\x00", "a\nb", "\x7f", "a\x85", "\ufdd0", "\U0001ffff"])
def test_name_that_cannot_stand_in_a_topic_is_rejected(consumer: str) -> None:
    with pytest.raises(errors.InvalidContent, match="consumer"):
        mqtt_topics.source_events(SERVER, source="maestro", consumer=consumer)
    with pytest.raises(errors.InvalidContent, match="consumer"):
        mqtt_topics.agent_subscription(AGENT, consumer)


def test_name_in_any_language_stands_in_a_topic() -> None:
    topic = mqtt_topics.source_events(SERVER, source="maestro", consumer="größe ✓ \U0001f600")
    assert topic == "sources/maestro/consumers/größe ✓ \U0001f600/sourceevents"


@given(segments, segments)
def test_built_topic_is_parsed_back(source: str, consumer: str) -> None:
    sent = mqtt_topics.source_events(AGENT, source=source, consumer=consumer)
    assert mqtt_topics.parse(sent) == mqtt_topics.ParsedTopic(kind="sourceevents", source=source, consumer=consumer)
    assert mqtt_topics.parse(
        mqtt_topics.agent_broadcast(AGENT, source=source, consumer=consumer)
    ) == mqtt_topics.ParsedTopic(kind="agentbroadcast", consumer=consumer)
    assert mqtt_topics.parse(mqtt_topics.source_broadcast(AGENT, source)) == mqtt_topics.ParsedTopic(
        kind="sourcebroadcast", source=source
    )


@pytest.mark.parametrize("topic", ["", "a/b", "sources/m/consumers/+/agentevents", "sources/m/consumers/c/other"])
def test_topic_of_another_program_is_rejected(topic: str) -> None:
    with pytest.raises(errors.MalformedMessage, match="not a topic of Maestro"):
        mqtt_topics.parse(topic)


WILDCARD = mqtt_topics.Topics(
    source_events="sources/maestro/consumers/+/sourceevents",
    agent_events="$share/g/sources/maestro/consumers/+/agentevents",
    agent_broadcast="clusters/+/agentbroadcast",
)
FIXED = mqtt_topics.Topics(
    source_events="sources/maestro/consumers/all/sourceevents",
    agent_events="sources/maestro/consumers/all/agentevents",
)


@pytest.mark.parametrize(
    ("patterns", "topic", "expected"),
    [
        pytest.param(WILDCARD, "sources/maestro/consumers/c1/agentevents", True, id="own-topic"),
        pytest.param(WILDCARD, "sources/maestro/consumers/c2/agentevents", False, id="topic-of-other-consumer"),
        pytest.param(WILDCARD, "clusters/c1/agentbroadcast", True, id="own-broadcast"),
        pytest.param(WILDCARD, "clusters/c2/agentbroadcast", False, id="broadcast-of-other-consumer"),
        pytest.param(WILDCARD, "sources/maestro/consumers/c1/sourceevents", False, id="topic-of-servers"),
        pytest.param(FIXED, "sources/maestro/consumers/all/agentevents", True, id="topic-without-consumer"),
        pytest.param(FIXED, "clusters/c1/agentbroadcast", False, id="broadcast-not-configured"),
    ],
)
def test_topic_limits_the_consumer_of_a_message(patterns: mqtt_topics.Topics, topic: str, expected: bool) -> None:
    assert mqtt_topics.may_publish_for(patterns, topic, consumer="c1") is expected
