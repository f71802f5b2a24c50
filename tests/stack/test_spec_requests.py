"""Spec requests of a source are stored whole or not at all, once, and under its own name only."""

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace

import grpc
import pytest

from maestropy.journal import spool
from maestropy.journal.phrases import SpecWriterPhrase
from maestropy.store import resources, rows
from maestropy.store.dsn import Dsn
from maestropy.store.postgres import pool
from maestropy.wire.events import event, stored_event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, new_id, source


async def pending_and_done(server: harness.InProcess, resource_id: str) -> int:
    return int(await server.value("SELECT count(*) FROM events WHERE source_id = $1", resource_id))


def kept_events() -> dict[str, str]:
    """Flags under which finished events stay, so that a test can count them."""
    return {"event_retention": "1h"}


@pytest.mark.parametrize("step", ["create", "update", "delete"])
async def test_row_and_event_are_one(database: Dsn, step: str) -> None:
    """When the event cannot be written, neither is the row; the retry writes both."""

    async with harness.in_process(database, **kept_events()) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        if step != "create":
            await a.create("w1", "cluster1")
        before = await server.sql("SELECT version, deleted_at, payload FROM resources")
        events_before = await pending_and_done(server, "w1")
        await server.sql("ALTER TABLE events ADD CONSTRAINT no_more CHECK (false) NOT VALID")
        kind = {"create": event.SPEC_CREATE, "update": event.SPEC_UPDATE, "delete": event.SPEC_DELETE}[step]
        request = a.spec(kind, "w1", "cluster1", data=b"" if step == "delete" else bundle_data("new"))
        refused = await a.refused(request)
        assert refused.code() == grpc.StatusCode.INTERNAL
        assert await server.sql("SELECT version, deleted_at, payload FROM resources") == before
        assert await server.value("SELECT count(*) FROM renditions") == len(before)

        await server.sql("ALTER TABLE events DROP CONSTRAINT no_more")
        await a.publish(request)
        assert await server.sql("SELECT version, deleted_at, payload FROM resources") != before
        assert await pending_and_done(server, "w1") == events_before + 1


async def test_a_go_server_finds_the_whole_event_in_the_row(database: Dsn) -> None:
    """It knows nothing of renditions; text beyond ASCII, escapes and an absent piece arrive as they were sent."""

    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        odd = 'grün } "quoted" \\ \n ,"data":{'
        bare = replace(a.spec(event.SPEC_CREATE, "w2", "cluster1"), data=b"")
        for request in (
            a.spec(event.SPEC_CREATE, "w1", "cluster1", data=bundle_data(odd), metadata={"name": odd}),
            a.spec(event.SPEC_UPDATE, "w1", "cluster1", data=bundle_data(f"{odd}2"), metadata={"name": odd}),
            replace(bare, extensions={k: v for k, v in bare.extensions.items() if k != event.METADATA}),
        ):
            await a.publish(request)
            about = str(request.extensions[event.RESOURCE_ID])
            stored = await server.value("SELECT payload::text FROM resources WHERE id = $1", about)
            assert json.loads(stored) == json.loads(stored_event.to_parts(request).document())


