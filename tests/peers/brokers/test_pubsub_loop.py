"""The loop through Pub/Sub: specs go down, statuses come up, and what breaks on the way is made up for."""

import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx
import pytest

from maestropy.server.controllers.spec import spec_dispatcher
from maestropy.store.dsn import Dsn
from maestropy.transport import port
from maestropy.wire import resync
from maestropy.wire.events import event, pubsub_binding
from tests import waiting
from tests.peers.brokers.pubsub_agents import agent
from tests.peers.pubsub_emulator import Emulator, emulator, subscription, topic
from tests.stack import harness
from tests.stack.clients import bundle_data, is_about, source

pytestmark = pytest.mark.peers


@pytest.fixture
def pubsub(tmp_path: Path) -> Iterator[Emulator]:
    """An emulator of this test's own."""
    with emulator(tmp_path / "pubsub") as running:
        yield running


def server_config(pubsub: Emulator) -> Path:
    return pubsub.config(pubsub.folder / "server.yaml")


def agent_config(pubsub: Emulator, consumer: str = "cluster1") -> Path:
    return pubsub.config(pubsub.folder / f"{consumer}.yaml", consumer)


def served(database: Dsn, config: Path, **flags: str) -> AbstractAsyncContextManager[harness.InProcess]:
    return harness.in_process(database, message_broker_type="pubsub", message_broker_config_file=str(config), **flags)


async def connected(server: harness.InProcess, *, times: int = 1) -> None:
    # One line for each of the two subscriptions.
    await waiting.until(lambda: len(server.lines("subscribed to pubsub")) >= 2 * times, what="a subscription")


def is_deleting(received: event.CloudEvent) -> bool:
    return event.DELETION_TIMESTAMP in received.extensions


async def test_create_update_delete(database: Dsn, pubsub: Emulator) -> None:
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a, a.subscribe() as told:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(agent_config(pubsub), "cluster1") as one:
            await a.create("w1", "cluster1", data=bundle_data("first"))
            spec = await one.spec_of("w1", version=1)
            assert spec.type == event.SPEC_CREATE
            assert spec.source == "maestro"
            assert spec.data == bundle_data("first")
            assert json.loads(str(spec.extensions[event.METADATA]))["name"] == "w1"
            await one.tell("w1", 1)
            status = await told.spec_of("w1")
            assert json.loads(status.data)["manifestBundle"] == json.loads(bundle_data("first"))

            await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
            assert (await one.spec_of("w1", version=2)).data == bundle_data("second")
            await one.tell("w1", 2)
            await told.take(lambda e: is_about(e, "w1", version=2))

            await a.delete("w1", "cluster1")
            await one.take(is_deleting)
            await one.tell("w1", 2, "Deleted")
            await told.take(lambda e: b'"Deleted"' in e.data)
            assert await server.bundle("w1") is None
            await waiting.until(server.has_nothing_pending, what="an empty queue")


async def test_agent_that_was_away_gets_what_its_subscription_kept(database: Dsn, pubsub: Emulator) -> None:
    config = agent_config(pubsub)
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        await a.create("w1", "cluster1")
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        async with agent(config, "cluster1") as one:
            assert (await one.spec_of("w1")).type == event.SPEC_CREATE


async def test_resync_is_answered_and_ends(database: Dsn, pubsub: Emulator) -> None:
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        for name in ("new", "same", "leaving"):
            await a.create(name, "cluster1")
        await a.delete("leaving", "cluster1")
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        # Its subscriptions are created only now: nothing was kept for it.
        async with agent(agent_config(pubsub), "cluster1") as one:
            await one.resync({"same": 1, "orphan": 7})
            assert await one.is_resync_answered()
            specs = [each for each in one.received if each.type != event.STATUS_RESYNC_REQUEST]
            got = {spec.text(event.RESOURCE_ID): spec for spec in specs}
            assert got.keys() >= {"new", "leaving", "orphan"}
            assert "same" not in got
            assert {each.type for each in got.values()} == {event.SPEC_RESYNC_RESPONSE}
            assert is_deleting(got["leaving"])
            assert got["orphan"].integer(event.RESOURCE_VERSION) == 7


