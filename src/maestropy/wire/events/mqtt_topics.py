"""Build and parse the MQTT topics of Maestro from the configured topic patterns.

A pattern is `<word>/<source>/<word>/<consumer>/sourceevents` (or `agentevents`); a broadcast pattern is
`<word>/<source>/sourcebroadcast` or `<word>/<consumer>/agentbroadcast`. Source and consumer may be `+`.
A prefix `$share/<group>/` makes a shared subscription and is not part of the topic. Servers publish to `sourceevents`
and agents subscribe to it; agents publish to `agentevents` and servers subscribe to it. The transport subscribes.
"""

import re
from dataclasses import dataclass

from maestropy.wire import errors

_SHARE = r"(?:\$share/[a-z0-9-]+/)?"
_EVENTS = rf"{_SHARE}[a-z]+/(?:[a-z0-9-]+|\+)/[a-z]+/(?:[a-z0-9-]+|\+)/"
_BROADCAST = rf"{_SHARE}[a-z]+/(?:[a-z0-9-]+|\+)/"

_PATTERNS = {
    "sourceEvents": re.compile(_EVENTS + "sourceevents"),
    "agentEvents": re.compile(_EVENTS + "agentevents"),
    "sourceBroadcast": re.compile(_BROADCAST + "sourcebroadcast"),
    "agentBroadcast": re.compile(_BROADCAST + "agentbroadcast"),
}
_EXAMPLES = {
    "sourceEvents": "sources/maestro/consumers/+/sourceevents",
    "agentEvents": "sources/maestro/consumers/+/agentevents",
    "sourceBroadcast": "sources/+/sourcebroadcast",
    "agentBroadcast": "clusters/+/agentbroadcast",
}
_SHARED = re.compile(r"\$share/[a-z0-9-]+/")
# Besides what MQTT gives a meaning, control characters and noncharacters: brokers end the connection of a client that
# sends them in a topic.
_PLANE_ENDS = "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
_SEGMENT = re.compile(rf"[^/+#\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_PLANE_ENDS}]+")
_SOURCE, _CONSUMER = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The configured topic patterns, validated by `check_patterns`."""

    source_events: str
    agent_events: str
    source_broadcast: str = ""
    agent_broadcast: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTopic:
    """The parts of a concrete topic; a broadcast topic names either the source or the consumer."""

    kind: str
    """`sourceevents`, `agentevents`, `sourcebroadcast` or `agentbroadcast`."""
    source: str = ""
    consumer: str = ""


def check_patterns(topics: Topics) -> Topics:
    """Return the patterns, or raise `InvalidContent` with the configuration key of the first invalid one."""
    patterns = {
        "sourceEvents": topics.source_events,
        "agentEvents": topics.agent_events,
        "sourceBroadcast": topics.source_broadcast,
        "agentBroadcast": topics.agent_broadcast,
    }
    for key, pattern in patterns.items():
        is_optional = key.endswith("Broadcast")
        if not pattern and is_optional:
            continue
        if not pattern:
            raise errors.InvalidContent(f"topics.{key} is required, for example {_EXAMPLES[key]}")
        if _PATTERNS[key].fullmatch(pattern) is None:
            raise errors.InvalidContent(f"topics.{key} {pattern[:200]!r} is invalid; write it like {_EXAMPLES[key]}")
    return topics


def check_source(topics: Topics, source: str) -> None:
    """Reject patterns under which the server `source` would not receive the events of its agents."""
    topic_source = without_share_prefix(topics.agent_events).split("/")[_SOURCE]
    if topic_source not in ("+", source):
        raise errors.InvalidContent(f'the topic source "{topic_source}" does not match the client sourceID "{source}"')


def check_consumer(topics: Topics, consumer: str) -> tuple[str, ...]:
    """Reject patterns under which the agent of `consumer` gets no specs; return what may lose its statuses.

    Servers publish the specs of a consumer to its own topic. A pattern for statuses that names another consumer works
    only with servers that have the same one: others take the agent for that consumer.
    """
    named = without_share_prefix(topics.source_events).split("/")[_CONSUMER]
    if named not in ("+", consumer):
        raise errors.InvalidContent(
            f'topics.sourceEvents names the consumer "{named}", so the agent of "{consumer}" would get no specs; '
            f'write + or "{consumer}" in its place'
        )
    return tuple(
        f'topics.{key} names the consumer "{found}", so servers may reject the statuses of "{consumer}"; '
        f'write + or "{consumer}" in its place'
        for key, pattern, index in (
            ("agentEvents", topics.agent_events, _CONSUMER),
            ("agentBroadcast", topics.agent_broadcast, _SOURCE),
        )
        if pattern and (found := without_share_prefix(pattern).split("/")[index]) not in ("+", consumer)
    )


def source_events(topics: Topics, *, source: str, consumer: str) -> str:
    """Return the topic on which a server publishes to one agent; that agent subscribes to it."""
    return _filled(topics.source_events, source=source, consumer=consumer)


def agent_events(topics: Topics, *, source: str, consumer: str) -> str:
    """Return the topic on which an agent publishes to one server."""
    return _filled(topics.agent_events, source=source, consumer=consumer)


def agent_subscription(topics: Topics, consumer: str) -> str:
    """Return the topic filter of an agent: its own consumer, every source that the pattern allows."""
    head = topics.source_events[: len(topics.source_events) - len(without_share_prefix(topics.source_events))]
    segments = without_share_prefix(topics.source_events).split("/")
    segments[_CONSUMER] = _segment(consumer, replacing=segments[_CONSUMER], label="consumer")
    return head + "/".join(segments)


def source_broadcast(topics: Topics, source: str) -> str:
    """Return the topic on which a server publishes to all agents."""
    if not topics.source_broadcast:
        raise errors.InvalidContent("topics.sourceBroadcast is not set, so nothing can be sent to all agents at once")
    return _filled_broadcast(topics.source_broadcast, source, label="source")


def agent_broadcast(topics: Topics, *, source: str, consumer: str) -> str:
    """Return the topic on which an agent publishes to all servers; its `agentevents` topic if there is no broadcast."""
    if not topics.agent_broadcast:
        return agent_events(topics, source=source, consumer=consumer)
    return _filled_broadcast(topics.agent_broadcast, consumer, label="consumer")


def may_publish_for(topics: Topics, topic: str, *, consumer: str) -> bool:
    """Return whether a message on `topic` may be about `consumer`.

    The ACLs of a broker let an agent publish only to the topic of its own consumer, so the topic identifies the agent.
    A pattern without a wildcard for the consumer does not identify it.
    """
    segments = topic.split("/")
    for pattern, index in ((topics.agent_events, _CONSUMER), (topics.agent_broadcast, _SOURCE)):
        expected = without_share_prefix(pattern).split("/")
        if len(expected) == len(segments) and expected[-1] == segments[-1]:
            return expected[index] != "+" or segments[index] == consumer
    return False


def parse(topic: str) -> ParsedTopic:
    """Parse the topic of a received message."""
    for key, pattern in _PATTERNS.items():
        if pattern.fullmatch(topic) and "+" not in topic:
            segments = without_share_prefix(topic).split("/")
            if key == "agentBroadcast":
                return ParsedTopic(kind=segments[-1], consumer=segments[_SOURCE])
            consumer = segments[_CONSUMER] if key.endswith("Events") else ""
            return ParsedTopic(kind=segments[-1], source=segments[_SOURCE], consumer=consumer)
    raise errors.MalformedMessage(
        f"{topic[:200]!r} is not a topic of Maestro such as sources/maestro/consumers/c1/agentevents"
    )


def without_share_prefix(pattern: str) -> str:
    """Return the pattern without a shared-subscription prefix."""
    return _SHARED.sub("", pattern, count=1) if pattern.startswith("$share/") else pattern


def _filled(pattern: str, *, source: str, consumer: str) -> str:
    segments = without_share_prefix(pattern).split("/")
    segments[_SOURCE] = _segment(source, replacing=segments[_SOURCE], label="source")
    segments[_CONSUMER] = _segment(consumer, replacing=segments[_CONSUMER], label="consumer")
    return "/".join(segments)


def _filled_broadcast(pattern: str, name: str, *, label: str) -> str:
    segments = without_share_prefix(pattern).split("/")
    segments[_SOURCE] = _segment(name, replacing=segments[_SOURCE], label=label)
    return "/".join(segments)


def _segment(value: str, *, replacing: str, label: str) -> str:
    """Return the topic segment for `value`; only `+` is replaced, a fixed segment of the configuration stays."""
    if replacing != "+":
        return replacing
    if _SEGMENT.fullmatch(value) is None:
        raise errors.InvalidContent(
            f"{label} {value[:64]!r} cannot stand in a topic: it must not be empty or hold / + # or control characters"
        )
    return value
