"""The walk over HTTP and Kubernetes on the practice fleet: real server, real agent, real bundles, every scenario."""

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest

from maestropy.cli.main import call
from maestropy.sandbox.hcp import cast
from maestropy.sandbox.hcp.stage import Stage, stage


def walked(tmp_path: Path, scenario: str, *more: str) -> dict:
    """Walk along a scenario with the command itself; return the report and how long it took."""

    async def scene() -> dict:
        async with stage(tmp_path / "fleet", cast.SCENARIOS[scenario]) as started:
            return await command(started, *more)

    return asyncio.run(scene())


async def command(started: Stage, *more: str) -> dict:
    began = time.monotonic()
    words = ["trace", "hcp", *started.arguments, "-o", "json", *more]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "maestropy.cli.main", *words, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    return {**json.loads(told), "code": process.returncode, "seconds": time.monotonic() - began}


@pytest.mark.parametrize(
    ("scenario", "hop", "code", "words"),
    [
        ("healthy", "node-pools", "HCP-000", "every hop is where it should be"),
        ("etcd", "hosted-cluster", "HCP-701", "etcd-1, etcd-2 are not ready"),
        ("undelivered", "maestro", "HCP-402", "was never reported on"),
        ("deletion", "hosted-cluster", "HCP-705", "held by hypershift.openshift.io/finalizer"),
        ("contradiction", "hosted-cluster", "HCP-701", "EtcdWaitingForQuorum"),
    ],
)
def test_scenario(scenario: str, hop: str, code: str, words: str, tmp_path: Path) -> None:
    told = walked(tmp_path, scenario, *(["--watch"] if scenario == "healthy" else []))
    states = {each["name"]: (each["state"], each["reason"]) for each in told["hops"]}
    assert (told["verdict"]["hop"], told["verdict"]["code"]) == (hop, code), states
    assert words in told["verdict"]["reason"]
    assert told["code"] == (0 if scenario == "healthy" else 1)
    assert told["seconds"] < 10  # a second on a quiet computer; most of it is starting Python
    if scenario == "contradiction":
        assert "HCP-013" in {each["code"] for each in told["verdict"]["contradictions"]}
    if scenario == "deletion":
        assert told["verdict"]["deleting"]
    if scenario == "etcd":
        assert states["agent"][0] == states["works"][0] == states["maestro"][0] == "ok"


def test_saved_walk_is_the_same_offline(tmp_path: Path) -> None:
    live = walked(tmp_path, "etcd", "--save", str(tmp_path / "saved"))
    out = tmp_path / "offline.json"
    assert (
        call(["trace", "hcp", cast.ARM_ID, "--offline", str(tmp_path / "saved"), "-o", "json", "--out", str(out)]) == 1
    )
    again = json.loads(out.read_text())
    assert again["verdict"]["reason"] == live["verdict"]["reason"]
    states = [[(each["name"], each["state"]) for each in report["hops"]] for report in (live, again)]
    assert states[0] == states[1]
