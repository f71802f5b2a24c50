"""Our Kubernetes client against a real API server: the recorded shapes of the unit tests are only as good as this."""

import asyncio
import contextlib
import functools
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from maestropy.aio.clock import Clock
from maestropy.kube import errors, leases, reviews
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.discovery import Catalogue, Discovery, read_catalogue
from maestropy.kube.request import (
    DeleteOptions,
    Impersonation,
    ObjectSelector,
    Patch,
    PatchType,
    ResourceType,
    WriteOptions,
)
from maestropy.kube.watch import Added, Change, Deleted, Modified, ResourceWatch, Synced, WatchTiming
from tests.peers.kube_cluster import KubeCluster

pytestmark = pytest.mark.peers

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
CRDS = ResourceType(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
QUICK = WatchTiming(open_for=30, idle=100, first_delay=0.05, longest_delay=0.2)
NUMBERS = itertools.count(1)


def config_map(namespace: str, name: str, **data: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@contextlib.asynccontextmanager
async def connected(cluster: KubeCluster, **settings: Any) -> AsyncIterator[KubeClient]:
    address = config.from_kubeconfig([cluster.kubeconfig])
    async with KubeClient(address, settings=ClientSettings(qps=0, **settings)) as client, asyncio.timeout(60):
        yield client


async def test_the_life_of_an_object(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        with pytest.raises(errors.NotFound, match=r'^configmaps "a" not found$'):
            await client.get(CONFIG_MAPS, "a", namespace=namespace)
        made = await client.create(CONFIG_MAPS, config_map(namespace, "a", k="1"))
        assert {managed_field["manager"] for managed_field in made["metadata"]["managedFields"]} == {"work-agent"}
        with pytest.raises(errors.AlreadyExists, match='configmaps "a" already exists') as exists:
            await client.create(CONFIG_MAPS, config_map(namespace, "a"))
        assert (exists.value.status, exists.value.reason) == (409, "AlreadyExists")

        updated = await client.update(CONFIG_MAPS, made | {"data": {"k": "2"}})
        with pytest.raises(errors.Conflict, match="the object has been modified"):
            await client.update(CONFIG_MAPS, made | {"data": {"k": "3"}})
        merged = await client.patch(CONFIG_MAPS, "a", namespace=namespace, change=Patch(body={"data": {"m": "1"}}))
        assert merged["data"] == {"k": "2", "m": "1"}
        operations = [{"op": "test", "path": "/data/k", "value": "2"}, {"op": "remove", "path": "/data/k"}]
        jsoned = await client.patch(
            CONFIG_MAPS, "a", namespace=namespace, change=Patch(body=operations, type=PatchType.JSON)
        )
        assert jsoned["data"] == {"m": "1"}
        strategic = Patch(body={"data": {"s": "1", "m": None}}, type=PatchType.STRATEGIC)
        assert (await client.patch(CONFIG_MAPS, "a", namespace=namespace, change=strategic))["data"] == {"s": "1"}
        stale = Patch(body={"metadata": {"resourceVersion": updated["metadata"]["resourceVersion"]}})
        with pytest.raises(errors.Conflict):
            await client.patch(CONFIG_MAPS, "a", namespace=namespace, change=stale)

        with pytest.raises(errors.Conflict, match="the UID in the precondition"):
            await client.delete(CONFIG_MAPS, "a", namespace=namespace, deletion=DeleteOptions(uid="another-life"))
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, deletion=DeleteOptions(uid=made["metadata"]["uid"]))
        with pytest.raises(errors.NotFound):
            await client.delete(CONFIG_MAPS, "a", namespace=namespace)


async def test_server_side_apply(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        ours, theirs = WriteOptions(field_manager="work-agent"), WriteOptions(field_manager="somebody")
        await client.apply(CONFIG_MAPS, config_map(namespace, "a", k="ours"), write=ours)
        with pytest.raises(errors.Conflict, match=r'^Apply failed with 1 conflict: conflict with "work-agent"'):
            await client.apply(CONFIG_MAPS, config_map(namespace, "a", k="theirs"), write=theirs)
        forced = WriteOptions(field_manager="somebody", force=True)
        taken = await client.apply(CONFIG_MAPS, config_map(namespace, "a", k="theirs"), write=forced)
        assert taken["data"] == {"k": "theirs"}
        dry = WriteOptions(field_manager="dry", dry_run=True)
        await client.apply(CONFIG_MAPS, config_map(namespace, "never", k="v"), write=dry)
        with pytest.raises(errors.NotFound):
            await client.get(CONFIG_MAPS, "never", namespace=namespace)


async def test_every_character_survives_an_apply(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        text = "".join(map(chr, [*range(1, 0x3000), 0xD7FF, 0xE000, *range(0xFE00, 0x10000), 0x1F600, 0x10FFFF]))
        written = await client.apply(
            CONFIG_MAPS,
            config_map(namespace, "a", k=text, yaml="- a: 'x'\n"),
            write=WriteOptions(field_manager="work-agent"),
        )
        assert written["data"]["k"] == text


async def test_refusals(real_cluster: KubeCluster) -> None:
    async with connected(real_cluster) as client:
        with pytest.raises(errors.Invalid, match="is invalid"):
            await client.create(NAMESPACES, {"metadata": {"name": "Not_A_Name"}})
        with pytest.raises(errors.NotFound, match='namespaces "no-such-namespace" not found'):
            await client.create(CONFIG_MAPS, config_map("no-such-namespace", "a"))


async def test_dry_run_with_impersonation(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        nobody = Impersonation(user=f"system:serviceaccount:{namespace}:nobody", groups=("system:serviceaccounts",))
        with pytest.raises(errors.Forbidden, match="nobody"):
            await client.create(
                CONFIG_MAPS, config_map(namespace, "a"), write=WriteOptions(dry_run=True, impersonate=nobody)
            )


async def test_rejected_token(real_cluster: KubeCluster) -> None:
    address = config.from_kubeconfig([real_cluster.kubeconfig_for(token="nonsense")])
    async with KubeClient(address) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(NAMESPACES, "default")


async def test_lists_in_pages(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster, page_size=3) as client:
        names = [f"cm-{number}" for number in range(7)]
        for name in names:
            await client.create(CONFIG_MAPS, config_map(namespace, name))
        found = await client.list(CONFIG_MAPS, namespace=namespace)
        assert sorted(each["metadata"]["name"] for each in found) == [*names, "kube-root-ca.crt"]
        one = await client.list(
            CONFIG_MAPS, selector=ObjectSelector(fields=f"metadata.name=cm-3,metadata.namespace={namespace}")
        )
        assert [each["metadata"]["name"] for each in one] == ["cm-3"]


@asynccontextmanager
async def changes_of(watch: ResourceWatch) -> AsyncIterator[Callable[[], Awaitable[Change]]]:
    async with aclosing(watch.changes()) as changes:
        yield lambda: anext(changes)


async def until_synced(following: Callable[[], Awaitable[Change]]) -> list[Change]:
    found: list[Change] = []
    while not isinstance(change := await following(), Synced):
        found.append(change)
    return found


def shown(change: Change) -> tuple[type, str]:
    assert not isinstance(change, Synced)
    return type(change), change.object["metadata"]["name"]


@pytest.mark.parametrize("slim", [False, True], ids=["whole", "metadata-only"])
async def test_watch(real_cluster: KubeCluster, namespace: str, slim: bool) -> None:
    async with connected(real_cluster) as client:
        await client.create(CONFIG_MAPS, config_map(namespace, "before", k="v"))
        watch = ResourceWatch(
            client,
            CONFIG_MAPS,
            namespace=namespace,
            selector=ObjectSelector(fields="metadata.name!=kube-root-ca.crt", metadata_only=slim),
            jitter=random.random,
            timing=QUICK,
        )
        async with changes_of(watch) as following:
            listed = await until_synced(following)
            assert [shown(each) for each in listed] == [(Added, "before")]
            assert ("data" in listed[0].object) is not slim  # type: ignore[union-attr]
            await client.create(CONFIG_MAPS, config_map(namespace, "after"))
            await client.patch(CONFIG_MAPS, "after", namespace=namespace, change=Patch(body={"data": {"x": "1"}}))
            await client.delete(CONFIG_MAPS, "before", namespace=namespace)
            seen = [await following() for _ in range(3)]
            assert [shown(each) for each in seen] == [(Added, "after"), (Modified, "after"), (Deleted, "before")]
            assert {each.object["kind"] for each in seen if not isinstance(each, Synced)} == {"ConfigMap"}


def widget_definition() -> dict[str, Any]:
    group = f"test{next(NUMBERS)}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }


async def serve_widgets(client: KubeClient) -> ResourceType:
    """Define a kind and return its resource as soon as objects of it can be made."""
    definition = widget_definition()
    discovery = Discovery(client, monotonic=Clock().monotonic, seconds_between_reads=0.1)
    group = definition["spec"]["group"]
    with pytest.raises(errors.UnknownKind):
        await discovery.resolve(f"{group}/v1", "Widget")
    await client.create(CRDS, definition)
    while True:
        try:
            found = await discovery.resolve(f"{group}/v1", "Widget")
            await client.list(found)
        except (errors.UnknownKind, errors.NotFound):
            await asyncio.sleep(0.1)
        else:
            return found


def widget(widgets: ResourceType, namespace: str, name: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": metadata}


async def test_watch_of_a_version_long_forgotten(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        # The API server remembers nothing from before it began to serve a kind, so version 1 is forgotten.
        widgets = await serve_widgets(client)
        await client.create(widgets, widget(widgets, namespace, "stays"))
        gone = await client.create(widgets, widget(widgets, namespace, "goes"))
        troubles: list[errors.KubeError] = []
        watch = ResourceWatch(
            client, widgets, namespace=namespace, jitter=random.random, timing=QUICK, on_error=troubles.append
        )
        async with changes_of(watch) as following:
            await until_synced(following)
        await client.delete(widgets, "goes", namespace=namespace)
        watch._version = "1"  # as after a night without a network
        async with changes_of(watch) as following:
            told = await until_synced(following)
            assert [shown(each) for each in told] == [(Deleted, "goes")]
            assert isinstance(told[0], Deleted)
            assert (told[0].is_final_state_known, told[0].object["metadata"]["uid"]) == (False, gone["metadata"]["uid"])
        assert errors.Gone in [type(trouble) for trouble in troubles]


async def test_watch_outlives_its_connections(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        short = WatchTiming(open_for=1, idle=100, first_delay=0.05, longest_delay=0.2)
        watch = ResourceWatch(client, CONFIG_MAPS, namespace=namespace, jitter=lambda: 0.0, timing=short)
        async with changes_of(watch) as following:
            await until_synced(following)
            for number in range(3):
                pending = asyncio.ensure_future(following())
                await asyncio.wait([pending], timeout=1.3)  # the connection ends meanwhile
                await client.create(CONFIG_MAPS, config_map(namespace, f"cm-{number}"))
                assert shown(await pending) == (Added, f"cm-{number}")


async def test_discovery_follows_new_kinds(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        discovery = Discovery(client, monotonic=Clock().monotonic)
        assert await discovery.resolve("v1", "ConfigMap") == CONFIG_MAPS
        assert await discovery.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition") == CRDS
        assert (await discovery.resolve("apps/v1", "Deployment")).plural == "deployments"
        assert (await discovery.resolve("networking.k8s.io/v1", "NetworkPolicy")).plural == "networkpolicies"
        widgets = await serve_widgets(client)
        made = await client.create(widgets, widget(widgets, namespace, "w"))
        told = await client.update(widgets, made | {"status": {"ok": True}}, write=WriteOptions(subresource="status"))
        assert told["status"] == {"ok": True}
        await client.delete(CRDS, f"widgets.{widgets.group}")


async def both_forms(client: KubeClient, monkeypatch: pytest.MonkeyPatch) -> tuple[Catalogue, Catalogue]:
    """Read the aggregated discovery, and the discovery of each group version."""
    aggregated = await read_catalogue(client, known={})
    with monkeypatch.context() as plain:
        plain.setattr("maestropy.kube.discovery._AGGREGATED", "application/json")
        return aggregated, await read_catalogue(client, known={})


async def test_both_forms_of_discovery_agree(real_cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(real_cluster) as client:
        aggregated, one_by_one = await both_forms(client, monkeypatch)
        # Definitions that other tests have just created or deleted appear in one form before the other.
        for _ in range(100):
            if aggregated == one_by_one:
                break
            await asyncio.sleep(0.2)
            aggregated, one_by_one = await both_forms(client, monkeypatch)
        assert aggregated == one_by_one
        assert len(aggregated) > 50


async def test_leases_are_taken_and_passed_on(real_cluster: KubeCluster, namespace: str) -> None:
    async with connected(real_cluster) as client:
        led: list[str] = []

        async def work(name: str) -> None:
            led.append(name)
            await asyncio.sleep(0.2)

        def candidate(name: str) -> leases.LeaderElector:
            terms = leases.LeaderElectionSettings(namespace=namespace, name="lock", identity=name, retry_seconds=0.05)
            return leases.LeaderElector(client, terms, clock=Clock(), jitter=lambda: 0.0)

        await asyncio.gather(
            *(leases.run_while_leading(candidate(name), functools.partial(work, name)) for name in ("a", "b"))
        )
        assert sorted(led) == ["a", "b"]
        lease = await client.get(leases.LEASES, "lock", namespace=namespace)
        assert lease["spec"]["leaseTransitions"] == 1
        assert not lease["spec"].get("holderIdentity")


async def test_reviews(real_cluster: KubeCluster, tmp_path: Path) -> None:
    token = real_cluster.service_account_token(namespace="default", name="held")
    async with reviews.connect(str(real_cluster.kubeconfig)) as asked:
        holder = await asked.token(token)
        assert holder is not None
        assert holder.user == "system:serviceaccount:default:held"
        assert "system:authenticated" in holder.groups
        assert await asked.token("nonsense") is None
        assert not await asked.access(user=holder.user, groups=holder.groups, path="/sources/x", verb="pub")
        assert await asked.access(user="admin", groups=("system:masters",), path="/sources/x", verb="pub")
