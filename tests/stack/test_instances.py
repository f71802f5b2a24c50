"""Several instances on one database are one server: who is connected where makes no difference."""

import asyncio

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, source


async def test_what_one_instance_takes_another_one_passes_on(database: Dsn) -> None:
    async with (
        harness.in_process(database, client_id="a") as a,
        harness.in_process(database, client_id="b") as b,
        source(b.sources) as publisher,
        publisher.subscribe() as told,
        agent(a.agents, "cluster1") as one,
        one.subscribe() as got,
    ):
        await a.add_consumer("cluster1")
        await publisher.create("w1", "cluster1")
        await got.spec_of("w1", version=1)
        await one.tell("w1", 1)
        await told.spec_of("w1")
        await publisher.delete("w1", "cluster1")
        await got.take(lambda e: event.DELETION_TIMESTAMP in e.extensions)
        await one.tell("w1", 1, "Deleted")
        await told.take(lambda e: b'"Deleted"' in e.data)


async def test_two_agents_of_one_consumer_on_two_instances_both_get_everything(database: Dsn) -> None:
    async with (
        harness.in_process(database, client_id="a") as a,
        harness.in_process(database, client_id="b") as b,
        source(b.sources) as here,
        source(a.sources) as there,
        agent(a.agents, "cluster1") as one,
        agent(b.agents, "cluster1") as two,
        one.subscribe() as first,
        two.subscribe() as second,
        here.subscribe() as told_here,
        there.subscribe() as told_there,
    ):
        await a.add_consumer("cluster1")
        names = [f"w{number}" for number in range(100)]
        await asyncio.gather(*(here.create(name, "cluster1") for name in names))
        for name in names:
            await first.spec_of(name)
            await second.spec_of(name)
        await asyncio.gather(*(one.tell(name, 1) for name in names))
        for name in names:
            await told_here.spec_of(name)
            await told_there.spec_of(name)


async def test_when_one_instance_goes_the_other_has_everything(database: Dsn) -> None:
    """An agent and a source lose their instance in the middle of a load, and go on with the other one."""

    async with (
        harness.in_process(database, client_id="a") as a,
        harness.in_process(database, client_id="b") as b,
    ):
        await b.add_consumer("cluster1")
        taken: list[str] = []

        async def load() -> None:
            async with source(a.sources) as publisher:
                for number in range(200):
                    name = f"w{number}"
                    if await publisher.answer(publisher.spec(event.SPEC_CREATE, name, "cluster1")):
                        return
                    taken.append(name)

        async with agent(a.agents, "cluster1") as one, one.subscribe() as got:
            loading = asyncio.ensure_future(load())
            await waiting.until(lambda: len(taken) >= 20, what="a load")
            await a.stop()
            await loading
            await asyncio.wait_for(got.ended.wait(), waiting.TIMEOUT)
            assert got.error is None, "a stream ends cleanly when its server goes"
        assert await a.probe() == 0

        async with agent(b.agents, "cluster1") as one, one.subscribe() as got, source(b.sources) as publisher:
            await one.resync({})
            for name in taken:
                await got.spec_of(name)
            await publisher.update(taken[0], "cluster1", data=bundle_data("new"))
            await got.spec_of(taken[0], version=2)
        ready = await b.value("SELECT array_agg(id) FROM server_instances WHERE ready")
        assert ready == ["b"]
