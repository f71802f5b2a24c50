"""The load program counts what really happened: its figures judge servers, so they are judged first."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Lines, rest
from tests.peers.peer_servers import RunningServer

pytestmark = pytest.mark.peers


def load(programs: Programs, mode: str, **flags: str | int) -> Json:
    command: list[str | Path] = [programs.load, "-mode", mode, *(f"-{name}={value}" for name, value in flags.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=40)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def bundles(server: RunningServer, consumer: str) -> list[Json]:
    return list(rest(server, "GET", f"/resource-bundles?size=1000&search=consumer_name='{consumer}'")["items"])


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
        # 30 creations and 30 deletions; an update that its deletion overtakes need not be delivered.
        assert 60 <= delivered["requests"] <= 80


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


def test_bursts_wait_for_the_status_of_every_work(
    programs: Programs, server: RunningServer, consumer: str, tmp_path: Path
) -> None:
    agents = ["-mode=echo", f"-grpc={server.broker_addr}", f"-consumers={consumer}"]
    to_server = {"grpc": server.grpc_addr, "source": f"burst-{consumer}", "consumers": consumer}
    with Lines([programs.load, *agents], log=tmp_path / "agents.log") as echoing:
        echoing.wait(lambda line: "subscribed" in line, what="the agent")

        at_once = load(programs, "burst", requests=20, workers=20, **to_server)
        in_turn = load(programs, "burst", requests=3, workers=1, **{"in-turn": "true"}, **to_server)

    assert (at_once["requests"], at_once["errors"]) == (20, 0)
    assert (in_turn["requests"], in_turn["errors"]) == (3, 0)
    assert 0 < at_once["p50_ms"] <= at_once["available_p99_ms"]
    assert in_turn["seconds"] * 1000 > 3 * in_turn["p50_ms"] * 0.5, "the works went one after the other"
    observed = [bundle["status"]["ObservedVersion"] for bundle in bundles(server, consumer)]
    assert observed == [1] * 23


def test_unanswered_burst_is_an_error(programs: Programs, server: RunningServer, consumer: str) -> None:
    result = load(programs, "burst", requests=2, seconds=3, grpc=server.grpc_addr, source="alone", consumers=consumer)

    assert (result["requests"], result["errors"]) == (0, 2)
    assert "in time" in result["first_error"]


@pytest.mark.parametrize("lacking", [0, 2])
def test_agents_of_sync_end_with_what_they_lack(
    programs: Programs, server: RunningServer, consumer: str, tmp_path: Path, lacking: int
) -> None:
    ids = tmp_path / "ids"
    load(programs, "create", consumers=consumer, requests=6, size=2000, grpc=server.grpc_addr, ids=str(ids))

    result = load(programs, "sync", grpc=server.broker_addr, ids=str(ids), lacking=lacking, seconds=20)

    assert (result["requests"], result["errors"]) == (1, 0)
    assert result["bytes"] >= 1800 * (lacking or 6)


def test_the_sdk_is_measured_with_its_limit_and_without(
    programs: Programs, server: RunningServer, consumer: str
) -> None:
    to_server: dict[str, Any] = {
        "grpc": server.grpc_addr,
        "source": f"sdk-{consumer}",
        "consumers": consumer,
        "workers": 20,
    }

    limited = load(programs, "sdk", requests=130, **to_server)
    free = load(programs, "sdk", requests=130, limit=100_000, **to_server)

    assert (limited["requests"], limited["errors"]) == (130, 0)
    assert (free["requests"], free["errors"]) == (130, 0)
    assert limited["seconds"] > 0.5, "30 events beyond the burst of 100 take 0.6 s at 50 a second"
    assert len(bundles(server, consumer)) == 260
