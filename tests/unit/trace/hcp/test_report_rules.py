"""Printed commands can be pasted, facts fit 120 columns, and no contradiction is reported while ARM deletes."""

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest
from markdown_it import MarkdownIt

from maestropy.cli.command_tree import app
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.trace.access.hcp.http_requests import HttpRead
from maestropy.trace.access.hcp.http_service import HttpService
from maestropy.trace.access.hcp.management_cluster import ManagementClusterReader
from maestropy.trace.hcp import identity, walk
from maestropy.trace.hcp.documents import offline
from maestropy.trace.hcp.model import Walk
from maestropy.trace.hcp.query import CommandFlags, HopQuery, Snapshot, System, Topic
from maestropy.trace.hcp.report import render
from maestropy.trace.output import Evidence
from tests.unit.trace.hcp.hcp_documents import ARM, CID, DATA, NOW, healthy, stuck, walked, write

FLAGS = CommandFlags(
    management="--kubeconfig /k/mgmt.yaml --context 'mgmt one'",
    service="--context svc",
    work="--svc-context svc --mgmt-kubeconfig /k/mgmt.yaml --mgmt-context 'mgmt one'",
    logs="--svc-context svc --mgmt-kubeconfig /k/mgmt.yaml --mgmt-context 'mgmt one'",
)


class _Live:
    """The documents of a directory, as a live runner with flags for commands."""

    def __init__(self, directory: Path) -> None:
        self.run_queries = offline.read(directory).run_queries
        self.flags = FLAGS


def walked_live(directory: Path) -> Walk:
    snapshot = Snapshot(now=NOW, source="live")
    return asyncio.run(walk.run(identity.parse(ARM), runner=_Live(directory), snapshot=snapshot))


def test_commands_reach_the_same_clusters(tmp_path: Path) -> None:
    commands = walked_live(write(tmp_path, stuck())).verdict.next
    kubectl = [command for command in commands if command.startswith("kubectl")]
    assert kubectl
    assert all(command.startswith(f"kubectl {FLAGS.management} ") for command in kubectl)
    own = [command for command in commands if command.startswith("maestro")]
    assert [command.split()[2] for command in own] == ["work", "logs", "request"]
    assert "LOGS" not in " ".join(own)


def test_own_commands_are_accepted_by_the_command_line(tmp_path: Path) -> None:
    folder = write(tmp_path, stuck())
    commands = [*walked_live(folder).verdict.next, *walked(folder).verdict.next]
    own = [command for command in commands if command.startswith("maestro ")]
    assert len(own) == 4
    for command in own:
        app.parse_args(shlex.split(command)[1:], exit_on_error=False, print_error=False)


def test_command_for_saved_documents_reads_them_as_well(tmp_path: Path) -> None:
    folder = write(tmp_path, stuck())
    assert any(command.endswith(f"--offline {folder}") for command in walked(folder).verdict.next)


def test_no_missing_url_while_arm_deletes(tmp_path: Path) -> None:
    documents = healthy()
    documents["arm"]["properties"]["api"]["url"] = ""
    documents["arm"]["properties"]["provisioningState"] = "Provisioning"
    (tmp_path / "creating").mkdir()
    codes = {found.code for found in walked(write(tmp_path / "creating", documents)).verdict.contradictions}
    assert "HCP-021" in codes
    documents["arm"]["properties"]["provisioningState"] = "Deleting"
    (tmp_path / "deleting").mkdir()
    codes = {found.code for found in walked(write(tmp_path / "deleting", documents)).verdict.contradictions}
    assert "HCP-021" not in codes


@pytest.mark.parametrize("hop", [hop.name for hop in walk.HOPS])
def test_facts_fit_120_columns(hop: str) -> None:
    finished = walked(DATA)
    lines = render.single(finished, [hop]).splitlines()
    table = [line for line in lines[1:] if not line.startswith("  note")]
    assert [line for line in table if len(line) > 120] == []
    assert "..." not in "".join(table)
    for fact in finished.hop(hop).facts:
        assert "".join(fact.value.split()) in "".join("".join(_column(table)).split())


def _column(table: list[str]) -> list[str]:
    """Return the value column: everything from where its head stands."""
    start = next(line.index("VALUE") for line in table if "VALUE" in line)
    return [line[start:] for line in table if not line.startswith("  from ")]


