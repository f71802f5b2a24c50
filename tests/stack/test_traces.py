"""A server process that exports spans: what it says in log and metrics, and that a collector is never needed."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from maestropy.sandbox.otlp_receiver import OtlpReceiver
from maestropy.sandbox.server_process import ServerProcess
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from maestropy.store.dsn import Dsn
from tests import waiting

HELLO = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}
OPERATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def client_of(server: ServerProcess) -> AsyncMaestro:
    return AsyncMaestro(
        environ={},
        api_url=f"http://127.0.0.1:{server.ports.rest}",
        grpc_url=f"127.0.0.1:{server.ports.sources}",
        source="cs",
    )


async def spans_counted(server: ServerProcess) -> dict[str, float]:
    async with httpx.AsyncClient() as http:
        text = (await http.get(f"http://127.0.0.1:{server.ports.metrics}/metrics")).text
    return {found[1]: float(found[2]) for found in re.finditer(r'maestropy_spans_total\{result="(\w+)"\} (\S+)', text)}


@pytest.mark.long
async def test_a_server_exports_spans_counts_them_and_names_traces_in_its_log(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    with OtlpReceiver() as receiver:
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        async with ServerProcess(database, log=log) as server, client_of(server) as client:
            await client.consumers.create("cluster1")
            await client.works("cluster1").create(Work("hello").add(HELLO), operation_id=OPERATION)
            spans = await waiting.until(lambda: receiver.trace(TRACE)[1:], what="two spans of the trace")
            counted = await waiting.until(lambda: spans_counted(server), what="the metric")
            await waiting.until(lambda: "trace_id" in log.read_text(), what="the trace in the log")
        accept, commit = receiver.trace(TRACE)
    assert len(spans) == 1
    assert (accept.name, accept.service, accept.parent_id) == ("accept spec request", "maestro", "b7ad6b7169203331")
    assert (commit.name, commit.parent_id) == ("commit spec", accept.span_id)
    assert accept.attributes["op-id"] == OPERATION
    assert counted.keys() == {"exported", "failed", "dropped"}
    records = [line for line in log.read_text().splitlines() if f'op-id="{OPERATION}"' in line]
    assert records
    assert all(f'trace_id="{TRACE}"' in line for line in records)


@pytest.mark.long
async def test_a_server_works_and_ends_without_its_collector(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OtlpReceiver() as receiver:
        endpoint = receiver.endpoint
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    log = tmp_path / "server.log"
    async with ServerProcess(database, log=log) as server, client_of(server) as client:
        await client.consumers.create("cluster1")
        await client.works("cluster1").create(Work("hello").add(HELLO))
        await waiting.until(lambda: has_failed(server), what="failed spans in the metric")
        async with asyncio.timeout(30):
            await server.stop()
    text = log.read_text()
    assert '"A problem with OpenTelemetry traces" reason="' in text
    assert '"the server has stopped"' in text


async def has_failed(server: ServerProcess) -> bool:
    return (await spans_counted(server)).get("failed", 0) > 0


async def test_without_variables_there_is_no_metric_and_no_trace_in_the_log(database: Dsn, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    async with ServerProcess(database, log=log) as server, client_of(server) as client:
        await client.consumers.create("cluster1")
        await client.works("cluster1").create(Work("hello").add(HELLO), operation_id=OPERATION)
        assert await spans_counted(server) == {}
    assert "trace_id" not in log.read_text()
