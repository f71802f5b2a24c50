"""The history of works, consumers and requests, on real servers."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from maestropy.aio.clock import Clock
from maestropy.sandbox.server_process import ServerProcess
from maestropy.sdk import errors
from maestropy.sdk import history as sdk_history
from maestropy.sdk.blocking import Maestro
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from maestropy.server.controllers.agents.agent_presence import AgentPresence
from maestropy.store import rows
from maestropy.store.dsn import Dsn
from maestropy.store.history import history_entries
from maestropy.wire.events import event
from tests import waiting
from tests.stack import clients, harness
from tests.stack.sdk_live import live_server as live_server
from tests.stack.test_cli_clients import WORK, Shell
from tests.stack.test_cli_clients import shell as shell


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_history_shows_who_created_updated_and_deleted_a_work(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell("consumer create c1")
    shell(f"resourcebundle apply -f {file} --wait")
    file.write_text(WORK.replace('k: "1"', 'k: "2", other: "3"'))
    shell(f"resourcebundle apply -f {file} --wait")
    shell("resourcebundle delete c1/hello --yes --wait")

    found = entries(shell("history c1/hello -o jsonl"))
    changes = [entry for entry in found if entry["kind"] != "work.status"]
    assert [entry["kind"] for entry in changes] == [
        "work.created",
        "work.updated",
        "work.deletion-requested",
        "work.deleted",
    ]
    created, updated, requested, deleted = changes
    assert (created["version"], created["source"], created["address"]) == (1, "maestro-cli", "127.0.0.1")
    assert created["operation_id"]
    assert created["detail"]["objects"] == ["ConfigMap default/cm"]
    assert (updated["version"], updated["detail"]["changes"]) == (
        2,
        ["~ ConfigMap default/cm: data.k", "+ ConfigMap default/cm: data.other"],
    )
    assert updated["detail"]["digest"] != created["detail"]["digest"]
    assert requested["detail"] == {"name": "hello"}
    assert deleted["consumer"] == "c1"
    assert [entry["time"] for entry in found] == sorted(entry["time"] for entry in found)
    applied = next(entry for entry in found if entry["kind"] == "work.status")
    assert {"type": "Applied", "from": "", "to": "True"}.items() <= applied["detail"]["conditions"][0].items()

    table = shell("history c1/hello --kind work.updated").splitlines()
    assert table[0].split() == ["TIME", "KIND", "VERSION", "BY", "FROM", "WHAT"]
    assert re.fullmatch(
        r"\S+Z +work\.updated +2 +source maestro-cli +127\.0\.0\.1 +~ ConfigMap default/cm: data\.k, "
        r"\+ ConfigMap default/cm: data\.other",
        table[1],
    )
    # The agent connects in its own time, before the consumer exists or after.
    of_consumer = entries(shell("history c1 --kind consumer,agent -o jsonl"))
    assert sorted(entry["kind"] for entry in of_consumer) == ["agent.connected", "consumer.created"]


def test_everything_is_exported_page_by_page(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_history, "PAGE_SIZE", 2)
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell("consumer create c1 --label region=east")
    shell(f"resourcebundle apply -f {file} --wait")
    found = entries(shell("history --all -o jsonl"))
    assert len(found) >= 4
    assert len({entry["id"] for entry in found}) == len(found)
    assert [(entry["time"], int(entry["id"])) for entry in found] == sorted(
        (entry["time"], int(entry["id"])) for entry in found
    )
    labels = next(entry["detail"]["labels"] for entry in found if entry["kind"] == "consumer.created")
    assert labels == ["region"]
    newest = entries(shell("history --all -o jsonl --tail 3"))
    assert [entry["id"] for entry in newest] == [entry["id"] for entry in found[-3:]]
    assert entries(shell("history --all -o jsonl --until 1h")) == []
    assert len(entries(shell("history --all -o jsonl --since 1h"))) >= len(found)
    assert len(json.loads(shell("history c1 -o json"))["items"]) == len(entries(shell("history c1 -o jsonl")))
    assert "kind: HistoryList" in shell("history c1 -o yaml")
    assert "OPERATION" in shell("history c1 -o wide")
    # Whose it is: entries of agents and consumers say nothing else that tells.
    for options in ("", " -o wide"):
        head, *lines = shell(f"history --all --kind consumer,agent{options}").splitlines()
        assert head.split()[:3] == ["TIME", "KIND", "CONSUMER"]
        assert {line.split()[2] for line in lines} == {"c1"}
    assert "CONSUMER" not in shell("history c1")
    # Which work: the entries of a consumer are those of several subjects, those of a work of one.
    work_id = next(entry["resource_id"] for entry in found if entry["kind"] == "work.created")
    for key in ("c1", "--all"):
        head, *lines = shell(f"history {key}").splitlines()
        column = head.split().index("WORK")
        subjects = {line.split()[1]: line.split()[column] for line in lines}
        assert (subjects["work.created"], subjects["consumer.created"]) == (work_id, "-")
    assert "WORK" not in shell(f"history {work_id}").splitlines()[0]
    assert "WORK" not in shell("history c1 --kind consumer,agent").splitlines()[0]


def test_deleted_consumer_keeps_its_history_by_name_and_id(shell: Shell) -> None:
    consumer_id = json.loads(shell("consumer create gone -o json"))["id"]
    shell("consumer update gone --label a=b")
    shell("consumer delete gone --yes")
    for key in ("gone", consumer_id):
        found = entries(shell(f"history {key} -o jsonl"))
        assert [entry["kind"] for entry in found] == ["consumer.created", "consumer.labeled", "consumer.deleted"]
        assert {entry["consumer_id"] for entry in found} == {consumer_id}


def test_refused_request_hides_nothing_of_the_history(shell: Shell) -> None:
    """Not of a consumer, nor of a work that a request took for a consumer."""
    consumer_id = json.loads(shell("consumer create demo -o json"))["id"]
    shell("consumer pause demo --yes --reason upgrade")
    for key in ("demo", consumer_id):
        shell(f"consumer retire {key} --release --dry-run", expect=1)
    # Entries of refused requests are written a moment later.
    waiting.wait_for(lambda: shell("history demo").count("request.refused") == 2)
    expected = ["consumer.created", "consumer.paused", "request.refused", "request.refused"]
    for key in ("demo", consumer_id):
        found = entries(shell(f"history {key} -o jsonl"))
        assert [entry["kind"] for entry in found] == expected
        assert {entry["consumer"] for entry in found} == {"demo"}
        assert [entry["kind"] for entry in entries(shell(f"history {key} -o jsonl --tail 3"))] == expected[1:]
    shell("consumer resume demo --yes")
    shell("consumer delete demo --yes")
    for key in ("demo", consumer_id):
        kinds = [entry["kind"] for entry in entries(shell(f"history {key} -o jsonl"))]
        assert kinds == [*expected, "consumer.resumed", "consumer.deleted"]


def test_history_of_a_work_survives_a_request_that_took_it_for_a_consumer(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell("consumer create c1")
    shell(f"resourcebundle apply -f {file} --wait")
    work_id = json.loads(shell("resourcebundle get c1/hello -o json"))["id"]
    shell(f"consumer pause {work_id} --yes", expect=1)
    waiting.wait_for(lambda: "request.refused" in shell(f"history {work_id}"))
    assert "work.created" in shell(f"history {work_id}")


async def test_refused_request_about_a_work_is_in_the_history_of_its_consumer(database: Dsn) -> None:
    async with harness.in_process(database) as server, clients.source(server.sources, "a") as a:
        await server.add_consumer("c1")
        await a.create("w", "c1")
        async with server.http() as client:
            assert (await client.post("/resource-bundles/w/resend?dryRun=maybe", json={})).status_code == 400
            await waiting.until(lambda: _has(server, "kind = 'request.refused'", 1))
            for path in ("/consumers/c1/history", "/resource-bundles/w/history"):
                items = (await client.get(path, params={"kind": "request"})).json()["items"]
                assert [(item["consumer_name"], item["resource_id"]) for item in items] == [("c1", "w")]


def test_mistakes_on_the_command_line_are_explained(shell: Shell) -> None:
    assert "there is no work or consumer 'unknown'" in shell("history unknown", expect=1)
    assert "there is no work c1/unknown" in shell("history c1/unknown", expect=1)
    assert "one of the two" in shell("history", expect=2)
    assert "one of the two" in shell("history c1 --all", expect=2)
    assert "write 30m, 24h, 7d" in shell("history c1 --since yesterday", expect=2)
    assert "kind=nonsense is not known" in shell("history --all --kind nonsense", expect=1)


async def history_of(server: harness.InProcess, condition: str = "TRUE") -> list[dict[str, Any]]:
    return [dict(row) for row in await server.sql(f"SELECT * FROM maestropy_history WHERE {condition} ORDER BY at, id")]


async def test_refused_requests_are_recorded_and_a_flood_is_bounded(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with server.http() as client:
            assert (await client.post("/consumers", json={"name": "c1"})).status_code == 409
            await waiting.until(lambda: _has(server, "kind = 'request.refused' AND consumer_name = 'c1'", 1))
            await waiting.until(lambda: _has(server, "result = 'conflict' AND detail LIKE '%POST%'", 1))
        async with clients.source(server.sources, "a") as a, clients.source(server.sources, "b") as b:
            await a.create("w", "c1")
            assert "not the latest" in await a.answer(a.spec(event.SPEC_UPDATE, "w", "c1", version=7))
            assert "another source" in await b.answer(b.spec(event.SPEC_DELETE, "w", "c1"))
            await waiting.until(lambda: _has(server, "kind = 'request.refused' AND subject_id = 'w'", 2))
            conflict, denied = await history_of(server, "kind = 'request.refused' AND subject_id = 'w'")
            assert (conflict["result"], conflict["subject_id"], conflict["source"]) == ("conflict", "w", "a")
            assert "not the latest" in conflict["detail"]
            assert (denied["result"], denied["source"], denied["address"]) == ("denied", "b", "127.0.0.1")
            for _ in range(100):
                await a.answer(a.spec(event.SPEC_UPDATE, "w", "c1", version=7))
            server.server.history.note_left_out()
            await waiting.until(lambda: _has(server, "kind = 'history.left-out'", 1))
            # Twenty at once, and one more for every fifteen seconds that this took.
            assert len(await history_of(server, "kind = 'request.refused'")) < 40
            (left_out,) = await history_of(server, "kind = 'history.left-out'")
            assert json.loads(left_out["detail"])["refused_requests"] > 60


async def _has(server: harness.InProcess, condition: str, count: int) -> bool:
    return len(await history_of(server, condition)) >= count


async def test_hostile_texts_never_fail_a_write(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with clients.source(server.sources) as a:
            tracing = json.dumps({event.OPERATION_ID_KEY: "nul\0" + "ü" * 500})
            metadata = {"name": "n" * 5000 + "\0", "labels": {"\x1b[2J": "v"}}
            hostile = a.spec(event.SPEC_CREATE, "w", "c1", metadata=metadata)
            hostile = replace(hostile, extensions={**hostile.extensions, event.LOG_TRACING: tracing})
            answer = await a.answer(hostile)
            created = await history_of(server, "kind = 'work.created'")
            # Either both or neither: PostgreSQL cannot store a NUL in the metadata.
            assert len(created) == (0 if answer else 1)
            fine = a.spec(event.SPEC_CREATE, "v", "c1", metadata={"name": "n" * 5000})
            await a.publish(replace(fine, extensions={**fine.extensions, event.LOG_TRACING: tracing}))
        (row,) = await history_of(server, "subject_id = 'v'")
        assert row["operation_id"].startswith("nul\N{REPLACEMENT CHARACTER}")
        assert len(row["operation_id"]) <= 128
        assert len(row["detail"]) < 4096
        async with server.http() as client:
            page = await client.get("/resource-bundles/v/history")
        assert page.json()["items"][0]["detail"]["name"].startswith("nnn")


async def test_history_is_off_when_it_is_turned_off(database: Dsn) -> None:
    async with harness.in_process(database, enable_history="false") as server:
        await server.add_consumer("c1")
        async with clients.source(server.sources) as a, clients.agent(server.agents, "c1") as b, b.subscribe():
            await a.create("w", "c1")
            await b.tell("w", 1)
            await a.answer(a.spec(event.SPEC_UPDATE, "w", "c1", version=7))
        async with server.http() as client:
            page = (await client.get("/resource-bundles/w/history")).json()
            assert (page["items"], page["recording"]) == ([], False)
            assert (await client.get("/resource-bundles/unknown/history")).status_code == 404
    assert await harness.value(database, "SELECT count(*) FROM maestropy_history") == 0


async def test_repeated_statuses_are_no_entries_and_transitions_are(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with clients.source(server.sources) as a, clients.agent(server.agents, "c1") as b, b.subscribe():
            await a.create("w", "c1")
            for kinds in ((), (), (), ("Applied",), ("Applied",)):
                await b.tell("w", 1, *kinds)
        first, second = await history_of(server, "kind = 'work.status'")
        assert json.loads(first["detail"])["observed_version"] == 1
        (change,) = json.loads(second["detail"])["conditions"]
        assert (change["type"], change["from"], change["to"]) == ("Available", "True", "")
    # Another instance, which does not know the last status, reads it and records no transition either.
    async with harness.in_process(database) as server:
        async with clients.agent(server.agents, "c1") as b, b.subscribe():
            await b.tell("w", 1, "Applied")
            await b.tell("w", 1, "Applied", "Degraded")
        assert len(await history_of(server, "kind = 'work.status'")) == 3


@pytest.mark.long
async def test_killed_server_leaves_no_change_without_its_entry(database: Dsn, tmp_path: Path) -> None:
    server = ServerProcess(database, log=tmp_path / "server.log")
    await server.start()
    await harness.sql(
        database, "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ('c1', 'c1', now(), now())"
    )
    acknowledged: set[str] = set()

    async def publish(lane: int) -> None:
        async with clients.source(f"127.0.0.1:{server.ports.sources}") as a:
            for number in range(1000):
                name = f"{lane}-{number}"
                if await a.answer(a.spec(event.SPEC_CREATE, name, "c1")):
                    return
                acknowledged.add(name)
                await a.answer(a.spec(event.SPEC_UPDATE, name, "c1", data=clients.bundle_data("other")))
                await a.answer(a.spec(event.SPEC_DELETE, name, "c1"))

    lanes = [asyncio.ensure_future(publish(lane)) for lane in range(8)]
    await waiting.until(lambda: len(acknowledged) > 40)
    await server.kill()
    await asyncio.gather(*lanes)
    differences = """
        SELECT r.id, r.version, r.deleted_at, h.kinds FROM resources r
        FULL JOIN (
            SELECT subject_id AS id, array_agg(kind ORDER BY at, id) AS kinds FROM maestropy_history
            WHERE kind LIKE 'work.%' GROUP BY 1
        ) h USING (id)
        WHERE h.kinds IS DISTINCT FROM array_remove(ARRAY['work.created',
            CASE WHEN r.version > 1 THEN 'work.updated' END,
            CASE WHEN r.deleted_at IS NOT NULL THEN 'work.deletion-requested' END], NULL)
    """
    assert await harness.sql(database, differences) == []
    stored = {row["id"] for row in await harness.sql(database, "SELECT id FROM resources")}
    assert acknowledged <= stored


async def test_two_servers_write_one_history(database: Dsn) -> None:
    async with (
        harness.in_process(database, client_id="one") as one,
        harness.in_process(database, client_id="two") as two,
    ):
        # Before the first entry, which the default partition would keep together with all others of its day.
        await one.server.history_retention.run_round()
        await one.add_consumer("c1")
        async with clients.source(one.sources, "s") as a, clients.source(two.sources, "s") as b:
            await a.create("w", "c1")
            await b.update("w", "c1", data=clients.bundle_data("other"))
            async with clients.agent(two.agents, "c1") as c, c.subscribe():
                await c.tell("w", 2)
                await a.delete("w", "c1")
                await c.tell("w", 2, "Deleted")
        kinds = [row["kind"] for row in await history_of(one, "subject_id = 'w'")]
        assert kinds == ["work.created", "work.updated", "work.status", "work.deletion-requested", "work.deleted"]
        rounds = [each.server.history_retention.run_round() for each in (one, two, one, two)]
        await asyncio.gather(*rounds)
        assert not [line for each in (one, two) for line in each.lines("partition of the history")]
        names = [row["relname"] for row in await one.sql(PARTITIONS)]
        assert len(names) in (2, 3), names  # the default one, today's, and shortly before midnight tomorrow's


PARTITIONS = (
    "SELECT inhrelid::regclass::text AS relname FROM pg_inherits WHERE inhparent = 'maestropy_history'::regclass"
)


async def test_agents_connects_and_disconnects_are_recorded(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with clients.agent(server.agents, "c1") as b, b.subscribe():
            await waiting.until(lambda: _has(server, "kind = 'agent.connected' AND consumer_name = 'c1'", 1))
        await waiting.until(lambda: _has(server, "kind = 'agent.disconnected'", 1))
        (row,) = await history_of(server, "kind = 'agent.connected'")
        assert row["address"] == "127.0.0.1"


async def test_connection_of_an_agent_that_died_after_its_server_was_killed_ends(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        moment = datetime.now(UTC)
        clock = Clock(epoch=lambda: moment.timestamp())
        context = replace(server.context, clock=clock)
        for name in ("gone", "left", "here", "unseen"):
            await server.add_consumer(name)
            await record_connection(server, "agent.connected", name, at=moment)
        await record_connection(server, "agent.disconnected", "left", at=moment + timedelta(seconds=1))
        connected = ["gone", "here"]
        alive = AgentPresence(context, connected=lambda: connected, record=server.server.history.add)
        await alive.write()
        connected = ["here"]
        for minutes in range(1, 9):  # the third of them is three minutes after the first write
            moment = moment + timedelta(minutes=1)
            await alive.write()
            ended = await history_of(server, "detail LIKE '%last_seen%'")
            assert {row["consumer_name"] for row in ended} == (set() if minutes < 3 else {"gone", "unseen"}), minutes
        gone = next(row for row in ended if row["consumer_name"] == "gone")
        assert (gone["kind"], gone["address"]) == ("agent.disconnected", "10.0.0.1")
        detail = json.loads(gone["detail"])
        seen = datetime.fromisoformat(detail["last_seen"])
        assert (detail["instance"], seen) == ("killed", moment - timedelta(minutes=8))


async def test_instance_that_could_not_write_for_minutes_records_its_agents_again(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        moment = datetime.now(UTC)
        context = replace(server.context, clock=Clock(epoch=lambda: moment.timestamp()))
        await server.add_consumer("c1")
        cut_off = AgentPresence(context, connected=lambda: ["c1"], record=server.server.history.add)
        await cut_off.write()
        moment = moment + timedelta(minutes=5)
        await cut_off.write()
        await waiting.until(lambda: _has(server, "kind = 'agent.connected' AND consumer_name = 'c1'", 1))
        assert not await history_of(server, "kind = 'agent.disconnected'")


async def record_connection(server: harness.InProcess, kind: str, consumer: str, *, at: datetime) -> None:
    entry = rows.HistoryEntry(
        kind=kind,
        at=at,
        consumer=consumer,
        requester=rows.Requester(user="", address="10.0.0.1"),
        detail='{"instance":"killed"}',
    )
    async with server.context.database.connection() as connection:
        await history_entries.record(connection, [entry])


async def test_sdk_reads_the_history_of_a_work(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="s", environ={}) as client:
            works = client.works("c1")
            await works.create(Work("hello").add(clients.MANIFEST), operation_id="operation-1")
            before = datetime.now(UTC)
            await works.patch("hello", {"metadata": {"labels": {"tier": "front"}}})
            created, updated = [entry async for entry in works.history("hello")]
            assert (created.kind, created.operation_id, created.version) == ("work.created", "operation-1", 1)
            assert updated.detail["changes"] == ["+ metadata.labels"]
            (only,) = [entry async for entry in client.resource_bundles.history(works.id_of("hello"), since=before)]
            assert only == updated
            newest = [entry async for entry in works.history("hello", newest_first=True, limit=1)]
            assert newest == [updated]
            assert [entry.kind async for entry in client.consumers.history("c1", kinds="consumer")] == [
                "consumer.created"
            ]
            assert len([entry async for entry in client.history(kinds=["work", "consumer"])]) == 3
            with pytest.raises(errors.NotFound):
                await anext(works.history("unknown"))
            with pytest.raises(errors.Invalid, match="no time zone"):
                await anext(works.history("hello", since=datetime(2026, 1, 1)))


def test_blocking_sdk_reads_the_history(live_server: ServerProcess) -> None:
    ports = live_server.ports
    with Maestro(
        api_url=f"http://127.0.0.1:{ports.rest}", grpc_url=f"127.0.0.1:{ports.sources}", source="s", environ={}
    ) as client:
        client.consumers.create("c1")
        client.works("c1").create(Work("hello").add(clients.MANIFEST))
        assert next(client.works("c1").history("hello")).kind == "work.created"
        assert next(client.consumers.history("c1", kinds="consumer")).kind == "consumer.created"
        assert {entry.kind for entry in client.history(kinds="work.created")} == {"work.created"}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"size": "0"}, "size=0"),
        ({"size": "99999999999999999999"}, "from 1 to 1000"),
        ({"since": "yesterday"}, "since=yesterday"),
        ({"since": "2026-11-17T10:00:00"}, "with its time zone"),
        ({"kind": "work.eaten"}, "kind=work.eaten"),
        ({"order": "random"}, "asc, desc"),
        ({"continue": "x"}, "not a token"),
    ],
)
async def test_wrong_parameters_are_named(database: Dsn, query: dict[str, str], reason: str) -> None:
    async with harness.in_process(database) as server, server.http() as client:
        answer = await client.get("/history", params=query)
        assert answer.status_code == 400
        assert reason in answer.json()["reason"]


async def test_pages_follow_by_time_and_id_in_both_orders(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with clients.source(server.sources) as a:
            await asyncio.gather(*(a.create(f"w{number}", "c1") for number in range(23)))
        wanted = [str(row["id"]) for row in await history_of(server, "consumer_name = 'c1'")]
        assert len(wanted) == 24
        async with server.http() as client:
            for order, expected in (("asc", wanted), ("desc", wanted[::-1])):
                found: list[str] = []
                query = {"size": "5", "order": order}
                while True:
                    answer = await client.get("/consumers/c1/history", params=query)
                    found += [item["id"] for item in answer.json()["items"]]
                    if "X-Maestro-Continue" not in answer.headers:
                        break
                    query["continue"] = answer.headers["X-Maestro-Continue"]
                assert found == expected
            stolen = await client.get("/history", params={"continue": query["continue"]})
            assert stolen.status_code == 400