def test_table_of_hops_fits_120_columns() -> None:
    lines = render.text(walked(DATA)).splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("HOP "))
    last = next(number for number, line in enumerate(lines) if line.startswith("VERDICT"))
    assert max(map(len, lines[first:last])) <= 120


def test_facts_that_people_look_up(tmp_path: Path) -> None:
    finished = walked(write(tmp_path, stuck()))
    cs = {fact.name: fact.value for fact in finished.hop("clusters-service").facts}
    assert cs["azure.subscription_id"] == "3f6c1d52-7a0b-4d7e-9c55-0a1be1a2c3d4"
    assert (cs["azure.resource_group_name"], cs["azure.resource_name"]) == ("rg-customer-a", "orders-prod")
    shard = {fact.name: fact.value for fact in finished.hop("shard").facts}
    assert shard["cx_managed_identities_key_vault_url"] == "https://ah-dev-mi-usw3-1.vault.azure.net/"
    assert shard["href"].startswith("/api/aro_hcp/v1alpha1/provision_shards/")
    bundles = [fact for fact in finished.hop("maestro").facts if fact.name.strip() == "updated_at"]
    assert [fact.value for fact in bundles][:1] == ["2026-08-20T10:06:11Z"] or all(fact.since for fact in bundles)
    assert len(bundles) == len([fact for fact in finished.hop("maestro").facts if fact.name.startswith("bundle ")])


@pytest.mark.parametrize("error", [httpx.ConnectTimeout("slow"), httpx.ConnectError("refused"), httpx.ReadTimeout("")])
async def test_dead_service_is_asked_once(error: Exception) -> None:
    requests: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url))
        await asyncio.sleep(0)
        raise error

    reads = [HttpRead(path="/a", query={}), HttpRead(path="/b", query={})]
    query = HopQuery(topic=Topic.CS_CLUSTER, cid=CID)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        service = HttpService(client, base="http://cs", system=System.CLUSTERS_SERVICE)
        results = await asyncio.gather(*(service.run_query(query, reads) for _ in range(4)))
    assert len(requests) == 1
    assert {result.outcome for result in results} == {"unknown"}
    assert all("http://cs" in result.why for result in results)


async def test_living_service_is_asked_in_parallel() -> None:
    running, most = 0, 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return httpx.Response(200, json={"id": CID})

    query = HopQuery(topic=Topic.CS_CLUSTER, cid=CID)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        service = HttpService(client, base="http://cs", system=System.CLUSTERS_SERVICE)
        await asyncio.gather(*(service.run_query(query, [HttpRead(path="/a", query={})]) for _ in range(4)))
    assert most == 3


class _DeadCluster:
    """A Kubernetes client whose API server does not respond."""

    def __init__(self, error: errors.KubeError) -> None:
        self.requests = 0
        self.error = error

    async def list(self, *_: object, **__: object) -> list[object]:
        self.requests += 1
        await asyncio.sleep(0)
        raise self.error


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        pytest.param(errors.Unreachable("no route to host"), 1, id="unreachable"),
        pytest.param(errors.Timeout("no response in time"), 1, id="timeout"),
        pytest.param(errors.Forbidden("forbidden"), 4, id="alive-and-forbidden"),
    ],
)
async def test_dead_management_cluster_is_asked_once(error: errors.KubeError, requests: int) -> None:
    client = _DeadCluster(error)
    cluster = ManagementClusterReader(cast("KubeClient", client), label="mgmt")
    topics = (Topic.WORK, Topic.HOSTED_CLUSTER, Topic.NODE_POOL, Topic.POD)
    results = await asyncio.gather(*(cluster.run_query(HopQuery(topic=topic, cid=CID)) for topic in topics))
    assert client.requests == requests
    assert {result.outcome for result in results} == {"unknown"}


def test_markdown_renders_no_text_as_html(tmp_path: Path) -> None:
    found = walked(write(tmp_path, stuck()))
    text = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) | `<b>`"
    hops = tuple(
        replace(hop, reason=text, facts=tuple(replace(fact, value=text) for fact in hop.facts)) for hop in found.hops
    )
    verdict = replace(found.verdict, reason=text, evidence=(Evidence(where=text, says=text),), next=(text,))
    parsed = MarkdownIt("commonmark").enable("table").parse(render.markdown(replace(found, hops=hops, verdict=verdict)))
    tokens = {inner.type for token in parsed for inner in (token, *(token.children or ()))}
    assert "table_open" in tokens
    assert not {"html_block", "html_inline", "link_open", "image"} & tokens
