"""`maestro check` on a real MQTT broker: the login, the certificate of the broker, and that nobody is disconnected."""

import datetime as dt
from pathlib import Path

import pytest

from maestropy.aio.checks import Outcome
from maestropy.transport.mqtt import config, connection, inspection
from tests.certificates import make_ca
from tests.peers.mosquitto import Mosquitto, mosquitto

pytestmark = pytest.mark.peers

NOW = dt.datetime.now(dt.UTC)


async def outcomes(path: Path) -> dict[str, tuple[Outcome, str]]:
    endpoint = config.read(path, flag="--x").endpoint
    found = await inspection.inspect(endpoint, client_id="maestro", flag="--x", now=NOW)
    return {check.name: (check.outcome, check.detail) for check in found}


async def test_login_is_checked_and_the_running_client_stays(broker: Mosquitto, tmp_path: Path) -> None:
    endpoint = config.read(broker.config(), flag="--x").endpoint
    async with connection.connect(endpoint, client_id="maestro", on_messages_lost=lambda _client: None) as client:
        found = await outcomes(broker.config())
        assert found == {"message-broker": (Outcome.OK, f"{broker.host} accepts the connection")}
        # A second client of the same ID would have ended this one.
        await client.subscribe(["sources/maestro/consumers/+/agentevents"], qos=1)
    with mosquitto(tmp_path / "closed", "allow_anonymous false\n") as closed:
        found = await outcomes(closed.config())
        assert found["message-broker"][0] is Outcome.FAILED
        assert "not authorized" in found["message-broker"][1].lower()


async def test_certificate_of_the_broker_is_checked(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    pair = ca.issue(cn="broker", san=["elsewhere"])
    settings = f"cafile {ca.cert}\ncertfile {pair.cert}\nkeyfile {pair.key}\n"
    with mosquitto(tmp_path / "tls", settings) as broker:
        found = await outcomes(broker.config(more=f"caFile: {ca.cert}\n"))
        assert found["--x caFile"][0] is Outcome.OK
        assert found["message-broker-tls"][0] is Outcome.FAILED
        assert "not valid for '127.0.0.1'" in found["message-broker-tls"][1]
        assert found["message-broker"][0] is Outcome.FAILED
