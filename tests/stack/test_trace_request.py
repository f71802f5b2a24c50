"""The tracer reads the logs of our own server and agent: every stage of a real run, at default verbosity."""

import asyncio
import contextlib
import io
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from maestropy.aio import clock as clocks
from maestropy.cli import main
from maestropy.journal import emit
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from maestropy.transport.grpc.client import GrpcClient, GrpcEndpoint
from maestropy.wire import codec, timestamps
from maestropy.wire.events import event, grpc_binding
from maestropy.wire.works import resource_id, work
from tests import waiting
from tests.stack import harness

CLUSTER = "cluster1"
RESOURCE = resource_id.resource_id("demo", namespace=CLUSTER, name="w1")
_OP = "logging.open-cluster-management.io/op-id"


def request(action: event.EventAction, *, value: str, version: int = 0, kind: str = "ConfigMap") -> event.CloudEvent:
    manifest = {
        "apiVersion": "v1", "kind": kind, "metadata": {"name": "cm", "namespace": "default"}, "data": {"a": value},
    }  # fmt: skip
    wanted = work.new("w1", namespace=CLUSTER, manifests=[manifest]).with_metadata(
        uid=RESOURCE, annotations={_OP: f"op-{value}"}, generation=version
    )
    now = timestamps.from_datetime(clocks.Clock().now())
    return codec.spec_event(
        wanted, action=action, attributes=codec.ContextAttributes(id=clocks.new_id(), source="demo", time=now)
    )


class Client:
    """A source that publishes and hears."""

    def __init__(self, client: GrpcClient, statuses: Any) -> None:
        self._client = client
        self._statuses = statuses

    async def publish(self, told: event.CloudEvent) -> None:
        await self._client.publish(told)

    async def hear(self, wanted: Callable[[work.ManifestWork], bool]) -> None:
        async with asyncio.timeout(waiting.TIMEOUT):
            async for status in self._statuses:
                if wanted(codec.work_from_status_event(status)):
                    return


@contextlib.asynccontextmanager
async def client_of(address: str) -> AsyncIterator[Client]:
    async with (
        GrpcClient(GrpcEndpoint(url=address)) as client,
        client.subscribe(grpc_binding.Subscription(source="demo")) as events,
        contextlib.aclosing(cast("AsyncGenerator[event.CloudEvent]", events)) as statuses,
    ):
        yield Client(client, statuses)


@contextlib.asynccontextmanager
async def agent_for(broker: str, log: Path) -> AsyncIterator[None]:
    with log.open("ab") as stream:
        journal = emit.Journal(stream, clock=time.time, verbosity=2)
        async with (
            SandboxCluster() as cluster,
            run_agent(cluster.kubeconfig, consumer=CLUSTER, broker=broker, journal=journal),
        ):
            yield
        journal.flush()


async def whole_life(client: Client) -> None:
    await client.publish(request(event.EventAction.CREATE_REQUEST, value="1"))
    await client.hear(lambda told: told.generation == 1 and told.status.is_true("Available"))
    await client.publish(request(event.EventAction.UPDATE_REQUEST, value="2", version=1))
    await client.hear(lambda told: told.generation == 2 and told.status.is_true("Applied"))
    await client.publish(request(event.EventAction.DELETE_REQUEST, value="3"))
    await client.hear(lambda told: told.status.is_deleted)


