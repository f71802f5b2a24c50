"""`maestro trace work` on a real server, a real database, and a cluster with applied works of a real agent."""

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from maestropy import Work
from maestropy.kube.request import ResourceType
from maestropy.store.dsn import Dsn
from maestropy.trace.output import Exit
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work import gather
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.report import render
from maestropy.wire.works import resource_id
from tests import waiting
from tests.stack import harness, trace_fleet
from tests.stack.trace_fleet import CONSUMER, SOURCE, TracedFleet, config_map

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
APPLIED = ResourceType(
    group="work.open-cluster-management.io",
    version="v1",
    plural="appliedmanifestworks",
    kind="AppliedManifestWork",
    namespaced=False,
)
PATIENCE = 60.0


def id_of(name: str) -> str:
    return resource_id.resource_id(SOURCE, namespace=CONSUMER, name=name)


async def applied(fleet: TracedFleet, name: str, *manifests: dict[str, Any], **more: Any) -> str:
    works = fleet.client.works(CONSUMER)
    work = Work(name, **more)
    for manifest in manifests:
        work = work.add(manifest)
    await works.apply(work)
    await works.wait_for(name, "Applied", timeout=PATIENCE)
    return id_of(name)


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.mark.long
async def test_all_identifiers_lead_to_the_same_work(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        work_id = await applied(fleet, "nginx-work", config_map("nginx-cm"), namespace("team-a"), labels={"team": "a"})
        records = await fleet.cluster.applied_works([work_id])
        record = records[0]["metadata"]["name"]
        row = (await fleet.server.sql("SELECT payload->>'logtracing' AS t FROM resources"))[0]["t"]
        operation = next(iter(json.loads(row).values()))
        entries = [
            WorkQuery(entry="resource-id", values=(work_id,)),
            WorkQuery(entry="work-name", values=("nginx-work",)),
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind="configmap", name="nginx-cm", namespace="default")),
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="nginx-cm")),
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind="Namespace", name="team-a")),
            WorkQuery(entry="applied-work", values=(record,)),
            WorkQuery(entry="label", values=("team", "a")),
            WorkQuery(entry="op-id", values=(operation,)),
            WorkQuery(entry="name-like", values=("GINX",)),
            WorkQuery(entry="file", values=(work_id,)),
        ]
        for query in entries:
            report = await fleet.ask(query)
            assert [work.verdict.code for work in report.works] == ["MW-001"], (query, render.text(report))
            facts = report.works[0].facts
            assert facts.data.row is not None
            assert (facts.data.row.id, facts.data.row.work_name) == (work_id, "nginx-work")
            assert [each.name for each in facts.data.applied] == [record]
            assert [(str(line.key), line.is_applied, line.is_live) for line in facts.manifest_rows] == [
                ("ConfigMap/default/nginx-cm", True, True),
                ("Namespace/team-a", True, True),
            ]
            assert report.exit == Exit.HEALTHY


