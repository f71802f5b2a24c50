"""Our client on the Go Maestro and on ours, with an agent of the Go SDK: nobody should notice the difference."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from maestropy import AsyncMaestro, EventType, Maestro, WatchEvent, Work, errors
from tests import waiting
from tests.peers.peer_clients import Agent, WorkClient
from tests.peers.peer_servers import RunningServer

pytestmark = pytest.mark.peers

StartAgent = Callable[[str], Agent]


def where(server: RunningServer, source: str) -> dict[str, Any]:
    return {"environ": {}, "api_url": server.rest_url, "grpc_url": server.grpc_addr, "source": source}


def config_map(name: str, value: str = "1", **labels: str) -> Work:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }
    return Work(name, labels=labels).add(manifest, feedback={"data": ".data"})


def test_the_life_of_a_work(server: RunningServer, consumer: str, start_agent: StartAgent) -> None:
    agent = start_agent(consumer)
    with Maestro(**where(server, "sdk-life")) as client:
        works = client.works(consumer)
        created = works.create(config_map("first", app="x"))
        agent.wait_event("received", type_ends="spec.create_request", resource=created.id, version=1)
        seen = works.wait_for("first", "Available", timeout=60)
        assert (seen.version, seen.labels, seen.is_stale) == (1, {"app": "x"}, False)

        assert works.apply(config_map("first", app="x")).operation == "unchanged"
        assert works.apply(config_map("first", "2", app="x")).operation == "updated"
        assert works.wait_for("first", timeout=60).version == 2
        assert works.patch("first", {"metadata": {"labels": {"more": "yes"}}}).version == 3
        assert works.get("first").labels == {"app": "x", "more": "yes"}
        assert [each.name for each in works.list(labels="app in (x,y),more")] == ["first"]
        assert [each.name for each in works.list(labels="app!=x")] == []

        with pytest.raises(errors.Conflict, match="not the latest"):
            works.apply(config_map("first", "3"), version=1)
        with pytest.raises(errors.AlreadyExists):
            works.create(config_map("first"))
        works.delete("first", wait=True, timeout=60)
        with pytest.raises(errors.NotFound):
            works.get("first")


def test_refusals_have_their_kind(server: RunningServer, consumer: str) -> None:
    with Maestro(**where(server, "sdk-refusals")) as client:
        works = client.works(consumer)
        with pytest.raises(errors.ConsumerNotFound, match="did you mean"):
            client.works(f"{consumer}x").create(config_map("one"))
        works.create(config_map("one"))
        works.delete("one")
        with pytest.raises(errors.Conflict, match="under deletion"):
            works.apply(config_map("one", "2"))
        with pytest.raises(errors.Conflict, match="delete the works of this consumer first"):
            client.consumers.delete(consumer)
        with pytest.raises(errors.AlreadyExists):
            client.consumers.create(consumer)
        with pytest.raises(errors.Invalid):
            list(works.list(search="this is no search"))


def test_works_are_the_same_for_both_clients(
    server: RunningServer, consumer: str, client: WorkClient, start_agent: StartAgent
) -> None:
    start_agent(consumer)
    with Maestro(**where(server, client.source)) as ours:
        works = ours.works(consumer)
        works.create(config_map("from-python"))
        works.wait_for("from-python", timeout=60)
        theirs = client.get(consumer, "from-python")
        assert theirs["metadata"]["uid"] == works.id_of("from-python")
        changed = {**theirs, "metadata": {**theirs["metadata"], "labels": {"by": "go"}}}
        client.patch(consumer, theirs, changed)
        assert works.wait_for("from-python", lambda work: work.version == 2, timeout=60).labels == {"by": "go"}


async def test_lists_of_many_pages(server: RunningServer, consumer: str) -> None:
    async with AsyncMaestro(**where(server, "sdk-lists")) as client:
        works = client.works(consumer)
        names = {f"w{number:03}" for number in range(120)}
        for start in range(0, 120, 20):
            batch = sorted(names)[start : start + 20]
            await asyncio.gather(*(works.create(config_map(name, number=name)) for name in batch))
        seen = [each.name async for each in works.list(page_size=17)]
        assert len(seen) == 120
        assert set(seen) == names
        assert len([each async for each in works.list(labels="number", page_size=50)]) == 120


async def test_two_watches_hear_the_same_story(server: RunningServer, consumer: str, start_agent: StartAgent) -> None:
    agent = await asyncio.to_thread(start_agent, consumer)
    async with AsyncMaestro(**where(server, "sdk-watch")) as client:
        works = client.works(consumer)
        await works.create(config_map("before"))
        diaries: list[list[WatchEvent]] = [[], []]

        async def keep(diary: list[WatchEvent], watch: Any) -> None:
            async for told in watch:
                diary.append(told)

        readers = [
            asyncio.ensure_future(keep(diaries[0], works.watch())),
            asyncio.ensure_future(keep(diaries[1], client.all_works().watch(labels="kind=late"))),
        ]
        try:
            await works.create(config_map("during", kind="late"))
            during = await works.wait_for("during", timeout=60)
            agent.report(during.id, "fresh")
            await waiting.until(lambda: any(is_fresh(told) for diary in diaries for told in diary))
            await works.delete("during", wait=True, timeout=60)
            await waiting.until(lambda: all(told_of(diary, EventType.DELETED) == ["during"] for diary in diaries))
        finally:
            for reader in readers:
                reader.cancel()
                with suppress(asyncio.CancelledError):
                    await reader
        assert set(told_of(diaries[0], EventType.ADDED)) == {"before", "during"}
        assert told_of(diaries[1], EventType.ADDED) == ["during"]


def told_of(diary: list[WatchEvent], kind: EventType) -> list[str]:
    return [each.work.name for each in diary if each.type is kind]


def is_fresh(told: WatchEvent) -> bool:
    found = told.work.condition("Available")
    return found is not None and found.message == "fresh"
