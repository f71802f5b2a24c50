"""Who may speak with the broker: certificates, rotation, passwords, and refusals that say why."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.transport import port
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import connection
from maestropy.wire.events import mqtt_binding as binding
from tests import certificates, waiting
from tests.peers.brokers.mqtt_agents import agent, raw_client
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.stack import harness
from tests.stack.clients import source

pytestmark = pytest.mark.peers


class Secure:
    """A broker that asks for certificates, and the files of those who have one."""

    def __init__(self, folder: Path) -> None:
        self.ca = certificates.make_ca(folder)
        files = self.ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
        self.settings = (
            f"cafile {self.ca.cert}\ncertfile {files.cert}\nkeyfile {files.key}\n"
            "require_certificate true\nuse_identity_as_username true\nallow_anonymous false"
        )

    def config(self, broker: Mosquitto, files: certificates.CertFiles, *, name: str) -> Path:
        lines = f"caFile: {self.ca.cert}\nclientCertFile: {files.cert}\nclientKeyFile: {files.key}"
        return broker.config(name, more=lines)


async def test_the_loop_with_certificates_by_file_and_by_content(database: Dsn, tmp_path: Path) -> None:
    secure = Secure(tmp_path)

    with mosquitto(tmp_path / "mosquitto", settings=secure.settings) as broker:
        config = secure.config(broker, secure.ca.issue(cn="maestro"), name="server")
        own = secure.ca.issue(cn="cluster1")
        contents = {"caData": secure.ca.cert, "clientCertData": own.cert, "clientKeyData": own.key}
        inline = "\n".join(f"{key}: {base64.b64encode(path.read_bytes()).decode()}" for key, path in contents.items())
        flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
        async with harness.in_process(database, **flags) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            async with agent(broker.config("agent", more=inline), "cluster1") as one:
                await a.create("w1", "cluster1")
                await one.spec_of("w1")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        pytest.param("caFile: {ca}", "certificate required|closed|reset|handshake", id="no-certificate"),
        pytest.param("", "closed|reset|did not answer", id="plain-text"),
        pytest.param(
            "caFile: {other}\nclientCertFile: {cert}\nclientKeyFile: {key}",
            "CERTIFICATE_VERIFY_FAILED|certificate verify failed",
            id="a-broker-we-do-not-trust",
        ),
        pytest.param(
            "caFile: {ca}\nclientCertFile: /nowhere\nclientKeyFile: {key}", "No such file", id="a-missing-file"
        ),
    ],
)
async def test_a_refused_connection_says_why(more: str, reason: str, tmp_path: Path) -> None:
    secure = Secure(tmp_path)
    own = secure.ca.issue(cn="cluster1")
    other = certificates.make_ca(tmp_path)
    lines = more.format(ca=secure.ca.cert, other=other.cert, cert=own.cert, key=own.key)

    with mosquitto(tmp_path / "mosquitto", settings=secure.settings) as broker:
        with pytest.raises(port.Disconnected, match=reason):
            async with raw_client(broker.config("agent", more=lines)) as client:
                await client.subscribe(["a"])


async def test_a_rotated_certificate_is_used_by_the_next_connection(tmp_path: Path) -> None:
    secure = Secure(tmp_path)
    own = secure.ca.issue(cn="old-name")

    with mosquitto(tmp_path / "mosquitto", settings=secure.settings) as broker:
        config = secure.config(broker, own, name="agent")
        found = mqtt_config.read(config, flag="--x").endpoint
        endpoint = replace(found, reload_seconds=0.05)
        async with connection.connect(
            endpoint, client_id="one", on_messages_lost=lambda _: pytest.fail("messages were lost")
        ) as client:
            own.replace_with(secure.ca.issue(cn="new-name"))
            with pytest.raises(port.Disconnected, match="certificate rotation detected"):
                async for _ in client.messages():
                    pass
        async with connection.connect(
            endpoint, client_id="two", on_messages_lost=lambda _: pytest.fail("messages were lost")
        ):
            pass
        await waiting.until(lambda: "u'new-name'" in broker.log.read_text(), what="the new name at the broker")


async def test_a_password_is_checked_and_never_logged(database: Dsn, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    # mosquitto_passwd's format for `hunter2-right`: PBKDF2 would need its salt; plain entries are hashed at start.
    passwords.write_text("maestro:hunter2-right\n")

    settings = f"allow_anonymous false\npassword_file {passwords}"
    with mosquitto(tmp_path / "mosquitto", settings=settings) as broker:
        config = broker.config(more="username: maestro\npassword: hunter2-wrong")
        flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
        async with harness.in_process(database, **flags) as server:
            await waiting.until(lambda: bool(server.lines("is disconnected")), what="a refusal")
            text = server.log.getvalue().decode()
            assert "the broker rejects the connection: " in text
            assert "hunter2" not in text
            assert await server.probe() == 200, "sources are served without the broker"


async def test_rejected_topic_is_logged_and_others_continue(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic write sources/maestro/consumers/allowed/agentevents\ntopic read #\n")

    with mosquitto(tmp_path / "mosquitto", settings=f"acl_file {rules}") as broker:
        async with raw_client(broker.config()) as client:
            message = binding.MqttMessage(content_type="", properties=(), payload=b"")
            with pytest.raises(port.PublishRejected, match=r"not authorized \(0x87\)"):
                await client.publish("sources/maestro/consumers/forbidden/agentevents", message)
            await client.publish("sources/maestro/consumers/allowed/agentevents", message)


async def test_another_client_with_our_id_ends_us(broker: Mosquitto) -> None:
    async with raw_client(broker.config()) as first, raw_client(broker.config()):
        with pytest.raises(port.Disconnected, match=r"taken over|closed the connection"):
            async for _ in first.messages():
                pass
        with pytest.raises(port.Disconnected):
            await asyncio.wait_for(first.subscribe(["a"]), 5)
