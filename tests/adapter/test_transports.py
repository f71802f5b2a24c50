"""One conformance suite for both work transports: Maestro and a Kubernetes API."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from maestropy.adapter.decide import ownership
from maestropy.adapter.resource import Resource
from maestropy.adapter.transports import kubernetes
from maestropy.adapter.transports.maestro import MaestroTransport
from maestropy.adapter.transports.performer import WorkTransport
from maestropy.sdk import errors
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from maestropy.testing import Cluster, RunningFleet

Opened = Callable[[], AbstractAsyncContextManager[WorkTransport]]


@pytest.fixture(params=["maestro", "kubernetes"])
def opened(request: pytest.FixtureRequest, fleet: RunningFleet) -> Opened:
    @asynccontextmanager
    async def open_transport() -> AsyncIterator[WorkTransport]:
        if request.param == "maestro":
            client = AsyncMaestro(environ={}, api_url=fleet.api_url, grpc_url=fleet.grpc_url, source="suite")
            async with client:
                yield MaestroTransport(client)
        else:
            async with kubernetes.opened(str(fleet.cluster().kubeconfig), environ=os.environ) as transport:
                yield transport

    return open_transport


def cluster_of(name: str, generation: int = 1) -> Resource:
    return Resource(id=name, kind="Cluster", generation=generation)


def desired(name: str, *keys: str, generation: int = 1) -> Work:
    work = Work(f"suite-{name}")
    for key in keys or ("a",):
        metadata = {"name": f"suite-{name}-{key}", "namespace": "default"}
        manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"is": key}}
        work = work.add(manifest, feedback={"data": ".data"})
    return ownership.with_ownership(work, adapter="suite", resource=cluster_of(name, generation))


def labels(name: str) -> dict[str, str]:
    return ownership.labels_of("suite", cluster_of(name))


def is_reported(works: Any) -> bool:
    return bool(works) and all(work.is_reported and not work.is_stale for work in works)


async def test_created_work_is_queried_and_reported(opened: Opened) -> None:
    async with opened() as transport:
        assert list(await transport.query(labels=labels("made"), consumer="", name="")) == []
        await transport.create(desired("made"), consumer="cluster1")
        [observed] = await transport.wait(labels=labels("made"), until=is_reported, seconds=20)
        assert (observed.name, observed.consumer, observed.version) == ("suite-made", "cluster1", 1)
        assert ownership.decide(observed, desired("made")) == ownership.SkipWork()
        assert observed.is_true("Applied")
        assert observed.feedback("data") == {"is": "a"}
        [named] = await transport.query(labels={}, consumer="cluster1", name="suite-made")
        assert named.annotations[ownership.DIGEST] == observed.annotations[ownership.DIGEST]
        assert list(await transport.query(labels=labels("other"), consumer="", name="")) == []
        assert list(await transport.query(labels={}, consumer="cluster1", name="suite-other")) == []


async def test_second_create_is_rejected(opened: Opened) -> None:
    async with opened() as transport:
        await transport.create(desired("twice"), consumer="cluster1")
        with pytest.raises(errors.AlreadyExists):
            await transport.create(desired("twice"), consumer="cluster1")


async def test_patch_of_an_old_version_is_a_conflict(opened: Opened, fleet: RunningFleet) -> None:
    async with opened() as transport:
        await transport.create(desired("changed", "a", "b"), consumer="cluster1")
        after = desired("changed", "a", generation=2)
        change = ownership.patch_for(after)
        patched = await transport.patch(after, consumer="cluster1", patch=change, version=1)
        assert patched.version == 2
        with pytest.raises(errors.Conflict):
            await transport.patch(after, consumer="cluster1", patch=change, version=1)
        [observed] = await transport.wait(labels=labels("changed"), until=is_reported, seconds=20)
        assert ownership.decide(observed, after) == ownership.SkipWork()
        assert [manifest.name for manifest in observed.manifests] == ["suite-changed-a"]
    fleet.cluster().wait_until_gone("v1", "ConfigMap", "suite-changed-b", namespace="default")
    kept = fleet.cluster().get("v1", "ConfigMap", "suite-changed-a", namespace="default")
    assert kept
    assert kept["metadata"]["annotations"][ownership.GENERATION] == "2"


async def test_deleting_work_exists_until_its_objects_are_gone(opened: Opened, fleet: RunningFleet) -> None:
    async with opened() as transport:
        await transport.create(desired("gone"), consumer="cluster1")
        await transport.wait(labels=labels("gone"), until=is_reported, seconds=20)
        await transport.delete("suite-gone", consumer="cluster1")
        remaining = await transport.wait(labels=labels("gone"), until=lambda works: not works, seconds=20)
        assert list(remaining) == []
        await transport.delete("suite-gone", consumer="cluster1")
    assert fleet.cluster().get("v1", "ConfigMap", "suite-gone-a", namespace="default") is None


async def test_wait_returns_the_works_after_the_timeout(opened: Opened) -> None:
    async with opened() as transport:
        await transport.create(desired("slow"), consumer="cluster1")
        works = await transport.wait(labels=labels("slow"), until=lambda _: False, seconds=0.5)
        assert [work.name for work in works] == ["suite-slow"]


async def test_interrupted_kubernetes_apply_is_continued(cluster: Cluster) -> None:
    work = desired("broken").add(
        {"apiVersion": "later.example.com/v1", "kind": "Later", "metadata": {"name": "l", "namespace": "default"}}
    )
    owned = ownership.with_ownership(work, adapter="suite", resource=cluster_of("broken"))

    async def first() -> None:
        async with kubernetes.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            with pytest.raises(errors.Invalid, match="resource type"):
                await transport.create(owned, consumer="kubernetes")
            [stored] = await transport.query(labels=labels("broken"), consumer="", name="")
            assert ownership.decide(stored, owned) == ownership.PatchWork("the content changed for generation 1")
            assert not stored.is_true("Applied")

    async def second() -> None:
        async with kubernetes.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            done = await transport.patch(owned, consumer="kubernetes", patch={}, version=1)
            assert done.is_true("Applied")
            assert ownership.decide(done, owned) == ownership.SkipWork()

    await first()
    cluster.add_kind("later.example.com/v1", "Later")
    await second()