async def test_outage(database: Dsn, pubsub: Emulator) -> None:
    """Sources are served meanwhile, nothing is lost, and both sides resync afterwards."""
    config = agent_config(pubsub)
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a, a.subscribe() as told:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            await one.tell("w1", 1, hash="h1")
            await told.spec_of("w1")
            pubsub.cut()
            await waiting.until(lambda: bool(server.lines("is disconnected")), what="the loss")
            await a.create("w2", "cluster1")
            with pytest.raises(port.Disconnected):
                await one.tell("w1", 1, hash="h2")
        assert await health(server) == {"status": "ok"}
        pubsub.restore()
        await connected(server, times=2)
        async with agent(config, "cluster1") as one:
            await one.spec_of("w2")
            asked = await one.take(lambda e: e.type == event.STATUS_RESYNC_REQUEST)
            assert resync.decode_hashes(asked.data)["w1"] == "h1"
        await waiting.until(server.has_nothing_pending, what="an empty queue")


async def test_emulator_that_forgets_everything(database: Dsn, pubsub: Emulator) -> None:
    config = agent_config(pubsub)
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        await a.create("lost", "cluster1")
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        pubsub.stop()
        pubsub.start()
        await connected(server, times=2)
        async with agent(config, "cluster1") as one:
            await one.spec_of("lost")


async def test_missing_subscription_is_shown_and_used_when_it_exists(database: Dsn, pubsub: Emulator) -> None:
    name = subscription("agentbroadcast-maestro")
    pubsub.call("Subscriber/DeleteSubscription", subscription=name)
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await waiting.until(lambda: len(server.lines("is disconnected")) >= 2, what="a second attempt")
        remedy = f"{name} does not exist; create it, or correct the configuration file"
        assert remedy in json.dumps(server.lines("is disconnected")[0])
        assert await health(server) == {"status": "ok", "reason": remedy}
        await a.create("w1", "cluster1")
        pubsub.subscribe("agentbroadcast", "maestro")
        await connected(server)
        assert await health(server) == {"status": "ok"}
        async with agent(agent_config(pubsub), "cluster1") as one:
            await one.resync({})
            await one.spec_of("w1")


async def test_denied_topic_is_shown_and_sent_to_when_it_is_allowed(
    database: Dsn, pubsub: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec_dispatcher, "_REST_SECONDS", 0.5)
    config = agent_config(pubsub)
    pubsub.denied.write_text(topic("sourceevents"))
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        await a.create("w1", "cluster1")
        await waiting.until(lambda: bool(server.lines("the broker rejects messages")), what="a rejection")
        problem = (await health(server))["reason"]
        assert problem.startswith(f"access to {topic('sourceevents')} is denied (User not authorized to perform this ")
        assert problem.endswith("grant roles/pubsub.publisher on it to the account of this process")
        pubsub.denied.write_text("")
        async with agent(config, "cluster1") as one:
            await one.spec_of("w1")
        await waiting.until(server.has_nothing_pending, what="an empty queue")
        assert await health(server) == {"status": "ok"}


async def test_metadata_beyond_the_limit_is_rejected_and_still_deleted(database: Dsn, pubsub: Emulator) -> None:
    config = agent_config(pubsub)
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        # Stored while the agents of this server were still connected over gRPC.
        await a.publish(a.spec(event.SPEC_CREATE, "large", "cluster1", metadata=metadata_of(2000)))
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await connected(server)
        refusal = await a.refused(a.spec(event.SPEC_CREATE, "w1", "cluster1", metadata=metadata_of(1000)))
        assert "bytes, Pub/Sub carries at most 1024; make labels and annotations smaller" in str(refusal.details())
        await waiting.until(
            lambda: bool(server.lines("Failed to publish resource")), what="the spec that cannot be sent"
        )
        await a.delete("large", "cluster1")
        async with agent(config, "cluster1") as one:
            deletion = await one.take(is_deleting)
            assert deletion.text(event.RESOURCE_ID) == "large"
            assert json.loads(deletion.text(event.METADATA))["name"] == "large"


def metadata_of(length: int) -> dict[str, object]:
    return {"name": "w", "annotations": {"a": "x" * length}}


