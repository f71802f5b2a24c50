"""`maestro check broker` and the broker in an archive, on a real Mosquitto and a Pub/Sub emulator.

Nothing of it may reach an agent, and no message may be taken from a server.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maestropy.aio import clock as clocks
from maestropy.aio.checks import Check, Outcome
from maestropy.cli import main
from maestropy.diagnose.analysis import health
from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.sources import broker as broker_source
from maestropy.diagnose.collection.staging import Staging
from maestropy.server import broker_preflight
from maestropy.server import settings as configuration
from maestropy.transport.mqtt import config, connection
from maestropy.wire.events.mqtt_binding import MqttMessage
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.peers.pubsub_emulator import Emulator, emulator, subscription, topic
from tests.skill_commands import commands, filled

pytestmark = pytest.mark.peers

CLOCK = clocks.Clock()
SPECS = "sources/maestro/consumers/cluster1/sourceevents"
STATUSES = "sources/maestro/consumers/+/agentevents"


@pytest.fixture
def talkative(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker whose $SYS topics are there after a second, not after ten."""
    with mosquitto(tmp_path / "talkative", "sys_interval 1\n") as running:
        yield running


@pytest.fixture(scope="module")
def pubsub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulator(tmp_path_factory.mktemp("pubsub")) as running:
        running.add_consumer("cluster1")
        yield running


async def check(kind: str, path: Path, *, consumer: str = "", probe: bool = False) -> dict[str, Check]:
    flags = {"--message-broker-type": kind, "--message-broker-config-file": str(path), "--server-hostname": "127.0.0.1"}
    questions = broker_preflight.BrokerQuestions(consumer=consumer, probe=probe)
    found = await broker_preflight.run(configuration.load(flags, {}), questions, clock=CLOCK)
    return {one.name: one for one in found}


async def archive_of(folder: Path, path: Path, *, consumer: str = "") -> list[dict[str, Any]]:
    staging = Staging(folder, most_bytes=1 << 20)
    await broker_source.collect_broker(staging, path, scope=Scope(consumer=consumer), now=CLOCK.now())
    names = ("server/broker.jsonl", "server/broker-state.jsonl")
    return [json.loads(line) for name in names for line in (folder / name).read_text().splitlines()]


def codes(documents: list[dict[str, Any]], works: tuple[str, ...] = ()) -> list[str]:
    files = {
        "server/broker.jsonl": [item for item in documents if item["trace"] == "check"],
        "server/broker-state.jsonl": [item for item in documents if item["trace"] != "check"],
        "database/rows.jsonl": [{"id": name, "consumer_name": name} for name in works],
    }
    content = health.Content(
        documents=lambda name: list(enumerate(files.get(name, []), 1)), texts={}, files=list(files), now=CLOCK.now()
    )
    return [finding.code for engine, finding in health.judge(content) if engine == "broker"]


async def test_probe_tells_who_is_subscribed_and_no_agent_gets_anything(talkative: Mosquitto) -> None:
    path = talkative.config(share="maestro")
    endpoint = config.read(path, flag="--x").endpoint
    received: list[str] = []

    async def listen(client: connection.MqttClient) -> None:
        async for incoming in client.messages():
            received.append(incoming.topic)
            incoming.acknowledge()

    async with connection.connect(endpoint, client_id="agent", on_messages_lost=lambda _client: None) as agent:
        await agent.subscribe([SPECS])
        listening = asyncio.create_task(listen(agent), name="agent")
        alone = await check("mqtt", path, consumer="cluster1", probe=True)
        assert alone["broker-subscribers"].outcome is Outcome.FAILED
        assert (
            "no server is subscribed to sources/maestro/consumers/maestro-check-" in alone["broker-subscribers"].detail
        )
        assert alone["broker-reports-absence"].outcome is Outcome.OK
        assert alone["broker-publish"].outcome is Outcome.OK
        assert alone["broker-agent"].outcome is Outcome.NOT_SEEN
        async with connection.connect(endpoint, client_id="server", on_messages_lost=lambda _client: None) as server:
            await server.subscribe([f"$share/maestro/{STATUSES}"])
            served = await check("mqtt", path, probe=True)
            assert served["broker-subscribers"].outcome is Outcome.OK
            # Without the probe nothing is published, and the share of the server is not touched.
            quiet = await check("mqtt", path, consumer="cluster1")
            assert {name for name in quiet if name.startswith("broker-")} >= {"broker-topics", "broker-state"}
            assert "broker-subscribers" not in quiet
            assert "cluster1/sourceevents" in quiet["broker-topics"].detail
            # The agent is still connected, and hears what is meant for it; that is all that it ever got.
            await server.publish(SPECS, MqttMessage(content_type="", properties=(), payload=b"x"))
        listening.cancel()
        await asyncio.wait([listening])
    assert received == [SPECS]


