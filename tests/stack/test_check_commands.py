"""`maestro check` and `maestro … status`: what they find, what they could not see, and that they end in time."""

import asyncio
import contextlib
import json
import os
import re
import select
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maestropy.agent import preflight as agent_preflight
from maestropy.agent import settings as agent_configuration
from maestropy.aio import clock as clocks
from maestropy.aio.checks import Check, Outcome
from maestropy.cli.check import status
from maestropy.cli.errors import CommandError, UsageError
from maestropy.sandbox.kubeapi.access.rbac import User
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from maestropy.server import database_preflight, preflight
from maestropy.server import settings as configuration
from maestropy.store.dsn import Dsn
from maestropy.store.inspection import Load
from maestropy.transport.tls import inspection
from tests import waiting
from tests.certificates import CertFiles, make_ca
from tests.stack import harness
from tests.stack.secure_server import add_consumers

CLOCK = clocks.Clock()


async def check_server(address: Dsn | None, clock: clocks.Clock = CLOCK, **flags: str) -> dict[str, Check]:
    given = {f"--{name.replace('_', '-')}": text for name, text in flags.items()}
    settings = configuration.load({"--server-hostname": "127.0.0.1", **given}, {})
    return by_name(await preflight.run(settings, address, clock=clock))


async def check_agent(clock: clocks.Clock = CLOCK, **flags: str) -> dict[str, Check]:
    given = {f"--{name.replace('_', '-')}": text for name, text in flags.items()}
    settings = agent_configuration.load({"--consumer-name": "cluster1", **given}, {})
    return by_name(await agent_preflight.run(settings, clock=clock))


def by_name(results: Iterable[Check]) -> dict[str, Check]:
    return {check.name: check for check in results}


def outcomes(results: Mapping[str, Check]) -> dict[str, Outcome]:
    return {name: check.outcome for name, check in results.items()}


