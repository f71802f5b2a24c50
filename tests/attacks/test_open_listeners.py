"""A server that other hosts can reach does not start with an unauthenticated listener, unless somebody accepted it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from maestropy.flags import SettingsError
from maestropy.server.settings import open_listeners
from maestropy.server.settings.load import load

NETWORK = {"--server-hostname": "", "--db-dsn": "postgresql://maestro@127.0.0.1:1/maestro"}
REST, SOURCES, AGENTS = "REST on port 8000", "gRPC for sources on port 8090", "gRPC for agents on port 8091"
ACCEPTED_BY = {REST: "--insecure-rest", SOURCES: "--insecure-grpc", AGENTS: "--insecure-grpc-broker"}
SOURCES_TLS = {"--grpc-tls-cert-file": "c", "--grpc-tls-key-file": "k"}
AGENTS_TLS = {
    "--grpc-broker-tls-cert-file": "c",
    "--grpc-broker-tls-key-file": "k",
    "--grpc-broker-client-ca-file": "ca",
}
JWT = {"--rest-authn-type": "jwt", "--jwks-file": "f"}


def unaccepted(flags: Mapping[str, str]) -> set[str]:
    """Return the listeners that the error names."""
    try:
        load({**NETWORK, **flags}, {"HOME": "/home/me"})
    except SettingsError as error:
        text = str(error)
        named = {listener for listener in ACCEPTED_BY if listener in text}
        assert named, text
        assert all((flag in text.replace(f"{flag}-", "")) == (name in named) for name, flag in ACCEPTED_BY.items()), (
            text
        )
        return named
    return set()


@pytest.mark.parametrize("hostname", ["", "0.0.0.0", "::", "10.0.0.7", "maestro.example.com"])
def test_server_open_to_the_network_does_not_start(hostname: str, tmp_path: Path) -> None:
    """connect to a server that was put on the network without authentication -> nothing: it does not start and names \
every open listener and its flag"""
    flags = [f"{name}={value}" for name, value in {**NETWORK, "--server-hostname": hostname}.items()]
    done = subprocess.run(
        [sys.executable, "-m", "maestropy.cli.main", "server", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "MAESTRO_ENV": "development"},
    )
    assert done.returncode == 2, done.stderr
    for text in (*ACCEPTED_BY, *ACCEPTED_BY.values(), "--rest-authn-type=jwt", "--grpc-broker-client-ca-file"):
        assert text in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        pytest.param({}, {REST, SOURCES, AGENTS}, id="nothing-said"),
        pytest.param({"--insecure-rest": "true"}, {SOURCES, AGENTS}, id="rest-accepted"),
        pytest.param({"--insecure-grpc": "true"}, {REST, AGENTS}, id="sources-accepted"),
        pytest.param({"--insecure-grpc-broker": "true"}, {REST, SOURCES}, id="agents-accepted"),
        pytest.param({"--disable-grpc-tls": "true"}, {REST}, id="grpc-tls-disabled"),
        pytest.param({"--disable-grpc-tls": "false"}, {REST, SOURCES, AGENTS}, id="grpc-tls-not-disabled"),
        pytest.param({"--grpc-authn-type": "mock"}, {REST, AGENTS}, id="mock-asked-for"),
        pytest.param({"--enable-https": "false"}, set(), id="https-declined"),
        pytest.param(
            {"--https-cert-file": "c", "--https-key-file": "k", **SOURCES_TLS, "--insecure-grpc-broker": "true"},
            {REST, SOURCES},
            id="tls-is-no-authentication",
        ),
        pytest.param(
            {"--enable-https": "true", "--https-cert-file": "c", "--https-key-file": "k"}, set(), id="https-enabled"
        ),
        pytest.param({**JWT, **SOURCES_TLS, **AGENTS_TLS}, {SOURCES}, id="tls-without-authn-type"),
        pytest.param(
            {**JWT, **SOURCES_TLS, **AGENTS_TLS, "--grpc-client-ca-file": "ca"}, {SOURCES}, id="unused-ca-of-sources"
        ),
        pytest.param({**JWT, **SOURCES_TLS, **AGENTS_TLS, "--grpc-authn-type": "token"}, set(), id="all-authenticated"),
        pytest.param({**JWT, "--enable-grpc-server": "false", "--disable-message-broker": "true"}, set(), id="closed"),
    ],
)
def test_each_open_listener_must_be_accepted(flags: dict[str, str], named: set[str]) -> None:
    """use the listener that the operator forgot to secure -> nothing: accepting one listener accepts no other"""
    assert unaccepted(flags) == named


# The arguments of the deployments that exist, without their files.
ARO_HCP = {
    "--client-id": "maestro-0",
    "--subscription-type": "broadcast",
    "--message-broker-type": "mqtt",
    "--message-broker-config-file": "/secrets/maestro/config.yaml",
    "--enable-https": "false",
    "--enable-grpc-server": "true",
    "--disable-grpc-tls": "true",
    "--server-hostname": "",
    "--enable-health-check-https": "false",
    "--enable-metrics-https": "false",
    "--http-read-timeout": "60s",
    "--http-write-timeout": "60s",
}
CHART_TLS = {
    "--enable-https": "true",
    "--https-cert-file": "/secrets/https-certs/tls.crt",
    "--https-key-file": "/secrets/https-certs/tls.key",
    "--enable-health-check-https": "true",
    "--grpc-client-ca-file": "/secrets/maestro-grpc-cert/ca.crt",
}
CHART = {
    "--client-id": "maestro-0",
    "--message-broker-config-file": "/secrets/grpc/config.yaml",
    "--enable-https": "false",
    "--server-hostname": "",
    "--enable-health-check-https": "false",
    "--enable-metrics-https": "false",
}


@pytest.mark.parametrize("environment", ["", "development", "production"])
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(ARO_HCP, id="aro-hcp"),
        pytest.param({**CHART, "--message-broker-type": "mqtt"}, id="chart-mqtt"),
        pytest.param({**CHART, "--message-broker-type": "grpc"}, id="chart-grpc"),
        pytest.param({**CHART, **SOURCES_TLS, **AGENTS_TLS, "--grpc-client-ca-file": "ca"}, id="chart-grpc-tls"),
        pytest.param({**CHART, **SOURCES_TLS, **AGENTS_TLS, **CHART_TLS}, id="chart-https"),
    ],
)
def test_charts_start_unchanged(flags: dict[str, str], environment: str) -> None:
    """reach a server of an existing chart past its mesh -> what the mesh was to prevent; the log warns about each \
listener"""
    settings = load({**NETWORK, **flags}, {"HOME": "/home/me", "MAESTRO_ENV": environment})
    assert all(listener.is_accepted for listener in open_listeners.open_listeners(settings))
    assert open_listeners.open_listeners(settings), "the log has nothing to warn about"


@pytest.mark.parametrize("hostname", ["localhost", "127.0.0.1", "127.0.0.53", "::1"])
def test_loopback_needs_no_flag(hostname: str) -> None:
    """connect from another host to a server without flags -> no connection: it listens on loopback only"""
    assert open_listeners.open_listeners(load({"--server-hostname": hostname}, {"HOME": "/home/me"})) == []
