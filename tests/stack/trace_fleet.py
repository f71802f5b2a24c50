"""A whole Maestro to trace: server, database, a sandbox cluster with a real agent, and readers for them."""

import contextlib
import io
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from maestropy import AsyncMaestro
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube.client import KubeClient
from maestropy.kube.config import load as config
from maestropy.sandbox.cluster_agent import run_agent
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.trace.access.cluster import TracedCluster
from maestropy.trace.access.cluster_selection import ClusterOptions, KubeconfigLocation, management_clusters
from maestropy.trace.database import DsnDatabase
from maestropy.trace.work import gather
from maestropy.trace.work.judge.facts import Expectations
from maestropy.trace.work.live_objects import LookupDepth
from maestropy.trace.work.query import WorkQuery, checked
from maestropy.trace.work.readers import DatabaseReader, SqlDatabaseReader
from maestropy.trace.work.report import work_report as report
from tests.stack import harness

CONSUMER = "mgmt-1"
SOURCE = "trace-test"


def url(address: Dsn) -> str:
    """Return a DSN as people write it."""
    return f"postgresql://{address.user}@/{address.database}?host={quote(address.host, safe='')}&port={address.port}"


@dataclass(kw_only=True)
class TracedFleet:
    """What a test plays with."""

    server: harness.InProcess
    client: AsyncMaestro
    sandbox: SandboxCluster
    kube: KubeClient
    cluster: TracedCluster
    database: DatabaseReader

    @property
    def dsn(self) -> str:
        return url(self.server.address)

    async def ask(
        self,
        query: WorkQuery,
        *,
        depth: LookupDepth | None = None,
        expectations: Expectations | None = None,
        later: timedelta = timedelta(0),
        readers: gather.Readers | None = None,
    ) -> report.WorkReport:
        """Trace a question and judge it, as of now or later."""
        readers = readers or gather.Readers(database=self.database, clusters=[self.cluster])
        result = await gather.gather(checked(query), readers, depth=depth or LookupDepth())
        return report.build(result, now=datetime.now(UTC) + later, expectations=expectations or Expectations())


@contextlib.asynccontextmanager
async def fleet(address: Dsn, *, with_agent: bool = True) -> AsyncIterator[TracedFleet]:
    """Set everything up."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(harness.in_process(address))
        client = AsyncMaestro(environ={}, api_url=server.rest, grpc_url=server.sources, source=SOURCE)
        await stack.enter_async_context(client)
        await client.consumers.create(CONSUMER)
        sandbox = await stack.enter_async_context(SandboxCluster())
        if with_agent:
            journal = Journal(io.BytesIO(), clock=clocks.Clock().epoch, verbosity=2)
            await stack.enter_async_context(
                run_agent(sandbox.kubeconfig, consumer=CONSUMER, broker=server.agents, journal=journal)
            )
        kube = await stack.enter_async_context(KubeClient(config.from_kubeconfig([sandbox.kubeconfig])))
        cluster = await stack.enter_async_context(TracedCluster(targets(sandbox.kubeconfig)[0]))
        yield TracedFleet(
            server=server,
            client=client,
            sandbox=sandbox,
            kube=kube,
            cluster=cluster,
            database=SqlDatabaseReader(DsnDatabase(dsn=url(address))),
        )


def targets(kubeconfig: Path, *, consumer: str = CONSUMER) -> Sequence[Any]:
    wanted = ClusterOptions(mgmt_kubeconfigs=[f"{consumer}={kubeconfig}"])
    return management_clusters(wanted, KubeconfigLocation(environ={}, home=Path("/nowhere")))


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"k": "v"}}
