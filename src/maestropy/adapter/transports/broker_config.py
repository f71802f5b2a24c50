"""Read HyperFleet's broker file: RabbitMQ or Google Pub/Sub, the file's fields, and the environment over them. Pure.

    broker:
      type: rabbitmq
      rabbitmq: {url: "amqp://127.0.0.1:5672/", exchange: hyperfleet-clusters}

Every field has a variable, such as `BROKER_RABBITMQ_URL`. Fields for publishers are accepted and not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.sdk.errors import ConfigError

FILE_VARIABLE = "BROKER_CONFIG_FILE"
TOPIC_VARIABLE = "HYPERFLEET_BROKER_TOPIC"
SUBSCRIPTION_VARIABLE = "HYPERFLEET_BROKER_SUBSCRIPTION_ID"
RABBITMQ, PUBSUB = "rabbitmq", "googlepubsub"
_EXCHANGE_TYPES = ("direct", "fanout", "topic", "headers")
_RABBITMQ_FIELDS = (
    "url",
    "exchange",
    "exchange_type",
    "queue",
    "routing_key",
    "prefetch_count",
    "prefetch_size",
    "consumer_tag",
    "publisher_confirm",
)
_PUBSUB_FIELDS = (
    "project_id",
    "ack_deadline_seconds",
    "max_outstanding_messages",
    "max_outstanding_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitmqConfig:
    """A queue of RabbitMQ; HyperFleet's Sentinel publishes to the exchange."""

    url: str
    queue: str
    """`<queue or topic>-<subscription>`: adapters with one subscription share its events."""
    exchange: str
    exchange_type: str = "fanout"
    prefetch_count: int = 0
    """Events that are received before earlier ones are settled; 0 for the number of workers."""
    consumer_tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubConfig:
    """A subscription of Google Pub/Sub."""

    project: str
    subscription: str
    ack_deadline_seconds: int = 60
    max_messages: int = 0
    """Events that are received before earlier ones are settled; 0 for the number of workers."""
    max_bytes: int = 64 * 2**20

    @property
    def name(self) -> str:
        """The full name of the subscription."""
        return f"projects/{self.project}/subscriptions/{self.subscription}"


BrokerConfig = RabbitmqConfig | PubsubConfig


def parse(document: Any, environ: Mapping[str, str], *, topic: str, subscription: str) -> BrokerConfig:
    """Return the settings of a broker file; raises ConfigError, which names the field."""
    broker = document.get("broker") if isinstance(document, Mapping) else None
    broker = broker if isinstance(broker, Mapping) else {}
    kind = environ.get("BROKER_TYPE") or broker.get("type")
    if not subscription:
        raise ConfigError("the subscription is missing", advice=f"give --subscription, or set {SUBSCRIPTION_VARIABLE}")
    if kind == RABBITMQ:
        return _rabbitmq(_fields(broker, environ, RABBITMQ, _RABBITMQ_FIELDS), topic=topic, subscription=subscription)
    if kind == PUBSUB:
        return _pubsub(_fields(broker, environ, PUBSUB, _PUBSUB_FIELDS), subscription=subscription)
    raise ConfigError(f"unsupported broker type: {kind or 'none'}", advice=f"set broker.type to {RABBITMQ} or {PUBSUB}")


def _fields(
    broker: Mapping[str, Any], environ: Mapping[str, str], section: str, names: tuple[str, ...]
) -> dict[str, Any]:
    written = broker.get(section)
    written = written if isinstance(written, Mapping) else {}
    variables = {name: environ.get(f"BROKER_{section}_{name}".upper()) for name in names}
    return {name: variables[name] or written.get(name) for name in names}


def _rabbitmq(fields: Mapping[str, Any], *, topic: str, subscription: str) -> RabbitmqConfig:
    url = str(fields["url"] or "")
    if not url:
        raise ConfigError("rabbitmq.url is required", advice="write amqps://USER:PASSWORD@HOST:5671/")
    if not url.startswith(("amqp://", "amqps://")):
        raise ConfigError("rabbitmq.url must start with 'amqp://' or 'amqps://'", advice="correct it")
    exchange_type = str(fields["exchange_type"] or "fanout")
    if exchange_type not in _EXCHANGE_TYPES:
        allowed = ", ".join(_EXCHANGE_TYPES)
        raise ConfigError(f"rabbitmq.exchange_type must be one of: {allowed}", advice="use that of the Sentinel")
    prefix = str(fields["queue"] or topic)
    exchange = str(fields["exchange"] or topic)
    if not prefix or not exchange:
        advice = f"give --topic, set {TOPIC_VARIABLE}, or rabbitmq.exchange and rabbitmq.queue"
        raise ConfigError("the topic is missing", advice=advice)
    return RabbitmqConfig(
        url=url,
        queue=f"{prefix}-{subscription}",
        exchange=exchange,
        exchange_type=exchange_type,
        prefetch_count=_number(fields, "rabbitmq", "prefetch_count"),
        consumer_tag=str(fields["consumer_tag"] or ""),
    )


def _pubsub(fields: Mapping[str, Any], *, subscription: str) -> PubsubConfig:
    if not fields["project_id"]:
        raise ConfigError("googlepubsub.project_id is required", advice="name the Google Cloud project")
    seconds = _number(fields, PUBSUB, "ack_deadline_seconds") or 60
    if not 10 <= seconds <= 600:
        raise ConfigError(f"googlepubsub.ack_deadline_seconds is {seconds}", advice="give 10 to 600")
    return PubsubConfig(
        project=str(fields["project_id"]),
        subscription=subscription,
        ack_deadline_seconds=seconds,
        max_messages=_number(fields, PUBSUB, "max_outstanding_messages"),
        max_bytes=_number(fields, PUBSUB, "max_outstanding_bytes") or 64 * 2**20,
    )


def _number(fields: Mapping[str, Any], section: str, name: str) -> int:
    value = fields[name]
    try:
        number = int(value or 0)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(value, bool):
        raise ConfigError(f"{section}.{name} must be non-negative, and is {value!r}", advice="give a whole number")
    return number
