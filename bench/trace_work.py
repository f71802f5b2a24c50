"""Measure `maestro trace work` on a database of a hundred thousand works.

    python -m bench.trace_work [works] [applied works]

Uses a real PostgreSQL with the works, and a Kubernetes API (the sandbox's, over TLS) with applied works of the first of
them and their objects. A figure is the best of three traces after the connection to the cluster: the database query
with its own connection, the reads from the cluster, and the verdict. The goal is one second.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg

from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.request import Patch, ResourceType, WriteOptions
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.sandbox.postgres import EmbeddedPostgres
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.trace.access.cluster import TracedCluster
from maestropy.trace.access.cluster_selection import ClusterOptions, KubeconfigLocation, management_clusters
from maestropy.trace.database import DsnDatabase
from maestropy.trace.work import gather
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.readers import SqlDatabaseReader
from maestropy.trace.work.report import work_report as report

WORKS = """
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, status, created_at, updated_at)
SELECT 'id-' || g, 'id-' || g, 's', 'mgmt-1', 1, '',
  jsonb_build_object('metadata', jsonb_build_object('name', 'work-' || g,
      'labels', jsonb_build_object('team', 't' || g % 5000)),
    'data', jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object(
      'apiVersion', 'v1', 'kind', 'ConfigMap', 'metadata',
      jsonb_build_object('name', 'cm-' || g, 'namespace', 'default'))))),
  'null'::jsonb, now() - g * interval '1 second', now()
FROM generate_series(1, $1::int) g"""
CONSUMER = "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ('c', 'mgmt-1', now(), now())"
HUB = "f" * 64
APPLIED = ResourceType(
    group="work.open-cluster-management.io",
    version="v1",
    plural="appliedmanifestworks",
    kind="AppliedManifestWork",
    namespaced=False,
)
CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
QUESTIONS = {
    "by resource ID": WorkQuery(entry="resource-id", values=("id-99",)),
    "by work name": WorkQuery(entry="work-name", values=("work-99",)),
    "by manifest": WorkQuery(
        entry="manifest", manifest=ManifestQuery(kind="configmap", name="cm-99", namespace="default")
    ),
    "by applied work": WorkQuery(entry="applied-work", values=(f"{HUB}-id-99",)),
    "by label (20 works)": WorkQuery(entry="label", values=("team", "t7")),
    "by part of a name (10 listed)": WorkQuery(entry="name-like", values=("ORK-99",)),
    "1,000 resource IDs": WorkQuery(entry="file", values=tuple(f"id-{n}" for n in range(1, 1001))),
}


class Counted(DsnDatabase):
    """Counts what the database is asked."""

    requested = 0

    async def documents(self, sql: str, parameters: Any) -> Any:
        Counted.requested += 1
        return await super().documents(sql, parameters)


async def fill_database(dsn: Dsn, works: int) -> None:
    await migrate.migrate(dsn)
    connection = await asyncpg.connect(**dsn.connect_kwargs())
    try:
        await connection.execute(CONSUMER)
        await connection.execute(WORKS, works)
        await connection.execute("ANALYZE resources")
    finally:
        await connection.close()


async def fill_cluster(client: KubeClient, count: int) -> None:
    """Put applied works and their objects on the cluster, as an agent would have left them."""
    import yaml  # noqa: PLC0415

    import maestropy.agent.crds as crds  # noqa: PLC0415

    definition = Path(str(crds.__file__)).parent / "appliedmanifestworks.yaml"
    definitions = ResourceType(
        group="apiextensions.k8s.io",
        version="v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
    )
    await client.create(definitions, yaml.safe_load(definition.read_text()))
    while True:
        try:
            await client.list(APPLIED)
            break
        except Exception:  # not served yet
            await asyncio.sleep(0.05)
    for number in range(1, count + 1):
        name = f"id-{number}"
        record = await client.create(
            APPLIED,
            {
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "AppliedManifestWork",
                "metadata": {"name": f"{HUB}-{name}"},
                "spec": {"hubHash": HUB, "agentID": HUB, "manifestWorkName": name},
            },
        )
        owner = {key: record[key] for key in ("apiVersion", "kind")}
        owner |= {key: record["metadata"][key] for key in ("name", "uid")}
        metadata = {"name": f"cm-{number}", "namespace": "default", "ownerReferences": [owner]}
        made = await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        line = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "default", "name": f"cm-{number}"}
        status = {"status": {"appliedResources": [{**line, "uid": made["metadata"]["uid"]}]}}
        await client.patch(
            APPLIED, f"{HUB}-{name}", change=Patch(body=status), write=WriteOptions(subresource="status")
        )


async def measure(side: SqlDatabaseReader, sandbox: SandboxCluster, cluster: TracedCluster) -> None:
    readers = gather.Readers(database=side, clusters=[cluster])
    print(f"{'':32}{'seconds':>8}{'to the database':>17}{'to the cluster':>16}")
    for name, query in QUESTIONS.items():
        taken = []
        for _ in range(3):
            before, requested = sum(sandbox.request_counts.values()), Counted.requested
            started = time.perf_counter()
            depth = LookupDepth(objects=len(query.values) <= 100)
            result = await gather.gather(query, readers, depth=depth)
            found = report.build(result, now=answer_time(), expectations=Expectations())
            taken.append(time.perf_counter() - started)
            requests, queries = sum(sandbox.request_counts.values()) - before, Counted.requested - requested
        assert found.works or result.candidates, name
        print(f"{name:32}{min(taken):8.2f}{queries:17}{requests:16}", flush=True)


def answer_time() -> Any:
    from maestropy.aio.clock import Clock  # noqa: PLC0415

    return Clock().now()


async def main() -> None:
    works = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    applied = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    with tempfile.TemporaryDirectory(prefix="maestro-bench-") as folder:
        async with EmbeddedPostgres(Path(folder), is_ephemeral=True) as dsn, SandboxCluster() as sandbox:
            await fill_database(dsn, works)
            address = config.from_kubeconfig([sandbox.kubeconfig])
            async with KubeClient(address, settings=ClientSettings(qps=0)) as client:
                await fill_cluster(client, applied)
            print(f"{works:,} works in the database, {applied:,} applied works on the cluster")
            wanted = ClusterOptions(mgmt_kubeconfigs=[f"mgmt-1={sandbox.kubeconfig}"])
            (target,) = management_clusters(wanted, KubeconfigLocation(environ={}, home=Path("/nowhere")))
            async with TracedCluster(target) as cluster:
                await measure(SqlDatabaseReader(Counted(dsn=str(dsn))), sandbox, cluster)


if __name__ == "__main__":
    asyncio.run(main())
