"""The loop: a spec goes down to the agent, its status comes back up, a deletion ends it, and it may begin again."""

import asyncio
import json

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, is_about, source


def is_deleting(received: event.CloudEvent) -> bool:
    return event.DELETION_TIMESTAMP in received.extensions


async def test_create_update_delete_and_again(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("cluster1")
        async with (
            source(server.sources) as a,
            agent(server.agents, "cluster1") as one,
            a.subscribe() as told,
            one.subscribe() as got,
        ):
            for life in range(2):
                await a.create("w1", "cluster1", data=bundle_data("first"))
                spec = await got.spec_of("w1", version=1)
                assert spec.type == event.SPEC_CREATE
                assert spec.source == "maestro"
                assert json.loads(str(spec.extensions[event.METADATA]))["name"] == "w1"
                assert spec.data == bundle_data("first")

                await one.tell("w1", 1)
                status = await told.spec_of("w1")
                assert status.type == event.STATUS_UPDATE
                assert status.source == "cluster1-work-agent"
                seen = json.loads(status.data)
                assert seen["manifestBundle"] == json.loads(bundle_data("first"))
                assert [condition["type"] for condition in seen["conditions"]] == ["Applied", "Available"]
                assert json.loads(str(status.extensions[event.METADATA]))["name"] == "work-w1"

                await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
                spec = await got.spec_of("w1", version=2)
                assert spec.type == event.SPEC_UPDATE
                assert spec.data == bundle_data("second")
                await one.tell("w1", 2)
                await told.take(lambda e: is_about(e, "w1", version=2))
                shown = await server.bundle("w1")
                assert shown is not None
                assert shown["version"] == 2
                assert shown["status"]["ObservedVersion"] == 2

                await a.delete("w1", "cluster1")
                gone = await got.take(is_deleting)
                assert gone.type == event.SPEC_DELETE
                assert gone.integer(event.RESOURCE_VERSION) == 2
                shown = await server.bundle("w1")
                assert shown is not None
                assert "deleted_at" in shown
                await one.tell("w1", 2, "Deleted")
                last = await told.take(lambda e: b'"Deleted"' in e.data)
                assert json.loads(last.data)["manifestBundle"] == json.loads(bundle_data("second"))
                assert await server.bundle("w1") is None, f"life {life}"
            await waiting.until(server.has_nothing_pending, what="an empty queue")


async def test_numbers_and_key_order_reach_the_agent_as_they_were_sent(database: Dsn) -> None:
    """9007199254740993 does not fit a float, and 1.0 is not 1: what an agent applies is what a source wrote."""
    exact = (
        b'{"manifests":[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n"},'
        b'"z":9007199254740993,"a":1.0,"e":1e30,"big":123456789012345678901234567890,"text":"\\u00e9"}]}'
    )

    async with harness.in_process(database) as server:
        await server.add_consumer("cluster1")
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one, a.subscribe() as told:
            async with one.subscribe() as got:
                await a.create("w1", "cluster1", data=exact)
                assert (await got.spec_of("w1")).data == exact
                await one.tell("w1", 1)
                status = await told.spec_of("w1")
                assert status.data.startswith(b'{"manifestBundle":' + exact + b",")
            # Likewise when it is sent again after the agent was away.
            async with one.subscribe() as got:
                await one.resync({})
                again = await got.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE)
                assert again.data == exact
            async with server.http() as rest:
                text = (await rest.get("/resource-bundles/w1")).text
            assert '"z":9007199254740993' in text
            assert '"a":1.0' in text


async def test_a_source_that_was_away_asks_for_the_statuses_it_lacks(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("cluster1")
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one:
            for name in ("w1", "w2", "w3"):
                await a.create(name, "cluster1")
            await one.tell("w1", 1, hash="h1")
            await one.tell("w2", 1, hash="h2")
            async with a.subscribe() as told:
                await a.resync({"w1": "h1", "w2": "another"})
                assert is_about(await told.take(), "w2")
                await a.resync({})
                found = {str((await told.take()).extensions[event.RESOURCE_ID]) for _ in range(2)}
                assert found == {"w1", "w2"}


async def test_a_resync_asked_for_before_the_subscription_stands_is_answered(database: Dsn) -> None:
    """Go agents ask and subscribe at the same moment, in either order."""

    async with harness.in_process(database) as server:
        await server.add_consumer("cluster1")
        async with source(server.sources) as a, agent(server.agents, "cluster1") as one:
            await a.create("w1", "cluster1")
            async with asyncio.TaskGroup() as group:
                asked = group.create_task(one.resync({}))
                await asyncio.sleep(0)
                async with one.subscribe() as got:
                    await asked
                    await got.take(lambda e: e.type == event.SPEC_RESYNC_RESPONSE and is_about(e, "w1", version=1))
