"""The agent with a failing, slow or restarting API server: it keeps running and loses nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from maestropy.kube.client import ClientSettings
from maestropy.kube.config import load as config
from maestropy.kube.config.address import ClusterAddress
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.kubeapi.request_paths import RequestInfo
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import (
    INTERVALS,
    AgentEnvironment,
    Cluster,
    agent_environment,
    condition,
    condition_summary,
)

NAME = "faults"
CM = samples.config_map(NAME, "cm")


@asynccontextmanager
async def sandbox_environment() -> AsyncIterator[tuple[SandboxCluster, AgentEnvironment]]:
    async with (
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        agent_environment(cluster, NAME) as env,
    ):
        yield sandbox, env


@contextlib.asynccontextmanager
async def faulty_sandbox() -> AsyncIterator[tuple[SandboxCluster, AgentEnvironment]]:
    async with sandbox_environment() as (sandbox, env):
        yield sandbox, env


def writes(call: RequestInfo) -> bool:
    return call.verb in ("create", "update", "patch", "delete")


def about_config_maps(call: RequestInfo) -> bool:
    return call.resource == "configmaps"


@pytest.mark.parametrize("status", [429, 503])
async def test_failing_writes_are_retried(status: int) -> None:
    async with faulty_sandbox() as (sandbox, env):
        sandbox.faults.fail_next(2, status=status, matches=writes)
        env.publish("w", CM)
        await env.wait_until_applied("w")
        sandbox.faults.fail_next(2, status=status, matches=writes)
        env.delete("w")
        await env.wait_until_deleted("w")
        assert await env.cluster.get(CM) is None
        assert await env.applied_work("w") is None


async def test_retry_after_of_api_server_is_respected() -> None:
    async with faulty_sandbox() as (sandbox, env):
        sandbox.faults.fail_next(2, status=429, retry_after=1, matches=writes)
        env.publish("w", CM)
        reported = await env.wait_until_applied("w")
        # The client waited for Retry-After; no failure was reported.
        assert len(env.server.statuses[reported.uid]) == 1


async def test_failing_reads_are_reported_as_unknown() -> None:
    async with faulty_sandbox() as (sandbox, env):
        env.publish("w", CM)
        await env.wait_until_applied("w")
        await env.wait_until_idle()
        sandbox.faults.fail_next(10_000, status=500, matches=about_config_maps)
        sandbox.faults.expire_history()
        env.publish("w", samples.config_map(NAME, "cm", data={"k": "new"}))
        reported = await env.wait_for_conditions("w", applied="F:F", available="U:U")
        unknown = condition(reported.status.manifests[0], "Available")
        assert unknown.reason == "FetchingResourceFailed"
        assert unknown.message == "Failed to fetch resource: a fault was injected into this request"
        # Neither dropped from the list nor pruned.
        assert await env.applied_resources("w") == ["configmaps/cm"]
        sandbox.faults.clear()
        await env.wait_until_applied("w")


async def test_forbidden_kind_does_not_block_others() -> None:
    async with faulty_sandbox() as (sandbox, env):

        def forbidden(call: RequestInfo) -> bool:
            return call.resource == "secrets" and writes(call)

        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAME}}
        sandbox.faults.fail_next(10_000, status=403, matches=forbidden)
        env.publish("w", secret, CM)
        reported = await env.wait_for_conditions("w", applied="F:FT", available="F:FT")
        assert "fault was injected" in condition(reported.status.manifests[0], "Applied").message
        sandbox.faults.clear()
        await env.wait_until_applied("w")


async def test_forbidden_deletion_is_reported_with_object_and_reason() -> None:
    async with faulty_sandbox() as (sandbox, env):
        env.publish("w", CM)
        await env.wait_until_applied("w")
        sandbox.faults.fail_next(
            10_000, status=403, matches=lambda call: about_config_maps(call) and call.verb == "delete"
        )
        env.delete("w")
        reported = await env.wait_for_status(
            "w", lambda reported: "fault was injected" in str(reported.status.body), what="the reason"
        )
        assert f"waiting for configmaps {NAME}/cm (a fault was injected" in condition(reported, "Deleting").message
        sandbox.faults.clear()
        await env.wait_until_deleted("w")


@pytest.mark.long
async def test_slow_api_server() -> None:
    async with faulty_sandbox() as (sandbox, env):
        sandbox.faults.delay(0.3)
        for number in range(5):
            env.publish(f"w{number}", samples.config_map(NAME, f"cm{number}"))
        for number in range(5):
            await env.wait_until_applied(f"w{number}")
            env.delete(f"w{number}")
        for number in range(5):
            await env.wait_until_deleted(f"w{number}")


@pytest.mark.long
async def test_slow_kind_does_not_delay_others() -> None:
    async with faulty_sandbox() as (sandbox, env):
        sandbox.faults.delay(3600, matches=lambda call: call.resource == "secrets" and writes(call))
        for number in range(30):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}", "namespace": NAME}}
            env.publish(f"slow{number}", secret)
        for number in range(5):
            env.publish(f"w{number}", samples.config_map(NAME, f"cm{number}"))
        for number in range(5):
            await env.wait_until_applied(f"w{number}")


@pytest.mark.long
async def test_expired_watch_history_is_listed_again() -> None:
    async with faulty_sandbox() as (sandbox, env):
        env.publish("w", CM)
        await env.wait_until_applied("w")
        await env.wait_until_idle()
        sandbox.faults.expire_history()
        await env.cluster.edit(CM, {"data": {"test": "edited"}})
        await env.wait_for_object(CM, data={"test": "testdata"})
        sandbox.faults.expire_history()
        await env.cluster.delete(CM)
        await env.wait_for_object(CM)


async def test_api_server_restarts() -> None:
    """The API server restarts on the same address with its data, as in a control plane upgrade."""

    async with sandbox_environment() as (sandbox, env):
        env.publish("w", CM)
        env.publish("leaving", samples.config_map(NAME, "leaving"))
        await env.wait_until_applied("w")
        await env.wait_until_applied("leaving")
        proxy = ApiServerProxy(sandbox)
        async with proxy:
            await env.stop()
            address = config.from_kubeconfig([sandbox.kubeconfig])
            proxied = AgentEnvironment(Cluster(replace(address, server=proxy.url)), namespace=NAME, server=env.server)
            # Only statuses of this agent count.
            env.server.statuses.clear()
            await proxied.start()
            await proxied.wait_until_applied("w")
            await proxied.wait_until_applied("leaving")
            await proxy.close()
            proxied.publish("w", samples.config_map(NAME, "cm", data={"k": "new"}))
            proxied.publish("new", samples.config_map(NAME, "new"))
            proxied.delete("leaving")
            await proxied.wait_for_conditions("w", applied="F:F", available="U:U")
            await proxy.open()
            await proxied.wait_until_applied("w")
            await proxied.wait_until_applied("new")
            await proxied.wait_until_deleted("leaving")
            # The watches are open again too.
            await env.cluster.delete(CM)
            await env.wait_for_object(CM, data={"k": "new"})
            await proxied.stop()


@pytest.mark.long
async def test_api_server_stalls_longer_than_timeouts() -> None:
    """The API server accepts connections without answering, then answers everything, also writes already timed out."""

    async with sandbox_environment() as (sandbox, env), ApiServerProxy(sandbox) as proxy:
        await env.stop()
        address = config.from_kubeconfig([sandbox.kubeconfig])
        impatient = ClientSettings(qps=0, timeout=0.3)
        proxied = AgentEnvironment(
            Cluster(replace(address, server=proxy.url)), namespace=NAME, server=env.server, client=impatient
        )
        proxied.publish("w", CM)
        proxied.publish("leaving", samples.config_map(NAME, "leaving"))
        await proxied.start()
        await proxied.wait_until_applied("w")
        await proxied.wait_until_applied("leaving")
        proxy.stall()
        began, connections = asyncio.get_running_loop().time(), proxy.connections
        new_names = [f"new{number}" for number in range(15)]
        proxied.publish("w", samples.config_map(NAME, "cm", data={"k": "new"}))
        proxied.delete("leaving")
        for name in new_names:
            proxied.publish(name, samples.config_map(NAME, name))

        async def has_complained() -> bool:
            return proxied.log.count("did not answer") >= 3 * len(new_names)

        await proxied.wait_until(has_complained, what="calls given up")
        # Ten workers wait for one request each; there are also two watches and retries.
        rounds = (asyncio.get_running_loop().time() - began) / impatient.timeout + 1
        assert proxy.connections - connections < 20 * rounds
        proxy.flow()
        await proxied.wait_until_applied("w")
        await proxied.wait_until_deleted("leaving")
        for name in new_names:
            await proxied.wait_until_applied(name)
            await env.wait_for_applied_resources(name, f"configmaps/{name}")
        # The watches are open again too.
        await env.cluster.delete(CM)
        await env.wait_for_object(CM, data={"k": "new"})
        await proxied.stop()


async def test_agent_starts_before_its_api_server() -> None:
    async with sandbox_environment() as (sandbox, env):
        await env.stop()
        proxy = ApiServerProxy(sandbox)
        async with proxy:
            await proxy.close()
            address: ClusterAddress = config.from_kubeconfig([sandbox.kubeconfig])
            proxied = AgentEnvironment(Cluster(replace(address, server=proxy.url)), namespace=NAME, server=env.server)
            proxied.publish("w", CM)
            await proxied.start(is_awaited=False)
            await proxied.wait_until(
                lambda: has(proxied, "could not be installed"), what="the failed installation in the log"
            )
            await proxy.open()
            await proxied.wait_until_applied("w")
            await proxied.stop()


@pytest.mark.long
@pytest.mark.parametrize("verb", ["create", "patch", "update", "delete"])
@pytest.mark.parametrize("resource", ["configmaps", "appliedmanifestworks"])
async def test_agent_killed_at_every_write(verb: str, resource: str) -> None:
    """The agent is killed during a write; the next one completes the work."""

    async with faulty_sandbox() as (sandbox, env):
        deaths: list[asyncio.Future[None]] = []

        def kill(call: RequestInfo) -> bool:
            is_alive = not deaths or deaths[-1].done()
            if call.verb == verb and call.resource == resource and is_alive and len(deaths) < 6:
                deaths.append(asyncio.ensure_future(env.restart()))
            return False

        sandbox.faults.fail_next(1_000_000, matches=kill)
        sandbox.faults.delay(0.01)
        blocked = samples.config_map(NAME, "held", finalizers=["suite.test/hold"])
        old, new = samples.config_map(NAME, "old"), samples.config_map(NAME, "new")
        env.publish("w", CM, old, blocked)
        await env.wait_for_object(blocked)
        env.publish("w", samples.config_map(NAME, "cm", data={"k": "new"}), new, blocked)
        await env.wait_until_applied("w")
        await env.wait_until_gone(old)
        env.delete("w")
        await env.wait_for_status(
            "w", lambda reported: "suite.test/hold" in str(reported.status.body), what="what holds it"
        )
        await env.cluster.edit(blocked, {"metadata": {"finalizers": None}})
        await env.wait_until_deleted("w")
        await env.wait_until_gone(CM, new, blocked, env.applied_work_ref("w"))
        await asyncio.gather(*deaths)


@pytest.mark.long
async def test_status_update_never_undoes_deletion() -> None:
    """Status updates and the deletion of one work race, with late acknowledgements."""

    async with faulty_sandbox() as (_, env):
        rules = [samples.config("configmaps", "*", feedbackRules=samples.json_paths(value=".data.test"))]
        for number in range(15):
            cm = samples.config_map(NAME, f"cm{number}")
            env.publish("w", cm, manifestConfigs=rules)
            await env.wait_for_object(cm)
            env.server.acknowledging.clear()
            await env.cluster.edit(cm, {"metadata": {"labels": {"round": str(number)}}})
            env.delete("w")
            await asyncio.sleep(0.002 * number)
            env.server.acknowledging.set()
            await env.wait_until_deleted("w")
            await env.wait_until_gone(cm, env.applied_work_ref("w"))
            env.server.statuses.clear()


async def test_status_updates_survive_disconnect() -> None:
    async with faulty_sandbox() as (_, env):
        env.server.acknowledging.clear()
        for number in range(20):
            env.publish(f"w{number}", samples.config_map(NAME, f"cm{number}"))
        await env.wait_for_object(samples.config_map(NAME, "cm19"))
        env.server.disconnect()
        env.server.acknowledging.set()
        for number in range(20):
            await env.wait_until_applied(f"w{number}")


@pytest.mark.long
async def test_rejected_spec_resync_is_retried() -> None:
    async with faulty_sandbox() as (_, env):
        env.server.accepts_resyncs = False
        env.server.disconnect()
        await env.wait_until(lambda: has_resynced(env, 2), what="spec resync requests")
        env.server.accepts_resyncs = True
        env.publish("w", CM)
        await env.wait_until_applied("w")


@pytest.mark.long
async def test_works_in_many_namespaces_share_watches() -> None:
    async with faulty_sandbox() as (sandbox, env):
        spaces = [f"{NAME}-{number}" for number in range(20)]
        for space in spaces:
            await env.cluster.create(samples.namespace(space))
            env.publish(space, samples.config_map(space, "cm"))
        for space in spaces:
            await env.wait_until_applied(space)
        await env.wait_until_idle()
        for space in spaces:
            await env.cluster.delete(samples.config_map(space, "cm"))
        for space in spaces:
            await env.wait_for_object(samples.config_map(space, "cm"))
        assert sandbox.request_counts["watch", "configmaps"] < 40


@pytest.mark.long
async def test_api_requests_per_work() -> None:
    """API requests per work: no limit, but a change should be noticed."""

    async with faulty_sandbox() as (sandbox, env):
        env.publish("first", samples.config_map(NAME, "first"))
        await env.wait_until_applied("first")
        await env.wait_until_idle()
        before = sandbox.request_counts.copy()
        for number in range(10):
            env.publish(f"w{number}", samples.config_map(NAME, f"cm{number}"))
        for number in range(10):
            await env.wait_until_applied(f"w{number}")
        await env.wait_until_idle()
        assert sandbox.request_counts - before == {
            ("create", "appliedmanifestworks.work.open-cluster-management.io"): 10,
            ("create", "configmaps"): 10,
            ("patch", "appliedmanifestworks/status.work.open-cluster-management.io"): 10,
        }


async def test_periodic_resync_corrects_drift_of_unstated_fields() -> None:
    async with faulty_sandbox() as (_, env):
        await env.restart(replace(INTERVALS, resync=timedelta(seconds=0.3)))
        web = samples.deployment(NAME, "web", replicas=None)
        env.publish("w", web)
        await env.wait_until_applied("w")
        await env.cluster.edit(web, {"spec": {"replicas": 3}})
        # Fields that the manifest leaves out are reset by the periodic resync, as in the Go agent.
        await env.wait_for_object(web, spec__replicas=1)
        assert condition_summary(env.latest_status("w") or env.manifest_work("w"), "Applied") == "T:T"


class ApiServerProxy:
    """A proxy of the API server that can be closed, which drops its connections, or stalled."""

    def __init__(self, sandbox: SandboxCluster) -> None:
        self._port = int(sandbox.url.rpartition(":")[2])
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._own_port = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self.connections = 0

    async def __aenter__(self) -> "ApiServerProxy":
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
        """Read data and forward nothing, in either direction."""
        self._flows.clear()

    def flow(self) -> None:
        """Forward the data read so far, and all that follows."""
        self._flows.set()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, inner_writer, self._flows))
                group.create_task(pump(inner_reader, writer, self._flows))
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for stream in (writer, inner_writer):
                stream.transport.abort()
            self._tasks.discard(task)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
    while data := await reader.read(65536):
        await flows.wait()
        writer.write(data)
        await writer.drain()
    writer.close()


async def has(env: AgentEnvironment, text: str) -> bool:
    return text in env.log


async def has_resynced(env: AgentEnvironment, count: int) -> bool:
    return len(env.server.resync_requests) >= count
