"""Two servers, an agent and a Prometheus that scrapes them, for alerts on real faults.

Server A has an agent of one consumer and none of another. Server B has a message broker that nobody runs, a slow
database, a wrong clock, and certificates that expire.
"""

import asyncio
import contextlib
import datetime as dt
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from maestropy.sandbox import ports, postmaster
from maestropy.store.dsn import Dsn
from tests import waiting
from tests.certificates import make_ca
from tests.faults import fault_programs
from tests.faults.fault_proxy import FaultProxy
from tests.peers import prometheus
from tests.stack import harness
from tests.stack.clients import bundle_data, source

AGENT, AWAY, LOST = "cluster1", "cluster2", "cluster9"
WORK = "11111111-0000-4000-8000-000000000001"
WORK_AWAY = "22222222-0000-4000-8000-000000000001"
WORK_DELETED = "22222222-0000-4000-8000-000000000002"
WORK_LOST = "99999999-0000-4000-8000-000000000001"
CONFIG_MAP = {"group": "", "resource": "configmaps", "namespace": "default", "name": "cm"}
# The object is created and then left alone, and its value is reported: whoever changes it causes a new status.
WATCHED = {
    "manifestConfigs": [
        {
            "resourceIdentifier": CONFIG_MAP,
            "updateStrategy": {"type": "CreateOnly"},
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "k", "path": ".data.k"}]}],
        }
    ]
}
_SLOW_SECONDS = 0.2
_TIMEOUT = 150.0


def faketime() -> Path:
    """Return the library that lies about the time; skips the test when there is none."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libfaketime"]
        subprocess.run(command, capture_output=True, check=False, timeout=100)
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("libfaketime is needed: `apt-get install libfaketime`")
    return found[0]


@dataclass(kw_only=True)
class World:
    """What the test plays with."""

    a: fault_programs.ServerProgram
    b: fault_programs.ServerProgram
    agent: fault_programs.Program
    kube: fault_programs.KubeProgram
    database: Dsn
    prometheus: prometheus.Prometheus
    seen: set[str] = field(default_factory=set)
    """The names of all alerts that have fired."""

    async def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that fire, and remember them."""
        listed = await asyncio.to_thread(self.prometheus.alerts)
        self.seen |= {alert["labels"]["alertname"] for alert in listed}
        return listed

    async def fires(self, *alerts: str, **labels: str) -> None:
        """Wait until these alerts fire with these labels."""

        async def missing() -> bool:
            listed = await self.firing()
            firing = {
                alert["labels"]["alertname"]
                for alert in listed
                if all(alert["labels"].get(name) == value for name, value in labels.items())
            }
            lacking[:] = sorted(set(alerts) - firing)
            return not lacking

        lacking = list(alerts)
        try:
            await waiting.until(missing, seconds=_TIMEOUT)
        except AssertionError:
            raise AssertionError(f"{lacking} do not fire; firing: {self.prometheus.firing()}") from None

    async def sql(self, statement: str, *params: object) -> None:
        await harness.sql(self.database, statement, *params)

    async def drop_connections(self) -> None:
        """End the connections to the database of server A; new ones have the new settings."""
        ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
        await self.sql(ends, self.database.database)

    @contextlib.asynccontextmanager
    async def locking(self, table: str, mode: str) -> AsyncIterator[None]:
        """Hold a lock on a table."""
        connection = await asyncpg.connect(**self.database.connect_kwargs())
        try:
            async with connection.transaction():
                await connection.execute(f"LOCK TABLE {table} IN {mode} MODE")
                yield
        finally:
            await connection.close()

    async def change_object(self, text: str) -> None:
        """Change the ConfigMap of the work on the cluster, as a user of the cluster would."""
        async with httpx.AsyncClient(verify=False, timeout=10) as client:
            answer = await client.patch(
                f"{self.kube.url}/api/v1/namespaces/default/configmaps/cm",
                content=json.dumps({"data": {"k": text}}),
                headers={
                    "Authorization": f"Bearer {self.kube.token}",
                    "Content-Type": "application/merge-patch+json",
                },
            )
        assert answer.status_code == 200, answer.text


