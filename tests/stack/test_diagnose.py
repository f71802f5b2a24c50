"""`maestro diagnose` on a real server, database, clusters and agents; archives are analysed without any access."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maestropy import Work, trace
from maestropy.aio.clock import Clock
from maestropy.console.archived import archived
from maestropy.diagnose import archive
from maestropy.diagnose.analysis import analyze
from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.diagnose.collection import collect
from maestropy.diagnose.collection.collect import CollectOptions
from maestropy.diagnose.collection.scope import Scope
from maestropy.kube.client import KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.request import ResourceType
from maestropy.sandbox.fleet import Fleet, FleetOptions, fleet
from maestropy.trace import library
from maestropy.trace.access.confirmation import NoConfirmer
from maestropy.trace.access.options import HcpAccess, WorkAccess
from maestropy.trace.access.pod_logs import PODS
from maestropy.trace.errors import InvalidArguments, NoAccess
from maestropy.trace.exit_codes import Exit
from tests import waiting
from tests.unit.diagnose import planted

NAMESPACES = ResourceType(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
TEAPOT = {"apiVersion": "example.com/v1", "kind": "Teapot", "metadata": {"name": "pot", "namespace": "default"}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def access(running: Fleet) -> WorkAccess:
    return WorkAccess(
        db_dsn=str(running.dsn),
        rest_url=running.api_url,
        mgmt_kubeconfigs=tuple(f"{consumer}={path}" for consumer, path in running.kubeconfigs.items()),
        logs=str(running.folder),
    )


def options(running: Fleet, output: Path, **more: Any) -> CollectOptions:
    given: dict[str, Any] = {"access": access(running), "hcp_access": HcpAccess(), "output": output, **more}
    return CollectOptions(**given)


async def collected(choice: CollectOptions, *, progress: Any = lambda _: None) -> collect.Result:
    return await collect.collect(choice, confirmer=NoConfirmer(), progress=progress, clock=Clock())


async def analysed(path: Path, folder: Path) -> Analysis:
    """Analyse in a thread: the analysis has event loops of its own."""
    folder.mkdir()

    def act() -> Analysis:
        with archive.opened(path, folder=folder) as opened:
            return analyze.analyze(opened)

    return await asyncio.to_thread(act)


@contextlib.asynccontextmanager
async def running_fleet(folder: Path, *consumers: str) -> AsyncIterator[Fleet]:
    choice = FleetOptions(folder=folder / "data", consumers=consumers or ("cluster1",), is_ephemeral=True)
    async with fleet(choice) as running:
        yield running


async def with_fault(running: Fleet, consumer: str = "cluster1") -> None:
    """Apply a work that is fine, and one of a kind that the cluster does not have."""
    works = running.client.works(consumer)
    await works.apply(Work("fine").add(config_map("fine")))
    await works.apply(Work("broken").add(TEAPOT).add(config_map("beside")))
    await has_verdicts(running, fine="MW-001", broken="MW-005")

    def is_logged() -> bool:
        log = running.folder / f"agent-{consumer}.log"
        return "Teapot" in log.read_text(encoding="utf-8", errors="replace")

    await waiting.until(is_logged, what="the failure in the agent's log")


async def has_verdicts(running: Fleet, **codes: str) -> None:
    """Wait until works have their verdicts: the agent lists applied objects after it reported them."""

    async def is_so() -> bool:
        for name, code in codes.items():
            report = await library.work(access=access(running), work_name=name.replace("_", "-"))
            if [work.verdict.code for work in report.works] != [code]:
                return False
        return True

    await waiting.until(is_so, what=f"the verdicts {codes}")


@pytest.mark.long
async def test_archive_gives_the_verdicts_of_live_traces_where_nothing_can_be_reached(tmp_path: Path) -> None:
    target = tmp_path / "incident.tar.zst"
    async with running_fleet(tmp_path) as running:
        await with_fault(running)
        result = await collected(options(running, target))
        assert {section.state for section in result.manifest.sections} <= {"collected", "skipped"}
        live = {name: await library.work(access=access(running), work_name=name) for name in ("fine", "broken")}
        logs = await asyncio.to_thread(trace.requests, [str(running.folder)])
    # The fleet is gone, and the environment has nothing that could lead to one.
    command = [sys.executable, "-m", "maestropy.cli.main", "diagnose", "analyze", str(target), "-o", "json"]
    found = subprocess.run(
        command, capture_output=True, env={"HOME": str(tmp_path / "none")}, cwd=tmp_path, check=False
    )
    assert found.returncode == Exit.PROBLEM == max(report.exit for report in live.values()), found.stderr
    report = json.loads(found.stdout)
    codes = {work["name"]: work["code"] for work in report["works"]}
    assert codes == {name: live[name].works[0].verdict.code for name in live} == {"fine": "MW-001", "broken": "MW-005"}
    offline = {(item["resourceId"], item["version"]): (item["verdict"], item["code"]) for item in report["requests"]}
    # A complete request of which no client was told carries that: MT-901 is no problem, and so not its main finding.
    unsent = {item.key: "MT-901" for item in logs if any(found.code == "MT-901" for found in item.findings)}
    assert offline == {
        (item.key.resource, item.key.version): (
            item.verdict.value,
            item.main_finding.code if item.main_finding else unsent.get(item.key, ""),
        )
        for item in logs
    }
    assert ("failed", "MT-405") in offline.values()
    first = report["findings"][0]
    assert (first["rank"], first["code"], first["subjects"]) == (1, "MW-005", ["work broken of cluster1"])
    where = [item["where"] for item in first["evidence"]]
    assert any(path.startswith("database/rows.jsonl:") for path in where)
    assert any(path.startswith("clusters/cluster1/") for path in where)
    assert any("logs/files/agent-cluster1.log:" in str(item["evidence"]) for item in report["findings"])
    await console_agrees(target, tmp_path / "console", codes=codes, requests=len(offline))


async def console_agrees(path: Path, folder: Path, *, codes: dict[str, str], requests: int) -> None:
    """Open an archive in the console: verdicts, clusters, history, the connected agent and requests are there."""
    folder.mkdir()
    with archive.opened(path, folder=folder) as opened:
        async with archived(opened) as running:
            pages = [await running.pages.page(work_id) for work_id in running.picture.works]
            assert {page["work"]["workName"]: page["work"]["code"] for page in pages} == codes
            assert all(page["work"]["clustersRead"] and page["history"] and page["requests"] for page in pages)
            assert running.picture.agents["cluster1"].is_connected
            assert len(running.requests.listed()) == requests
            assert {row.code for row in running.picture.works.values()} == set(codes.values())


@pytest.mark.long
async def test_anonymised_archive_has_the_same_verdicts_and_no_name(tmp_path: Path) -> None:
    target, key = tmp_path / "a.tar.zst", tmp_path / "a.key"
    async with running_fleet(tmp_path, "us-east-mgmt-01") as running:
        works = running.client.works("us-east-mgmt-01")
        await works.apply(Work("payroll-frontend", labels={"team": "lighthouse"}).add(config_map("invoice-settings")))
        await works.apply(Work("payroll-backend").add(TEAPOT))
        await has_verdicts(running, payroll_frontend="MW-001", payroll_backend="MW-005")
        await collected(options(running, target, key_file=key))
        plain = tmp_path / "plain.tar.zst"
        await collected(options(running, plain))
    names = ["us-east-mgmt-01", "payroll", "lighthouse", "invoice-settings", "frontend"]
    assert planted.leaked(plain, names) == names
    assert planted.leaked(target, names) == []
    assert key.stat().st_mode & 0o777 == 0o600
    hidden, shown = await analysed(target, tmp_path / "x"), await analysed(plain, tmp_path / "y")
    assert (
        sorted(work.code for work in hidden.works) == sorted(work.code for work in shown.works) == ["MW-001", "MW-005"]
    )
    assert sorted(item.verdict for item in hidden.requests) == sorted(item.verdict for item in shown.requests)
    assert hidden.exit is shown.exit is Exit.PROBLEM
    command = [sys.executable, "-m", "maestropy.cli.main", "diagnose"]
    report = subprocess.run([*command, "analyze", str(target)], capture_output=True, check=False).stdout
    assert b"payroll" not in report
    back = subprocess.run([*command, "reveal", "--key", str(key)], input=report, capture_output=True, check=True).stdout
    assert b"work payroll-backend of us-east-mgmt-01" in back


@pytest.mark.long
async def test_cluster_without_access_is_named_and_the_others_are_collected(tmp_path: Path) -> None:
    target = tmp_path / "a.tar.zst"
    async with running_fleet(tmp_path, "one", "two", "three") as running:
        for consumer in ("one", "two", "three"):
            await running.client.works(consumer).apply(Work(f"w-{consumer}").add(config_map("cm")))
        await has_verdicts(running, w_one="MW-001", w_two="MW-001", w_three="MW-001")
        broken = tmp_path / "gone.kubeconfig"
        text = running.kubeconfigs["three"].read_text()
        address = next(line for line in text.splitlines() if "server:" in line)
        broken.write_text(text.replace(address, address.split("server:")[0] + "server: https://127.0.0.1:1"))
        files = (f"one={running.kubeconfigs['one']}", f"two={running.kubeconfigs['two']}", f"three={broken}")
        result = await collected(
            options(running, target, access=replace(access(running), mgmt_kubeconfigs=files, timeout_seconds=5.0))
        )
    states = {section.name: section.state for section in result.manifest.sections if section.name.startswith("cluster")}
    assert states == {"cluster one": "collected", "cluster two": "collected", "cluster three": "failed"}
    assert [section.name for section in result.missing] == ["cluster three"]
    analysis = await analysed(target, tmp_path / "x")
    assert {work.consumer: work.code for work in analysis.works} == {
        "one": "MW-001",
        "two": "MW-001",
        "three": "MW-100",
    }
    assert analysis.exit is Exit.INCONCLUSIVE
    assert any(sentence.startswith("cluster three (failed): ") for sentence in analysis.unknown)


@pytest.mark.long
async def test_interrupted_collection_goes_on_where_it_ended(tmp_path: Path) -> None:
    target = tmp_path / "a.tar.zst"
    steps: list[str] = []

    def interrupting(step: str) -> None:
        steps.append(step)
        if step == "collecting cluster cluster1":
            raise asyncio.CancelledError

    async with running_fleet(tmp_path) as running:
        await with_fault(running)
        with pytest.raises(asyncio.CancelledError):
            await collected(options(running, target), progress=interrupting)
        assert not target.exists()
        folder = collect.staging_folder(target)
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(InvalidArguments, match="continue it with --resume"):
            await collected(options(running, target))
        with pytest.raises(InvalidArguments, match="begun with other limits"):
            await collected(options(running, target, is_resumed=True, scope=Scope(consumer="x")))
        again: list[str] = []
        result = await collected(options(running, target, is_resumed=True), progress=again.append)
    assert "collecting works" in steps
    assert "collecting works" not in again
    assert "collecting logs" in again
    assert not folder.exists()
    assert result.missing == []
    assert {work.code for work in (await analysed(target, tmp_path / "x")).works} == {"MW-001", "MW-005"}


@pytest.mark.long
async def test_scope_limits_works_clusters_and_logs(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "one", "two") as running:
        for consumer in ("one", "two"):
            await running.client.works(consumer).apply(Work(f"w-{consumer}").add(config_map(f"cm-{consumer}")))
        await has_verdicts(running, w_one="MW-001", w_two="MW-001")
        by_consumer = await collected(options(running, tmp_path / "a.tar.zst", scope=Scope(consumer="one")))
        await collected(options(running, tmp_path / "b.tar.zst", scope=Scope(work="w-two")))
        without_sql = replace(access(running), db_dsn="")
        await collected(
            options(running, tmp_path / "c.tar.zst", access=without_sql, scope=Scope(work="w-two", consumer="two"))
        )
        future = Scope(since=Clock().epoch() + 3600)
        await collected(options(running, tmp_path / "d.tar.zst", scope=future))
        await collected(options(running, tmp_path / "e.tar.zst", access=without_sql, scope=future))
        no_work = await collected(options(running, tmp_path / "f.tar.zst", scope=Scope(work="nope")))
        no_consumer = await collected(options(running, tmp_path / "g.tar.zst", scope=Scope(consumer="nope")))
    first, second = (
        await analysed(tmp_path / "a.tar.zst", tmp_path / "1"),
        await analysed(tmp_path / "b.tar.zst", tmp_path / "2"),
    )
    third, fourth = (
        await analysed(tmp_path / "c.tar.zst", tmp_path / "3"),
        await analysed(tmp_path / "d.tar.zst", tmp_path / "4"),
    )
    assert [(work.name, work.code) for work in first.works] == [("w-one", "MW-001")]
    assert [cluster.label for cluster in by_consumer.manifest.clusters] == ["one"]
    assert [(work.name, work.code) for work in second.works] == [("w-two", "MW-001")]
    assert [(work.name, work.code) for work in third.works] == [("w-two", "MW-001")]
    assert len(fourth.works) == 2
    assert first.requests
    assert fourth.requests == ()
    # The state of the agents, whatever the window.
    for name, path in (("d", "database/history.jsonl"), ("e", "server/history.jsonl")):
        folder = tmp_path / f"files-{name}"
        folder.mkdir()
        with archive.opened(tmp_path / f"{name}.tar.zst", folder=folder) as opened:
            text = (opened.folder / path).read_text()
        assert sorted(json.loads(line)["consumer_name"] for line in text.splitlines()) == ["one", "two"]
    assert "nothing matches --work nope" in next(item.reason for item in no_work.missing if item.name == "works")
    assert {item.name for item in no_consumer.missing} == {"server", "database"}
    assert all("nothing matches --consumer nope" in item.reason for item in no_consumer.missing)


@pytest.mark.long
async def test_collection_keeps_to_its_size_limit_and_says_so(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as running:
        await with_fault(running)
        big = running.folder / "big.log"
        line = "I1117 10:00:00.000000       1 x.go:1] a line of a log that is long\n"
        big.write_text("".join(f"{line[:-1]} {number}\n" for number in range(40_000)))
        result = await collected(options(running, tmp_path / "a.tar.zst", most_bytes=1 << 20))
    assert sum(result.manifest.files.values()) <= 1 << 20
    section = result.manifest.section("logs")
    assert section is not None
    assert section.state == "partial"
    assert "raise --max-size" in section.reason
    with archive.opened(tmp_path / "a.tar.zst", folder=tmp_path / "x") as opened:
        # The newest part is kept.
        assert (opened.folder / "logs/files/big.log").read_text().endswith("39999\n")
    assert {work.code for work in (await analysed(tmp_path / "a.tar.zst", tmp_path / "y")).works} == {
        "MW-001",
        "MW-005",
    }


@pytest.mark.long
async def test_ports_and_logs_of_pods_are_read_through_the_cluster(tmp_path: Path) -> None:
    target = tmp_path / "a.tar.zst"
    async with running_fleet(tmp_path) as running:
        # The server's pod stands on the same sandbox cluster; its ports lead to the real server.
        ports = running.server.ports
        await create_server_pod(running, f"8083={ports.health},8080={ports.metrics}")
        context = str(running.kubeconfigs["cluster1"])
        reached = replace(access(running), logs="", svc_kubeconfig=context)
        result = await collected(options(running, target, access=reached))
    section = result.manifest.section("endpoints")
    assert section is not None
    assert section.files == [f"server/pods/maestro-1.{name}" for name in PORT_FILES]
    assert section.state == "partial"
    assert "no pod in namespace maestro-agent has the label app=maestro-agent" in section.reason
    logs = result.manifest.section("logs server")
    assert logs is not None
    assert logs.state == "collected"
    with archive.opened(target, folder=tmp_path / "x") as opened:
        assert "[+]database ok" in (opened.folder / "server/pods/maestro-1.health.txt").read_text()
        assert "maestropy_database_up 1" in (opened.folder / "server/pods/maestro-1.metrics.txt").read_text()


PORT_FILES = ("health.jsonl", "health.txt", "metrics.jsonl", "metrics.txt")


async def create_server_pod(running: Fleet, forward: str) -> None:
    metadata = {"name": "maestro-1", "namespace": "maestro", "labels": {"app": "maestro"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": {"sandbox.maestropy/forward": forward}},
        "spec": {"containers": [{"name": "server", "image": "maestro:1"}]},
    }
    async with KubeClient(config.from_kubeconfig([running.kubeconfigs["cluster1"]])) as kube:
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "maestro"}})
        await kube.create(PODS, pod)


@pytest.mark.long
async def test_broker_that_rejects_the_connection_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mqtt.yaml"
    topics = "sourceEvents: sources/s/consumers/+/sourceevents, agentEvents: sources/s/consumers/+/agentevents"
    file.write_text(f"brokerHost: 127.0.0.1:1\ntopics: {{{topics}}}\n")
    async with running_fleet(tmp_path) as running:
        await collected(options(running, tmp_path / "a.tar.zst", broker_config=file))
    analysis = await analysed(tmp_path / "a.tar.zst", tmp_path / "x")
    assert [item.code for item in analysis.findings if item.engine == "broker"] == ["MD-302"]


async def test_without_any_access_nothing_is_written(tmp_path: Path) -> None:
    nowhere = WorkAccess(db_dsn="postgresql://nobody:Hunter2@127.0.0.1:1/none", no_cluster=True, timeout_seconds=3.0)
    choice = CollectOptions(access=nowhere, hcp_access=HcpAccess(), output=tmp_path / "a.tar.zst")
    with pytest.raises(NoAccess, match=r"nothing could be collected: .*works: ") as caught:
        await collected(choice)
    assert "Hunter2" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_commands_reject_what_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "there.tar.zst").touch()
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    for arguments, message in (
        (["collect", "-o", str(tmp_path / "there.tar.zst")], "exists already"),
        (["collect", "--max-size", "much"], "is no size; write 200M or 2G"),
        (["collect", "--since", "1h", "--until", "2h"], "--until is not after --since"),
        (["collect", "--key", "k"], "--key is the key file of --anonymise"),
        (["collect", "--offline", "."], "trace it with"),
        (["reveal", "--key", str(tmp_path / "none")], "does not exist"),
    ):
        command = [sys.executable, "-m", "maestropy.cli.main", "diagnose", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)
        assert ended.returncode in (2, 3), ended
        assert message in ended.stderr
