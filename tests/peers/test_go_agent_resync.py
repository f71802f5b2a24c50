"""A Go agent that lacks more works than the queue of its stream takes."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.peers import peer_postgres
from tests.peers.kube_agents import go_agent
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_build import Programs
from tests.peers.peer_servers import python_server
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"

WORKS = 1500
"""Of 50 KB: 75 MB, and the sender waits when 32 MB are in the queue of a stream."""

FILL = """
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, created_at, updated_at)
SELECT 'work-' || n, 'work-' || n, 'large', 'cluster1', 1, '', jsonb_build_object('specversion', '1.0',
  'id', 'event-' || n, 'source', 'large', 'datacontenttype', 'application/json',
  'type', 'io.open-cluster-management.works.v1alpha1.manifestbundles.spec.create_request',
  'clustername', 'cluster1', 'resourceid', 'work-' || n, 'resourceversion', 0,
  'data', jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
    'metadata', jsonb_build_object('name', 'cm-' || n, 'namespace', 'absent'),
    'data', jsonb_build_object('text', repeat(md5(n::text), 1560)))))), now(), now()
FROM generate_series(1, $1::int) n"""

_RECEIVED = re.compile(r'"Received event".*?spec\.resync_response".*?"resourceid":"(work-\d+)"')


async def fill(database: peer_postgres.Database) -> None:
    connection = await asyncpg.connect(database.dsn)
    try:
        await connection.execute(
            "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ('c', 'cluster1', now(), now())"
        )
        await connection.execute(FILL, WORKS)
    finally:
        await connection.close()


@pytest.fixture
def without_records(real_cluster: KubeCluster) -> Iterator[None]:
    """Remove the AppliedManifestWorks of the agent, which is gone, and their finalizers."""
    yield
    with real_cluster.client() as api:
        for record in answer(api.get(RECORDS))["items"]:
            if record["spec"]["manifestWorkName"].startswith("work-"):
                path = f"{RECORDS}/{record['metadata']['name']}"
                api.delete(path)
                api.patch(
                    path,
                    json={"metadata": {"finalizers": None}},
                    headers={"Content-Type": "application/merge-patch+json"},
                )


@pytest.mark.usefixtures("without_records")
def test_agent_gets_all_works_though_it_reads_only_after_its_call(
    programs: Programs,
    postgres: peer_postgres.Cluster,
    real_cluster: KubeCluster,
    tmp_path: Path,
    shown_logs: list[Path],
) -> None:
    database = postgres.create("large_resync")
    with python_server(database=database, folder=tmp_path) as server:
        asyncio.run(fill(database))
        with go_agent(programs, cluster=real_cluster, server=server, consumer="cluster1", folder=tmp_path) as log:
            shown_logs.append(log)
            wait_for(
                lambda: len(set(_RECEIVED.findall(log.read_text()))) == WORKS,
                what="all works at the agent",
                seconds=60,
            )
            shown_logs.remove(log)
