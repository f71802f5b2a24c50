"""Maestro's own charts, with TLS everywhere, start our server with their flags as they are.

As upstream's test set-up installs them: sources have a token and no certificate, although the chart gives a CA of
clients, and all agents have one certificate with the name `grpc-client`.
"""

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from maestropy import Maestro, Work
from maestropy.journal.phrases import BrokerPhrase
from tests import certificates
from tests.peers import peer_build, peer_postgres
from tests.peers.kube_agents import configured_agent
from tests.peers.kube_cluster import KubeCluster
from tests.peers.peer_processes import free_ports, running, tail
from tests.peers.peer_servers import PYTHON_CLI, database_files, migrate
from tests.waiting import wait_for

NUMBERS = itertools.count(1)
pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]
# charts/maestro-server/templates/deployment.yaml, August 2026; `{...}` are values.
SERVER = (
    "--client-id=maestro-{pod}",
    "--message-broker-type=grpc",
    "--message-broker-config-file={secrets}/grpc/config.yaml",
    "--enable-https=true",
    "--https-cert-file={secrets}/tls.crt",
    "--https-key-file={secrets}/tls.key",
    "--grpc-tls-cert-file={secrets}/tls.crt",
    "--grpc-tls-key-file={secrets}/tls.key",
    "--grpc-client-ca-file={secrets}/ca.crt",
    "--grpc-broker-tls-cert-file={secrets}/tls.crt",
    "--grpc-broker-tls-key-file={secrets}/tls.key",
    "--grpc-broker-client-ca-file={secrets}/ca.crt",
    "--server-hostname={hostname}",
    "--http-server-bindport={http}",
    "--grpc-server-bindport={grpc}",
    "--health-check-server-bindport={health}",
    "--enable-health-check-https=true",
    "--db-max-open-connections=50",
    "--enable-db-debug=false",
    "--enable-metrics-https=false",
    "--http-read-timeout=5s",
    "--http-write-timeout=30s",
    "--label-metrics-inclusion-duration=168h",
    "--alsologtostderr",
    "-v=2",
)


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A running server of the chart."""

    rest_url: str
    grpc_url: str
    broker: str
    authority: certificates.Authority
    log: Path


@pytest.fixture
def deployed(postgres: peer_postgres.Cluster, tmp_path: Path, shown_logs: list[Path]) -> Iterator[Deployed]:
    authority = certificates.make_ca(tmp_path)
    files = authority.issue(cn="maestro-grpc-server", san=["localhost", "127.0.0.1"])
    for name, path in (("tls.crt", files.cert), ("tls.key", files.key), ("ca.crt", authority.cert)):
        (tmp_path / name).write_bytes(path.read_bytes())
    http, grpc, health, metrics, agents = free_ports(5)
    values = {"pod": "0", "secrets": tmp_path, "hostname": "127.0.0.1", "http": http, "grpc": grpc, "health": health}
    secrets = database_files(postgres.create(f"upstream_chart{next(NUMBERS)}"), tmp_path)
    migrate([*PYTHON_CLI, "migration", *secrets, "--alsologtostderr", "-v=2"])
    # The chart leaves these ports at their defaults, which another process may have.
    ports = [f"--metrics-server-bindport={metrics}", f"--grpc-broker-bindport={agents}"]
    command = [*PYTHON_CLI, "server", *secrets, *(flag.format(**values) for flag in SERVER), *ports]
    log = tmp_path / "server.log"
    shown_logs.append(log)
    with running(command, log=log, env={**os.environ, "MAESTRO_ENV": "development"}) as process:

        def is_ready() -> bool:
            assert process.poll() is None, f"the server ended:\n{tail(log)}"
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"https://127.0.0.1:{health}/healthcheck", verify=False).is_success
            return False

        wait_for(is_ready, what="the server", seconds=60)
        yield Deployed(
            rest_url=f"https://127.0.0.1:{http}",
            grpc_url=f"127.0.0.1:{grpc}",
            broker=f"127.0.0.1:{agents}",
            authority=authority,
            log=log,
        )
    shown_logs.remove(log)


@pytest.mark.parametrize("kind", ["go", "python"])
def test_token_client_and_agent_with_the_common_certificate(
    kind: str,
    deployed: Deployed,
    programs: peer_build.Programs,
    real_cluster: KubeCluster,
    namespace: str,
    tmp_path: Path,
) -> None:
    consumer, ca = f"chart-{kind}", str(deployed.authority.cert)
    own = deployed.authority.issue(cn="grpc-client", o=["open-cluster-management"])
    config, token = tmp_path / f"{kind}.yaml", tmp_path / "token"
    files = {"caFile": ca, "clientCertFile": str(own.cert), "clientKeyFile": str(own.key)}
    config.write_text(json.dumps({"url": deployed.broker, **files}))
    token.write_text("a-service-account-token")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": namespace}}
    with Maestro(
        environ={},
        source="chart",
        api_url=deployed.rest_url,
        grpc_url=deployed.grpc_url,
        ca_file=ca,
        token_file=token,
    ) as client:
        client.consumers.create(consumer)
        with configured_agent(kind, programs.maestro, cluster=real_cluster, consumer=consumer, config=config):
            works = client.works(consumer)
            works.create(Work("w").add(manifest))
            works.wait_for("w", "Applied", timeout=60)
    (warning,) = [line for line in deployed.log.read_text().splitlines() if BrokerPhrase.CONSUMER_NOT_NAMED in line]
    assert 'identity="grpc-client"' in warning
