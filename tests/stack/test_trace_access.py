"""How the tracer reaches clusters: contexts, files, several clusters, missing rights, and what it climbs there."""

from pathlib import Path
from typing import Any

import harness
import trace_stage
import yaml
from test_trace_work import applied, id_of, maestro
from trace_stage import CONSUMER, config_map

from maestropy import Work
from maestropy.kube.request import ResourceType
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.trace.work import render
from maestropy.trace.work.question import Manifest, Question

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)


def merged(path: Path, clusters: dict[str, Path]) -> Path:
    """Write one kubeconfig with a context for each of several."""
    whole: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    for name, file in clusters.items():
        one = yaml.safe_load(file.read_text())
        whole["clusters"].append({"name": name, "cluster": one["clusters"][0]["cluster"]})
        whole["users"].append({"name": name, "user": one["users"][0]["user"]})
        whole["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    path.write_text(yaml.safe_dump(whole))
    return path


def test_several_management_clusters_by_context_and_the_wrong_one(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage, SandboxCluster() as other:
            await applied(stage, "web", config_map("web"))
            together = merged(tmp_path / "both", {"mgmt": stage.sandbox.kubeconfig, "other": other.kubeconfig})
            environ = {"KUBECONFIG": str(together)}
            ask = ["work", "--work-name", "web", f"--db-dsn={stage.dsn}"]

            both = [f"--mgmt-context={CONSUMER}=mgmt", "--mgmt-context=mgmt-2=other"]
            code, out, err = await maestro(*ask, *both, environ=environ)
            # The other cluster has no such kind, but it is another consumer's: no obstacle.
            assert (code, err) == (0, ""), out
            assert "(cluster mgmt)" in out

            code, out, err = await maestro(*ask, f"--mgmt-context={CONSUMER}=other", environ=environ)
            assert code == 6, out
            assert "cluster other serves no AppliedManifestWorks: is it the management cluster?" in out

            code, out, err = await maestro(*ask, f"--mgmt-context={CONSUMER}=mgmt", environ=environ)
            assert code == 0, out
            assert "kubectl --context mgmt get appliedmanifestwork" in out

            code, out, err = await maestro(*ask, "--mgmt-context=no-such", environ=environ)
            assert code == 6
            assert "there is no context 'no-such'" in out
            assert "kubectl config get-contexts" in out

            code, out, err = await maestro(*ask, "--mgmt-context=mgmt-2=mgmt", environ=environ)
            assert code == 1
            assert "WRONG CONSUMER (MW-103)" in out

            code, out, err = await maestro(*ask, "--mgmt-kubeconfig=/nowhere/config")
            assert code == 6
            assert "/nowhere/config cannot be read" in out

    harness.play(scenario())


def test_missing_rights_and_dead_clusters_are_not_taken_for_missing_works(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await applied(stage, "web", config_map("web"))
            stage.sandbox.add_token("weak-token", "bob")
            weak = tmp_path / "weak"
            stage.sandbox.write_kubeconfig(weak, token="weak-token")
            ask = ["work", "--work-name", "web", f"--db-dsn={stage.dsn}"]
            code, out, _ = await maestro(*ask, f"--mgmt-kubeconfig={weak}")
            assert code == 6, out
            assert "forbidden" in out.lower()
            assert "NOT ON CLUSTER" not in out

            code, out, _ = await maestro("work", "--check", f"--db-dsn={stage.dsn}", f"--mgmt-kubeconfig={weak}")
            assert code == 5, out
            assert "✗ AppliedManifestWorks on weak" in out
            assert "ask for get and list" in out

            dead = tmp_path / "dead"
            content = yaml.safe_load(stage.sandbox.kubeconfig.read_text())
            content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
            dead.write_text(yaml.safe_dump(content))
            code, out, _ = await maestro(*ask, f"--mgmt-kubeconfig={dead}")
            assert code == 6, out
            assert "cannot be reached" in out
            assert "check the network" in out

            code, out, _ = await maestro(
                "work", "--work-name=web", "--db=maestro-db", f"--svc-kubeconfig={dead}", f"--mgmt-kubeconfig={dead}"
            )
            assert code == 5, out

    harness.play(scenario())


def test_from_a_pod_over_its_controllers_to_the_work(database: Dsn) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }

    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            work_id = await applied(stage, "web", deployment)
            pods: list[Any] = []

            async def has_pod() -> bool:
                pods[:] = await stage.kube.list(PODS, namespace="default")
                return len(pods) == 1

            await harness.until(has_pod, what="a pod")
            name = pods[0]["metadata"]["name"]
            question = Question(entry="manifest", manifest=Manifest(kind="pod", name=name, namespace="default"))
            report = await stage.ask(question)
            assert [each.facts.gathered.row.id for each in report.works if each.facts.gathered.row] == [work_id]
            assert [step.split("/")[0] for step in report.answer.steps] == ["Pod", "ReplicaSet", "Deployment"]

    harness.play(scenario())


def test_an_object_of_two_works_leads_to_both(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await applied(stage, "first", config_map("common"))
            await applied(stage, "second", config_map("common"))

            async def has_both() -> bool:
                found = await stage.ask(Question(entry="manifest", manifest=Manifest(kind="cm", name="common")))
                return len(found.works) == 2

            await harness.until(has_both, what="two owners")
            report = await stage.ask(Question(entry="manifest", manifest=Manifest(kind="cm", name="common")))
            ids = {each.facts.gathered.row.id for each in report.works if each.facts.gathered.row}
            assert ids == {id_of("first"), id_of("second")}
            assert {each.verdict.code for each in report.works} == {"MW-110"}, render.text(report)

    harness.play(scenario())


def test_a_database_of_a_hundred_thousand_works_answers_at_once(database: Dsn) -> None:
    async def scenario() -> None:
        await harness.sql(
            database, "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ('c', 'c', now(), now())"
        )
        await harness.sql(
            database,
            """INSERT INTO resources (id, name, source, consumer_name, version, type, payload, status, created_at,
                 updated_at)
               SELECT 'id-' || g, 'id-' || g, 's', 'c', 1, '',
                 jsonb_build_object('metadata', jsonb_build_object('name', 'work-' || g,
                     'labels', jsonb_build_object('team', 't' || g % 5000)),
                   'data', jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1',
                     'kind', 'ConfigMap', 'metadata', jsonb_build_object('name', 'cm-' || g, 'namespace', 'd'))))),
                 'null'::jsonb, now() - g * interval '1 second', now()
               FROM generate_series(1, 100000) g""",
        )
        from maestropy.trace.database import DsnDatabase
        from maestropy.trace.work.sides import SqlSide

        # The aim is under one second; the statement timeout makes anything beyond three a failure.
        side = SqlSide(DsnDatabase(dsn=trace_stage.url(database), timeout_seconds=3))
        for question, rows in (
            (Question(entry="resource-id", values=("id-99999",)), 1),
            (Question(entry="file", values=tuple(f"id-{n}" for n in range(1, 1001))), 1000),
            (Question(entry="work-name", values=("work-500",)), 1),
            (Question(entry="applied-work", values=("work-77",)), 1),
            (Question(entry="name-like", values=("ORK-99",)), 10),
            (Question(entry="label", values=("team", "t7")), 20),
            (Question(entry="manifest", manifest=Manifest(kind="configmaps", name="cm-99999")), 1),
        ):
            assert len((await side.find(question)).rows) == rows, question

    harness.play(scenario())


def test_odd_names_find_nothing_on_a_cluster(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await applied(stage, "web", config_map("web"))
            for name in ("web,metadata.namespace=default", "web=", "../web", "%2e%2e", "web\\", "web/status", "*"):
                report = await stage.ask(Question(entry="manifest", manifest=Manifest(kind="cm", name=name)))
                assert [each.code for each in report.findings] == ["MW-119"], name
                within = Manifest(kind="cm", name="web", namespace=name)
                report = await stage.ask(Question(entry="manifest", manifest=within))
                assert [each.code for each in report.findings] == ["MW-119"], name

    harness.play(scenario())


def test_works_are_stored_by_the_client_in_the_shape_that_is_read(database: Dsn) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database, with_agent=False) as stage:
            await stage.client.works(CONSUMER).apply(Work("plain").add(config_map("plain")))
            found = await stage.database.find(Question(entry="work-name", values=("plain",)))
            row = found.rows[0]
            assert (row.id, row.source, row.version, row.status) == (id_of("plain"), trace_stage.SOURCE, 1, None)
            assert row.manifests[0]["metadata"]["name"] == "plain"
            assert row.operation_id

    harness.play(scenario())
