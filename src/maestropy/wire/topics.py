"""The MQTT topics of Maestro: check the configured patterns, fill them in, read them back.

A pattern is `<word>/<source>/<word>/<consumer>/sourceevents` (or `agentevents`), a broadcast pattern
`<word>/<who>/sourcebroadcast` (or `agentbroadcast`); source and consumer may be `+`. A `$share/<group>/` in front only
matters to subscribers. Which topics are subscribed and when is for the transport to decide.
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
_SEGMENT = re.compile(r"[^/+#\x00]+")
_SOURCE, _CONSUMER = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The configured patterns, checked by `checked`."""

    source_events: str
    agent_events: str
    source_broadcast: str = ""
    agent_broadcast: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a concrete topic says; of a broadcast only one end is known."""

    kind: str
    """`sourceevents`, `agentevents`, `sourcebroadcast` or `agentbroadcast`."""
    source: str = ""
    consumer: str = ""


def checked(topics: Topics) -> Topics:
    """Return the patterns, or refuse the first that is wrong by the name it has in the configuration."""
    given = {
        "sourceEvents": topics.source_events,
        "agentEvents": topics.agent_events,
        "sourceBroadcast": topics.source_broadcast,
        "agentBroadcast": topics.agent_broadcast,
    }
    for key, pattern in given.items():
        is_optional = key.endswith("Broadcast")
        if not pattern and is_optional:
            continue
        if not pattern:
            raise errors.Invalid(f"topics.{key} is required, for example {_EXAMPLES[key]}")
        if _PATTERNS[key].fullmatch(pattern) is None:
            raise errors.Invalid(f"topics.{key} {pattern[:200]!r} is invalid; write it like {_EXAMPLES[key]}")
    return topics


def check_source(topics: Topics, source: str) -> None:
    """Refuse patterns under which the server `source` would not hear its agents."""
    found = unshared(topics.agent_events).split("/")[_SOURCE]
    if found not in ("+", source):
        raise errors.Invalid(f'the topic source "{found}" does not match the client sourceID "{source}"')


def source_events(topics: Topics, *, source: str, consumer: str) -> str:
    """Return where a server publishes for one agent, which is also what that agent subscribes to."""
    return _filled(topics.source_events, source=source, consumer=consumer)


def agent_events(topics: Topics, *, source: str, consumer: str) -> str:
    """Return where an agent publishes for one server."""
    return _filled(topics.agent_events, source=source, consumer=consumer)


def agent_subscription(topics: Topics, consumer: str) -> str:
    """Return what an agent subscribes to: its own consumer, every source the pattern allows."""
    head = topics.source_events[: len(topics.source_events) - len(unshared(topics.source_events))]
    segments = unshared(topics.source_events).split("/")
    segments[_CONSUMER] = _segment(consumer, replacing=segments[_CONSUMER], what="consumer")
    return head + "/".join(segments)


def source_broadcast(topics: Topics, source: str) -> str:
    """Return where a server publishes for all agents."""
    if not topics.source_broadcast:
        raise errors.Invalid("topics.sourceBroadcast is not set, so nothing can be sent to all agents at once")
    return _filled_broadcast(topics.source_broadcast, source, what="source")


def agent_broadcast(topics: Topics, *, source: str, consumer: str) -> str:
    """Return where an agent publishes for all servers: without a broadcast topic, its usual one."""
    if not topics.agent_broadcast:
        return agent_events(topics, source=source, consumer=consumer)
    return _filled_broadcast(topics.agent_broadcast, consumer, what="consumer")


def may_speak_for(topics: Topics, topic: str, *, consumer: str) -> bool:
    """Say whether a message of an agent on `topic` may be about `consumer`.

    Brokers let an agent write to the topic of its own consumer only, so the topic tells who speaks. A pattern that
    names no consumer cannot tell.
    """
    segments = topic.split("/")
    for pattern, place in ((topics.agent_events, _CONSUMER), (topics.agent_broadcast, _SOURCE)):
        wanted = unshared(pattern).split("/")
        if len(wanted) == len(segments) and wanted[-1] == segments[-1]:
            return wanted[place] != "+" or segments[place] == consumer
    return False


def parse(topic: str) -> Place:
    """Read a topic on which a message arrived."""
    for key, pattern in _PATTERNS.items():
        if pattern.fullmatch(topic) and "+" not in topic:
            segments = unshared(topic).split("/")
            if key == "agentBroadcast":
                return Place(kind=segments[-1], consumer=segments[_SOURCE])
            consumer = segments[_CONSUMER] if key.endswith("Events") else ""
            return Place(kind=segments[-1], source=segments[_SOURCE], consumer=consumer)
    raise errors.Malformed(
        f"{topic[:200]!r} is not a topic of Maestro such as sources/maestro/consumers/c1/agentevents"
    )


def unshared(pattern: str) -> str:
    """Return the pattern without a shared-subscription prefix."""
    return _SHARED.sub("", pattern, count=1) if pattern.startswith("$share/") else pattern


def _filled(pattern: str, *, source: str, consumer: str) -> str:
    segments = unshared(pattern).split("/")
    segments[_SOURCE] = _segment(source, replacing=segments[_SOURCE], what="source")
    segments[_CONSUMER] = _segment(consumer, replacing=segments[_CONSUMER], what="consumer")
    return "/".join(segments)


def _filled_broadcast(pattern: str, who: str, *, what: str) -> str:
    segments = unshared(pattern).split("/")
    segments[_SOURCE] = _segment(who, replacing=segments[_SOURCE], what=what)
    return "/".join(segments)


def _segment(value: str, *, replacing: str, what: str) -> str:
    """Return what stands in a topic for `value`; a fixed segment is the operator's choice and stays."""
    if replacing != "+":
        return replacing
    if _SEGMENT.fullmatch(value) is None:
        raise errors.Invalid(f"{what} {value[:64]!r} cannot stand in a topic: it must not be empty or hold / + #")
    return value
