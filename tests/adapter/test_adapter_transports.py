"""One suite for whatever carries works: the same questions to Maestro and to a Kubernetes API."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maestropy.adapter import perform_kube, stamping
from maestropy.adapter.perform import Transport
from maestropy.adapter.perform_maestro import MaestroTransport
from maestropy.adapter.resource import Resource
from maestropy.sdk import errors
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from maestropy.testing import Cluster, RunningFleet

Scenario = Callable[[Transport], Awaitable[None]]
Exercise = Callable[[Scenario], None]


@pytest.fixture(params=["maestro", "kubernetes"])
def exercise(request: pytest.FixtureRequest, fleet: RunningFleet) -> Exercise:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Transport]:
        if request.param == "maestro":
            client = AsyncMaestro(environ={}, api_url=fleet.api_url, grpc_url=fleet.grpc_url, source="suite")
            async with client:
                yield MaestroTransport(client)
        else:
            async with perform_kube.opened(str(fleet.cluster().kubeconfig), environ=os.environ) as transport:
                yield transport

    async def run(scenario: Scenario) -> None:
        async with opened() as transport:
            await scenario(transport)

    return lambda scenario: asyncio.run(run(scenario))


def cluster_of(name: str, generation: int = 1) -> Resource:
    return Resource(id=name, kind="Cluster", generation=generation)


def wanted(name: str, *keys: str, generation: int = 1) -> Work:
    found = Work(f"suite-{name}")
    for key in keys or ("a",):
        metadata = {"name": f"suite-{name}-{key}", "namespace": "default"}
        manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"is": key}}
        found = found.add(manifest, feedback={"data": ".data"})
    return stamping.stamped(found, adapter="suite", resource=cluster_of(name, generation))


def labels(name: str) -> dict[str, str]:
    return stamping.labels_of("suite", cluster_of(name))


def is_reported(found: Any) -> bool:
    return bool(found) and all(each.is_reported and not each.is_stale for each in found)


def test_a_work_is_made_found_and_read(exercise: Exercise) -> None:
    async def scenario(transport: Transport) -> None:
        assert list(await transport.query(labels=labels("made"), consumer="", name="")) == []
        await transport.create(wanted("made"), consumer="cluster1")
        [seen] = await transport.wait(labels=labels("made"), until=is_reported, seconds=20)
        assert (seen.name, seen.consumer, seen.version) == ("suite-made", "cluster1", 1)
        assert stamping.verdict(seen, wanted("made")) == stamping.Skip()
        assert seen.is_true("Applied")
        assert seen.feedback("data") == {"is": "a"}
        [named] = await transport.query(labels={}, consumer="cluster1", name="suite-made")
        assert named.annotations[stamping.DIGEST] == seen.annotations[stamping.DIGEST]
        assert list(await transport.query(labels=labels("other"), consumer="", name="")) == []
        assert list(await transport.query(labels={}, consumer="cluster1", name="suite-other")) == []

    exercise(scenario)


def test_a_second_create_is_refused(exercise: Exercise) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.create(wanted("twice"), consumer="cluster1")
        with pytest.raises(errors.AlreadyExists):
            await transport.create(wanted("twice"), consumer="cluster1")

    exercise(scenario)


def test_a_patch_changes_the_version_it_knows_and_no_other(exercise: Exercise, fleet: RunningFleet) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.create(wanted("changed", "a", "b"), consumer="cluster1")
        after = wanted("changed", "a", generation=2)
        change = stamping.patch_for(after)
        patched = await transport.patch(after, consumer="cluster1", patch=change, version=1)
        assert patched.version == 2
        with pytest.raises(errors.Conflict):
            await transport.patch(after, consumer="cluster1", patch=change, version=1)
        [seen] = await transport.wait(labels=labels("changed"), until=is_reported, seconds=20)
        assert stamping.verdict(seen, after) == stamping.Skip()
        assert [each.name for each in seen.manifests] == ["suite-changed-a"]

    exercise(scenario)
    fleet.cluster().wait_until_gone("v1", "ConfigMap", "suite-changed-b", namespace="default")
    kept = fleet.cluster().get("v1", "ConfigMap", "suite-changed-a", namespace="default")
    assert kept
    assert kept["metadata"]["annotations"][stamping.GENERATION] == "2"


def test_what_is_deleted_is_there_until_it_is_gone(exercise: Exercise, fleet: RunningFleet) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.create(wanted("gone"), consumer="cluster1")
        await transport.wait(labels=labels("gone"), until=is_reported, seconds=20)
        await transport.delete("suite-gone", consumer="cluster1")
        left = await transport.wait(labels=labels("gone"), until=lambda found: not found, seconds=20)
        assert list(left) == []
        await transport.delete("suite-gone", consumer="cluster1")

    exercise(scenario)
    assert fleet.cluster().get("v1", "ConfigMap", "suite-gone-a", namespace="default") is None


def test_waiting_ends_in_time_with_what_there_is(exercise: Exercise) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.create(wanted("slow"), consumer="cluster1")
        found = await transport.wait(labels=labels("slow"), until=lambda _: False, seconds=0.5)
        assert [each.name for each in found] == ["suite-slow"]

    exercise(scenario)


def test_a_kubernetes_run_that_broke_off_is_taken_up_again(cluster: Cluster) -> None:
    work = wanted("broken").add(
        {"apiVersion": "later.example.com/v1", "kind": "Later", "metadata": {"name": "l", "namespace": "default"}}
    )
    stamped = stamping.stamped(work, adapter="suite", resource=cluster_of("broken"))

    async def first() -> None:
        async with perform_kube.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            with pytest.raises(errors.Invalid, match="resource type"):
                await transport.create(stamped, consumer="kubernetes")
            [left] = await transport.query(labels=labels("broken"), consumer="", name="")
            assert stamping.verdict(left, stamped) == stamping.Patch(
                "the adapter wants something else for generation 1"
            )
            assert not left.is_true("Applied")

    async def second() -> None:
        async with perform_kube.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            done = await transport.patch(stamped, consumer="kubernetes", patch={}, version=1)
            assert done.is_true("Applied")
            assert stamping.verdict(done, stamped) == stamping.Skip()

    asyncio.run(first())
    cluster.add_kind("later.example.com/v1", "Later")
    asyncio.run(second())
