"""Judge how topics and subscriptions of Pub/Sub are configured, as checks. Pure, but for the one function that asks."""

from collections.abc import Iterator, Sequence
from typing import Any

from maestropy.aio import checks
from maestropy.transport import port
from maestropy.transport.pubsub import broker_state
from maestropy.transport.pubsub.broker_state import PubsubState, Subscription
from maestropy.transport.pubsub.endpoint import PubsubEndpoint

_DELETED = "_deleted-topic_"
_DAY = 86400
_SHOWN = 5


async def inspect(endpoint: PubsubEndpoint, *, consumer: str = "") -> tuple[PubsubState | None, list[checks.Check]]:
    """Ask Pub/Sub; return what it told, and what that means. Receives no message."""
    try:
        state = await broker_state.read(endpoint)
    except port.Disconnected as error:
        remedy = "check endpoint, credentials and network"
        return None, [checks.failed("message-broker", str(error), remedy=remedy)]
    return state, [
        checks.ok("message-broker", f"{endpoint.target} answers"),
        *judge(state, endpoint, consumer=consumer),
    ]


def judge(state: PubsubState, endpoint: PubsubEndpoint, *, consumer: str = "") -> Iterator[checks.Check]:
    """Yield what the configuration means for a server."""
    for topic in state.topics:
        name = f"topic {_short(topic.name)}"
        if not topic.problem:
            yield checks.ok(name, "exists")
        elif topic.is_absent:
            yield checks.failed(name, topic.problem, remedy="create it; docs/run-the-server.md says how")
        else:
            yield checks.not_seen(name, topic.problem)
    prefix = f"projects/{endpoint.project}/topics/"
    for own, topic_name in zip(state.own, ("agentevents", "agentbroadcast"), strict=True):
        yield _subscription(own, expected=prefix + topic_name)
    yield _agents(state, consumer=consumer)


def _subscription(found: Subscription, *, expected: str) -> checks.Check:
    name = f"subscription {_short(found.name)}"
    if found.problem:
        make = checks.failed if found.is_absent else checks.not_seen
        return make(name, found.problem)
    problem = _problem(found, expected=expected)
    if problem:
        return checks.failed(name, problem, remedy="delete it and create it again; the server then resyncs")
    detail = f"on {_short(found.topic)}, filter {found.filter or 'none'}"
    if found.expires_seconds:
        days = found.expires_seconds / _DAY
        remedy = f"gcloud pubsub subscriptions update {_short(found.name)} --expiration-period=never"
        return checks.warning(name, f"{detail}; deleted after {days:.0f} days without a server", remedy=remedy)
    return checks.ok(name, detail)


def _problem(found: Subscription, *, expected: str) -> str:
    if found.topic == _DELETED:
        return "its topic was deleted; a new topic of the same name is another one"
    if found.is_detached:
        return "it is detached from its topic"
    if expected and found.topic != expected:
        return f"it is on {found.topic}, not on {expected}"
    if found.is_push:
        return "it pushes messages to an address; servers and agents pull"
    return ""


def _agents(state: PubsubState, *, consumer: str) -> checks.Check:
    name = "subscriptions of agents"
    if state.agents_problem and not state.agents:
        return checks.not_seen(name, state.agents_problem)
    broken = [f"{_short(found.name)}: {problem}" for found in state.agents if (problem := _problem(found, expected=""))]
    if broken:
        remedy = "delete them and create them again; the agents then resync"
        return checks.failed(name, "; ".join(broken[:_SHOWN]), remedy=remedy)
    if consumer and not any(serves(found, consumer) for found in state.agents):
        remedy = f'create sourceevents-{consumer} with the filter attributes."ce-clustername"="{consumer}"'
        return checks.failed(name, f"none of {len(state.agents)} is for {consumer}", remedy=remedy)
    if not state.agents:
        remedy = "create one for each agent; docs/run-the-server.md says how"
        return checks.failed(name, "there is none, so Pub/Sub drops every spec", remedy=remedy)
    note = f"; {state.agents_problem}" if state.agents_problem else ""
    whose = f", one of them for {consumer}" if consumer else ""
    return checks.ok(name, f"{len(state.agents)} on the topic of specs{whose}{note}")


def serves(found: Subscription, consumer: str) -> bool:
    """Return whether a subscription gets the specs of a consumer: by its filter, or without one by its name."""
    if found.filter:
        return f'"{consumer}"' in found.filter
    return _short(found.name).endswith(f"-{consumer}")


def _short(name: str) -> str:
    return name.rsplit("/", maxsplit=1)[-1]


def documents(state: PubsubState) -> Sequence[dict[str, Any]]:
    """Return topics and subscriptions for an archive."""
    fields = (
        "topic",
        "filter",
        "ack_deadline_seconds",
        "retention_seconds",
        "expires_seconds",
        "is_detached",
        "is_push",
    )
    return [
        *({"trace": "topic", "name": topic.name, "problem": topic.problem} for topic in state.topics),
        *(
            {"trace": "subscription", "role": role, "name": found.name, "problem": found.problem}
            | {field: getattr(found, field) for field in fields}
            for role, several in (("server", state.own), ("agent", state.agents))
            for found in several
        ),
    ]