def traced(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    code = main.call(["trace", "request", *words, str(folder), "-o", "json"])
    out = capsys.readouterr().out
    return code, json.loads(out)["requests"] if out else []


def states(request: dict[str, Any]) -> list[str]:
    return [stage["state"] for stage in request["stages"]]


def save(folder: Path, name: str, server: harness.InProcess) -> None:
    server.context.journal.flush()
    (folder / name).write_bytes(server.log.getvalue())


@pytest.mark.long
async def test_create_update_delete_on_a_server_process_are_complete(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ServerProcess(database, log=tmp_path / "maestro-0.log") as server:
        running = harness.Running(rest=f"http://127.0.0.1:{server.ports.rest}", health="", sources="", agents="")
        await running.add_consumer(CLUSTER)
        async with (
            client_of(f"127.0.0.1:{server.ports.sources}") as client,
            agent_for(f"127.0.0.1:{server.ports.agents}", tmp_path / "maestro-agent-0.log"),
        ):
            await whole_life(client)
    code, requests = traced(tmp_path, capsys, RESOURCE)
    assert [(each["key"]["action"], each["key"]["version"], each["verdict"]) for each in requests] == [
        ("create", 1, "complete"),
        ("update", 2, "complete"),
        ("delete", 2, "complete"),
    ]
    assert [states(each) for each in requests] == [["ok"] * 9] * 3
    assert code == 0
    for word in ("op-2", "w1"):
        code, found = traced(tmp_path, capsys, word)
        assert code == 0
        assert {each["key"]["resourceId"] for each in found} == {RESOURCE}
    assert [each["key"]["action"] for each in traced(tmp_path, capsys, "op-2")[1]] == ["update"]


async def test_logs_of_two_instances_are_joined(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        harness.in_process(database, client_id="a") as a,
        harness.in_process(database, client_id="b") as b,
    ):
        await a.add_consumer(CLUSTER)
        async with client_of(b.sources) as client, agent_for(a.agents, tmp_path / "maestro-agent-0.log"):
            await whole_life(client)
        save(tmp_path, "maestro-a.log", a)
        save(tmp_path, "maestro-b.log", b)
    code, requests = traced(tmp_path, capsys, RESOURCE)
    assert [(each["verdict"], set(states(each))) for each in requests] == [("complete", {"ok"})] * 3
    first = {stage["n"]: stage["pods"] for stage in requests[0]["stages"]}
    assert (first[1], first[2], first[9]) == (["maestro-b"], ["maestro-a"], ["maestro-b"])
    assert code == 0


async def test_request_without_agent_stops_at_stage_3(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer(CLUSTER)
        async with client_of(server.sources) as client:
            async with agent_for(server.agents, tmp_path / "maestro-agent-0.log"):
                await client.publish(request(event.EventAction.CREATE_REQUEST, value="1"))
                await client.hear(lambda told: told.generation == 1)
            await waiting.until(lambda: bool(server.lines("unregister subscriber")), what="the agent's leaving")
            await client.publish(request(event.EventAction.UPDATE_REQUEST, value="2", version=1))
        save(tmp_path, "maestro-0.log", server)
    code, requests = traced(tmp_path, capsys, RESOURCE)
    create, update = requests
    assert create["verdict"] == "complete"
    assert (update["verdict"], update["failedStage"]) == ("incomplete", 3)
    assert [(finding["code"], finding["confidence"]) for finding in update["findings"]] == [("MT-301", "certain")]
    assert code == 1
    assert main.call(["trace", "request", RESOURCE, str(tmp_path), "--nth", "-1"]) == 1
    assert "INCOMPLETE at stage 3 (agent receives)  MT-301" in capsys.readouterr().out


async def test_rejections_and_no_ops_are_distinguished(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer(CLUSTER)
        async with client_of(server.sources) as client, agent_for(server.agents, tmp_path / "maestro-agent-0.log"):
            await client.publish(request(event.EventAction.CREATE_REQUEST, value="1"))
            await client.hear(lambda told: told.generation == 1)
            with contextlib.suppress(Exception):
                await client.publish(request(event.EventAction.UPDATE_REQUEST, value="9", version=7))
        save(tmp_path, "maestro-0.log", server)
    code, requests = traced(tmp_path, capsys, RESOURCE)
    assert [(each["verdict"], each["failedStage"]) for each in requests] == [("complete", None), ("failed", 2)]
    assert requests[1]["findings"][0]["code"] == "MT-201"
    assert code == 1


async def test_invalid_manifest_fails_at_the_agent(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer(CLUSTER)
        async with client_of(server.sources) as client, agent_for(server.agents, tmp_path / "maestro-agent-0.log"):
            await client.publish(request(event.EventAction.CREATE_REQUEST, value="1", kind="Unheard"))
            await client.hear(
                lambda told: any(
                    condition.type == "Applied" and condition.status == "False" for condition in told.status.conditions
                )
            )
        save(tmp_path, "maestro-0.log", server)
    code, requests = traced(tmp_path, capsys, RESOURCE)
    assert (requests[0]["verdict"], requests[0]["failedStage"], code) == ("failed", 4, 1)


async def test_database_checks_refine_the_finding(
    database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.in_process(database) as server:
        await server.add_consumer(CLUSTER)
        async with client_of(server.sources) as client:
            await client.publish(request(event.EventAction.CREATE_REQUEST, value="1"))
        save(tmp_path, "maestro-0.log", server)
    log = tmp_path / "maestro-0.log"
    # What is left when the server's start is not in the logs: nobody can say who was connected.
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if "Serving" not in line))
    address = f"postgresql://{database.user}@/{database.database}?host={database.host}"
    code = await asyncio.to_thread(main.call, ["trace", "request", RESOURCE, str(log), "--db-dsn", address])
    out, trouble = capsys.readouterr()
    assert not trouble
    assert "database  events: 1 row" in out
    assert code in (1, 6)


def test_standard_input_is_read_like_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (Path(__file__).parents[1] / "data" / "trace_request_go_v4.log").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main.call(["trace", "requests", "-"]) == 1
    assert "4 requests (update 2, create 1, delete 1): 3 complete, 1 failed" in capsys.readouterr().out