async def test_malformed_and_foreign_messages_change_nothing(database: Dsn, pubsub: Emulator) -> None:
    config = agent_config(pubsub)
    # As the charts of a cloud installation create it: without a filter.
    name = subscription("agentevents-maestro")
    pubsub.call("Subscriber/DeleteSubscription", subscription=name)
    pubsub.call("Subscriber/CreateSubscription", name=name, topic=topic("agentevents"))
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            foreign = one.report("w1", 1, originalsource="another-maestro")
            rubbish = pubsub_binding.PubsubMessage(attributes={"ce-id": "x", "y": "z"}, data=b"\xff{")
            nobody = pubsub_binding.encode(one.report("w1", 1))
            nobody = pubsub_binding.PubsubMessage(attributes={**nobody.attributes, "ce-clustername": ""}, data=b"{}")
            for message in (rubbish, nobody, pubsub_binding.encode(foreign)):
                pubsub.publish("agentevents", message.attributes, message.data)
            await waiting.until(lambda: len(server.lines("invalid event")) == 2, what="two refusals")
            await one.tell("w1", 1)
            await waiting.until(lambda: has_status(server, "w1"), what="a status")
            assert len(server.lines("invalid event")) == 2, "nothing is delivered again"


async def test_agent_drops_events_of_other_clusters(database: Dsn, pubsub: Emulator) -> None:
    config, problems = agent_config(pubsub), list[str]()
    async with agent(config, "cluster1", problems=problems) as one:
        for cluster in ("cluster2", "cluster1"):
            asked = event.CloudEvent(
                id=cluster,
                source="maestro",
                type=event.STATUS_RESYNC_REQUEST,
                extensions={event.CLUSTER_NAME: cluster},
                data=resync.encode_hashes({"w": "h"}),
            )
            message = pubsub_binding.encode(asked)
            pubsub.publish("sourcebroadcast", message.attributes, message.data)
        pubsub.publish("sourcebroadcast", {"x": "y"}, b"")
        await waiting.until(lambda: bool(problems), what="the malformed message")
        assert (await one.take()).id == "cluster1"
        assert not one.received


async def test_nothing_is_requested_of_a_consumer_without_resources(database: Dsn, pubsub: Emulator) -> None:
    """An empty list would ask every agent for all its statuses."""
    async with agent(agent_config(pubsub, "cluster2"), "cluster2") as other:
        async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
            for name in ("cluster1", "cluster2"):
                await server.add_consumer(name)
            await connected(server)
            await a.create("w1", "cluster2")
            await other.spec_of("w1")
        pubsub.add_consumer("watching")
        async with served(database, server_config(pubsub)) as server:
            await other.take(lambda e: e.type == event.STATUS_RESYNC_REQUEST)
    broadcast = pubsub.pull("sourcebroadcast-watching")
    assert [message.attributes["ce-clustername"] for message in broadcast] == ["cluster2"]


async def test_report_waits_for_the_database(database: Dsn, pubsub: Emulator, stack_postgres: harness.Postgres) -> None:
    config = agent_config(pubsub)
    async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await connected(server)
        async with agent(config, "cluster1") as one:
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
            async with stack_postgres.outage(database):
                await one.tell("w1", 1)
                await waiting.until(lambda: bool(server.lines("failed to handle status event")), what="a failure")
            await waiting.until(lambda: has_status(server, "w1"), what="the status after all")


async def test_report_that_no_server_stored_is_delivered_to_the_next(database: Dsn, pubsub: Emulator) -> None:
    config = agent_config(pubsub)
    async with agent(config, "cluster1") as one:
        async with served(database, server_config(pubsub)) as server, source(server.sources) as a:
            await server.add_consumer("cluster1")
            await connected(server)
            await a.create("w1", "cluster1")
            await one.spec_of("w1")
        await one.tell("w1", 1)
        async with served(database, server_config(pubsub)) as server:
            await waiting.until(lambda: has_status(server, "w1"), what="the status")


async def has_status(server: harness.InProcess, bundle_id: str) -> bool:
    bundle = await server.bundle(bundle_id)
    return bundle is not None and bool(bundle.get("status"))


async def health(server: harness.InProcess) -> dict[str, str]:
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        answer = await client.get(f"{server.health}/healthcheck")
    assert answer.status_code == 200
    return dict(answer.json())