@pytest.mark.long
async def test_one_statement_and_one_list_for_many_works(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        ids = [await applied(fleet, f"work-{n}", config_map(f"cm-{n}")) for n in range(5)]
        before = dict(fleet.sandbox.request_counts)
        report = await fleet.ask(WorkQuery(entry="file", values=(*ids, "nobody")), depth=LookupDepth(objects=False))
        lists = fleet.sandbox.request_counts[("list", "appliedmanifestworks.work.open-cluster-management.io")]
        assert lists - before.get(("list", "appliedmanifestworks.work.open-cluster-management.io"), 0) == 1
        codes = sorted(work.verdict.code for work in report.works)
        assert codes == ["MW-001"] * 5 + ["MW-010"]
        assert report.exit == Exit.NOT_FOUND


async def test_problems_on_the_cluster_are_distinguished(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await applied(fleet, "shared-work", config_map("mine"))
        unknown = {
            "apiVersion": "example.com/v1",
            "kind": "Teapot",
            "metadata": {"name": "pot", "namespace": "default"},
        }
        works = fleet.client.works(CONSUMER)
        await works.apply(Work("broken").add(unknown).add(config_map("fine")))
        await works.wait_for("broken", lambda work: work.condition("Applied") is not None, timeout=PATIENCE)
        broken = await fleet.ask(WorkQuery(entry="work-name", values=("broken",)))
        assert broken.works[0].verdict.code == "MW-005", render.text(broken)
        assert "Teapot" in render.text(broken)
        assert broken.exit == Exit.PROBLEM

        old = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}}
        homeless = {**config_map("lost"), "metadata": {"name": "lost", "namespace": "nowhere"}}
        await works.apply(Work("homeless").add(old).add(homeless))
        await works.wait_for("homeless", lambda work: work.condition("Applied") is not None, timeout=PATIENCE)
        rejected = await fleet.ask(WorkQuery(entry="work-name", values=("homeless",)))
        advice = rejected.works[0].verdict.findings[0].advice
        assert advice[0].startswith("The cluster serves Deployment as apps/v1, not as apps/v1beta2: "), advice
        assert advice[1].startswith("The namespace nowhere does not exist on the cluster: "), advice

        nobody = await fleet.ask(WorkQuery(entry="resource-id", values=("no-such-id",)))
        assert [each.verdict.code for each in nobody.works] == ["MW-010"]

        await fleet.kube.create(CONFIG_MAPS, config_map("by-hand"))
        alone = await fleet.ask(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="by-hand")))
        assert [finding.code for finding in alone.findings] == ["MW-118"]
        assert alone.exit == Exit.NOT_FOUND

        absent = await fleet.ask(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="no-such")))
        assert [finding.code for finding in absent.findings] == ["MW-119"]

        other = await fleet.ask(
            WorkQuery(entry="work-name", values=("shared-work",)),
            readers=gather.Readers(database=fleet.database, clusters=[], unreachable_clusters=[]),
        )
        assert other.works[0].verdict.code == "MW-100"
        assert other.exit == Exit.INCONCLUSIVE


async def test_without_an_agent_a_work_is_pending_then_undelivered_then_its_deletion_stuck(database: Dsn) -> None:
    async with trace_fleet.fleet(database, with_agent=False) as fleet:
        crd = Path(__file__).parents[2] / "src/maestropy/agent/crds"
        await _install(fleet, crd)
        works = fleet.client.works(CONSUMER)
        await works.apply(Work("waiting").add(config_map("cm")))
        query = WorkQuery(entry="work-name", values=("waiting",))
        assert (await fleet.ask(query)).works[0].verdict.code == "MW-002"
        late = await fleet.ask(query, later=timedelta(minutes=11))
        assert late.works[0].verdict.code == "MW-003"
        await works.delete("waiting")
        assert (await fleet.ask(query)).works[0].verdict.code == "MW-101"
        later = await fleet.ask(query, later=timedelta(hours=2))
        assert later.works[0].verdict.code == "MW-008"
        shown = render.text(await fleet.ask(query))
        assert "ManifestWork Trace Results (DELETED)" in shown
        assert "- ConfigMap/default/cm" in shown
        assert "AppliedManifestWork:    Not found on cluster (work deleted)" in shown


async def _install(fleet: TracedFleet, folder: Path) -> None:
    import yaml

    definitions = ResourceType(
        group="apiextensions.k8s.io",
        version="v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
    )
    for path in folder.glob("*.yaml"):
        await fleet.kube.create(definitions, yaml.safe_load(path.read_text()))

    async def is_served() -> bool:
        try:
            return len(await fleet.kube.list(APPLIED)) == 0
        except Exception:
            return False

    await waiting.until(is_served, what="the kind")