async def test_every_row_that_was_acknowledged_has_its_event(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await asyncio.gather(*(a.create(f"w{number}", "cluster1") for number in range(100)))
        missing = await server.value(
            "SELECT count(*) FROM resources r WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.source_id = r.id)"
        )
        assert missing == 0
        assert await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL") == 100


async def test_an_acknowledged_request_is_in_the_log(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server killed right after its answer has logged the request: nothing but this tells the tracer of it."""
    monkeypatch.setattr(spool, "GATHER_SECONDS", 3600)
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        assert SpecWriterPhrase.RECEIVED.encode() in server.log.getvalue()


async def test_a_retry_of_the_same_event_changes_nothing(database: Dsn) -> None:
    """A client that did not hear the answer sends the same event again."""

    async with harness.in_process(database, **kept_events()) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        creation = a.spec(event.SPEC_CREATE, "w1", "cluster1")
        for _ in range(5):
            await a.publish(creation)
        assert await pending_and_done(server, "w1") == 1
        change = a.spec(event.SPEC_UPDATE, "w1", "cluster1", version=1, data=bundle_data("new"))
        for _ in range(5):
            await a.publish(change)
        assert await pending_and_done(server, "w1") == 2
        shown = await server.bundle("w1")
        assert shown is not None
        assert shown["version"] == 2
        for _ in range(20):
            await a.delete("w1", "cluster1")
        assert await pending_and_done(server, "w1") == 3
        async with server.http() as rest:
            for _ in range(20):
                assert (await rest.delete("/resource-bundles/w1")).status_code == 204
        assert await pending_and_done(server, "w1") == 3

        # Another event that wants to create what exists is not a retry.
        refused = await a.refused(a.spec(event.SPEC_CREATE, "w1", "cluster1"))
        assert "maestro-6: This Resource already exists" in str(refused.details())


async def test_a_late_copy_of_the_creating_event_does_not_undo_the_deletion(database: Dsn) -> None:
    """A server that was frozen carries out a request whose sender has long retried, updated and deleted."""

    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        creation = a.spec(event.SPEC_CREATE, "w1", "cluster1", data=bundle_data("first"))
        await a.publish(creation)
        await a.update("w1", "cluster1", version=1, data=bundle_data("second"))
        await a.delete("w1", "cluster1")
        async with agent(server.agents, "cluster1") as one:
            await one.tell("w1", 2, "Deleted")
        await waiting.until(lambda: is_removed(server, "w1"), what="the removal")
        refused = await a.refused(creation)
        reason = f"event {creation.id} has created this resource before, which was deleted since"
        assert reason in str(refused.details())
        assert await is_removed(server, "w1")
        await a.create("w1", "cluster1", data=bundle_data("first"))
        assert not await is_removed(server, "w1")


async def is_removed(server: harness.InProcess, resource_id: str) -> bool:
    return bool(await server.value("SELECT count(*) FROM resources WHERE id = $1", resource_id) == 0)


async def test_the_same_spec_again_makes_no_version(database: Dsn) -> None:
    """Another event, another time, another order of keys, another resourceVersion in the metadata: nothing new."""

    async with harness.in_process(database, **kept_events()) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        one = b'{"manifests":[{"apiVersion":"v1","kind":"X","metadata":{"name":"n"},"data":{"a":"1","b":"2"}}]}'
        two = b'{"manifests":[{"data":{"b":"2","a":"1"}, "metadata":{"name":"n"},"kind":"X","apiVersion":"v1"}]}'
        await a.create("w1", "cluster1", data=one, metadata={"name": "w", "labels": {"x": "y"}})
        for number in range(5):
            metadata = {"labels": {"x": "y"}, "resourceVersion": str(number), "name": "w", "generation": 1}
            await a.update("w1", "cluster1", version=1, data=two, metadata=metadata)
        shown = await server.bundle("w1")
        assert shown is not None
        assert shown["version"] == 1
        assert await pending_and_done(server, "w1") == 1
        await a.update("w1", "cluster1", version=1, data=two, metadata={"name": "w", "labels": {"x": "z"}})
        shown = await server.bundle("w1")
        assert shown is not None
        assert shown["version"] == 2


async def test_of_twenty_updates_of_one_version_one_wins(database: Dsn) -> None:
    async with (
        harness.in_process(database) as here,
        harness.in_process(database, client_id="other") as there,
        source(here.sources) as a,
        source(there.sources) as b,
    ):
        await here.add_consumer("cluster1")
        await a.create("w1", "cluster1")

        async def attempt(number: int) -> str:
            client = (a, b)[number % 2]
            data = bundle_data(f"from {number}")
            return await client.answer(client.spec(event.SPEC_UPDATE, "w1", "cluster1", version=1, data=data))

        answers = await asyncio.gather(*(attempt(number) for number in range(20)))
        lost = [text for text in answers if text]
        assert len(lost) == 19
        assert all("the resource version is not the latest, the latest version: 2" in text for text in lost)
        shown = await here.bundle("w1")
        assert shown is not None
        assert shown["version"] == 2
        assert shown["manifests"][0]["data"]["k"] == f"from {answers.index('')}"


async def test_a_source_cannot_touch_what_another_one_owns(database: Dsn) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources, "source-a") as a,
        source(server.sources, "source-b") as b,
        b.subscribe() as told,
    ):
        await server.add_consumer("cluster1")
        creation = a.spec(event.SPEC_CREATE, "w1", "cluster1")
        await a.publish(creation)
        for kind in (event.SPEC_UPDATE, event.SPEC_DELETE):
            refused = await b.refused(b.spec(kind, "w1", "cluster1", data=bundle_data("theft")))
            assert refused.code() == grpc.StatusCode.PERMISSION_DENIED
            assert "belongs to another source" in str(refused.details())
        # Not even by an event that looks like the owner's own retry.
        stolen = b.spec(event.SPEC_CREATE, "w1", "cluster1", event_id=creation.id, data=creation.data)
        assert "already exists" in str((await b.refused(stolen)).details())
        async with agent(server.agents, "cluster1") as one:
            await one.tell("w1", 1)
        await b.create("w2", "cluster1")
        async with agent(server.agents, "cluster1") as one:
            await one.tell("w2", 1)
        assert (await told.take()).extensions[event.RESOURCE_ID] == "w2"
        shown = await server.bundle("w1")
        assert shown is not None
        assert (shown["version"], "deleted_at" in shown) == (1, False)


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x0a\x00", id="event-without-anything"),
        pytest.param(b"\xff\xff\xff", id="not-protobuf"),
        pytest.param(b"\x0a\x05\x0a\x03abc", id="event-with-an-id-only"),
    ],
)
async def test_a_request_without_an_event_is_refused_and_nothing_else(database: Dsn, request_bytes: bytes) -> None:
    async with (
        harness.in_process(database) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        for client in (a, one):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client.publish_bytes(request_bytes)
            assert refused.value.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INVALID_ARGUMENT)
        await a.create("w1", "cluster1")


async def test_spec_request_that_cannot_be_stored_does_not_affect_others(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")

        requests = [
            a.spec(event.SPEC_CREATE, f"w{number}", "cluster1" if number % 2 else "nobody") for number in range(40)
        ]
        answers = await asyncio.gather(*(a.answer(request) for request in requests))
        assert ["fk_resources_consumers" in text for text in answers] == [number % 2 == 0 for number in range(40)]
        assert await server.value("SELECT count(*) FROM resources") == 20


async def test_an_id_that_is_freed_this_very_moment_is_free(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old bundle goes between our attempt to insert and our look at what is in the way."""
    read = resources.read_for_change

    async def read_too_late(connection: pool.Connection, ids: Collection[str]) -> dict[str, rows.StoredSpec]:
        await connection.execute("DELETE FROM resources WHERE id = 'w1'")
        return await read(connection, ids)

    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("cluster1")
        await a.create("w1", "cluster1")
        monkeypatch.setattr(resources, "read_for_change", read_too_late)
        await a.create("w1", "cluster1", data=bundle_data("new"))
        shown = await server.bundle("w1")
        assert shown is not None
        assert shown["manifests"][0]["data"]["k"] == "new"


async def test_two_connections_are_enough_for_two_hundred_callers(database: Dsn) -> None:
    """No request waits for a second connection while it holds one."""

    flags = {"db_max_open_connections": "2"}
    async with (
        harness.in_process(database, **flags) as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
        one.subscribe() as got,
        server.http() as rest,
    ):
        await server.add_consumer("cluster1")
        names = [f"w{number}" for number in range(40)]

        async def listing() -> None:
            answer = await rest.get("/resource-bundles", params={"size": 5})
            assert answer.status_code == 200
            await answer.aread()

        async def patch(consumer_id: str) -> None:
            answer = await rest.patch(f"/consumers/{consumer_id}", json={"labels": {"k": new_id()}})
            assert answer.status_code == 200

        consumer_id = (await rest.get("/consumers")).json()["items"][0]["id"]
        await asyncio.gather(*(a.create(name, "cluster1") for name in names))
        await asyncio.wait_for(
            asyncio.gather(
                *(a.update(name, "cluster1", data=bundle_data("new")) for name in names),
                *(one.tell(name, 1) for name in names),
                *(a.create(f"x{number}", "cluster1") for number in range(40)),
                *(listing() for _ in range(40)),
                *(patch(consumer_id) for _ in range(20)),
                *(one.resync({}) for _ in range(10)),
                *(a.resync({}) for _ in range(10)),
            ),
            waiting.TIMEOUT,
        )
        for name in names:
            await got.spec_of(name, version=2)