async def prepare(folder: Path, database: Dsn) -> None:
    """Store the works of server A: one is applied later, one has no agent, and one waits for its deletion."""
    server = fault_programs.server(folder, database, name="first")
    async with fault_programs.programs(server), source(server.sources) as client:
        for consumer in (AGENT, AWAY):
            await server.running().add_consumer(consumer)
        await client.create(WORK, AGENT, data=bundle_data("first", **WATCHED))
        await client.create(WORK_AWAY, AWAY, data=bundle_data("first"))
        await client.create(WORK_DELETED, AWAY, data=bundle_data("first"))
        await client.delete(WORK_DELETED, AWAY)
    two_hours = "now() - interval '2 hours'"
    await harness.sql(database, f"UPDATE resources SET deleted_at = {two_hours} WHERE deleted_at IS NOT NULL")
    await harness.sql(database, f"UPDATE events SET created_at = {two_hours} WHERE source_id = '{WORK_AWAY}'")
    # A queue of 8 GB cannot be filled in a test; the server asks a function of the same name.
    await harness.sql(database, "CREATE SCHEMA fault")
    usage = "CREATE FUNCTION fault.pg_notification_queue_usage() RETURNS float8 LANGUAGE sql AS 'SELECT 0.75::float8'"
    await harness.sql(database, usage)
    path = f"ALTER DATABASE {database.database} SET search_path = fault, public, pg_catalog"
    await harness.sql(database, path)


def troubled_server(folder: Path, database: Dsn) -> fault_programs.ServerProgram:
    """Return server B, whose broker, clock and certificates are wrong."""
    ca = make_ca(folder)
    https = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"], lifetime=dt.timedelta(days=3))
    expired = ca.issue(cn="old authority", expired=True)
    (nobody,) = ports.free(1)
    config = fault_programs.mqtt_config(folder / "mqtt.yaml", nobody)
    config.write_text(f"{config.read_text()}caFile: {expired.cert}\n")
    lies = {"LD_PRELOAD": str(faketime()), "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return fault_programs.server(
        folder,
        database,
        "--message-broker-type=mqtt",
        f"--message-broker-config-file={config}",
        "--enable-metrics-https",
        f"--https-cert-file={https.cert}",
        f"--https-key-file={https.key}",
        name="b",
        env=lies,
    )


@contextlib.asynccontextmanager
async def running_world(folder: Path, *, database: Dsn, other: Dsn, rules: list[Path]) -> AsyncIterator[World]:
    await prepare(folder, database)
    a = fault_programs.server(folder, database, "--undelivered-resource-threshold=2", "--sweep-interval=1s", name="a")
    kube = fault_programs.kube(folder, AGENT)
    agent = fault_programs.agent(folder, AGENT, kubeconfig=kube.kubeconfig, way=[f"--grpc-url={a.agents}"])
    (listen,) = (flag.removeprefix("--listen=") for flag in agent.command if flag.startswith("--listen="))
    async with FaultProxy(Path(other.host) / postmaster.SOCKET_NAME) as proxy:
        b = troubled_server(folder, replace(other, host="127.0.0.1", port=proxy.port))
        targets = [
            prometheus.Target(job="maestro-server", address=a.metrics, labels={"namespace": "maestro"}),
            prometheus.Target(job="maestro-server", address=b.metrics, secure=True, labels={"namespace": "troubled"}),
            prometheus.Target(job="maestro-agent", address=listen, secure=True, labels={"namespace": "maestro-agent"}),
        ]
        async with fault_programs.programs(a, b, kube), fault_programs.programs(agent):
            proxy.up.delay_seconds = proxy.down.delay_seconds = _SLOW_SECONDS
            with prometheus.prometheus(folder / "prometheus", targets, rules) as running:
                yield World(a=a, b=b, agent=agent, kube=kube, database=database, prometheus=running)


def of(alerts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return one firing alert by its name."""
    return next(alert for alert in alerts if alert["labels"]["alertname"] == name)
