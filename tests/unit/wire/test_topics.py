"""Topic patterns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, topics

SERVER = topics.Topics(
    source_events="sources/maestro/consumers/+/sourceevents",
    agent_events="$share/statussubscribers/sources/maestro/consumers/+/agentevents",
)
AGENT = topics.Topics(
    source_events="sources/+/consumers/+/sourceevents",
    agent_events="sources/+/consumers/cluster1/agentevents",
    source_broadcast="sources/+/sourcebroadcast",
    agent_broadcast="clusters/+/agentbroadcast",
)
segments = st.from_regex(r"\A[a-z0-9-]{1,20}\Z")


def test_good_patterns_pass() -> None:
    assert topics.checked(SERVER) is SERVER
    assert topics.checked(AGENT) is AGENT


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
def test_bad_patterns_are_named(changes: dict[str, str], text: str) -> None:
    given_topics = topics.Topics(
        **({"source_events": SERVER.source_events, "agent_events": SERVER.agent_events} | changes)
    )
    with pytest.raises(errors.Invalid, match=text):
        topics.checked(given_topics)


def test_source_must_match() -> None:
    topics.check_source(SERVER, "maestro")
    topics.check_source(AGENT, "anything")
    with pytest.raises(errors.Invalid, match='the topic source "maestro" does not match the client sourceID "other"'):
        topics.check_source(SERVER, "other")


def test_filled_in() -> None:
    assert topics.source_events(SERVER, source="maestro", consumer="c1") == "sources/maestro/consumers/c1/sourceevents"
    assert topics.agent_events(SERVER, source="maestro", consumer="c1") == "sources/maestro/consumers/c1/agentevents"
    assert topics.source_events(AGENT, source="m", consumer="c1") == "sources/m/consumers/c1/sourceevents"
    assert topics.agent_events(AGENT, source="m", consumer="ignored") == "sources/m/consumers/cluster1/agentevents"
    assert topics.agent_subscription(AGENT, "c1") == "sources/+/consumers/c1/sourceevents"
    assert topics.agent_subscription(SERVER, "c1") == "sources/maestro/consumers/c1/sourceevents"


def test_broadcasts() -> None:
    assert topics.source_broadcast(AGENT, "m") == "sources/m/sourcebroadcast"
    assert topics.agent_broadcast(AGENT, source="m", consumer="c1") == "clusters/c1/agentbroadcast"
    assert topics.agent_broadcast(SERVER, source="m", consumer="c1") == "sources/maestro/consumers/c1/agentevents"
    with pytest.raises(errors.Invalid, match=r"topics\.sourceBroadcast is not set"):
        topics.source_broadcast(SERVER, "m")


@pytest.mark.parametrize("consumer", ["", "a/b", "+", "#", "a\x00"])
def test_a_name_cannot_reach_into_other_topics(consumer: str) -> None:
    with pytest.raises(errors.Invalid, match="consumer"):
        topics.source_events(SERVER, source="maestro", consumer=consumer)
    with pytest.raises(errors.Invalid, match="consumer"):
        topics.agent_subscription(AGENT, consumer)


@given(segments, segments)
def test_what_was_built_is_read_back(source: str, consumer: str) -> None:
    sent = topics.source_events(AGENT, source=source, consumer=consumer)
    assert topics.parse(sent) == topics.Place(kind="sourceevents", source=source, consumer=consumer)
    assert topics.parse(topics.agent_broadcast(AGENT, source=source, consumer=consumer)) == topics.Place(
        kind="agentbroadcast", consumer=consumer
    )
    assert topics.parse(topics.source_broadcast(AGENT, source)) == topics.Place(kind="sourcebroadcast", source=source)


@pytest.mark.parametrize("topic", ["", "a/b", "sources/m/consumers/+/agentevents", "sources/m/consumers/c/other"])
def test_foreign_topics(topic: str) -> None:
    with pytest.raises(errors.Malformed, match="not a topic of Maestro"):
        topics.parse(topic)


SPOKEN = topics.Topics(
    source_events="sources/maestro/consumers/+/sourceevents",
    agent_events="$share/g/sources/maestro/consumers/+/agentevents",
    agent_broadcast="clusters/+/agentbroadcast",
)
FIXED = topics.Topics(
    source_events="sources/maestro/consumers/all/sourceevents",
    agent_events="sources/maestro/consumers/all/agentevents",
)


@pytest.mark.parametrize(
    ("patterns", "topic", "expected"),
    [
        pytest.param(SPOKEN, "sources/maestro/consumers/c1/agentevents", True, id="its-own-topic"),
        pytest.param(SPOKEN, "sources/maestro/consumers/c2/agentevents", False, id="anothers-topic"),
        pytest.param(SPOKEN, "clusters/c1/agentbroadcast", True, id="its-own-broadcast"),
        pytest.param(SPOKEN, "clusters/c2/agentbroadcast", False, id="anothers-broadcast"),
        pytest.param(SPOKEN, "sources/maestro/consumers/c1/sourceevents", False, id="a-topic-of-servers"),
        pytest.param(FIXED, "sources/maestro/consumers/all/agentevents", True, id="a-topic-that-cannot-tell"),
        pytest.param(FIXED, "clusters/c1/agentbroadcast", False, id="a-broadcast-nobody-asked-for"),
    ],
)
def test_who_may_speak_for_a_consumer(patterns: topics.Topics, topic: str, expected: bool) -> None:
    assert topics.may_speak_for(patterns, topic, consumer="c1") is expected
