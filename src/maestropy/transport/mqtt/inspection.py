"""Inspect an MQTT broker before a server or an agent uses it: certificates, TLS and login. Subscribes to nothing."""

from datetime import datetime

from maestropy.aio import checks
from maestropy.aio.clock import new_id
from maestropy.transport import port
from maestropy.transport.mqtt import connection
from maestropy.transport.mqtt.endpoint import MqttEndpoint, split_host, tls_context
from maestropy.transport.tls import inspection


async def inspect(endpoint: MqttEndpoint, *, client_id: str, flag: str, now: datetime) -> list[checks.Check]:
    """Connect to an MQTT broker with a client ID of its own, so that no running client is disconnected."""
    host, broker_port = split_host(endpoint.broker_host)
    found = inspection.connection(endpoint, setting=flag, now=now)
    if checks.has_failed(found):
        return [*found, checks.not_seen("message-broker", "not tried with these certificates")]
    if endpoint.is_secure:
        found.append(await inspection.handshake(host, broker_port, tls_context(endpoint), name="message-broker-tls"))
    name = f"{client_id}-check-{new_id()[:8]}"
    try:
        async with connection.connect(endpoint, client_id=name, on_messages_lost=lambda _client: None):
            detail = f"{endpoint.broker_host} accepts the connection{_as_user(endpoint)}"
            return [*found, checks.ok("message-broker", detail)]
    except port.Disconnected as error:
        remedy = f"check brokerHost, user and password, and certificates in {flag}"
        return [*found, checks.failed("message-broker", str(error), remedy=remedy)]


def _as_user(endpoint: MqttEndpoint) -> str:
    return f" of user {endpoint.username}" if endpoint.username else ""
