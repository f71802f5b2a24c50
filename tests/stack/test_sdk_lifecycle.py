"""The client on a real server: create, update, wait for and delete works, and the errors of each."""

import asyncio
import json
import socket
from typing import Any

import pytest

from maestropy import AsyncMaestro, RetryPolicy, Work, errors
from maestropy.store.dsn import Dsn
from maestropy.transport.grpc.status import CallRejected, StatusCode
from tests import waiting
from tests.stack import harness
from tests.stack.sdk_agent import scripted_agent

CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm", "namespace": "default"},
    "data": {"k": "v"},
}


def client_of(server: harness.Running, **options: Any) -> AsyncMaestro:
    options = {"api_url": server.rest, "grpc_url": server.sources, "source": "sdk-test"} | options
    return AsyncMaestro(environ={}, **options)


def work(name: str, value: str = "v", **more: Any) -> Work:
    manifest = {**CONFIG_MAP, "metadata": {"name": name, "namespace": "default"}, "data": {"k": value}}
    return Work(name, **more).add(manifest, feedback={"status": ".data"})


async def test_executor_stays_when_the_rest_of_a_work_changes(database: Dsn) -> None:
    """Without its executor a work would act with all the permissions of the agent."""
    account = {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "limited"}}}

    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        limited = work("limited").executor(namespace="n", name="limited")
        await works.create(limited)
        stored = "SELECT payload -> 'data' -> 'executer' #>> '{}' FROM resources"

        async def executor() -> object:
            return json.loads(await server.value(stored) or "null")

        assert await executor() == account
        assert (await works.apply(limited)).operation == "unchanged"
        patched = await works.patch("limited", {"metadata": {"labels": {"tier": "front"}}})
        assert (patched.version, await executor()) == (2, account)
        bundle = await client.resource_bundles.get(patched.id)
        assert bundle["executor"] == account
        await client.resource_bundles.apply({**bundle, "manifest_configs": []})
        assert ((await works.get("limited")).version, await executor()) == (3, account)
        await client.resource_bundles.apply({**bundle, "version": 0, "executor": None})
        assert ((await works.get("limited")).version, await executor()) == (4, None)
        assert (await works.apply(limited)).operation == "updated"
        assert (await works.apply(work("limited"))).operation == "updated"
        assert await executor() is None


