"""Clusters that fail, forget, refuse and stall: the agent goes on, tells what it knows, and loses nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from conformance import objects_wanted as want
from conformance.fleet import RHYTHM, Cluster, Fleet, condition, fleet, letters

from maestropy.kube import config
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.kubeapi.paths import Call

NAME = "faults"
CM = want.config_map(NAME, "cm")


@asynccontextmanager
async def world() -> AsyncIterator[tuple[SandboxCluster, Fleet]]:
    async with (
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        fleet(cluster, NAME) as found,
    ):
        yield sandbox, found


def run(scenario: Callable[[SandboxCluster, Fleet], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with world() as (sandbox, found):
            await scenario(sandbox, found)

    asyncio.run(whole())


def writes(call: Call) -> bool:
    return call.verb in ("create", "update", "patch", "delete")


def about_config_maps(call: Call) -> bool:
    return call.resource == "configmaps"


@pytest.mark.parametrize("status", [429, 503])
def test_failing_writes_are_tried_again(status: int) -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        sandbox.faults.fail_next(2, status=status, where=writes)
        fleet.publish("w", CM)
        await fleet.is_applied("w")
        sandbox.faults.fail_next(2, status=status, where=writes)
        fleet.delete("w")
        await fleet.is_deleted("w")
        assert await fleet.cluster.get(CM) is None
        assert await fleet.record("w") is None

    run(scenario)


def test_api_server_that_asks_for_patience() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        sandbox.faults.fail_next(2, status=429, retry_after=1, where=writes)
        fleet.publish("w", CM)
        report = await fleet.is_applied("w")
        # The client waited as it was told; nobody else had to hear of it.
        assert len(fleet.server.reports[report.uid]) == 1

    run(scenario)


def test_failing_reads_are_told_as_unknown_and_not_as_missing() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.publish("w", CM)
        await fleet.is_applied("w")
        await fleet.settles()
        sandbox.faults.fail_next(10_000, status=500, where=about_config_maps)
        sandbox.faults.expire_history()
        fleet.publish("w", want.config_map(NAME, "cm", data={"k": "new"}))
        report = await fleet.sees("w", applied="F:F", available="U:U")
        unknown = condition(report.status.manifests[0], "Available")
        assert unknown.reason == "FetchingResourceFailed"
        assert unknown.message == "Failed to fetch resource: the sandbox was told to fail this request"
        # Neither forgotten nor pruned.
        assert await fleet.recorded("w") == ["configmaps/cm"]
        sandbox.faults.clear()
        await fleet.is_applied("w")

    run(scenario)


def test_forbidden_kind_blocks_nobody_and_is_told() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        def forbidden(call: Call) -> bool:
            return call.resource == "secrets" and writes(call)

        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAME}}
        sandbox.faults.fail_next(10_000, status=403, where=forbidden)
        fleet.publish("w", secret, CM)
        report = await fleet.sees("w", applied="F:FT", available="F:FT")
        assert "told to fail" in condition(report.status.manifests[0], "Applied").message
        sandbox.faults.clear()
        await fleet.is_applied("w")

    run(scenario)


def test_forbidden_deletion_names_the_object_and_the_reason() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.publish("w", CM)
        await fleet.is_applied("w")
        sandbox.faults.fail_next(
            10_000, status=403, where=lambda call: about_config_maps(call) and call.verb == "delete"
        )
        fleet.delete("w")
        report = await fleet.report("w", lambda found: "told to fail" in str(found.status.body), what="the reason")
        assert f"waiting for configmaps {NAME}/cm (the sandbox was told" in condition(report, "Deleting").message
        sandbox.faults.clear()
        await fleet.is_deleted("w")

    run(scenario)


def test_slow_api_server() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        sandbox.faults.delay(0.3)
        for number in range(5):
            fleet.publish(f"w{number}", want.config_map(NAME, f"cm{number}"))
        for number in range(5):
            await fleet.is_applied(f"w{number}")
            fleet.delete(f"w{number}")
        for number in range(5):
            await fleet.is_deleted(f"w{number}")

    run(scenario)


def test_forgotten_history_is_listed_again() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.publish("w", CM)
        await fleet.is_applied("w")
        await fleet.settles()
        sandbox.faults.expire_history()
        await fleet.cluster.edit(CM, {"data": {"test": "edited"}})
        await fleet.exists(CM, data={"test": "testdata"})
        sandbox.faults.expire_history()
        await fleet.cluster.delete(CM)
        await fleet.exists(CM)

    run(scenario)


def test_api_server_goes_away_and_comes_back() -> None:
    """On the same address, with what it had, as after an upgrade of the control plane."""

    async def scenario() -> None:
        async with world() as (sandbox, fleet):
            fleet.publish("w", CM)
            fleet.publish("leaving", want.config_map(NAME, "leaving"))
            await fleet.is_applied("w")
            await fleet.is_applied("leaving")
            door = Door(sandbox)
            async with door:
                await fleet.stop()
                address = config.from_kubeconfig([sandbox.kubeconfig])
                behind = Fleet(Cluster(replace(address, server=door.url)), namespace=NAME, server=fleet.server)
                # What counts is what this agent says.
                fleet.server.reports.clear()
                await behind.start()
                await behind.is_applied("w")
                await behind.is_applied("leaving")
                await door.close()
                behind.publish("w", want.config_map(NAME, "cm", data={"k": "new"}))
                behind.publish("new", want.config_map(NAME, "new"))
                behind.delete("leaving")
                await behind.sees("w", applied="F:F", available="U:U")
                await door.open()
                await behind.is_applied("w")
                await behind.is_applied("new")
                await behind.is_deleted("leaving")
                # The watches stand again, too.
                await fleet.cluster.delete(CM)
                await fleet.exists(CM, data={"k": "new"})
                await behind.stop()

    asyncio.run(scenario())


def test_api_server_stalls_for_longer_than_anybody_waits() -> None:
    """It takes connections and answers nothing, then answers all at once, late writes of calls given up included."""

    async def scenario() -> None:
        async with world() as (sandbox, fleet), Door(sandbox) as door:
            await fleet.stop()
            address = config.from_kubeconfig([sandbox.kubeconfig])
            impatient = ClientSettings(qps=0, timeout=0.3)
            behind = Fleet(
                Cluster(replace(address, server=door.url)), namespace=NAME, server=fleet.server, client=impatient
            )
            behind.publish("w", CM)
            behind.publish("leaving", want.config_map(NAME, "leaving"))
            await behind.start()
            await behind.is_applied("w")
            await behind.is_applied("leaving")
            door.stall()
            began, guests = asyncio.get_running_loop().time(), door.guests
            news = [f"new{number}" for number in range(15)]
            behind.publish("w", want.config_map(NAME, "cm", data={"k": "new"}))
            behind.delete("leaving")
            for name in news:
                behind.publish(name, want.config_map(NAME, name))

            async def has_complained() -> bool:
                return behind.log.count("did not answer") >= 3 * len(news)

            await behind.until(has_complained, what="calls given up")
            # Each of ten workers waits for every call; besides them there are two watches, and those who move on.
            rounds = (asyncio.get_running_loop().time() - began) / impatient.timeout + 1
            assert door.guests - guests < 20 * rounds
            door.flow()
            await behind.is_applied("w")
            await behind.is_deleted("leaving")
            for name in news:
                await behind.is_applied(name)
                await fleet.records_exactly(name, f"configmaps/{name}")
            # The watches stand, too.
            await fleet.cluster.delete(CM)
            await fleet.exists(CM, data={"k": "new"})
            await behind.stop()

    asyncio.run(scenario())


def test_agent_starts_before_its_api_server() -> None:
    async def scenario() -> None:
        async with world() as (sandbox, fleet):
            await fleet.stop()
            door = Door(sandbox)
            async with door:
                await door.close()
                address: ClusterAddress = config.from_kubeconfig([sandbox.kubeconfig])
                behind = Fleet(Cluster(replace(address, server=door.url)), namespace=NAME, server=fleet.server)
                behind.publish("w", CM)
                await behind.start(is_awaited=False)
                await behind.until(lambda: has(behind, "could not be installed"), what="a complaint in the log")
                await door.open()
                await behind.is_applied("w")
                await behind.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("verb", ["create", "patch", "update", "delete"])
@pytest.mark.parametrize("resource", ["configmaps", "appliedmanifestworks"])
def test_killed_at_every_write(verb: str, resource: str) -> None:
    """The agent dies while the API server carries out a write; the next one finishes what this one began."""

    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        deaths: list[asyncio.Future[None]] = []

        def kill(call: Call) -> bool:
            is_alive = not deaths or deaths[-1].done()
            if call.verb == verb and call.resource == resource and is_alive and len(deaths) < 6:
                deaths.append(asyncio.ensure_future(fleet.restart()))
            return False

        sandbox.faults.fail_next(1_000_000, where=kill)
        sandbox.faults.delay(0.01)
        held = want.config_map(NAME, "held", finalizers=["suite.test/hold"])
        old, new = want.config_map(NAME, "old"), want.config_map(NAME, "new")
        fleet.publish("w", CM, old, held)
        await fleet.exists(held)
        fleet.publish("w", want.config_map(NAME, "cm", data={"k": "new"}), new, held)
        await fleet.is_applied("w")
        await fleet.is_gone(old)
        fleet.delete("w")
        await fleet.report("w", lambda found: "suite.test/hold" in str(found.status.body), what="what holds it")
        await fleet.cluster.edit(held, {"metadata": {"finalizers": None}})
        await fleet.is_deleted("w")
        await fleet.is_gone(CM, new, held, fleet.record_of("w"))
        await asyncio.gather(*deaths)

    run(scenario)


def test_status_never_undoes_a_deletion() -> None:
    """Statuses and the deletion of one work meet again and again, with acknowledgements that come late."""

    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        rules = [want.config("configmaps", "*", feedbackRules=want.json_paths(value=".data.test"))]
        for number in range(15):
            cm = want.config_map(NAME, f"cm{number}")
            fleet.publish("w", cm, manifestConfigs=rules)
            await fleet.exists(cm)
            fleet.server.open_hand.clear()
            await fleet.cluster.edit(cm, {"metadata": {"labels": {"round": str(number)}}})
            fleet.delete("w")
            await asyncio.sleep(0.002 * number)
            fleet.server.open_hand.set()
            await fleet.is_deleted("w")
            await fleet.is_gone(cm, fleet.record_of("w"))
            fleet.server.reports.clear()

    run(scenario)


def test_reports_wait_for_a_server_that_hangs_up_in_the_middle() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.server.open_hand.clear()
        for number in range(20):
            fleet.publish(f"w{number}", want.config_map(NAME, f"cm{number}"))
        await fleet.exists(want.config_map(NAME, "cm19"))
        fleet.server.hang_up()
        fleet.server.open_hand.set()
        for number in range(20):
            await fleet.is_applied(f"w{number}")

    run(scenario)


def test_greeting_that_is_refused_is_tried_again() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.server.answers_resyncs = False
        fleet.server.hang_up()
        await fleet.until(lambda: greeted(fleet, 2), what="greetings")
        fleet.server.answers_resyncs = True
        fleet.publish("w", CM)
        await fleet.is_applied("w")

    run(scenario)


def test_many_works_in_many_namespaces_share_their_watches() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        spaces = [f"{NAME}-{number}" for number in range(20)]
        for space in spaces:
            await fleet.cluster.create(want.namespace(space))
            fleet.publish(space, want.config_map(space, "cm"))
        for space in spaces:
            await fleet.is_applied(space)
        await fleet.settles()
        for space in spaces:
            await fleet.cluster.delete(want.config_map(space, "cm"))
        for space in spaces:
            await fleet.exists(want.config_map(space, "cm"))
        assert sandbox.counts["watch", "configmaps"] < 40

    run(scenario)


def test_calls_per_work() -> None:
    """What a work costs its API server; not a limit, but a change should be seen."""

    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        fleet.publish("first", want.config_map(NAME, "first"))
        await fleet.is_applied("first")
        await fleet.settles()
        before = sandbox.counts.copy()
        for number in range(10):
            fleet.publish(f"w{number}", want.config_map(NAME, f"cm{number}"))
        for number in range(10):
            await fleet.is_applied(f"w{number}")
        await fleet.settles()
        assert sandbox.counts - before == {
            ("create", "appliedmanifestworks.work.open-cluster-management.io"): 10,
            ("create", "configmaps"): 10,
            ("patch", "appliedmanifestworks/status.work.open-cluster-management.io"): 10,
        }

    run(scenario)


def test_slow_round_looks_at_everything() -> None:
    async def scenario(sandbox: SandboxCluster, fleet: Fleet) -> None:
        await fleet.restart(replace(RHYTHM, resync=timedelta(seconds=0.3)))
        web = want.deployment(NAME, "web", replicas=None)
        fleet.publish("w", web)
        await fleet.is_applied("w")
        await fleet.cluster.edit(web, {"spec": {"replicas": 3}})
        # What the manifest leaves out is set back by the slow round, as the Go agent does.
        await fleet.exists(web, spec__replicas=1)
        assert letters(fleet.told("w") or fleet.wish("w"), "Applied") == "T:T"

    run(scenario)


class Door:
    """A port before the API server that can be shut, which throws out whoever is inside, or made to pass nothing."""

    def __init__(self, sandbox: SandboxCluster) -> None:
        self._port = int(sandbox.url.rpartition(":")[2])
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._own_port = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self.guests = 0

    async def __aenter__(self) -> "Door":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._own_port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._own_port)
        self._own_port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """Take what comes and pass nothing on, in either direction."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on what has come meanwhile, and all that follows."""
        self._flows.set()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.guests += 1
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, inner_writer, self._flows))
                group.create_task(pump(inner_reader, writer, self._flows))
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for each in (writer, inner_writer):
                each.transport.abort()
            self._tasks.discard(task)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
    while data := await reader.read(65536):
        await flows.wait()
        writer.write(data)
        await writer.drain()
    writer.close()


async def has(fleet: Fleet, text: str) -> bool:
    return text in fleet.log


async def greeted(fleet: Fleet, count: int) -> bool:
    return len(fleet.server.greetings) >= count
