"""Operator actions on a real server: what they do to delivery, to the database, and to the history."""

import asyncio
import functools
import io
import json
from pathlib import Path
from typing import Any

import pytest

from maestropy import AsyncMaestro, Work
from maestropy.journal import emit
from maestropy.kube.config import load as config
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sdk.history import HistoryEntry
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import Cluster
from tests.stack import harness
from tests.stack.clients import Stream, agent, bundle_data, is_about, source

OLD = "now() - interval '1 hour'"
ASKED: dict[str, Any] = {"reason": "ann cleans up", "requested_by": "ann@laptop"}
OPERATOR = ("unauthenticated (ann@laptop)", "ann cleans up")


async def act(server: harness.Running, path: str, *, expect: int = 200, dry: bool = False, **body: Any) -> Any:
    async with server.http() as client:
        answer = await client.post(path, json=body, params={"dryRun": "All"} if dry else {})
    assert answer.status_code == expect, answer.text
    return answer.json()


async def history(server: harness.InProcess, kind: str) -> list[Any]:
    return await server.sql(
        "SELECT kind, consumer_name, subject_id, address, result, detail FROM maestropy_history WHERE kind = $1", kind
    )


async def pending(server: harness.InProcess) -> int:
    return int(await server.value("SELECT count(*) FROM events WHERE reconciled_date IS NULL"))


async def silent(server: harness.InProcess) -> None:
    """Make servers and agents look as if they had been there an hour ago."""
    await server.sql(f"UPDATE maestropy_instances SET started_at = {OLD}")
    await server.sql(f"UPDATE maestropy_agents SET seen_at = {OLD}")


def specs(got: Stream) -> list[event.CloudEvent]:
    """Return the spec events that have arrived so far."""
    return [each for each in got.events if ".spec." in each.type]


def is_release(name: str, received: event.CloudEvent) -> bool:
    return is_about(received, name) and b"Released" in received.data


