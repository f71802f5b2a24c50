"""A trace over gRPC and MQTT with a Go agent in the middle, through a real OpenTelemetry collector.

With MAESTRO_KEEP_PICTURES=1 the picture of the documentation is renewed.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers import peer_postgres, trace_picture
from tests.peers.brokers.mqtt_agents import GoMqttAgent
from tests.peers.mosquitto import Mosquitto
from tests.peers.otel_collector import Collector, collector
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import rest
from tests.peers.peer_servers import PYTHON_CLI, RunningServer, python_server
from tests.waiting import wait_for

pytestmark = pytest.mark.peers
APPLICATION = """
import asyncio, os, sys
from maestropy.sandbox.shown_trace import create_watched
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from maestropy.telemetry import otel

HELLO = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}


async def publish(api_url, grpc_url):
    async with AsyncMaestro(environ={}, api_url=api_url, grpc_url=grpc_url, source="traced") as client:
        await create_watched(client.works("cluster1"), Work("hello").add(HELLO), seconds=60)


with otel.application("otlp", service="maestro-client", environ=os.environ):
    asyncio.run(publish(*sys.argv[1:]))
"""
PICTURE = Path(__file__).parents[3] / "docs" / "images" / "trace-opentelemetry.png"
CLIENT, SERVER = "maestro-client", "maestro"


@pytest.fixture
def collecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which every process that the test starts exports."""
    with collector(tmp_path / "collector") as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def server(
    postgres: peer_postgres.Cluster, broker: Mosquitto, collecting: Collector, tmp_path: Path, shown_logs: list[Path]
) -> Iterator[RunningServer]:
    assert collecting.endpoint
    flags = [f"--message-broker-config-file={broker.config()}"]
    with python_server(database=postgres.create("traces"), folder=tmp_path, flags=flags, broker="mqtt") as running:
        shown_logs.append(running.log)
        yield running
        shown_logs.remove(running.log)


def test_one_trace_of_nine_spans_with_a_go_agent_in_the_middle(
    server: RunningServer, programs: Programs, broker: Mosquitto, collecting: Collector, tmp_path: Path
) -> None:
    rest(server, "POST", "/consumers", {"name": "cluster1"})
    with GoMqttAgent(programs, broker.config("agent"), cluster="cluster1", log=tmp_path / "agent.log"):
        command = [sys.executable, "-c", APPLICATION, server.rest_url, server.grpc_addr]
        published = subprocess.run(command, capture_output=True, text=True, check=False)
        assert published.returncode == 0, published.stderr
        spans = wait_for(lambda: complete_trace(collecting), what="the whole trace at the collector")
    # Each span is the parent of the next: the Go agent has passed the operation ID on, and nothing else.
    assert [(span["service"], span["name"]) for span in in_order(spans)] == [
        (CLIENT, "publish spec request"),
        (SERVER, "accept spec request"),
        (SERVER, "commit spec"),
        (SERVER, "dispatch spec"),
        (SERVER, "agent without traces"),
        (SERVER, "receive status"),
        (SERVER, "commit status"),
        (SERVER, "dispatch status"),
        (CLIENT, "receive status"),
    ]
    (operation,) = {span["facts"]["op-id"] for span in spans}
    assert operation.split("-")[1] == spans[0]["traceId"]
    assert f'trace_id="{spans[0]["traceId"]}"' in server.log.read_text()
    found = traced(operation, collecting.export)
    # The agent has no log here, and its status says nothing in a span.
    assert re.search(r"Verdict +UNKNOWN: reported in \d+ ms, not shown whether it was applied", found), found
    assert re.findall(r"^  (\d)  .*? {2,}(ok|not-observable) ", found, re.MULTILINE) == [
        *((str(stage), "ok") for stage in (1, 2)),
        *((str(stage), "not-observable") for stage in (3, 4, 5)),
        *((str(stage), "ok") for stage in (6, 7, 8, 9)),
    ]
    if "MAESTRO_KEEP_PICTURES" in os.environ:
        asyncio.run(trace_picture.draw(in_order(spans), tmp_path, PICTURE))


def complete_trace(collecting: Collector) -> list[dict[str, Any]]:
    """Return the trace of the only request that a client published, once the client has its status."""
    spans = collecting.spans()
    published = [span["traceId"] for span in spans if span["name"] == "publish spec request"]
    trace = [span for span in spans if published == [span["traceId"]]]
    is_back = (CLIENT, "receive status") in [(span["service"], span["name"]) for span in trace]
    known = {span["spanId"] for span in trace}
    return (
        trace
        if is_back and all(not span.get("parentSpanId") or span["parentSpanId"] in known for span in trace)
        else []
    )


def in_order(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a chain of spans from its root on; fails if it is a tree."""
    children = {span.get("parentSpanId", ""): span for span in spans}
    assert len(children) == len(spans), [span["name"] for span in spans]
    chain, at = [], ""
    while at in children:
        chain.append(children[at])
        at = children[at]["spanId"]
    return chain


def traced(operation: str, export: Path) -> str:
    """Return what `maestro trace request` says about an operation of an export."""
    command = [*PYTHON_CLI, "trace", "request", "--op-id", operation, str(export)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