async def test_work_is_created_updated_patched_and_deleted(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1", labels={"region": "east"})
        works = client.works("c1")
        async with scripted_agent(server.agents, "c1", feedback={"status": {"phase": "ok"}}):
            created = await works.create(work("hello", labels={"app": "web"}), operation_id="op-1")
            assert (created.version, created.id) == (1, works.id_of("hello"))

            observed = await works.wait_for("hello", "Available", timeout=60)
            assert observed.feedback("status") == {"phase": "ok"}
            assert observed.manifest("ConfigMap").feedback == {"status": {"phase": "ok"}}
            stored = await works.get("hello")
            assert stored.annotations["logging.open-cluster-management.io/op-id"] == "op-1"
            assert (stored.observed_version, stored.is_stale) == (1, False)

            assert (await works.apply(work("hello", labels={"app": "web"}))).operation == "unchanged"
            updated = await works.apply(work("hello", "w", labels={"app": "web"}))
            assert (updated.operation, updated.work.version) == ("updated", 2)
            observed = await works.wait_for("hello", timeout=60)
            assert observed.version == 2
            assert observed.manifests[0].desired["data"] == {"k": "w"}

            patched = await works.patch("hello", {"metadata": {"labels": {"app": None, "tier": "front"}}})
            assert (patched.version, patched.labels) == (3, {"tier": "front"})
            patched = await works.patch("hello", lambda old: old.with_labels({"more": "yes"}))
            assert (await works.get("hello")).labels == {"tier": "front", "more": "yes"}

            assert [listed.name async for listed in works.list(labels="tier=front,more,!app")] == ["hello"]
            assert [listed.name async for listed in works.list(labels={"tier": "back"})] == []
            assert [listed.name async for listed in client.all_works().list(labels="app!=web")] == ["hello"]
            bundle = await client.resource_bundles.get(works.id_of("hello"))
            assert bundle["consumer_name"] == "c1"
            assert [item["id"] async for item in client.resource_bundles.list(labels="tier=front")] == [bundle["id"]]

            await works.delete("hello", wait=True, timeout=60)
            with pytest.raises(errors.NotFound, match="cannot get work c1/hello: there is no such work"):
                await works.get("hello")
            await works.delete("hello", wait=True, timeout=60)


async def test_works_of_all_consumers_are_stored_on_the_consumer_that_each_names(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        for name in ("c1", "c2"):
            await client.consumers.create(name)
        works = client.all_works()
        created = await works.create(Work.wrap(work("one").manifest_work.with_metadata(namespace="c1")))
        again = Work.wrap(work("one", "w").manifest_work.with_metadata(namespace="c1"))
        assert (created.consumer, created.id) == ("c1", client.works("c1").id_of("one"))
        assert (await works.apply(again, dry_run=True)).operation == "updated"
        assert (await works.apply(again, version=1)).operation == "updated"
        other = Work.wrap(work("two").manifest_work.with_metadata(namespace="c2"))
        assert (await works.apply(other)).work.consumer == "c2"
        for refused in (works.create(work("three")), works.apply(work("three"))):
            with pytest.raises(errors.Invalid, match="names no consumer"):
                await refused


async def test_rejected_requests_raise_their_error_class(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("cluster-east")
        works = client.works("cluster-east")
        await works.create(work("one"))
        with pytest.raises(errors.AlreadyExists) as exists:
            await works.create(work("one"), operation_id="op-7")
        assert (exists.value.operation_id, exists.value.is_retryable) == ("op-7", False)
        with pytest.raises(errors.ConsumerNotFound, match="did you mean cluster-east"):
            await client.works("cluster-eats").create(work("one"))
        with pytest.raises(errors.Conflict, match="version 7 is not the latest, the latest version: 1"):
            await works.apply(work("one", "w"), version=7)
        with pytest.raises(errors.NotFound):
            await works.patch("none", {})
        with pytest.raises(errors.Invalid, match="Workload manifests should not be empty"):
            await works.create(Work("empty"))
        with pytest.raises(errors.Invalid, match="apiVersion: Required value"):
            await works.create(Work("bad").add({"kind": "X", "metadata": {"name": "x"}}))
        await works.delete("one")
        with pytest.raises(errors.Conflict, match="under deletion"):
            await works.apply(work("one", "w"))
        with pytest.raises(errors.Timeout, match="still exists after"):
            await works.delete("one", wait=True, timeout=0.3)
        with pytest.raises(errors.Conflict, match="delete the works of this consumer first"):
            await client.consumers.delete("cluster-east")


async def test_consumers_are_managed_by_name_and_id(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        consumers = client.consumers
        created = await consumers.create("c1", labels={"a": "b"})
        assert await consumers.get("c1") == await consumers.get(created.id)
        assert (await consumers.update("c1", labels={"a": None, "x": "y"})).labels == {"x": "y"}
        assert (await consumers.ensure("c1", labels={"z": "1"})).labels == {"x": "y", "z": "1"}
        assert (await consumers.ensure("c2")).name == "c2"
        assert [consumer.name async for consumer in consumers.list(labels="x=y")] == ["c1"]
        with pytest.raises(errors.AlreadyExists):
            await consumers.create("c1")
        with pytest.raises(errors.Invalid, match="lower case"):
            await consumers.create("Not-A-Name")
        await consumers.delete("c1")
        await consumers.delete("c1")
        with pytest.raises(errors.NotFound):
            await consumers.get("c1")


@pytest.mark.long
async def test_wait_timeout_names_what_is_missing(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        with pytest.raises(errors.NotFound):
            await works.wait_for("nothing", timeout=10)
        await works.create(work("alone"))
        with pytest.raises(errors.Timeout, match="the agent has not reported on it yet"):
            await works.wait_for("alone", timeout=0.5)
        with pytest.raises(errors.Timeout, match="not now: it is stored, and the agent has not reported on it yet"):
            await works.wait_for("alone", timeout=0)
        with pytest.raises(errors.NotFound):
            await works.wait_for("nothing", timeout=0)
        async with scripted_agent(server.agents, "c1", holds=True) as agent:
            await waiting.until(lambda: bool(agent.works))
            await agent.report(works.id_of("alone"), "Applied")
            await works.wait_for("alone", "Applied", timeout=10)
            assert (await works.wait_for("alone", "Applied", timeout=0)).name == "alone"
            with pytest.raises(errors.Timeout, match="has not reported the condition Available yet"):
                await works.wait_for("alone", timeout=0.5)
            await works.apply(work("alone", "2"))
            with pytest.raises(errors.Timeout, match="reported only on version 1"):
                await works.wait_for("alone", "Applied", timeout=0.5)
            with pytest.raises(errors.Timeout, match="it still exists now"):
                await works.delete("alone", wait=True, timeout=0)


async def test_concurrent_writers_of_one_work_all_succeed(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        await works.create(work("shared"))

        async def label(number: int) -> None:
            await works.patch("shared", lambda old: old.with_labels({f"writer{number}": "was-here"}))

        await asyncio.gather(*map(label, range(6)))
        stored = await works.get("shared")
        assert (len(stored.labels), stored.version) == (6, 7)

        outcomes = await asyncio.gather(*(works.apply(work("raced")) for _ in range(5)))
        assert sorted(outcome.operation for outcome in outcomes) == ["created", *["unchanged"] * 4]


async def test_many_works_are_applied_with_few_reads(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        for consumer in ("c1", "c2"):
            await client.consumers.create(consumer)
        await client.works("c1").create(work("same"))
        await client.works("c1").create(work("changed"))
        new = [work(f"new{number}", consumer="c2") for number in range(30)]
        given = [work("same", consumer="c1"), work("changed", "other", consumer="c1"), *new]
        wrong = [work("nowhere"), work("lost", consumer="absent")]
        twice = [work("twice", value, consumer="c2") for value in ("a", "b")]
        result = await client.all_works().apply_many([*given, *wrong, *twice], concurrency=4)
        operations = [(done.work.name, done.operation) for done in result.applied]
        assert operations[:-2] == [("same", "unchanged"), ("changed", "updated"), *((w.name, "created") for w in new)]
        assert sorted(operations[-2:]) == [("twice", "created"), ("twice", "updated")]
        assert [(failed.work.name, type(failed.error)) for failed in result.failed] == [
            ("nowhere", errors.Invalid),
            ("lost", errors.ConsumerNotFound),
        ]
        # Of the works that do not exist, only those that are given twice are read.
        lines = server.context.metrics.render()[0].decode().splitlines()
        absent = [line for line in lines if line.startswith("rest_api_inbound_request_count") and 'code="404"' in line]
        assert sum(float(line.rpartition(" ")[2]) for line in absent) <= len(twice), absent


@pytest.mark.long
async def test_list_is_stable_while_works_are_created_and_deleted(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server, timeout=120.0) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        names = [f"w{number:04}" for number in range(1000)]
        await asyncio.gather(*(works.create(work(name)) for name in names))
        listed = []
        async for stored in works.list(page_size=70):
            listed.append(stored.name)
            if len(listed) in (80, 300):
                # Deleted, as after the agent's last status: the following rows move up.
                await server.sql("DELETE FROM resources WHERE id IN (SELECT id FROM resources ORDER BY id LIMIT 60)")
                await works.create(work(f"new{len(listed)}"))
        assert len(listed) == len(set(listed))
        assert set(names) <= set(listed)


async def test_missing_server_is_a_one_line_error() -> None:
    port = harness.free_ports(1)[0]
    policy = RetryPolicy(attempts=2, base_seconds=0.01, deadline_seconds=1)
    address: dict[str, Any] = {"api_url": f"http://127.0.0.1:{port}", "grpc_url": f"127.0.0.1:{port}", "source": "s"}
    async with AsyncMaestro(environ={}, retry=policy, **address) as client:
        works = client.works("c1")
        for call in (works.get("x"), works.create(work("x")), anext(works.watch())):
            with pytest.raises(errors.Unavailable, match="check that the server runs") as unavailable:
                await call
            assert unavailable.value.is_retryable
            assert "\n" not in str(unavailable.value)


async def test_silent_server_is_a_timeout() -> None:
    # The socket queues connections and never accepts them.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        once = RetryPolicy(attempts=1)
        silent_options: dict[str, Any] = {
            "api_url": f"http://{address}",
            "grpc_url": address,
            "source": "s",
            "timeout": 0.3,
        }
        async with AsyncMaestro(environ={}, retry=once, **silent_options) as client:
            with pytest.raises(errors.Timeout, match=rf"no response from http://{address}/: ReadTimeout; retry"):
                await client.works("c1").get("x")


async def test_lost_response_is_not_reported_as_conflict(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        works = client.works("c1")
        connection = client._grpc.current()
        publish = connection.publish
        lost: list[Any] = []

        async def publish_and_lose_response(spec_event: Any, **options: Any) -> str:
            position = await publish(spec_event, **options)
            if spec_event.id not in lost:
                lost.append(spec_event.id)
                raise CallRejected(StatusCode.UNAVAILABLE, "Socket closed")
            return position

        monkeypatch.setattr(connection, "publish", publish_and_lose_response)
        assert (await works.create(work("one"))).version == 1
        assert (await works.apply(work("one", "2"))).work.version == 2
        assert (await works.get("one")).version == 2
        assert len(lost) == 2

        async def publish_after_other_client(spec_event: Any, **options: Any) -> None:
            monkeypatch.setattr(connection, "publish", publish)
            async with client_of(server) as other:
                await other.works("c1").create(work("two"))
            raise CallRejected(StatusCode.UNAVAILABLE, "Socket closed")

        monkeypatch.setattr(connection, "publish", publish_after_other_client)
        with pytest.raises(errors.AlreadyExists):
            await works.create(work("two"))


async def test_resource_bundles_are_managed_by_id(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        desired = {"consumer_name": "c1", "manifests": [CONFIG_MAP], "metadata": {"name": "mine"}}
        bundle_id = await client.resource_bundles.apply(desired)
        bundle = await client.resource_bundles.get(bundle_id)
        assert (bundle["version"], bundle["metadata"]["name"], bundle["manifests"]) == (1, "mine", [CONFIG_MAP])
        changed = {**bundle, "manifests": [{**CONFIG_MAP, "data": {"k": "w"}}]}
        assert await client.resource_bundles.apply(changed) == bundle_id
        assert (await client.resource_bundles.get(bundle_id))["manifests"][0]["data"] == {"k": "w"}
        with pytest.raises(errors.Conflict, match="the latest version: 2"):
            await client.resource_bundles.apply(changed)
        with pytest.raises(errors.NotFound):
            await client.resource_bundles.apply({**desired, "id": "unknown"})
        assert (await client.resource_bundles.page(size=1))["total"] == 1
        await client.resource_bundles.delete(bundle_id)
        await client.resource_bundles.delete("unknown")
        assert "deleted_at" in await client.resource_bundles.get(bundle_id)


async def test_list_follows_the_token_of_the_server(database: Dsn) -> None:
    async with harness.in_process(database) as server, client_of(server) as client:
        await client.consumers.create("c1")
        for number in range(5):
            await client.works("c1").create(work(f"w{number}"))
        first = await client.resource_bundles.page(size=2, consumer="c1")
        second = await client.resource_bundles.page(page=first["continue"], size=2, consumer="c1")
        listed = [bundle["id"] async for bundle in client.resource_bundles.list(consumer="c1", page_size=2)]
        with pytest.raises(errors.Invalid, match="another search"):
            await client.resource_bundles.page(page=first["continue"], size=2)

    assert (first["total"], second["total"], second["page"]) == (5, 5, 2)
    assert not {item["id"] for item in first["items"]} & {item["id"] for item in second["items"]}
    assert listed == sorted(listed)
    assert len(listed) == 5