async def maestro(*arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command; return its exit code and both outputs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "maestropy.cli.main", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    out, err = await asyncio.wait_for(process.communicate(), waiting.TIMEOUT)
    return process.returncode or 0, out.decode(), err.decode()


async def test_good_database_passes_every_check(database: Dsn) -> None:
    found = await check_server(database)
    assert outcomes(found) == {
        "database": Outcome.OK,
        "database-writable": Outcome.OK,
        "database-migrations": Outcome.OK,
        "database-privileges": Outcome.OK,
        "clock": Outcome.OK,
        "database-notifications": Outcome.OK,
    }
    assert "PostgreSQL 1" in found["database"].detail
    code, out, _ = await maestro("check", "server", "-o", "json", env={"MAESTRO_DB_DSN": str(database)})
    assert (code, json.loads(out)["ok"]) == (0, True)


async def test_database_without_migrations_names_the_remedy(database: Dsn) -> None:
    await harness.sql(database, "DELETE FROM migrations WHERE id = '202609141000'")
    missing = (await check_server(database))["database-migrations"]
    assert missing.outcome is Outcome.FAILED
    assert missing.detail == "1 migrations are missing, the first is 202609141000"
    assert missing.remedy == "run `maestro migration` with the same database flags"
    own = (await check_server(database, auto_migrate="true"))["database-migrations"]
    assert own.outcome is Outcome.OK
    code, out, _ = await maestro("check", "server", env={"MAESTRO_DB_DSN": str(database)})
    assert code == 1
    assert out.startswith("check server: 1 failed, 5 ok\n")
    assert "            fix: run `maestro migration` with the same database flags\n" in out


@pytest.mark.parametrize(
    ("statement", "outcome", "text"),
    [
        pytest.param("DROP TABLE maestropy_pauses", Outcome.FAILED, "table maestropy_pauses", id="table"),
        pytest.param(
            "ALTER TABLE events DROP CONSTRAINT events_pkey CASCADE", Outcome.FAILED, "primary key of events", id="key"
        ),
        pytest.param(
            "ALTER TABLE resources DROP CONSTRAINT fk_resources_consumers",
            Outcome.FAILED,
            "constraint fk_resources_consumers of resources",
            id="foreign-key",
        ),
        pytest.param("DROP INDEX idx_resources_name", Outcome.FAILED, "unique index idx_resources_name", id="unique"),
        pytest.param("DROP INDEX idx_events_source_id", Outcome.WARNING, "idx_events_source_id", id="index"),
    ],
)
async def test_interrupted_restore_is_named(database: Dsn, statement: str, outcome: Outcome, text: str) -> None:
    await harness.sql(database, statement)
    found = (await check_server(database))["database-migrations"]
    assert found.outcome is outcome
    assert text in found.detail
    assert "restore it again completely" in found.remedy


async def test_migration_says_that_a_restore_is_incomplete(database: Dsn) -> None:
    await harness.sql(database, "DROP INDEX idx_events_source_id")
    code, out, err = await maestro("migration", env={"MAESTRO_DB_DSN": str(database)})
    assert code == 0
    assert out.startswith("0 applied, ")
    assert "warning: indexes are absent: idx_events_source_id; statements are slow; if the database was restored" in err
    await harness.sql(database, "DROP TABLE maestropy_pauses")
    await harness.sql(database, "ALTER TABLE events DROP CONSTRAINT events_pkey CASCADE")
    code, _, err = await maestro("migration", env={"MAESTRO_DB_DSN": str(database)})
    assert code == 1
    assert "is incomplete although its migrations are recorded: primary key of events, " in err
    assert " table maestropy_pauses, " in err
    assert "; if the database was restored, restore it again completely" in err


async def test_role_without_privileges_is_named(database: Dsn) -> None:
    await harness.sql(database, "DROP ROLE IF EXISTS visitor")
    await harness.sql(database, "CREATE ROLE visitor LOGIN")
    await harness.sql(database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor")
    found = await check_server(replace(database, user="visitor"))
    lacking = found["database-privileges"]
    assert lacking.outcome is Outcome.FAILED
    assert "visitor lacks consumers: DELETE, INSERT, UPDATE" in lacking.detail


async def test_read_only_database_and_wrong_clock_are_found(database: Dsn) -> None:
    await harness.sql(database, f"ALTER DATABASE {database.database} SET default_transaction_read_only = on")
    ahead = clocks.Clock(epoch=lambda: CLOCK.epoch() + 60)
    found = await check_server(database, clock=ahead)
    assert found["database-writable"].outcome is Outcome.FAILED
    assert found["clock"].outcome is Outcome.WARNING
    assert found["clock"].detail.startswith(("this host is 60.", "this host is 59.9"))


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Accept connections and answer nothing, as behind a firewall."""
    waiting_forever = asyncio.Event()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting_forever.wait()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        waiting_forever.set()


async def test_host_that_does_not_answer_is_reported_in_time(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "SECONDS", 0.5)
    monkeypatch.setattr(agent_preflight, "SECONDS", 1.0)
    async with silent_server() as port:
        config = tmp_path / "mqtt.yaml"
        config.write_text(
            f"brokerHost: 127.0.0.1:{port}\ntopics:\n  sourceEvents: sources/maestro/consumers/+/sourceevents\n"
            "  agentEvents: sources/maestro/consumers/+/agentevents\n"
        )
        silent = replace(database, host="127.0.0.1", port=port)
        flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
        found = await check_server(silent, CLOCK, **flags)
        assert outcomes(found) == {"database": Outcome.FAILED, "message-broker": Outcome.FAILED}
        assert found["message-broker"].detail == "no answer within 0.5 s"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                    "current-context": "c",
                }
            )
        )
        found = await check_agent(kubeconfig=str(kubeconfig), grpc_url=f"127.0.0.1:{port}")
        assert found["cluster"].outcome is Outcome.FAILED
        assert found["server-access"].outcome is Outcome.FAILED


async def test_embedded_database_and_unreachable_broker(tmp_path: Path) -> None:
    config = tmp_path / "mqtt.yaml"
    config.write_text(
        "brokerHost: 127.0.0.1:1\ntopics:\n  sourceEvents: sources/maestro/consumers/+/sourceevents\n"
        f"  agentEvents: sources/maestro/consumers/+/agentevents\ncaFile: {tmp_path / 'none'}\n"
    )
    flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
    found = await check_server(None, CLOCK, **flags)
    assert outcomes(found) == {
        "database": Outcome.NOT_SEEN,
        "--message-broker-config-file caFile": Outcome.FAILED,
        "message-broker": Outcome.NOT_SEEN,
    }
    config.write_text(config.read_text().partition("caFile")[0])
    found = await check_server(None, CLOCK, **flags)
    assert "127.0.0.1:1" in found["message-broker"].detail
    assert found["message-broker"].outcome is Outcome.FAILED


@pytest.mark.parametrize("text", ["", "brokerHost: [", "brokerHost: x"])
async def test_bad_configuration_of_a_broker_names_no_class(text: str, tmp_path: Path) -> None:
    config = tmp_path / "broker.yaml"
    config.write_text(text)
    flags = {"message_broker_type": "mqtt", "message_broker_config_file": str(config)}
    server = (await check_server(None, CLOCK, **flags))["message-broker-config"]
    agent = (await check_agent(kubeconfig="none", workload_source_config=str(config)))["server-config"]
    for check, flag in ((server, "--message-broker-config-file"), (agent, "--workload-source-config")):
        assert check.outcome is Outcome.FAILED
        assert check.detail.startswith(flag)


async def test_certificates_of_listeners_are_checked(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    pair = ca.issue(cn="a", san=["127.0.0.1"], expired=True)
    found = await check_server(None, grpc_tls_cert_file=str(pair.cert), grpc_tls_key_file=str(pair.key))
    assert found["--grpc-tls-cert-file"].outcome is Outcome.FAILED
    assert "has expired" in found["--grpc-tls-cert-file"].detail
    assert found["--grpc-tls-cert-file names"].outcome is Outcome.OK


async def test_agent_with_every_permission_passes(database: Dsn) -> None:
    await add_consumers(database, "cluster1")
    async with harness.in_process(database) as server, SandboxCluster(tls=False, controllers=False) as cluster:
        found = await check_agent(kubeconfig=str(cluster.kubeconfig), grpc_url=server.agents)
        assert outcomes(found) == {
            "cluster": Outcome.OK,
            "cluster-permissions": Outcome.OK,
            "cluster-definition": Outcome.OK,
            "clock": Outcome.OK,
            "cluster-permissions of works": Outcome.NOT_SEEN,
            "server": Outcome.OK,
            "server-access": Outcome.OK,
            "consumer": Outcome.OK,
        }
        late = clocks.Clock(epoch=lambda: CLOCK.epoch() - 60)
        found = await check_agent(clock=late, kubeconfig=str(cluster.kubeconfig), grpc_url=server.agents)
        assert found["clock"].outcome is Outcome.WARNING
        assert "behind the API server" in found["clock"].detail
        arguments = ("--consumer-name=cluster1", f"--kubeconfig={cluster.kubeconfig}", f"--grpc-url={server.agents}")
        code, out, _ = await maestro("check", "agent", *arguments)
        assert code == 0, out
        assert out.startswith("check agent: 1 not seen, 7 ok\n")
        await asyncio.gather(*(check_agent(kubeconfig="none", grpc_url=server.agents) for _ in range(3)))
    # A server writes what waits before it ends.
    assert await harness.value(database, "SELECT count(*) FROM maestropy_history WHERE kind LIKE 'agent.%'") == 0


async def test_agent_of_an_unknown_consumer_or_with_the_port_of_sources_fails(database: Dsn) -> None:
    async with harness.in_process(database) as server:
        unknown = (await check_agent(kubeconfig="none", grpc_url=server.agents))["consumer"]
        assert (unknown.outcome, unknown.detail) == (Outcome.FAILED, "there is no consumer 'cluster1'")
        assert "maestro consumer create cluster1" in unknown.remedy
        port = (await check_agent(kubeconfig="none", grpc_url=server.sources))["server-access"]
        assert port.outcome is Outcome.FAILED
        assert "8091" in port.remedy


@pytest.mark.parametrize(
    ("key", "outcome", "text"),
    [
        pytest.param("sourceEvents", Outcome.FAILED, 'the agent of "cluster1" would get no specs', id="specs"),
        pytest.param("agentEvents", Outcome.WARNING, 'servers may reject the statuses of "cluster1"', id="statuses"),
    ],
)
async def test_topics_of_another_consumer_are_named(key: str, outcome: Outcome, text: str, tmp_path: Path) -> None:
    topics = {name: f"sources/maestro/consumers/+/{name.lower()}" for name in ("sourceEvents", "agentEvents")}
    topics[key] = topics[key].replace("+", "other")
    config = tmp_path / "mqtt.yaml"
    config.write_text(json.dumps({"brokerHost": "127.0.0.1:1", "topics": topics}))
    kubeconfig = str(tmp_path / "none")
    found = await check_agent(kubeconfig=kubeconfig, workload_source_driver="mqtt", workload_source_config=str(config))
    check = found["message-broker-config"]
    assert check.outcome is outcome
    assert f'topics.{key} names the consumer "other"' in check.detail
    assert text in check.detail
    arguments = ("--consumer-name=cluster1", "--workload-source-driver=mqtt", f"--kubeconfig={kubeconfig}")
    code, _, err = await maestro("agent", *arguments, f"--workload-source-config={config}")
    # The other one ends because there is no cluster; its warning is in the log before that.
    assert code == (2 if outcome is Outcome.FAILED else 1)
    assert f"topics.{key} names the consumer" in err


async def test_permissions_that_the_agent_lacks_are_named(tmp_path: Path) -> None:
    async with SandboxCluster(tls=False, controllers=False) as cluster:
        cluster.access.add("weak", User(name="weak", groups=("system:authenticated",)))
        kubeconfig = tmp_path / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig, token="weak")
        found = await check_agent(
            kubeconfig=str(kubeconfig), grpc_url="127.0.0.1:1", disable_leader_election="false", namespace="agents"
        )
    denied = found["cluster-permissions"]
    assert denied.outcome is Outcome.FAILED
    assert (
        "the account may not get, list, watch, create, update, patch, delete appliedmanifestworks.work.open-cluster-"
        "management.io; patch appliedmanifestworks/status.work.open-cluster-management.io" in denied.detail
    )
    assert "get, create, update leases.coordination.k8s.io in agents" in denied.detail
    assert found["cluster-definition"].outcome is Outcome.NOT_SEEN
    assert found["server"].detail == "127.0.0.1:1 cannot be reached: Connection refused"


async def test_server_that_rejects_the_agent_is_named(database: Dsn, tmp_path: Path) -> None:
    """The certificate of another cluster: reached, and not accepted."""
    ca = make_ca(tmp_path)
    server_pair = ca.issue(cn="server", san=["127.0.0.1"])
    client = ca.issue(cn="system:open-cluster-management:cluster2", o=["maestro:consumer:cluster2"])
    flags = {
        "grpc_broker_tls_cert_file": str(server_pair.cert),
        "grpc_broker_tls_key_file": str(server_pair.key),
        "grpc_broker_client_ca_file": str(ca.cert),
        "grpc_broker_agent_identity": "exact",
    }
    async with harness.in_process(database, **flags) as server, SandboxCluster(tls=False, controllers=False) as cluster:
        config = tmp_path / "grpc.yaml"
        config.write_text(
            f"url: {server.agents.split()[0]}\ncaFile: {ca.cert}\n"
            f"clientCertFile: {client.cert}\nclientKeyFile: {client.key}\n"
        )
        found = await check_agent(kubeconfig=str(cluster.kubeconfig), workload_source_config=str(config))
        assert found["server"].outcome is Outcome.OK
        assert found["server-access"].outcome is Outcome.FAILED
        assert "may not act for consumer 'cluster1'" in found["server-access"].detail


@contextmanager
def silent_tls_server(pair: CertFiles) -> Iterator[int]:
    """Run a server that answers nothing after the handshake, not even the end of TLS; yields its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    ended = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
            ended.wait(waiting.TIMEOUT)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ended.set()
            serving.join()


@pytest.mark.parametrize(
    ("expired", "outcome", "remedy"),
    [pytest.param(False, Outcome.OK, "", id="valid"), pytest.param(True, Outcome.FAILED, "renew", id="expired")],
)
async def test_handshake_with_a_server_that_says_nothing_ends(
    *, expired: bool, outcome: Outcome, remedy: str, tmp_path: Path
) -> None:
    ca = make_ca(tmp_path)
    pair = ca.issue(cn="server", san=["127.0.0.1"], expired=expired)
    context = ssl.create_default_context(cafile=str(ca.cert))
    with silent_tls_server(pair) as port:
        async with asyncio.timeout(2):
            found = await inspection.handshake("127.0.0.1", port, context, name="server")
    assert found.outcome is outcome
    assert remedy in found.remedy


@pytest.mark.long
async def test_status_of_a_server_names_the_reason(database: Dsn, postgres: harness.Postgres) -> None:
    async with harness.in_process(database) as server:
        code, out, _ = await maestro("server", "status", "--url", server.health)
        assert code == 0
        assert out == (
            f"server {server.health}: ready: 3 ok\n"
            "  ok        database\n  ok        database-writable\n  ok        instance\n"
        )
        async with postgres.outage(database):

            async def is_down() -> bool:
                return await server.probe("/readyz") == 503

            await waiting.until(is_down, what="the outage")
            code, out, _ = await maestro("server", "status", "--url", server.health)
            assert code == 1
            assert out.startswith(f"server {server.health}: not ready, because of database: 1 failed\n")
            code, out, _ = await maestro("server", "status", "--url", server.health, "-o=json")
            assert code == 1
            assert [check["outcome"] for check in json.loads(out)["checks"]] == ["failed"]


async def test_status_of_nobody_names_the_remedy() -> None:
    code, _, err = await maestro("agent", "status", "--url=https://127.0.0.1:1")
    assert code == 1
    assert "the agent at https://127.0.0.1:1 does not answer" in err
    assert "give --url of its health port" in err


async def test_status_of_a_wrong_port_or_scheme_names_the_right_one(database: Dsn, tmp_path: Path) -> None:
    pair = make_ca(tmp_path).issue(cn="server", san=["127.0.0.1"])
    secure = {"enable_health_check_https": "true", "https_cert_file": str(pair.cert), "https_key_file": str(pair.key)}
    async with harness.in_process(database, **secure) as server:
        https, http = (f"{scheme}://{server.health.partition('://')[2]}" for scheme in ("https", "http"))
        port = "give --url with that port, 8083 by default (--health-check-server-bindport)"
        told = {
            http: f"it answers over https: give --url {https}",
            server.rest.replace("http:", "https:"): f"it answers over http: give --url {server.rest}",
            server.rest: f"{server.rest} answers, and not as the health port of a Maestro server does; {port}",
            f"http://{server.sources}": "it may be a port of gRPC; give --url with the health port, 8083 by default",
            server.sources: f"--url={server.sources} has no scheme",
        }
        for url, text in told.items():
            with pytest.raises((CommandError, UsageError), match=re.escape(text)):
                await asyncio.to_thread(status.server, {"--url": url})
        assert await asyncio.to_thread(status.server, {"--url": https}) == 0


@contextmanager
def answering(*parts: bytes, again: float | None = None) -> Iterator[str]:
    """Answer HTTP requests with these parts; with `again`, repeat the last one until the client leaves."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(b"".join(parts))
                while again is not None and not select.select([self.request], [], [], again)[0]:
                    self.request.sendall(parts[-1])

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    "body", [b"\x1b]0;note\x07\n[+]database ok\n", b"[+]data\x1b[2Jbase ok: \x9b31m\xe2\x80\xae\n"]
)
@pytest.mark.parametrize("output", ["text", "json"])
async def test_status_escapes_control_characters_of_the_answer(body: bytes, output: str) -> None:
    with answering(HEAD, body) as url:
        code, out, err = await maestro("server", "status", "--url", url, f"-o={output}")
    assert (code, err) == (0, "")
    assert "ok" in out
    assert out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("parts", "again", "text"),
    [
        pytest.param(
            [HEAD, b"x" * 65536], 0, "/readyz?verbose answers with more than 1 MiB; check that --url", id="endless"
        ),
        pytest.param([HEAD, b"x"], 0.1, "has not answered completely within 1 s; check that --url", id="slow-body"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"], 0.1, "has not answered completely within 1 s", id="slow-head"
        ),
    ],
)
async def test_status_reads_for_a_limited_time_and_a_limited_answer(
    parts: list[bytes], again: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "_SECONDS", 1.0 if "1 s" in text else waiting.TIMEOUT)
    with answering(*parts, again=again) as url:
        with pytest.raises(CommandError, match=re.escape(text)):
            await asyncio.to_thread(status.server, {"--url": url})


async def check_database(address: Dsn | None, **flags: str) -> dict[str, Check]:
    given = {f"--{name.replace('_', '-')}": text for name, text in flags.items()}
    settings = configuration.load({"--server-hostname": "127.0.0.1", **given}, {})
    return by_name(await database_preflight.run(settings, address, clock=CLOCK))


async def test_database_in_operation_passes_every_check(database: Dsn) -> None:
    found = await check_database(database)
    assert set(outcomes(found).values()) == {Outcome.OK}, found
    assert {"database", "database-identity", "database-connections", "database-notification-queue"} <= set(found)
    assert found["database-pending-events"].detail == "no spec event waits for delivery"
    code, out, _ = await maestro("check", "database", "-o", "json", env={"MAESTRO_DB_DSN": str(database)})
    assert (code, json.loads(out)["ok"]) == (0, True)


async def test_event_that_nobody_delivers_and_invalid_index_are_found(database: Dsn) -> None:
    await add_consumers(database, "cluster1")
    await harness.sql(
        database,
        "INSERT INTO resources (id, created_at, updated_at, consumer_name, version, source, name, type) "
        "VALUES ('r', now(), now(), 'cluster1', 1, 's', 'n', 'Bundle')",
    )
    await harness.sql(
        database,
        "INSERT INTO events (id, created_at, updated_at, source, source_id, event_type) "
        "VALUES ('e', now() - interval '1 hour', now(), 'Resources', 'r', 'Create')",
    )
    waiting_event = (await check_database(database))["database-pending-events"]
    assert waiting_event.outcome is Outcome.FAILED
    assert waiting_event.detail == "1 wait for delivery, the oldest for 60 minutes"
    code, out, _ = await maestro("check", "database", env={"MAESTRO_DB_DSN": str(database)})
    assert code == 1
    assert "fix: run `maestro server status`" in out
    await harness.sql(database, "INSERT INTO maestropy_pauses VALUES ('cluster1', now(), 'me', 'test')")
    paused = (await check_database(database))["database-pending-events"]
    assert paused.outcome is Outcome.OK


async def test_read_replica_that_is_none_is_found(database: Dsn) -> None:
    other = f"postgresql://{database.user}@/postgres?host={database.host}"
    found = await check_database(database, db_dsn=str(database), db_read_dsn=other)
    assert found["database-replica"].outcome is not Outcome.OK


async def test_database_that_is_away_is_told_once() -> None:
    code, out, _ = await maestro("check", "database", "--db-dsn=postgresql://nobody@127.0.0.1:1/none")
    assert code == 1
    assert out.startswith("check database: 1 failed\n")


async def test_listener_of_a_server_that_is_away_and_there() -> None:
    async with silent_server() as port:
        flags = ("check", "broker", "--server-hostname=127.0.0.1", f"--grpc-broker-bindport={port}")
        code, out, _ = await maestro(*flags, "--consumer=cluster1")
        assert code == 0
        assert f"127.0.0.1:{port} accepts connections" in out
        assert "maestro history cluster1 --kind agent --since 24h" in out
    code, out, _ = await maestro(*flags)
    assert code == 1
    assert "cannot be reached" in out


@pytest.mark.parametrize(
    ("load", "name", "outcome"),
    [
        ({}, "database-connections", Outcome.OK),
        ({"connections": 95}, "database-connections", Outcome.WARNING),
        ({"notification_queue": 0.2}, "database-notification-queue", Outcome.WARNING),
        ({"notification_queue": 0.6}, "database-notification-queue", Outcome.FAILED),
        ({"pending": None}, "database-pending-events", Outcome.NOT_SEEN),
        ({"pending": 2, "oldest_pending_seconds": 60.0}, "database-pending-events", Outcome.OK),
        ({"invalid_indexes": ("i",)}, "database-indexes", Outcome.WARNING),
        ({"oldest_transaction_seconds": 3600.0}, "database-transactions", Outcome.WARNING),
        ({"identity": ""}, "database-identity", Outcome.NOT_SEEN),
    ],
)
def test_use_of_a_database_is_judged(load: dict[str, Any], name: str, outcome: Outcome) -> None:
    usual = {"connections": 5, "max_connections": 100, "notification_queue": 0.0, "invalid_indexes": (),
             "oldest_transaction_seconds": 0.0, "pending": 0, "oldest_pending_seconds": 0.0,
             "identity": "id"}  # fmt: skip
    found = by_name(database_preflight.judge(Load(**{**usual, **load})))
    assert found[name].outcome is outcome
    assert found[name].remedy or outcome in {Outcome.OK, Outcome.NOT_SEEN}
