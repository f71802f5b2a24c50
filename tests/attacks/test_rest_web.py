"""Web pages of other origins cannot use the REST API of a server that their visitor can reach."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from maestropy.server.api.rest.hosts import HostRules
from tests.stack import harness, rest_live
from tests.stack.rest_live import BASE, Live

CONSUMERS = f"{BASE}/consumers"
BUNDLES = f"{BASE}/resource-bundles"


@pytest.fixture(scope="module")
def server(postgres: harness.Postgres) -> Iterator[Live]:
    with rest_live.live(postgres.fresh()) as running:
        running.add_bundles(1)
        yield running


@pytest.fixture
def api(server: Live) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_cross_origin_request_is_not_allowed(api: httpx.Client, method: str) -> None:
    """let a visitor's browser call the REST API from a page of another origin -> no CORS headers: the browser sends \
no writes and hides what it reads"""
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": method}
    for headers in (asked, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        for response in (api.options(CONSUMERS, headers=headers), api.get(CONSUMERS, headers=headers)):
            assert [name for name in response.headers if name.startswith("access-control-")] == []


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("text/plain", id="text"),
        pytest.param("text/plain; charset=application/json", id="json-in-a-parameter"),
        pytest.param("application/x-www-form-urlencoded", id="form"),
        pytest.param("multipart/form-data; boundary=x", id="upload"),
        pytest.param("", id="empty"),
        pytest.param(None, id="none"),
    ],
)
def test_body_that_needs_no_preflight_is_rejected(api: httpx.Client, server: Live, content_type: str | None) -> None:
    """post JSON as a form or as plain text, which browsers send without asking (CSRF) -> 415, nothing is written"""
    headers = {"Origin": "https://evil.example"} | ({} if content_type is None else {"Content-Type": content_type})
    before = server.sql("SELECT * FROM consumers ORDER BY id")
    for method, path in (("POST", CONSUMERS), ("PATCH", f"{CONSUMERS}/cluster1")):
        response = api.request(method, path, content=b'{"labels": {"owned": "yes"}}', headers=headers)
        assert (response.status_code, response.json()["id"]) == (415, "17")
        assert "Content-Type: application/json" in response.json()["reason"]
    assert server.sql("SELECT * FROM consumers ORDER BY id") == before


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
def test_declared_json_is_accepted(api: httpx.Client, content_type: str) -> None:
    response = api.post(CONSUMERS, content=b"{}", headers={"Content-Type": content_type})
    assert response.status_code == 201, response.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "maestro.svc.evil.example",
        "evil.example.",
        "EVIL.example",
        "127.0.0.1@evil.example",
        "[::1].evil.example",
        "[::1]evil.example:80",
    ],
)
def test_name_of_another_server_is_rejected(api: httpx.Client, server: Live, host: str) -> None:
    """point the DNS name of a web page at the server (DNS rebinding) -> 421 for every path and method"""
    before = server.sql("SELECT count(*) FROM consumers")
    for method, path in (("GET", BUNDLES), ("POST", CONSUMERS), ("DELETE", f"{BUNDLES}/bundle-00000")):
        response = api.request(method, path, json={}, headers={"Host": host})
        assert (response.status_code, response.json()["id"]) == (421, "21"), host
        assert "--http-allowed-hosts" in response.json()["reason"]
    assert server.sql("SELECT count(*) FROM consumers") == before
    assert server.deleted == []


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        pytest.param("localhost:8000", True, id="localhost"),
        pytest.param("maestro.localhost", True, id="below-localhost"),
        pytest.param("127.0.0.1", True, id="loopback"),
        pytest.param("[::1]:8000", True, id="ipv6-loopback"),
        pytest.param("10.128.3.7:8000", True, id="pod-address"),
        pytest.param("[fd00::7]:8000", True, id="ipv6-pod-address"),
        pytest.param("maestro:8000", True, id="service"),
        pytest.param("maestro.maestro.svc:8000", True, id="service-and-namespace"),
        pytest.param("maestro.maestro.svc.cluster.local:8000", True, id="full-service-name"),
        pytest.param("api.example.com", True, id="configured"),
        pytest.param("API.example.com.:443", True, id="configured-in-capitals"),
        pytest.param("a.wild.example.com", True, id="configured-wildcard"),
        pytest.param("wild.example.com", False, id="wildcard-itself"),
        pytest.param("notwild.example.com", False, id="longer-label"),
        pytest.param("other.example.com", False, id="neighbour"),
        pytest.param("attacker.dev", False, id="public-name"),
        pytest.param("", True, id="empty"),
        pytest.param(None, True, id="http-1.0-without-host"),
    ],
)
def test_host_names_by_table(host: str | None, is_allowed: bool) -> None:
    rules = HostRules(names=("api.example.com", "*.wild.example.com"))
    assert rules.allows(host) is is_allowed
    assert HostRules(names=("*",)).allows(host)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("hosts", ["Host: localhost\r\nHost: evil.example\r\n", ""], ids=["two", "none"])
def test_two_host_headers_or_none_are_rejected(server: Live, hosts: str, version: str) -> None:
    """hide the name of another server behind a second Host header, or send none -> the request is rejected"""
    address = httpx.URL(server.url)
    request = f"GET {CONSUMERS} HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n"
    with socket.create_connection((address.host, address.port or 0), timeout=20) as connection:
        connection.sendall(request.encode())
        status = connection.makefile("rb").readline()
    assert status.split()[1] in (b"400", b"421")
