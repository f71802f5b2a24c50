"""Judge what an MQTT broker told about itself and its topics, as checks. Pure, but for the one function that asks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from maestropy.aio import checks
from maestropy.aio.clock import new_id
from maestropy.transport import port
from maestropy.transport.mqtt import broker_state
from maestropy.transport.mqtt.broker_state import MqttState
from maestropy.transport.mqtt.endpoint import MqttEndpoint
from maestropy.wire.events import mqtt_topics

_COUNTED_SECONDS = 60
PROBED = "maestro-check-"
"""How the consumer begins whose topics are published to; no consumer has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which topics are asked about."""

    source: str
    """The source ID of the server."""
    consumer: str = ""
    """Also the topics of the agent of this consumer."""
    probe: bool = False
    """Publish an empty message to topics of a consumer that does not exist, to find out who is subscribed."""


async def inspect(
    endpoint: MqttEndpoint, asked: Asked, *, client_id: str
) -> tuple[MqttState | None, list[checks.Check]]:
    """Ask a broker that accepts connections; return what it told, and what that means."""
    name = f"{client_id}-check-{new_id()[:8]}"
    probed = f"{PROBED}{new_id()[:8]}"
    probes = _probes(endpoint.topics, asked, probed=probed)
    try:
        state = await broker_state.read(
            endpoint, client_id=name, topics=_subscriptions(endpoint.topics, asked), probes=probes
        )
    except port.Disconnected as error:
        return None, [checks.not_seen("broker-topics", str(error))]
    return state, list(judge(state, endpoint, asked))


def _subscriptions(topics: mqtt_topics.Topics, asked: Asked) -> list[str]:
    own = [topics.agent_events, topics.agent_broadcast]
    if asked.consumer:
        own += [mqtt_topics.agent_subscription(topics, asked.consumer), topics.source_broadcast]
    return [topic for topic in own if topic]


def _probes(topics: mqtt_topics.Topics, asked: Asked, *, probed: str) -> Sequence[str]:
    """Return the topics to publish to: only where the pattern leaves the consumer open, so that no agent gets it."""
    if not asked.probe:
        return ()
    own = (
        mqtt_topics.source_events(topics, source=asked.source, consumer=probed),
        mqtt_topics.agent_events(topics, source=asked.source, consumer=probed),
    )
    return [topic for topic in own if probed in topic.split("/")]


def judge(state: MqttState, endpoint: MqttEndpoint, asked: Asked) -> Iterator[checks.Check]:
    """Yield what the answers of a broker mean."""
    account = f"user {endpoint.username}" if endpoint.username else "this client"
    if state.rejected:
        reasons = "; ".join(state.rejected.values())
        yield checks.failed("broker-topics", reasons, remedy=f"allow these topics for {account} in the broker's ACL")
    else:
        shown = ", ".join(map(mqtt_topics.without_share_prefix, _subscriptions(endpoint.topics, asked)))
        yield checks.ok("broker-topics", f"the broker accepts subscriptions to {shown}")
    yield from _system(state)
    yield from _publishing(state, account=account)
    yield from _subscribers(state, asked)


def _system(state: MqttState) -> Iterator[checks.Check]:
    if not state.system:
        yield checks.not_seen("broker-state", "the broker shows this client no $SYS topics")
        return
    words = {
        "clients/connected": "clients are connected",
        "subscriptions/count": "subscriptions",
        "messages/stored": "messages are kept",
    }
    counts = [f"{state.number(name)} {text}" for name, text in words.items() if state.number(name) is not None]
    yield checks.ok("broker-state", ", ".join(filter(None, [state.system.get("version", ""), *counts])))
    if state.number("clients/connected") == 0 and _has_counted(state):
        yield checks.warning(
            "broker-clients",
            "no client is connected: neither a server nor an agent uses this broker",
            remedy="compare brokerHost with the configuration files of servers and agents",
        )
    dropped = state.number("publish/messages/dropped")
    if dropped:
        yield checks.warning(
            "broker-dropped",
            f"the broker has dropped {dropped} messages since it started; a resync brings them again",
            remedy="raise max_queued_messages and max_inflight_messages of the broker, or find the slow client",
        )


def _has_counted(state: MqttState) -> bool:
    """Return whether the broker runs for long enough to have counted; it does so every ten seconds by default."""
    seconds = state.system.get("uptime", "").partition(" ")[0]
    return seconds.isascii() and seconds.isdecimal() and int(seconds[:9]) > _COUNTED_SECONDS


def _publishing(state: MqttState, *, account: str) -> Iterator[checks.Check]:
    if state.unpublished:
        reasons = "; ".join(state.unpublished.values())
        yield checks.failed("broker-publish", reasons, remedy=f"allow these topics for {account} in the broker's ACL")
    elif state.heard:
        yield checks.ok("broker-publish", f"the broker accepts messages to {', '.join(state.heard)}")


def _subscribers(state: MqttState, asked: Asked) -> Iterator[checks.Check]:
    name = "broker-subscribers"
    for topic, has_subscriber in state.heard.items():
        if topic.endswith("/agentevents"):
            if has_subscriber:
                yield checks.ok(name, "a server is subscribed to the statuses of agents")
            else:
                remedy = "start the server, and compare topics.agentEvents of its configuration with this one"
                yield checks.failed(name, f"no server is subscribed to {topic}", remedy=remedy)
        elif has_subscriber:
            yield checks.warning(
                "broker-reports-absence",
                "the broker does not report that a consumer has no subscriber, so servers cannot see absent agents",
                remedy="end the client that subscribes to the topics of all consumers, or use Mosquitto 2",
            )
        else:
            yield checks.ok("broker-reports-absence", "the broker reports when a consumer has no subscriber")
    if asked.consumer:
        yield checks.not_seen(
            "broker-agent",
            f"whether the agent of {asked.consumer} is subscribed: only a message that it would get can tell",
            remedy=f"run `maestro history {asked.consumer} --kind agent`, or look at its newest status",
        )
