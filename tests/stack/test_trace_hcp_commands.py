"""`maestro trace hcp` on the practice fleet: how services are reached, and commands that can be pasted."""

import asyncio
import json
import shlex
from pathlib import Path

import pytest

from maestropy.cli.main import call
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.hcp import documents
from maestropy.sandbox.hcp.practice_fleet import practice_fleet
from tests.stack.hcp_walks import command, run, run_command, walked

pytestmark = pytest.mark.long


def test_folder_is_reused_and_services_are_reached_by_port_forward_or_address(tmp_path: Path) -> None:
    async def context() -> None:
        for scenario, code in (("deletion", "HCP-705"), ("etcd", "HCP-701")):
            async with practice_fleet(tmp_path / "fleet", documents.SCENARIOS[scenario]) as started:
                forwarded = await command(started)
                assert forwarded["verdict"]["code"] == code
                direct = await run_command(*started.url_arguments, "-o", "json")
                assert [hop["state"] for hop in direct["hops"]] == [hop["state"] for hop in forwarded["hops"]]
        with pytest.raises(SandboxError, match="not empty and not a folder of an earlier practice fleet"):
            async with practice_fleet(tmp_path, documents.SCENARIOS["etcd"]):
                pass

    asyncio.run(context())


def test_environment_names_the_clusters_and_the_shard_selects_one(tmp_path: Path) -> None:
    async def context() -> None:
        async with practice_fleet(tmp_path / "fleet", documents.SCENARIOS["etcd"]) as started:
            files = f"other=/nowhere, {documents.CONSUMER}={started.kubeconfig}"
            stored = {"svc-kubeconfig": str(started.service_kubeconfig), "mgmt-kubeconfig": files}
            config = tmp_path / "config.yaml"
            config.write_text(json.dumps({"environments": {"practice": stored}}))
            words = [started.resource_id, "-o", "json", "--env", "practice", "--config", str(config)]
            report = await run_command(*words)
            assert (report["verdict"]["hop"], report["verdict"]["code"]) == ("hosted-cluster", "HCP-701")
            assert any(f"--kubeconfig {started.kubeconfig} " in line for line in report["verdict"]["next"])
            stored["mgmt-kubeconfig"] = "other=/nowhere, another=/nowhere"
            config.write_text(json.dumps({"environments": {"practice": stored}}))
            reasons = [hop["reason"] for hop in (await run_command(*words))["hops"]]
            expected = f"environment practice names no management cluster for consumer {documents.CONSUMER}"
            assert any(expected in reason for reason in reasons), reasons

    asyncio.run(context())


def test_next_commands_of_our_own_work_when_pasted(tmp_path: Path) -> None:
    async def context() -> None:
        async with practice_fleet(tmp_path / "fleet", documents.SCENARIOS["etcd"]) as started:
            for arguments in (started.arguments, started.url_arguments):
                report = await run_command(*arguments, "-o", "json")
                own = [line for line in report["verdict"]["next"] if line.startswith("maestro trace work ")]
                assert len(own) == 1, report["verdict"]["next"]
                code, printed = await run(*shlex.split(own[0])[1:], "-o", "json")
                work = json.loads(printed)["works"][0]
                # ACM is simulated, so the inner work has no applied work; both systems were read.
                assert (code, work["code"]) == (1, "MW-113"), work["findings"]
                assert work["db"]["status"]["version"] == 1
                assert work["applied"]

    asyncio.run(context())


def test_saved_walk_is_the_same_offline(tmp_path: Path) -> None:
    live = walked(tmp_path, "etcd", "--save", str(tmp_path / "saved"))
    out = tmp_path / "offline.json"
    assert (
        call(["trace", "hcp", documents.ARM_ID, "--offline", str(tmp_path / "saved"), "-o", "json", "--out", str(out)])
        == 1
    )
    again = json.loads(out.read_text())
    assert again["verdict"]["reason"] == live["verdict"]["reason"]
    states = [[(hop["name"], hop["state"]) for hop in report["hops"]] for report in (live, again)]
    assert states[0] == states[1]