async def test_a_deletion_names_the_finalizer_that_blocks_it(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        held = config_map("held")
        held["metadata"]["finalizers"] = ["example.com/keep"]
        await applied(fleet, "leaving", held)
        await fleet.client.works(CONSUMER).delete("leaving")

        async def is_leaving() -> bool:
            found = await fleet.kube.get(CONFIG_MAPS, "held", namespace="default")
            return "deletionTimestamp" in found["metadata"]

        await waiting.until(is_leaving, what="the deletion")
        query = WorkQuery(entry="work-name", values=("leaving",))
        assert (await fleet.ask(query)).works[0].verdict.code == "MW-007"
        stuck = await fleet.ask(query, later=timedelta(hours=2))
        assert stuck.works[0].verdict.code == "MW-107"
        assert "example.com/keep" in render.text(stuck)

        await fleet.kube.patch(
            CONFIG_MAPS,
            "held",
            change=_merge({"metadata": {"finalizers": None}}),
            namespace="default",
        )

        async def is_gone() -> bool:
            return bool(await fleet.server.value("SELECT count(*) FROM resources") == 0)

        await waiting.until(is_gone, what="the confirmation")
        gone = await fleet.ask(query)
        assert gone.works[0].verdict.code in {"MW-102", "MW-010"}
        assert gone.exit == Exit.NOT_FOUND


def _merge(body: dict[str, Any]) -> Any:
    from maestropy.kube.request import Patch

    return Patch(body=body)


async def test_orphans_and_other_consumers_are_reported(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        work_id = await applied(fleet, "one", config_map("one"))
        record = (await fleet.cluster.applied_works([work_id]))[0]
        # A record of an earlier broker, as an agent leaves it behind when the address changes.
        old = {
            "apiVersion": record["apiVersion"],
            "kind": record["kind"],
            "metadata": {"name": f"{'0' * 64}-{work_id}"},
            "spec": {**record["spec"], "hubHash": "0" * 64, "agentID": "0" * 64},
        }
        await fleet.kube.create(APPLIED, old)
        fresh = await _fresh_cluster(fleet)
        readers = gather.Readers(database=fleet.database, clusters=[fresh])
        twice = await fleet.ask(WorkQuery(entry="resource-id", values=(work_id,)), readers=readers)
        codes = {finding.code for finding in twice.works[0].verdict.findings}
        assert "MW-109" in codes, render.text(twice)

        foreign = {**old, "metadata": {"name": f"{'1' * 64}-gone-work"}}
        foreign["spec"] = {"hubHash": "1" * 64, "agentID": "1" * 64, "manifestWorkName": "gone-work"}
        await fleet.kube.create(APPLIED, foreign)
        fresh = await _fresh_cluster(fleet)
        readers = gather.Readers(database=fleet.database, clusters=[fresh])
        orphan = await fleet.ask(WorkQuery(entry="applied-work", values=(f"{'1' * 64}-gone-work",)), readers=readers)
        assert orphan.works[0].verdict.code == "MW-009", render.text(orphan)

        stranger = await _fresh_cluster(fleet, consumer="mgmt-2")
        readers = gather.Readers(database=fleet.database, clusters=[stranger])
        wrong = await fleet.ask(WorkQuery(entry="work-name", values=("one",)), readers=readers)
        assert wrong.works[0].verdict.code == "MW-103", render.text(wrong)


async def _fresh_cluster(fleet: TracedFleet, *, consumer: str = CONSUMER) -> Any:
    from maestropy.trace.access.cluster import TracedCluster

    cluster = TracedCluster(trace_fleet.targets(fleet.sandbox.kubeconfig, consumer=consumer)[0])
    cluster.client = fleet.kube
    return cluster


async def test_works_of_the_same_name_are_listed(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await fleet.client.consumers.create("mgmt-9")
        await applied(fleet, "twin", config_map("twin"))
        await fleet.client.works("mgmt-9").apply(Work("twin").add(config_map("twin")))
        query = WorkQuery(entry="work-name", values=("twin",))
        several = await fleet.ask(query)
        assert several.exit == Exit.AMBIGUOUS
        assert {candidate.consumer for candidate in several.result.candidates} == {CONSUMER, "mgmt-9"}
        shown = render.text(several)
        assert "Multiple resources found" in shown
        assert "mgmt-9" in shown
        one = await fleet.ask(WorkQuery(entry="work-name", values=("twin",), consumer=CONSUMER))
        assert one.exit == Exit.HEALTHY, render.text(one)


async def test_differences_are_shown_on_demand_and_secrets_never(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "key", "namespace": "default"},
            "stringData": {"password": "hunter2hunter2"},
        }
        await applied(fleet, "both", config_map("plain", color="blue"), secret)
        query = WorkQuery(entry="work-name", values=("both",))
        report = await fleet.ask(query, depth=LookupDepth(whole=True), expectations=Expectations(compare=True))
        shown = render.text(report, is_wide=True)
        assert "hunter2" not in shown
        # stringData never comes back from an API server: a difference, but not a value.
        assert "[redacted]" in shown


async def test_rest_api_is_queried(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        work_id = await applied(fleet, "by-rest", config_map("by-rest"), labels={"team": "b"})
        readers = gather.Readers(database=RestReader(client=fleet.client), clusters=[fleet.cluster])
        for query in (
            WorkQuery(entry="resource-id", values=(work_id,)),
            WorkQuery(entry="work-name", values=("by-rest",), consumer=CONSUMER, source=SOURCE),
            WorkQuery(entry="label", values=("team", "b")),
            WorkQuery(entry="name-like", values=("REST",)),
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="by-rest")),
        ):
            report = await fleet.ask(query, readers=readers)
            assert [work.verdict.code for work in report.works] == ["MW-001"], (query, render.text(report))


async def maestro(*arguments: str, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "maestropy.cli.main",
        "trace",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "MAESTRO_DB_DSN": "", **(environ or {})},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.long
async def test_command_prints_a_report(database: Dsn, tmp_path: Path) -> None:
    async with trace_fleet.fleet(database) as fleet:
        work_id = await applied(fleet, "cli-work", config_map("cli-cm"))
        access = [f"--mgmt-kubeconfig={CONSUMER}={fleet.sandbox.kubeconfig}", f"--db-dsn={fleet.dsn}"]
        code, out, err = await maestro("work", "--work-name", "cli-work", *access)
        assert (code, err) == (0, "")
        assert "Status: ✓ All manifests successfully applied to cluster" in out
        assert f"maestro trace request --resource-id {work_id}" in out

        code, out, err = await maestro("work", "--manifest-kind=cm", "--manifest-name=cli-cm", *access, "-o", "json")
        found = json.loads(out)
        assert (code, found["exitCode"], found["works"][0]["resourceId"]) == (0, 0, work_id)

        code, out, err = await maestro("work", "--work-name=nobody", *access)
        assert code == 4, out
        code, out, err = await maestro("work", "--work-name=nobody", *access, "--exit-zero")
        assert code == 0
        code, out, err = await maestro("work", *access)
        assert (code, out) == (2, "")
        code, out, err = await maestro(
            "work", "--work-name=x", "--db-dsn=postgresql://u@/x?host=/nowhere", "--no-cluster"
        )
        assert code == 5, (out, err)
        assert "Cannot connect to database" in out
        code, out, err = await maestro("work", "--check", *access)
        assert code == 0, out
        assert "Ready to trace." in out
        for form in ("wide", "yaml", "md", "html", "mermaid"):
            code, out, err = await maestro("work", "--resource-id", work_id, *access, "-o", form)
            assert (code, err) == (0, "")
            assert work_id in out


HOSTILE = [
    "x'; DROP TABLE resources; --",
    "\\q",
    "\\! touch /tmp/owned",
    ":'x'",
    "$(id)",
    "E'\\\\''",
    "';\n\\c postgres\n",
    "{{7*7}}",
    "\u202eevil\u0007",
    "%",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_identifiers_are_only_searched(database: Dsn, text: str) -> None:
    async with harness.in_process(database) as server:
        from maestropy.trace.database import DsnDatabase
        from maestropy.trace.work.readers import SqlDatabaseReader

        side = SqlDatabaseReader(DsnDatabase(dsn=trace_fleet.url(server.address)))
        for query in (
            WorkQuery(entry="resource-id", values=(text,)),
            WorkQuery(entry="work-name", values=(text,)),
            WorkQuery(entry="name-like", values=(text,)),
            WorkQuery(entry="label", values=(text, text)),
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind=text, name=text, namespace=text, group=text)),
        ):
            assert (await side.find(query)).rows == ()
        assert await server.value("SELECT count(*) FROM resources") == 0
