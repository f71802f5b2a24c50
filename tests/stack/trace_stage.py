"""A whole Maestro to be traced: server, database, a sandbox cluster with a real agent, and the tracer's sides on it."""

import contextlib
import io
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import harness

from maestropy import AsyncMaestro
from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.kube import config
from maestropy.kube.client import KubeClient
from maestropy.sandbox.cluster_agent import agent_on
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.store.dsn import Dsn
from maestropy.trace.access.choosing import Place, Wanted, management_clusters
from maestropy.trace.access.cluster import Cluster
from maestropy.trace.database import DsnDatabase
from maestropy.trace.work import gather, report
from maestropy.trace.work.facts import Wish
from maestropy.trace.work.looking import Depth
from maestropy.trace.work.question import Question, checked
from maestropy.trace.work.sides import DatabaseSide, SqlSide

CONSUMER = "mgmt-1"
SOURCE = "trace-test"


def url(address: Dsn) -> str:
    """Return a DSN as people write it."""
    return f"postgresql://{address.user}@/{address.database}?host={quote(address.host, safe='')}&port={address.port}"


@dataclass(kw_only=True)
class Stage:
    """What a test plays with."""

    server: harness.InProcess
    client: AsyncMaestro
    sandbox: SandboxCluster
    kube: KubeClient
    cluster: Cluster
    database: DatabaseSide

    @property
    def dsn(self) -> str:
        return url(self.server.address)

    async def ask(
        self,
        question: Question,
        *,
        depth: Depth | None = None,
        wish: Wish | None = None,
        later: timedelta = timedelta(0),
        sides: gather.Sides | None = None,
    ) -> report.Report:
        """Trace a question and judge it, as of now or later."""
        sides = sides or gather.Sides(database=self.database, clusters=[self.cluster])
        answer = await gather.gather(checked(question), sides, depth=depth or Depth())
        return report.build(answer, now=datetime.now(UTC) + later, wish=wish or Wish())


@contextlib.asynccontextmanager
async def stage(address: Dsn, *, with_agent: bool = True) -> AsyncIterator[Stage]:
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
                agent_on(sandbox.kubeconfig, consumer=CONSUMER, broker=server.agents, journal=journal)
            )
        kube = await stack.enter_async_context(KubeClient(config.from_kubeconfig([sandbox.kubeconfig])))
        cluster = await stack.enter_async_context(Cluster(choices(sandbox.kubeconfig)[0]))
        yield Stage(
            server=server,
            client=client,
            sandbox=sandbox,
            kube=kube,
            cluster=cluster,
            database=SqlSide(DsnDatabase(dsn=url(address))),
        )


def choices(kubeconfig: Path, *, consumer: str = CONSUMER) -> Sequence[Any]:
    wanted = Wanted(mgmt_kubeconfigs=[f"{consumer}={kubeconfig}"])
    return management_clusters(wanted, Place(environ={}, home=Path("/nowhere")))


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"k": "v"}}
