"""`maestro trace work` on a real server, a real database, and a cluster whose applied works a real agent made."""

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import harness
import pytest
import trace_stage
from trace_stage import CONSUMER, SOURCE, Stage, config_map

from maestropy import Work
from maestropy.kube.request import ResourceType
from maestropy.store.dsn import Dsn
from maestropy.trace.output import Exit
from maestropy.trace.restside import RestSide
from maestropy.trace.work import gather, render
from maestropy.trace.work.facts import Wish
from maestropy.trace.work.looking import Depth
from maestropy.trace.work.question import Manifest, Question
from maestropy.wire import identity

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
    return identity.resource_id(SOURCE, namespace=CONSUMER, name=name)


async def applied(stage: Stage, name: str, *manifests: dict[str, Any], **more: Any) -> str:
    works = stage.client.works(CONSUMER)
    work = Work(name, **more)
    for manifest in manifests:
        work = work.add(manifest)
    await works.apply(work)
    await works.wait_for(name, "Applied", timeout=PATIENCE)
    return id_of(name)


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_all_entry_points_lead_to_the_same_relation(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            work_id = await applied(
                stage, "nginx-work", config_map("nginx-cm"), namespace("team-a"), labels={"team": "a"}
            )
            records = await stage.cluster.applied_works([work_id])
            record = records[0]["metadata"]["name"]
            row = (await stage.server.sql("SELECT payload->>'logtracing' AS t FROM resources"))[0]["t"]
            operation = next(iter(json.loads(row).values()))
            entries = [
                Question(entry="resource-id", values=(work_id,)),
                Question(entry="work-name", values=("nginx-work",)),
                Question(entry="manifest", manifest=Manifest(kind="configmap", name="nginx-cm", namespace="default")),
                Question(entry="manifest", manifest=Manifest(kind="cm", name="nginx-cm")),
                Question(entry="manifest", manifest=Manifest(kind="Namespace", name="team-a")),
                Question(entry="applied-work", values=(record,)),
                Question(entry="label", values=("team", "a")),
                Question(entry="op-id", values=(operation,)),
                Question(entry="name-like", values=("GINX",)),
                Question(entry="file", values=(work_id,)),
            ]
            for question in entries:
                report = await stage.ask(question)
                assert [each.verdict.code for each in report.works] == ["MW-001"], (question, render.text(report))
                facts = report.works[0].facts
                assert facts.gathered.row is not None
                assert (facts.gathered.row.id, facts.gathered.row.work_name) == (work_id, "nginx-work")
                assert [each.name for each in facts.gathered.applied] == [record]
                assert [(str(line.key), line.is_applied, line.is_live) for line in facts.lines] == [
                    ("ConfigMap/default/nginx-cm", True, True),
                    ("Namespace/team-a", True, True),
                ]
                assert report.exit == Exit.HEALTHY

    harness.play(scenario())


def test_one_question_and_one_list_however_many_works(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            ids = [await applied(stage, f"work-{n}", config_map(f"cm-{n}")) for n in range(5)]
            before = dict(stage.sandbox.counts)
            report = await stage.ask(Question(entry="file", values=(*ids, "nobody")), depth=Depth(objects=False))
            lists = stage.sandbox.counts[("list", "appliedmanifestworks.work.open-cluster-management.io")]
            assert lists - before.get(("list", "appliedmanifestworks.work.open-cluster-management.io"), 0) == 1
            codes = sorted(each.verdict.code for each in report.works)
            assert codes == ["MW-001"] * 5 + ["MW-010"]
            assert report.exit == Exit.NOT_FOUND

    harness.play(scenario())


def test_what_goes_wrong_on_the_cluster_is_told_apart(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await applied(stage, "shared-work", config_map("mine"))
            unknown = {
                "apiVersion": "example.com/v1",
                "kind": "Teapot",
                "metadata": {"name": "pot", "namespace": "default"},
            }
            works = stage.client.works(CONSUMER)
            await works.apply(Work("broken").add(unknown).add(config_map("fine")))
            await works.wait_for("broken", lambda work: work.condition("Applied") is not None, timeout=PATIENCE)
            broken = await stage.ask(Question(entry="work-name", values=("broken",)))
            assert broken.works[0].verdict.code == "MW-005", render.text(broken)
            assert "Teapot" in render.text(broken)
            assert broken.exit == Exit.PROBLEM

            nobody = await stage.ask(Question(entry="resource-id", values=("no-such-id",)))
            assert [each.verdict.code for each in nobody.works] == ["MW-010"]

            await stage.kube.create(CONFIG_MAPS, config_map("by-hand"))
            alone = await stage.ask(Question(entry="manifest", manifest=Manifest(kind="cm", name="by-hand")))
            assert [each.code for each in alone.findings] == ["MW-118"]
            assert alone.exit == Exit.NOT_FOUND

            absent = await stage.ask(Question(entry="manifest", manifest=Manifest(kind="cm", name="no-such")))
            assert [each.code for each in absent.findings] == ["MW-119"]

            other = await stage.ask(
                Question(entry="work-name", values=("shared-work",)),
                sides=gather.Sides(database=stage.database, clusters=[], lost_clusters=[]),
            )
            assert other.works[0].verdict.code == "MW-100"
            assert other.exit == Exit.INCONCLUSIVE

    harness.play(scenario())


def test_without_an_agent_a_work_is_pending_then_undelivered_then_its_deletion_stuck(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database, with_agent=False) as stage:
            crd = Path(__file__).parents[2] / "src/maestropy/agent/crds"
            await _install(stage, crd)
            works = stage.client.works(CONSUMER)
            await works.apply(Work("waiting").add(config_map("cm")))
            question = Question(entry="work-name", values=("waiting",))
            assert (await stage.ask(question)).works[0].verdict.code == "MW-002"
            late = await stage.ask(question, later=timedelta(minutes=11))
            assert late.works[0].verdict.code == "MW-003"
            await works.delete("waiting")
            assert (await stage.ask(question)).works[0].verdict.code == "MW-101"
            later = await stage.ask(question, later=timedelta(hours=2))
            assert later.works[0].verdict.code == "MW-008"
            shown = render.text(await stage.ask(question))
            assert "ManifestWork Trace Results (DELETED)" in shown
            assert "- ConfigMap/default/cm" in shown
            assert "AppliedManifestWork:    Not found on cluster (work deleted)" in shown

    harness.play(scenario())


async def _install(stage: Stage, folder: Path) -> None:
    import yaml

    definitions = ResourceType(
        group="apiextensions.k8s.io",
        version="v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
    )
    for path in folder.glob("*.yaml"):
        await stage.kube.create(definitions, yaml.safe_load(path.read_text()))

    async def is_served() -> bool:
        try:
            return len(await stage.kube.list(APPLIED)) == 0
        except Exception:
            return False

    await harness.until(is_served, what="the kind")


def test_a_deletion_names_the_finalizer_that_blocks_it(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            held = config_map("held")
            held["metadata"]["finalizers"] = ["example.com/keep"]
            await applied(stage, "leaving", held)
            await stage.client.works(CONSUMER).delete("leaving")

            async def is_leaving() -> bool:
                found = await stage.kube.get(CONFIG_MAPS, "held", namespace="default")
                return "deletionTimestamp" in found["metadata"]

            await harness.until(is_leaving, what="the deletion")
            question = Question(entry="work-name", values=("leaving",))
            assert (await stage.ask(question)).works[0].verdict.code == "MW-007"
            stuck = await stage.ask(question, later=timedelta(hours=2))
            assert stuck.works[0].verdict.code == "MW-107"
            assert "example.com/keep" in render.text(stuck)

            await stage.kube.patch(
                CONFIG_MAPS,
                "held",
                change=_merge({"metadata": {"finalizers": None}}),
                namespace="default",
            )

            async def is_gone() -> bool:
                return await stage.server.value("SELECT count(*) FROM resources") == 0

            await harness.until(is_gone, what="the confirmation")
            gone = await stage.ask(question)
            assert gone.works[0].verdict.code in {"MW-102", "MW-010"}
            assert gone.exit == Exit.NOT_FOUND

    harness.play(scenario())


def _merge(body: dict[str, Any]) -> Any:
    from maestropy.kube.request import Patch

    return Patch(body=body)


def test_orphans_leftovers_and_other_consumers(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            work_id = await applied(stage, "one", config_map("one"))
            record = (await stage.cluster.applied_works([work_id]))[0]
            # A record of an earlier broker, as an agent leaves it behind when the address changes.
            old = {
                "apiVersion": record["apiVersion"],
                "kind": record["kind"],
                "metadata": {"name": f"{'0' * 64}-{work_id}"},
                "spec": {**record["spec"], "hubHash": "0" * 64, "agentID": "0" * 64},
            }
            await stage.kube.create(APPLIED, old)
            fresh = await _fresh_cluster(stage)
            sides = gather.Sides(database=stage.database, clusters=[fresh])
            twice = await stage.ask(Question(entry="resource-id", values=(work_id,)), sides=sides)
            codes = {each.code for each in twice.works[0].verdict.findings}
            assert "MW-109" in codes, render.text(twice)

            foreign = {**old, "metadata": {"name": f"{'1' * 64}-gone-work"}}
            foreign["spec"] = {"hubHash": "1" * 64, "agentID": "1" * 64, "manifestWorkName": "gone-work"}
            await stage.kube.create(APPLIED, foreign)
            fresh = await _fresh_cluster(stage)
            sides = gather.Sides(database=stage.database, clusters=[fresh])
            orphan = await stage.ask(Question(entry="applied-work", values=(f"{'1' * 64}-gone-work",)), sides=sides)
            assert orphan.works[0].verdict.code == "MW-009", render.text(orphan)

            stranger = await _fresh_cluster(stage, consumer="mgmt-2")
            sides = gather.Sides(database=stage.database, clusters=[stranger])
            wrong = await stage.ask(Question(entry="work-name", values=("one",)), sides=sides)
            assert wrong.works[0].verdict.code == "MW-103", render.text(wrong)

    harness.play(scenario())


async def _fresh_cluster(stage: Stage, *, consumer: str = CONSUMER) -> Any:
    from maestropy.trace.access.cluster import Cluster

    cluster = Cluster(trace_stage.choices(stage.sandbox.kubeconfig, consumer=consumer)[0])
    cluster.client = stage.kube
    return cluster


def test_works_of_the_same_name_are_listed_not_guessed(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await stage.client.consumers.create("mgmt-9")
            await applied(stage, "twin", config_map("twin"))
            await stage.client.works("mgmt-9").apply(Work("twin").add(config_map("twin")))
            question = Question(entry="work-name", values=("twin",))
            several = await stage.ask(question)
            assert several.exit == Exit.AMBIGUOUS
            assert {each.consumer for each in several.answer.candidates} == {CONSUMER, "mgmt-9"}
            shown = render.text(several)
            assert "Multiple resources found" in shown
            assert "mgmt-9" in shown
            one = await stage.ask(Question(entry="work-name", values=("twin",), consumer=CONSUMER))
            assert one.exit == Exit.HEALTHY, render.text(one)

    harness.play(scenario())


def test_differences_are_shown_on_demand_and_secrets_never(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "key", "namespace": "default"},
                "stringData": {"password": "hunter2hunter2"},
            }
            await applied(stage, "both", config_map("plain", color="blue"), secret)
            question = Question(entry="work-name", values=("both",))
            report = await stage.ask(question, depth=Depth(whole=True), wish=Wish(compare=True))
            shown = render.text(report, is_wide=True)
            assert "hunter2" not in shown
            # stringData never comes back from an API server: a difference, but not a value.
            assert "[redacted]" in shown

    harness.play(scenario())


def test_the_rest_api_answers_what_it_can(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            work_id = await applied(stage, "by-rest", config_map("by-rest"), labels={"team": "b"})
            sides = gather.Sides(database=RestSide(client=stage.client), clusters=[stage.cluster])
            for question in (
                Question(entry="resource-id", values=(work_id,)),
                Question(entry="work-name", values=("by-rest",), consumer=CONSUMER, source=SOURCE),
                Question(entry="label", values=("team", "b")),
                Question(entry="name-like", values=("REST",)),
                Question(entry="manifest", manifest=Manifest(kind="cm", name="by-rest")),
            ):
                report = await stage.ask(question, sides=sides)
                assert [each.verdict.code for each in report.works] == ["MW-001"], (question, render.text(report))

    harness.play(scenario())


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


def test_the_command_itself(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            work_id = await applied(stage, "cli-work", config_map("cli-cm"))
            access = [f"--mgmt-kubeconfig={CONSUMER}={stage.sandbox.kubeconfig}", f"--db-dsn={stage.dsn}"]
            code, out, err = await maestro("work", "--work-name", "cli-work", *access)
            assert (code, err) == (0, "")
            assert "Status: ✓ All manifests successfully applied to cluster" in out
            assert f"maestro trace request --resource-id {work_id}" in out

            code, out, err = await maestro(
                "work", "--manifest-kind=cm", "--manifest-name=cli-cm", *access, "-o", "json"
            )
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

    harness.play(scenario())


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
def test_hostile_identifiers_are_looked_for_and_nothing_else(database: Dsn, text: str) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as server:
            from maestropy.trace.database import DsnDatabase
            from maestropy.trace.work.sides import SqlSide

            side = SqlSide(DsnDatabase(dsn=trace_stage.url(server.address)))
            for question in (
                Question(entry="resource-id", values=(text,)),
                Question(entry="work-name", values=(text,)),
                Question(entry="name-like", values=(text,)),
                Question(entry="label", values=(text, text)),
                Question(entry="manifest", manifest=Manifest(kind=text, name=text, namespace=text, group=text)),
            ):
                assert (await side.find(question)).rows == ()
            assert await server.value("SELECT count(*) FROM resources") == 0

    harness.play(scenario())
