"""The client on a real server: the life of a work, and what goes wrong in it."""

import asyncio
import socket
from typing import Any

import harness
import pytest
from sdk_agent import scripted_agent

from maestropy import AsyncMaestro, RetryPolicy, Work, errors
from maestropy.store.dsn import Dsn
from maestropy.transport.status import Code, Refused

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


def test_the_life_of_a_work(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1", labels={"region": "east"})
            works = client.works("c1")
            async with scripted_agent(server.agents, "c1", feedback={"status": {"phase": "ok"}}):
                created = await works.create(work("hello", labels={"app": "web"}), operation_id="op-1")
                assert (created.version, created.id) == (1, works.id_of("hello"))

                seen = await works.wait_for("hello", "Available", timeout=60)
                assert seen.feedback("status") == {"phase": "ok"}
                assert seen.manifest("ConfigMap").feedback == {"status": {"phase": "ok"}}
                stored = await works.get("hello")
                assert stored.annotations["logging.open-cluster-management.io/op-id"] == "op-1"
                assert (stored.observed_version, stored.is_stale) == (1, False)

                assert (await works.apply(work("hello", labels={"app": "web"}))).operation == "unchanged"
                updated = await works.apply(work("hello", "w", labels={"app": "web"}))
                assert (updated.operation, updated.work.version) == ("updated", 2)
                seen = await works.wait_for("hello", timeout=60)
                assert seen.version == 2
                assert seen.manifests[0].wanted["data"] == {"k": "w"}

                patched = await works.patch("hello", {"metadata": {"labels": {"app": None, "tier": "front"}}})
                assert (patched.version, patched.labels) == (3, {"tier": "front"})
                patched = await works.patch("hello", lambda old: old.with_labels({"more": "yes"}))
                assert (await works.get("hello")).labels == {"tier": "front", "more": "yes"}

                assert [each.name async for each in works.list(labels="tier=front,more,!app")] == ["hello"]
                assert [each.name async for each in works.list(labels={"tier": "back"})] == []
                assert [each.name async for each in client.all_works().list(labels="app!=web")] == ["hello"]
                bundle = await client.bundles.get(works.id_of("hello"))
                assert bundle["consumer_name"] == "c1"
                assert [each["id"] async for each in client.bundles.list(labels="tier=front")] == [bundle["id"]]

                await works.delete("hello", wait=True, timeout=60)
                with pytest.raises(errors.NotFound, match="cannot get work c1/hello: there is no such work"):
                    await works.get("hello")
                await works.delete("hello", wait=True, timeout=60)

    harness.play(scenario())


def test_refusals_are_told_by_kind(database: Dsn) -> None:
    async def scenario() -> None:
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
            with pytest.raises(errors.Timeout, match="still there after"):
                await works.delete("one", wait=True, timeout=0.3)
            with pytest.raises(errors.Conflict, match="delete the works of this consumer first"):
                await client.consumers.delete("cluster-east")

    harness.play(scenario())


def test_consumers_by_name_and_id(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            consumers = client.consumers
            made = await consumers.create("c1", labels={"a": "b"})
            assert await consumers.get("c1") == await consumers.get(made.id)
            assert (await consumers.update("c1", labels={"a": None, "x": "y"})).labels == {"x": "y"}
            assert (await consumers.ensure("c1", labels={"z": "1"})).labels == {"x": "y", "z": "1"}
            assert (await consumers.ensure("c2")).name == "c2"
            assert [each.name async for each in consumers.list(labels="x=y")] == ["c1"]
            with pytest.raises(errors.AlreadyExists):
                await consumers.create("c1")
            with pytest.raises(errors.Invalid, match="lower case"):
                await consumers.create("Not-A-Name")
            await consumers.delete("c1")
            await consumers.delete("c1")
            with pytest.raises(errors.NotFound):
                await consumers.get("c1")

    harness.play(scenario())


def test_waiting_says_what_is_missing(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            with pytest.raises(errors.NotFound):
                await works.wait_for("nothing", timeout=10)
            await works.create(work("alone"))
            with pytest.raises(errors.Timeout, match="the agent has not reported on it yet"):
                await works.wait_for("alone", timeout=0.5)
            async with scripted_agent(server.agents, "c1", holds=True) as agent:
                await harness.until(lambda: bool(agent.works))
                await agent.report(works.id_of("alone"), "Applied")
                await works.wait_for("alone", "Applied", timeout=10)
                with pytest.raises(errors.Timeout, match="has not said yet whether it is Available"):
                    await works.wait_for("alone", timeout=0.5)
                await works.apply(work("alone", "2"))
                with pytest.raises(errors.Timeout, match="reported only on version 1"):
                    await works.wait_for("alone", "Applied", timeout=0.5)

    harness.play(scenario())


def test_many_writers_of_one_work_all_get_through(database: Dsn) -> None:
    async def scenario() -> None:
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
            assert sorted(each.operation for each in outcomes) == ["created", *["unchanged"] * 4]

    harness.play(scenario())


def test_a_list_of_a_thousand_is_stable_while_works_come_and_go(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server, timeout=120.0) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            names = [f"w{number:04}" for number in range(1000)]
            await asyncio.gather(*(works.create(work(name)) for name in names))
            seen = []
            async for found in works.list(page_size=70):
                seen.append(found.name)
                if len(seen) in (80, 300):
                    # Gone for good, as after an agent's last word: everything behind it moves up.
                    await server.sql(
                        "DELETE FROM resources WHERE id IN (SELECT id FROM resources ORDER BY id LIMIT 60)"
                    )
                    await works.create(work(f"new{len(seen)}"))
            assert len(seen) == len(set(seen))
            assert set(names) <= set(seen)

    harness.play(scenario())


def test_no_server_is_one_clear_sentence() -> None:
    async def scenario() -> None:
        port = harness.free_ports(1)[0]
        policy = RetryPolicy(attempts=2, base_seconds=0.01, deadline_seconds=1)
        address = {"api_url": f"http://127.0.0.1:{port}", "grpc_url": f"127.0.0.1:{port}", "source": "s"}
        async with AsyncMaestro(environ={}, retry=policy, **address) as client:
            works = client.works("c1")
            for call in (works.get("x"), works.create(work("x")), anext(works.watch())):
                with pytest.raises(errors.Unavailable, match="check that the server runs") as gone:
                    await call
                assert gone.value.is_retryable
                assert "\n" not in str(gone.value)

    harness.play(scenario())


def test_a_server_that_says_nothing_is_told_as_such() -> None:
    async def scenario() -> None:
        # Connections wait in the queue of a socket that nobody accepts from.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            once = RetryPolicy(attempts=1)
            where = {"api_url": f"http://{address}", "grpc_url": address, "source": "s", "timeout": 0.3}
            async with AsyncMaestro(environ={}, retry=once, **where) as client:
                with pytest.raises(errors.Timeout, match=rf"no answer from http://{address}/: ReadTimeout; try again"):
                    await client.works("c1").get("x")

    harness.play(scenario())


def test_a_lost_answer_is_not_taken_for_a_refusal(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1")
            works = client.works("c1")
            connection = client._grpc.current()
            publish = connection.publish
            lost: list[Any] = []

            async def forgetful(wish: Any, **how: Any) -> None:
                await publish(wish, **how)
                if wish.id not in lost:
                    lost.append(wish.id)
                    raise Refused(Code.UNAVAILABLE, "Socket closed")

            monkeypatch.setattr(connection, "publish", forgetful)
            assert (await works.create(work("one"))).version == 1
            assert (await works.apply(work("one", "2"))).work.version == 2
            assert (await works.get("one")).version == 2
            assert len(lost) == 2

            async def rival(wish: Any, **how: Any) -> None:
                monkeypatch.setattr(connection, "publish", publish)
                async with client_of(server) as other:
                    await other.works("c1").create(work("two"))
                raise Refused(Code.UNAVAILABLE, "Socket closed")

            monkeypatch.setattr(connection, "publish", rival)
            with pytest.raises(errors.AlreadyExists):
                await works.create(work("two"))

    harness.play(scenario())


def test_bundles_by_their_ids(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server, client_of(server) as client:
            await client.consumers.create("c1")
            wanted = {"consumer_name": "c1", "manifests": [CONFIG_MAP], "metadata": {"name": "mine"}}
            made = await client.bundles.apply(wanted)
            found = await client.bundles.get(made)
            assert (found["version"], found["metadata"]["name"], found["manifests"]) == (1, "mine", [CONFIG_MAP])
            changed = {**found, "manifests": [{**CONFIG_MAP, "data": {"k": "w"}}]}
            assert await client.bundles.apply(changed) == made
            assert (await client.bundles.get(made))["manifests"][0]["data"] == {"k": "w"}
            with pytest.raises(errors.Conflict, match="the latest version: 2"):
                await client.bundles.apply(changed)
            with pytest.raises(errors.NotFound):
                await client.bundles.apply({**wanted, "id": "nobody"})
            assert (await client.bundles.page(size=1))["total"] == 1
            await client.bundles.delete(made)
            await client.bundles.delete("nobody")
            assert "deleted_at" in await client.bundles.get(made)

    harness.play(scenario())