@pytest.mark.long
async def test_paused_consumer_gets_nothing_until_it_is_resumed(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("c1")
        await server.add_consumer("c2")
        async with agent(server.agents, "c1") as one, agent(server.agents, "c2") as two:
            async with one.subscribe() as got, two.subscribe() as other:
                await a.create("before", "c1")
                await got.spec_of("before")
                await waiting.until(server.has_nothing_pending)
                plan = await act(server, "/consumers/c1/pause", dry=True)
                assert plan["dry_run"]
                assert plan["changes"]
                assert await server.value("SELECT count(*) FROM maestropy_pauses") == 0
                done = await act(server, "/consumers/c1/pause", reason="node upgrade", requested_by="me@here")
                assert done["effects"] == plan["effects"]
                # Requests are acknowledged; those of the other consumer go on.
                await a.create("during", "c1")
                await a.update("before", "c1", version=1, data=bundle_data("2"))
                await a.update("before", "c1", version=2, data=bundle_data("3"))
                await a.create("elsewhere", "c2")
                await other.spec_of("elsewhere")
                # A scan of everything that is pending, an agent that resyncs, and one that connects change nothing.
                server.server.rescan()
                await one.resync({"before": 1})
                async with agent(server.agents, "c1") as second, second.subscribe() as late:
                    await second.resync({})
                    await a.create("barrier", "c2")
                    await other.spec_of("barrier")
                    assert specs(late) == []
                assert not any(is_about(each, "during") or is_about(each, "before", version=3) for each in specs(got))

                async def only_those_of_the_paused_consumer_wait() -> bool:
                    return await pending(server) == 2

                # The event of the other consumer is marked as reconciled a moment after it was sent.
                await waiting.until(only_those_of_the_paused_consumer_wait)
                resumed = await act(server, "/consumers/c1/resume")
                assert "Send all of its works (2)" in " ".join(resumed["effects"])
                # Its resync had no answer: it subscribes again, and asks again.
                await asyncio.wait_for(got.ended.wait(), waiting.TIMEOUT)
            async with one.subscribe() as got:
                await one.resync({"before": 1})
                await got.spec_of("during")
                await got.spec_of("before", version=3)
                await waiting.until(server.has_nothing_pending)
        (paused,) = await history(server, "consumer.paused")
        assert (paused["consumer_name"], paused["address"]) == ("c1", "127.0.0.1")
        assert '"reason":"node upgrade"' in paused["detail"]
        assert len(await history(server, "consumer.resumed")) == 1


@pytest.mark.long
async def test_pause_survives_the_kill_of_the_server(database: Dsn, tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)
    flag = f"--db-dsn={database}"
    async with place.run(flag) as server:
        await server.add_consumer("c1")
        await act(server, "/consumers/c1/pause", reason="kill test")
        async with source(server.sources) as a:
            await a.create("w1", "c1")
        server.kill()
        await server.process.wait()
    async with place.run(flag) as server, agent(server.agents, "c1") as one, one.subscribe() as got:
        await one.resync({})
        async with source(server.sources) as a:
            await a.create("w2", "c1")
        waits = "SELECT count(*) FROM events WHERE reconciled_date IS NULL"
        assert await harness.value(database, waits) == 2
        assert specs(got) == []
        await act(server, "/consumers/c1/resume")
        # Its resync had no answer: it subscribes again, and asks again.
        await asyncio.wait_for(got.ended.wait(), waiting.TIMEOUT)
        async with one.subscribe() as again:
            await one.resync({})
            await again.spec_of("w1")
            await again.spec_of("w2")


async def test_paused_twice_keeps_the_first_pause(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        await act(server, "/consumers/c1/pause", reason="first")
        again = await act(server, "/consumers/c1/pause", reason="second")
        assert not again["changes"]
        assert "first" in again["effects"][0]
        async with server.http() as client:
            (shown,) = (await client.get("/delivery-pauses")).json()["items"]
        assert (shown["consumer_name"], shown["reason"]) == ("c1", "first")
        assert shown["paused_by"] == "unauthenticated from 127.0.0.1"
        assert len(await history(server, "consumer.paused")) == 1
        assert not (await act(server, "/consumers/c1/pause", reason="third"))["changes"]
        await asyncio.gather(*(act(server, "/consumers/c1/resume") for _ in range(4)))
        assert len(await history(server, "consumer.resumed")) == 1


async def test_pause_ends_with_its_consumer(database: Dsn) -> None:
    async with harness.in_process(database) as server, server.http() as client:
        consumer = await server.add_consumer("c1")
        await act(server, "/consumers/c1/pause")
        await server.server.maintenance.measure()
        assert "maestropy_paused_consumers 1\n" in server.context.metrics.render()[0].decode()
        assert (await client.delete(f"/consumers/{consumer}")).status_code == 204
        await server.add_consumer("c1")
        assert (await client.get("/delivery-pauses")).json()["items"] == []


@pytest.mark.long
async def test_resent_work_survives_the_kill_of_the_server(database: Dsn, tmp_path: Path) -> None:
    place, flag = harness.Place(folder=tmp_path), f"--db-dsn={database}"
    async with place.run(flag) as server:
        await server.add_consumer("c1")
        async with agent(server.agents, "c1") as one, one.subscribe() as got, source(server.sources) as a:
            await a.create("w1", "c1")
            await got.spec_of("w1")
            waits = "SELECT count(*) = 0 FROM events WHERE reconciled_date IS NULL"
            await waiting.until(lambda: harness.value(database, waits))
        await act(server, "/resource-bundles/w1/resend")
        server.kill()
        await server.process.wait()
    async with place.run(flag) as server, agent(server.agents, "c1") as one, one.subscribe() as got:
        assert (await got.spec_of("w1")).integer(event.RESOURCE_VERSION) == 1


async def test_deletions_are_not_repeated_while_paused(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("c1")
        async with agent(server.agents, "c1") as one, one.subscribe() as got:
            await a.create("w1", "c1")
            await got.spec_of("w1")
            await act(server, "/consumers/c1/pause")
            await a.delete("w1", "c1")
            await server.sql("UPDATE resources SET deleted_at = now() - interval '1 hour'")
            await server.sql("UPDATE events SET reconciled_date = now()")
            await server.sql("UPDATE delete_recovery_schedule SET next_at = now() - interval '1 hour'")
            await server.server.delete_recovery.run_round()
            await server.sql("UPDATE resources SET delete_retry_at = now() - interval '1 minute'")
            await server.sql("UPDATE delete_recovery_consumers SET next_at = now() - interval '1 minute'")
            for _ in range(2):
                await server.sql("UPDATE delete_recovery_schedule SET next_at = now() - interval '1 hour'")
                await server.server.delete_recovery.run_round()
            assert await pending(server) == 0
            await act(server, "/consumers/c1/resume")
            deletion = await got.take(lambda each: "deletiontimestamp" in each.extensions)
            assert deletion.text(event.RESOURCE_ID) == "w1"


async def test_work_is_sent_again_once(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("c1")
        async with agent(server.agents, "c1") as one, one.subscribe() as got:
            await a.create("w1", "c1")
            await got.spec_of("w1")
            await waiting.until(server.has_nothing_pending)
            plan = await act(server, "/resource-bundles/w1/resend", dry=True)
            assert "Send version 1 of work" in plan["effects"][0]
            assert await pending(server) == 0
            await act(server, "/resource-bundles/w1/resend", reason="lost")
            assert (await got.spec_of("w1")).integer(event.RESOURCE_VERSION) == 1
            await waiting.until(server.has_nothing_pending)
        # Without an agent the event waits, and a second request adds none.
        await act(server, "/resource-bundles/w1/resend")
        second = await act(server, "/resource-bundles/w1/resend")
        assert not second["changes"]
        assert await pending(server) == 1
        entry, *_ = await history(server, "work.resent")
        assert (entry["subject_id"], entry["consumer_name"]) == ("w1", "c1")
        missing = await act(server, "/resource-bundles/none/resend", expect=404)
        assert "id='none' not found; its ID is that of GET /resource-bundles" in missing["reason"]


async def test_consumer_is_resynced_by_every_instance(database: Dsn) -> None:
    async with harness.in_process(database) as server, harness.in_process(database) as other:
        await server.add_consumer("c1")
        async with source(server.sources) as a, agent(other.agents, "c1") as one:
            async with one.subscribe() as got:
                for name in ("w1", "w2", "w3"):
                    await a.create(name, "c1")
                    await got.spec_of(name)
                await waiting.until(server.has_nothing_pending)
                here, elsewhere = [await act(each, "/consumers/c1/resync", dry=True) for each in (other, server)]
                assert here["warnings"] == []
                assert "connected to this instance of the server" in elsewhere["warnings"][0]
                done = await act(server, "/consumers/c1/resync")
                assert done["work_count"] == 3
                await waiting.until(got.ended.is_set, what="the end of the stream, so that the agent resyncs")
            async with one.subscribe() as got:
                for name in ("w1", "w2", "w3"):
                    await got.spec_of(name)
                await waiting.until(server.has_nothing_pending)
        assert len(await history(server, "consumer.resynced")) == 1


async def test_retirement_is_refused_while_an_agent_may_be_there(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        young = await act(server, "/consumers/c1/retirement", expect=409, dry=True, works="release")
        assert "The servers run only since" in young["reason"]
        await silent(server)
        async with agent(server.agents, "c1") as one, one.subscribe():
            await server.server.presence.write()
            connected = await act(server, "/consumers/c1/retirement", expect=409, dry=True, works="release")
            assert "The agent of consumer c1 was seen at" in connected["reason"]
        await silent(server)
        await server.sql(
            "INSERT INTO server_instances (id, last_heartbeat, ready, created_at, updated_at) "
            "VALUES ('go', now(), true, now(), now())"
        )
        beside = await act(server, "/consumers/c1/retirement", expect=409, dry=True, works="release")
        assert "A Go server runs on this database" in beside["reason"]
        paused = await act(server, "/consumers/c1/pause", dry=True)
        assert "does not know pauses" in paused["warnings"][0]
        refused = await waiting.until(lambda: history(server, "request.refused"))
        assert refused[0]["result"] == "conflict"


async def test_released_works_are_gone_and_their_objects_stay(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a, a.subscribe() as watching:
        await server.add_consumer("c1")
        async with agent(server.agents, "c1") as one, one.subscribe() as got:
            for name in ("w1", "w2"):
                await a.create(name, "c1")
                await got.spec_of(name)
            await one.tell("w1", 1, "Applied")
            await a.delete("w2", "c1")
            await got.take(lambda each: "deletiontimestamp" in each.extensions)
        await server.server.presence.write()
        await silent(server)
        plan = await act(server, "/consumers/c1/retirement", dry=True, works="release")
        assert plan["work_count"] == 2
        assert {work["id"]: work["deleting"] for work in plan["works"]} == {"w1": False, "w2": True}
        assert (
            "plan is missing" in (await act(server, "/consumers/c1/retirement", expect=409, works="release"))["reason"]
        )
        # What was shown is not what is there any more.
        await a.create("w3", "c1")
        changed = await act(server, "/consumers/c1/retirement", expect=409, works="release", plan=plan["plan"])
        assert "Review it again" in changed["reason"]
        assert len(await server.bundles()) == 3
        plan = await act(server, "/consumers/c1/retirement", dry=True, works="release")
        await act(server, "/consumers/c1/retirement", works="release", plan=plan["plan"], **ASKED)
        assert await server.bundles() == {}
        for name in ("w1", "w2", "w3"):
            final = await watching.take(functools.partial(is_release, name))
            assert b'"Deleted"' in final.data
        assert sorted(row["subject_id"] for row in await history(server, "work.released")) == ["w1", "w2", "w3"]
        assert len(await history(server, "consumer.retired")) == 1
        # By the name of the consumer, which has no row any more.
        async with server.http() as client:
            entries = (await client.get("/consumers/c1/history")).json()["items"]
        assert {"consumer.retired", "work.released"} <= {entry["kind"] for entry in entries}
        # The source asked for nothing: the operator did.
        released = [HistoryEntry.from_dict(entry) for entry in entries if entry["kind"] == "work.released"]
        assert {(entry.requester, entry.detail["reason"]) for entry in released} == {OPERATOR}
        # An agent that comes back is asked to delete nothing, also after a gap in the notifications.
        await server.add_consumer("c1")
        async with agent(server.agents, "c1") as one, one.subscribe() as got:
            server.server.on_notification_gap()
            await a.create("barrier", "c1")
            await got.spec_of("barrier")
            assert [each for each in specs(got) if "deletiontimestamp" in each.extensions] == []


async def test_deleted_works_of_a_retired_consumer_wait_for_its_agent(database: Dsn) -> None:
    async with harness.in_process(database) as server, source(server.sources) as a:
        await server.add_consumer("c1")
        await a.create("w1", "c1")
        await silent(server)
        plan = await act(server, "/consumers/c1/retirement", dry=True, works="delete")
        await act(server, "/consumers/c1/retirement", works="delete", plan=plan["plan"], **ASKED)
        assert (await server.bundles())["w1"]["deleted_at"]
        async with server.http() as client:
            query = {"kind": "work.deletion-requested"}
            (item,) = (await client.get("/consumers/c1/history", params=query)).json()["items"]
        requested = HistoryEntry.from_dict(item)
        # The source asked for nothing: the operator did. The source stays, by which its own clients read the entry.
        assert (requested.requester, requested.detail["reason"]) == OPERATOR
        assert requested.source == a.id
        again = await act(server, "/consumers/c1/retirement", dry=True, works="delete")
        assert not again["changes"]
        assert "--release" in again["effects"][1]
        async with agent(server.agents, "c1") as one, one.subscribe() as got:
            await got.take(lambda each: is_about(each, "w1") and "deletiontimestamp" in each.extensions)
            await one.tell("w1", 1, "Deleted")
        assert await server.bundles() == {}


async def test_sweep_removes_only_what_was_shown(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        hold = (
            "INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works, since) "
            f"VALUES ($1, $1, 'OtherDatabase', 'why', 'd', 2, '{{}}', {OLD})"
        )
        for name in ("c1", "gone"):
            await server.sql(hold, name)
        nothing = await act(server, "/sweep", dry=True, classes=["pause"])
        assert not nothing["changes"]
        plan = await act(server, "/sweep", dry=True)
        assert "data-safety hold of a consumer that does not exist: gone" in plan["effects"][0]
        assert "maestro consumer adopt c1 --dry-run" in plan["warnings"][0]
        await server.sql("INSERT INTO maestropy_pauses VALUES ('lost', now(), 'x', 'y')")
        await act(server, "/sweep", expect=409, plan=plan["plan"])
        await act(server, "/sweep", plan=plan["plan"], classes=["hold"], reason="cleanup")
        assert [row["consumer_name"] for row in await server.sql("SELECT * FROM maestropy_holds")] == ["c1"]
        assert await server.value("SELECT count(*) FROM maestropy_pauses") == 1
        (entry,) = await history(server, "database.swept")
        assert "- 1 hold" in entry["detail"]


async def test_hold_of_a_connected_agent_is_not_swept(database: Dsn) -> None:
    """Also if the agent is connected to another instance: it would only report its hold again."""
    async with harness.in_process(database) as server, harness.in_process(database) as other:
        await server.sql(
            "INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works, since) "
            f"VALUES ('lost', 'h', 'UnknownConsumer', 'why', 'd', 2, '{{}}', {OLD})"
        )
        async with agent(other.agents, "lost") as one, one.subscribe():
            await waiting.until(lambda: "lost" in other.server.agent_subscribers.topics(), what="the agent")
            assert not (await act(other, "/sweep", dry=True))["changes"]
            await other.server.presence.write()
        kept = await act(server, "/sweep", dry=True)
        assert not kept["changes"]
        assert "maestro consumer create lost" in kept["warnings"][0]
        await act(server, "/sweep", plan=kept["plan"])
        assert await server.value("SELECT count(*) FROM maestropy_holds") == 1
        await other.server.presence.write()
        await silent(server)
        plan = await act(server, "/sweep", dry=True)
        await act(server, "/sweep", plan=plan["plan"])
        assert await server.value("SELECT count(*) FROM maestropy_holds") == 0
        assert await server.value("SELECT count(*) FROM maestropy_agents") == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": "x" * 501}, "reason"),
        ({"reason": "two\nlines"}, "reason"),
        ({"reason": "\x1b[2Jcleared"}, "reason"),
        ({"reason": "right-to-left \u202e"}, "reason"),
        ({"reason": 7}, "reason"),
        ({"requested_by": "x" * 254}, "requested_by"),
    ],
)
async def test_hostile_reasons_are_rejected(database: Dsn, body: dict[str, Any], field: str) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        assert field in (await act(server, "/consumers/c1/pause", expect=400, **body))["reason"]
        assert await server.value("SELECT count(*) FROM maestropy_pauses") == 0


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("dry_run=All", id="snake-case"),
        pytest.param("dryrun=All", id="lower-case"),
        pytest.param("dryRun=true", id="other-value"),
        pytest.param("dryRun=All&dryRun=All", id="twice"),
        pytest.param("dryRun=", id="empty"),
        pytest.param("dryRun=All&force=true", id="unknown-beside"),
    ],
)
async def test_parameter_that_may_mean_a_dry_run_does_nothing(database: Dsn, query: str) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        async with server.http() as client:
            for path in ("/consumers/c1/pause", "/consumers/c1/resync", "/sweep", "/resource-bundles/w/resend"):
                answer = await client.post(f"{path}?{query}", json={})
                assert (answer.status_code, "dryRun=All" in answer.text) == (400, True), answer.text
        assert await server.value("SELECT count(*) FROM maestropy_pauses") == 0
        assert await history(server, "consumer.paused") == []


async def test_refused_dry_run_is_recorded_as_one(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("c1")
        await act(server, "/consumers/c1/retirement", expect=409, dry=True, works="release", requested_by="ann@laptop")
        (dry,) = await waiting.until(lambda: history(server, "request.refused"))
        assert (dry["consumer_name"], dry["subject_id"]) == ("c1", "")
        detail = json.loads(dry["detail"])
        assert (detail["dry_run"], detail["requested_by"]) == (True, "ann@laptop")
        await act(server, "/consumers/c1/retirement", expect=409, works="release", plan="x", requested_by="ann@laptop")

        async def second() -> Any:
            return (await history(server, "request.refused"))[1:]

        (real,) = await waiting.until(second)
        assert "dry_run" not in json.loads(real["detail"])


async def test_unknown_consumer_is_answered_with_similar_names(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer("us-east-mgmt-01")
        wrong = await act(server, "/consumers/us-east-mgnt-01/pause", expect=404)
        assert "did you mean us-east-mgmt-01?" in wrong["reason"]
        async with server.http() as client:
            answer = await client.post("/consumers/us-east-mgmt-01/pause", json={}, params={"dryRun": "yes"})
        assert answer.status_code == 400
        assert "dryRun=All" in answer.json()["reason"]


async def test_agent_that_restarts_during_a_pause_keeps_its_objects(database: Dsn) -> None:
    kept, late = samples.config_map("default", "kept"), samples.config_map("default", "late")
    async with (
        harness.in_process(database) as server,
        SandboxCluster(tls=False, delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="sdk", environ={}) as client,
    ):
        await client.consumers.create("c1")
        works = client.works("c1")
        log = io.BytesIO()
        run = functools.partial(
            run_agent,
            sandbox.kubeconfig,
            consumer="c1",
            broker=server.agents,
            journal=emit.Journal(log, clock=lambda: 0.0),
        )
        async with run():
            await works.apply(Work("kept").add(kept))
            await works.wait_for("kept", "Available", timeout=60)
        await client.consumers.pause("c1", reason="restart")
        await works.apply(Work("late").add(late))
        async with run():
            await waiting.until(lambda: server.lines("its spec resync is answered after the resumption"))
            assert await cluster.get(kept) is not None
            assert await cluster.get(late) is None
            await client.consumers.resume("c1")
            await works.wait_for("late", "Available", timeout=60)
            # The agent has its works again, so that it goes on with them.
            await works.apply(Work("kept").add(samples.config_map("default", "kept", data={"k": "new"})))
            await works.wait_for("kept", "Available", timeout=60)
            await works.delete("kept", wait=True, timeout=60)
            assert await cluster.get(kept) is None
        assert b"EvictionPending" not in log.getvalue()
