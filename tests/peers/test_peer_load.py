"""The load program counts what really happened: its figures judge servers, so they are judged first."""

import json
import subprocess
from pathlib import Path

import pytest
from peer_build import Programs
from peer_clients import Json, Lines, rest
from peer_servers import RunningServer

pytestmark = pytest.mark.peers


def load(programs: Programs, mode: str, **flags: str | int) -> Json:
    command = [programs.load, "-mode", mode, *(f"-{name}={value}" for name, value in flags.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=40)
    return json.loads(done.stdout.splitlines()[-1])


def bundles(server: RunningServer, consumer: str) -> list[Json]:
    return rest(server, "GET", f"/resource-bundles?size=1000&search=consumer_name='{consumer}'")["items"]


def test_every_mode_does_what_it_reports(
    programs: Programs, server: RunningServer, consumer: str, tmp_path: Path
) -> None:
    ids = tmp_path / "ids"
    to_server = {"grpc": server.grpc_addr, "source": f"load-{consumer}", "ids": str(ids)}
    to_broker = {"grpc": server.broker_addr, "source": f"{consumer}-agent", "ids": str(ids)}

    # The gRPC broker hands spec events to a subscribed agent only, so one has to listen.
    agent = ["-mode=subscribe", f"-grpc={server.broker_addr}", f"-consumers={consumer}", "-requests=80"]
    source = [
        "-mode=subscribe",
        f"-grpc={server.grpc_addr}",
        f"-source=load-{consumer}",
        "-requests=60",
        "-connections=2",
    ]
    with (
        Lines([programs.load, *agent], log=tmp_path / "agent.log") as specs,
        Lines([programs.load, *source], log=tmp_path / "source.log") as statuses,
    ):
        for lines in (specs, statuses):
            lines.wait(lambda line: "subscribed" in line, what="subscription")

        created = load(programs, "create", consumers=consumer, requests=30, size=2000, connections=2, **to_server)
        stored = bundles(server, consumer)
        assert (created["requests"], created["errors"]) == (30, 0)
        assert {line.split()[0] for line in ids.read_text().splitlines()} == {bundle["id"] for bundle in stored}
        assert all(1800 < len(json.dumps(bundle["manifests"])) < 2200 for bundle in stored)

        reported = load(programs, "status", requests=30, **to_broker)
        assert (reported["requests"], reported["errors"]) == (30, 0)
        assert [bundle["status"]["ObservedVersion"] for bundle in bundles(server, consumer)] == [1] * 30
        fanned_out = statuses.wait(lambda line: line.get("mode") == "subscribe", what="the status subscribers' report")
        assert (fanned_out["requests"], fanned_out["errors"]) == (60, 0)

        updated = load(programs, "update", requests=20, **to_server)
        assert (updated["requests"], updated["errors"]) == (20, 0)
        assert sorted(bundle["version"] for bundle in bundles(server, consumer)) == [1] * 10 + [2] * 20

        deleted = load(programs, "delete", requests=30, **to_server)
        assert (deleted["requests"], deleted["errors"]) == (30, 0)
        assert all("deleted_at" in bundle for bundle in bundles(server, consumer))
        delivered = specs.wait(lambda line: line.get("mode") == "subscribe", what="the agent's report")
        assert delivered["requests"] == 80


def test_refused_requests_count_as_errors_and_not_as_speed(programs: Programs, server: RunningServer) -> None:
    result = load(programs, "create", consumers="nobody", requests=5, grpc=server.grpc_addr)

    assert (result["requests"], result["errors"], result["rate"]) == (0, 5, 0)
    assert "fk_resources_consumers" in result["first_error"]


def test_list_reads_whole_answers(programs: Programs, server: RunningServer, consumer: str) -> None:
    load(programs, "create", consumers=consumer, requests=10, size=5000, grpc=server.grpc_addr)

    query = f"size=10&search=consumer_name='{consumer}'"
    result = load(programs, "list", rest=server.rest_url, query=query, requests=4, workers=2)

    assert (result["requests"], result["errors"]) == (4, 0)
    assert result["bytes"] > 4 * 10 * 5000
    assert 0 < result["p50_ms"] <= result["p95_ms"] <= result["p99_ms"] <= result["max_ms"]