async def test_archive_has_the_state_of_the_broker_and_no_message(talkative: Mosquitto, tmp_path: Path) -> None:
    path = talkative.config()
    endpoint = config.read(path, flag="--x").endpoint
    async with connection.connect(endpoint, client_id="server", on_messages_lost=lambda _client: None) as server:
        await server.subscribe([STATUSES])
        found = await archive_of(tmp_path / "archive", path, consumer="cluster1")
        state = found[-1]
        assert (state["trace"], state["kind"]) == ("broker", "mqtt")
        assert state["system"]["version"].startswith("mosquitto version 2")
        # How many are connected, the broker counts once in a while.
        assert state["system"]["clients/connected"].isdecimal()
        assert {item["name"]: item["outcome"] for item in found if item["trace"] == "check"}["broker-topics"] == "ok"
        assert codes(found) == []


async def test_rejected_login_is_found_in_check_and_archive(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "closed", "allow_anonymous false\n") as closed:
        found = await check("mqtt", closed.config())
        assert found["message-broker"].outcome is Outcome.FAILED
        assert "broker-topics" not in found
        assert codes(await archive_of(tmp_path / "archive", closed.config())) == ["MD-302"]


async def test_broker_that_is_gone_fails_within_its_time(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "gone") as gone:
        path = gone.config()
    found = await check("mqtt", path, probe=True)
    assert [one.outcome for one in found.values()] == [Outcome.FAILED]


def test_command_line_ends_with_the_code_of_the_result(broker: Mosquitto, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--message-broker-type=mqtt", f"--message-broker-config-file={broker.config()}"]
    assert main.call(["check", "broker", *flags, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert main.call(["check", "broker", *flags, "--probe"]) == 1
    assert "fix: start the server" in capsys.readouterr().out


async def test_pubsub_topics_and_subscriptions_are_read_and_no_message_is_taken(
    pubsub: Emulator, tmp_path: Path
) -> None:
    path = pubsub.config(tmp_path / "server.yaml")
    pubsub.publish("agentevents", {"ce-originalsource": "maestro"}, b"status")
    found = await check("pubsub", path, consumer="cluster1")
    # The emulator has neither TLS nor credentials.
    assert found.pop("message-broker-config").outcome is Outcome.WARNING
    assert {name: one.outcome for name, one in found.items()} == dict.fromkeys(found, Outcome.OK), found
    assert found["subscriptions of agents"].detail == "1 on the topic of specs, one of them for cluster1"
    documents = await archive_of(tmp_path / "archive", path)
    assert {(item.get("role"), item["name"]) for item in documents if item["trace"] == "subscription"} == {
        ("server", subscription("agentevents-maestro")),
        ("server", subscription("agentbroadcast-maestro")),
        ("agent", subscription("sourceevents-cluster1")),
    }
    assert codes(documents, works=("cluster1",)) == []
    assert codes(documents, works=("cluster1", "cluster2")) == ["MD-308"]
    assert len(pubsub.pull("agentevents-maestro")) == 1


async def test_pubsub_that_lacks_something_is_named(pubsub: Emulator, tmp_path: Path) -> None:
    path = pubsub.config(tmp_path / "server.yaml")
    absent = await check("pubsub", path, consumer="nobody")
    assert absent["subscriptions of agents"].outcome is Outcome.FAILED
    assert "none of 1 is for nobody" in absent["subscriptions of agents"].detail
    other = tmp_path / "other.yaml"
    other.write_text(path.read_text().replace("agentevents-maestro", "agentevents-other"))
    missing = await check("pubsub", other)
    assert missing["subscription agentevents-other"].outcome is Outcome.FAILED
    assert "does not exist" in missing["subscription agentevents-other"].detail
    assert codes(await archive_of(tmp_path / "archive", other)) == ["MD-306"]
    pubsub.call("Subscriber/CreateSubscription", name=subscription("agentevents-wrong"), topic=topic("sourcebroadcast"))
    other.write_text(path.read_text().replace("agentevents-maestro", "agentevents-wrong"))
    wrong = (await check("pubsub", other))["subscription agentevents-wrong"]
    assert wrong.outcome is Outcome.FAILED
    assert wrong.detail.startswith(f"it is on {topic('sourcebroadcast')}, not on ")
    away = tmp_path / "away.yaml"
    away.write_text(path.read_text().replace(pubsub.host, "127.0.0.1:1"))
    assert (await check("pubsub", away))["message-broker"].outcome is Outcome.FAILED


def test_every_command_of_the_skill_runs(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    words = {
        "FILE": str(broker.config()),
        "CONSUMER": "cluster1",
        "HEALTH_URL": "http://127.0.0.1:1",
        "ARCHIVE": "a.tar.zst",
    }
    # No server is subscribed, none runs, and nothing but the broker can be collected here.
    codes = {"--probe": 1, "status": 1, "collect": 5, "analyze": 6}
    listed = commands("check-mqtt-broker")
    assert len(listed) >= 6
    for command in listed:
        arguments = filled(command, words)
        code = main.call(arguments)
        out, trouble = capsys.readouterr()
        expected = next((value for word, value in codes.items() if word in arguments), 0)
        assert code == expected, (command, code, out, trouble)
        assert "Traceback" not in out + trouble
