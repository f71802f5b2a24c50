"""The database through pods: a real psql behind a simulated exec, and every step of breakglass access."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maestropy.store.dsn import Dsn
from maestropy.trace import psql
from maestropy.trace.access.breakglass import Breakglass, Permissions
from maestropy.trace.access.pod_database import MaestroDbPod, PodLocation
from maestropy.trace.errors import Declined, NoAccess
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.readers import SqlDatabaseReader
from tests.stack import harness, trace_fleet
from tests.stack.pod_api import TOKEN, Person, PodApi, serving

pytestmark = pytest.mark.long

HOSTILE = (
    "x'; DROP TABLE resources; --",
    "\\q",
    "\n\\! touch /tmp/owned\n",
    "a\\",
    ":'x' :x",
    "$1",
    "ünï\u2028😀",
    "'\\''; SELECT 1; --",
)


async def insert(address: Dsn, work_id: str, name: str, *, consumer: str = "c1", deleted: bool = False) -> None:
    """Store a row in the form of the Go server: a CloudEvent whose metadata is an object."""
    await harness.sql(
        address,
        "INSERT INTO consumers (id, name, created_at, updated_at) VALUES ($1, $1, now(), now()) ON CONFLICT DO NOTHING",
        consumer,
    )
    manifest = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"default"}}'
    await harness.sql(
        address,
        """INSERT INTO resources (id, name, source, consumer_name, version, type, payload, status, created_at,
             updated_at, deleted_at)
           VALUES ($1, $1, 'go-client', $3, 1, '',
             jsonb_build_object('specversion', '1.0', 'id', 'ce-1', 'source', 'go-client', 'clustername', $3::text,
               'resourceid', $1::text, 'resourceversion', 0, 'logtracing', '{}',
               'metadata', jsonb_build_object('name', $2::text, 'namespace', $3::text),
               'data', jsonb_build_object('manifests', jsonb_build_array($4::text::jsonb))),
             'null'::jsonb, now(), now(), CASE WHEN $5::boolean THEN now() END)""",
        work_id,
        name,
        consumer,
        manifest,
        deleted,
    )


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_row_of_the_go_server_is_read_through_the_maestro_db_pod(database: Dsn, protocol: str) -> None:
    await insert(database, "id-1", "nginx-work")
    api = PodApi(database=database, protocol=protocol, pods={"maestro-db-0": "name=maestro-db"})
    async with serving(api), api.cluster() as cluster:
        side = SqlDatabaseReader(MaestroDbPod(cluster=cluster, location=PodLocation()))
        found = await side.find(WorkQuery(entry="work-name", values=("nginx-work",)))
        assert [(row.id, row.work_name, row.consumer) for row in found.rows] == [("id-1", "nginx-work", "c1")]
        assert found.rows[0].status is None
        assert [manifest["kind"] for manifest in found.rows[0].manifests] == ["ConfigMap"]
        # The identifier is in the script, never in the command line.
        assert "nginx-work" not in str(api.commands)
        assert "BEGIN READ ONLY;" in api.scripts[0]
        assert "SET LOCAL statement_timeout = '15s';" in api.scripts[0]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_identifiers_through_a_real_psql(database: Dsn, text: str) -> None:
    await insert(database, text, text)
    api = PodApi(database=database, pods={"maestro-db-0": "name=maestro-db"})
    async with serving(api), api.cluster() as cluster:
        side = SqlDatabaseReader(MaestroDbPod(cluster=cluster, location=PodLocation()))
        for query in (
            WorkQuery(entry="resource-id", values=(text,)),
            WorkQuery(entry="work-name", values=(text,)),
            WorkQuery(entry="name-like", values=(text,)),
            WorkQuery(entry="applied-work", values=(text,)),
        ):
            assert [row.id for row in (await side.find(query)).rows] == [text], query
        for script in api.scripts:
            assert script.isascii()
        wanted = ManifestQuery(kind=text, name=text, namespace=text, group=text)
        assert (await side.find(WorkQuery(entry="manifest", manifest=wanted))).rows == ()
    assert await harness.value(database, "SELECT count(*) FROM resources") == 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=8))
async def test_literal_is_read_back_unchanged(postgres: harness.Postgres, texts: list[str]) -> None:
    literals = ", ".join(psql.literal(text) for text in texts) or "NULL"
    for setting in ("on", "off"):
        connection = await slow_connection(postgres)
        try:
            await connection.execute(f"SET standard_conforming_strings = {setting}; SET escape_string_warning = off")
            row = await connection.fetchrow(f"SELECT {literals}")
        finally:
            await connection.close()
        assert [*row][: len(texts)] == texts


async def slow_connection(postgres: harness.Postgres) -> "asyncpg.Connection":
    return await asyncpg.connect(**postgres._address.connect_kwargs())


async def test_statements_cannot_write(database: Dsn) -> None:
    api = PodApi(database=database, pods={"maestro-db-0": "name=maestro-db"})
    async with serving(api), api.cluster() as cluster:
        pod = MaestroDbPod(cluster=cluster, location=PodLocation())
        with pytest.raises(NoAccess, match="read-only transaction"):
            await pod.documents("DELETE FROM resources WHERE id = $1", ("x",))
    from maestropy.trace.database import DsnDatabase

    with pytest.raises(NoAccess, match="read-only transaction"):
        await DsnDatabase(dsn=trace_fleet.url(database)).documents("DELETE FROM resources", ())
    with pytest.raises(NoAccess, match="timed out after 1 s"):
        await DsnDatabase(dsn=trace_fleet.url(database), timeout_seconds=1).documents("SELECT pg_sleep(5)::text", ())


async def test_forbidden_exec_names_the_missing_permission(database: Dsn) -> None:
    api = PodApi(database=database, pods={"maestro-db-0": "name=maestro-db"})
    async with serving(api), api.cluster(token="wrong") as cluster:
        with pytest.raises(NoAccess, match="kubectl auth can-i create pods/exec -n maestro"):
            await MaestroDbPod(cluster=cluster, location=PodLocation()).documents("SELECT '{}'", ())


QUESTION = WorkQuery(entry="resource-id", values=("id-1",))
QUICK = Permissions(ready_seconds=1.0, poll_seconds=0.01)


async def test_breakglass_scales_up_and_back(database: Dsn) -> None:
    await insert(database, "id-1", "nginx-work")
    api = PodApi(database=database, replicas=0)
    person = Person(answers=["yes\n", "y\n", "YES\n"])
    async with serving(api), api.cluster() as cluster:
        async with Breakglass(cluster, PodLocation(), confirmer=person, permissions=QUICK) as glass:
            found = await SqlDatabaseReader(glass).find(QUESTION)
        assert [row.work_name for row in found.rows] == ["nginx-work"]
    assert api.scalings == [1, 0]
    messages = "\n".join(person.heard)
    for part in (
        "Environment: ARO-HCP INT (CRITICAL)",
        "kubectl -n maestro scale deployment postgres-breakglass --replicas 1",
        "Would you like to scale up the pod now? (yes/no): ",
        "✓ Pod ready: postgres-breakglass-7b8c9d6f5-abc12",
        "EXECUTE trace_query ('', '', '[\"id-1\"]');",
        "Execute this query on ARO-HCP INT database? (yes/no): ",
        "✓ postgres-breakglass scaled back to 0",
    ):
        assert part in messages
    assert api.commands == [["/breakglass/connect.sh"]]


@pytest.mark.parametrize(
    ("person", "permissions", "replicas", "scalings", "execs"),
    [
        pytest.param(Person(answers=["no\n"]), QUICK, 0, [], 0, id="no-to-scaling"),
        pytest.param(Person(answers=[""]), QUICK, 0, [], 0, id="end-of-input"),
        pytest.param(Person(answers=["yes\n", "no\n", "yes\n"]), QUICK, 0, [1, 0], 0, id="no-to-the-query"),
        pytest.param(Person(answers=["no\n"]), QUICK, 1, [], 0, id="no-to-the-query-on-a-running-pod"),
        pytest.param(Person(is_present=False), QUICK, 1, [], 0, id="nobody-there"),
        pytest.param(
            Person(is_present=False), Permissions(query=True), 0, [], 0, id="a-yes-to-the-query-is-none-to-scaling"
        ),
    ],
)
async def test_without_confirmation_nothing_is_queried(
    database: Dsn,
    person: Person,
    permissions: Permissions,
    replicas: int,
    scalings: list[int],
    execs: int,
) -> None:
    api = PodApi(database=database, replicas=replicas)
    async with serving(api), api.cluster() as cluster:
        with pytest.raises(Declined):
            async with Breakglass(cluster, PodLocation(), confirmer=person, permissions=permissions) as glass:
                await SqlDatabaseReader(glass).find(QUESTION)
    assert (api.scalings, len(api.commands)) == (scalings, execs)


async def test_flags_confirm_beforehand_and_unready_pod_is_reported(database: Dsn) -> None:
    await insert(database, "id-1", "nginx-work")
    nobody = Person(is_present=False)
    beforehand = Permissions(query=True, scaling=True, ready_seconds=0.3, poll_seconds=0.01)
    api = PodApi(database=database, replicas=0)
    async with serving(api), api.cluster() as cluster:
        async with Breakglass(cluster, PodLocation(), confirmer=nobody, permissions=beforehand) as glass:
            assert len((await SqlDatabaseReader(glass).find(QUESTION)).rows) == 1
    assert api.scalings == [1, 0]
    api = PodApi(database=database, replicas=0, never_ready=True)
    async with serving(api), api.cluster() as cluster:
        with pytest.raises(NoAccess, match="did not become ready"):
            async with Breakglass(cluster, PodLocation(), confirmer=nobody, permissions=beforehand) as glass:
                await SqlDatabaseReader(glass).find(QUESTION)
    assert api.scalings == [1, 0]


def kubeconfig(path: Path, api: PodApi) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "svc",
        "clusters": [{"name": "svc", "cluster": {"server": api.url}}],
        "contexts": [{"name": "svc", "context": {"cluster": "svc", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


async def command(file: Path, *flags: str, stdin: int) -> asyncio.subprocess.Process:
    words = ("trace", "work", "--resource-id=id-1", "--svc-context=svc", "--no-cluster", *flags)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "maestropy.cli.main",
        *words,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(file), "MAESTRO_DB_DSN": ""},
    )


async def test_command_with_and_without_terminal(database: Dsn, tmp_path: Path) -> None:
    await insert(database, "id-1", "nginx-work")
    api = PodApi(database=database, replicas=0)
    async with serving(api):
        file = kubeconfig(tmp_path / "svc", api)
        ours, theirs = os.openpty()
        process = await command(file, stdin=theirs)
        os.write(ours, b"yes\nyes\nyes\n")
        out, err = await process.communicate()
        os.close(ours)
        os.close(theirs)
        assert process.returncode == 1, (out, err)  # pending: no agent answers here
        assert b"nginx-work" in out
        assert b"Execute this query on ARO-HCP INT database? (yes/no): " in err
        assert api.scalings == [1, 0]

        process = await command(file, stdin=asyncio.subprocess.DEVNULL)
        out, err = await process.communicate()
        assert (process.returncode, out) == (8, b""), err
        assert b"repeat with --scale-up" in err

        process = await command(file, "--yes", "--scale-up", stdin=asyncio.subprocess.DEVNULL)
        out, err = await process.communicate()
        assert process.returncode == 1
        assert api.scalings == [1, 0, 1, 0]

        ours, theirs = os.openpty()
        process = await command(file, stdin=theirs)
        assert process.stderr is not None
        await process.stderr.readuntil(b"scale up the pod now? (yes/no): ")
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 10) == 130
        os.close(ours)
        os.close(theirs)
