"""Access to clusters: contexts, files, several clusters, missing permissions, and owner chains."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from maestropy import Work
from maestropy.kube.request import ResourceType
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.report import render
from tests import waiting
from tests.stack import harness, trace_fleet
from tests.stack.test_trace_work import applied, id_of, maestro
from tests.stack.trace_fleet import CONSUMER, config_map

pytestmark = pytest.mark.long

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


async def test_management_clusters_are_selected_by_context(database: Dsn, tmp_path: Path) -> None:
    async with trace_fleet.fleet(database) as fleet, SandboxCluster() as other:
        await applied(fleet, "web", config_map("web"))
        together = merged(tmp_path / "both", {"mgmt": fleet.sandbox.kubeconfig, "other": other.kubeconfig})
        environ = {"KUBECONFIG": str(together)}
        ask = ["work", "--work-name", "web", f"--db-dsn={fleet.dsn}"]

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


async def test_unreadable_clusters_are_not_missing_works(database: Dsn, tmp_path: Path) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await applied(fleet, "web", config_map("web"))
        fleet.sandbox.add_token("weak-token", "bob")
        weak = tmp_path / "weak"
        fleet.sandbox.write_kubeconfig(weak, token="weak-token")
        ask = ["work", "--work-name", "web", f"--db-dsn={fleet.dsn}"]
        code, out, _ = await maestro(*ask, f"--mgmt-kubeconfig={weak}")
        assert code == 6, out
        assert "forbidden" in out.lower()
        assert "NOT ON CLUSTER" not in out

        code, out, _ = await maestro("work", "--check", f"--db-dsn={fleet.dsn}", f"--mgmt-kubeconfig={weak}")
        assert code == 5, out
        assert "✗ AppliedManifestWorks on weak" in out
        assert "request get and list" in out

        dead = tmp_path / "dead"
        content = yaml.safe_load(fleet.sandbox.kubeconfig.read_text())
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


async def test_pod_leads_to_its_work(database: Dsn) -> None:
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

    async with trace_fleet.fleet(database) as fleet:
        work_id = await applied(fleet, "web", deployment)
        pods: list[Any] = []

        async def has_pod() -> bool:
            pods[:] = await fleet.kube.list(PODS, namespace="default")
            return len(pods) == 1

        await waiting.until(has_pod, what="a pod")
        name = pods[0]["metadata"]["name"]
        query = WorkQuery(entry="manifest", manifest=ManifestQuery(kind="pod", name=name, namespace="default"))
        report = await fleet.ask(query)
        assert [work.facts.data.row.id for work in report.works if work.facts.data.row] == [work_id]
        assert [step.split("/")[0] for step in report.result.steps] == ["Pod", "ReplicaSet", "Deployment"]


async def test_object_of_two_works_leads_to_both(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await applied(fleet, "first", config_map("common"))
        await applied(fleet, "second", config_map("common"))

        async def has_both() -> bool:
            found = await fleet.ask(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="common")))
            return len(found.works) == 2

        await waiting.until(has_both, what="two owners")
        report = await fleet.ask(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name="common")))
        ids = {work.facts.data.row.id for work in report.works if work.facts.data.row}
        assert ids == {id_of("first"), id_of("second")}
        assert {work.verdict.code for work in report.works} == {"MW-110"}, render.text(report)


async def test_query_is_fast_with_a_hundred_thousand_works(database: Dsn) -> None:
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
    from maestropy.trace.work.readers import SqlDatabaseReader

    # The aim is under one second; the statement timeout makes anything beyond three a failure.
    side = SqlDatabaseReader(DsnDatabase(dsn=trace_fleet.url(database), timeout_seconds=3))
    for query, rows in (
        (WorkQuery(entry="resource-id", values=("id-99999",)), 1),
        (WorkQuery(entry="file", values=tuple(f"id-{n}" for n in range(1, 1001))), 1000),
        (WorkQuery(entry="work-name", values=("work-500",)), 1),
        (WorkQuery(entry="applied-work", values=("work-77",)), 1),
        (WorkQuery(entry="name-like", values=("ORK-99",)), 10),
        (WorkQuery(entry="label", values=("team", "t7")), 20),
        (WorkQuery(entry="manifest", manifest=ManifestQuery(kind="configmaps", name="cm-99")), 1),
        # No index helps to find an old one, so a search of everything is asked for.
        (
            WorkQuery(entry="manifest", manifest=ManifestQuery(kind="configmaps", name="cm-99999"), searches_all=True),
            1,
        ),
    ):
        assert len((await side.find(query)).rows) == rows, query


async def test_unusual_names_match_nothing_on_a_cluster(database: Dsn) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await applied(fleet, "web", config_map("web"))
        for name in ("web,metadata.namespace=default", "web=", "../web", "%2e%2e", "web\\", "web/status", "*"):
            report = await fleet.ask(WorkQuery(entry="manifest", manifest=ManifestQuery(kind="cm", name=name)))
            assert [finding.code for finding in report.findings] == ["MW-119"], name
            within = ManifestQuery(kind="cm", name="web", namespace=name)
            report = await fleet.ask(WorkQuery(entry="manifest", manifest=within))
            assert [finding.code for finding in report.findings] == ["MW-119"], name


async def test_works_of_the_client_are_parsed(database: Dsn) -> None:
    async with trace_fleet.fleet(database, with_agent=False) as fleet:
        await fleet.client.works(CONSUMER).apply(Work("plain").add(config_map("plain")))
        found = await fleet.database.find(WorkQuery(entry="work-name", values=("plain",)))
        row = found.rows[0]
        assert (row.id, row.source, row.version, row.status) == (id_of("plain"), trace_fleet.SOURCE, 1, None)
        assert row.manifests[0]["metadata"]["name"] == "plain"
        assert row.operation_id
