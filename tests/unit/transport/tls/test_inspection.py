"""What is found in certificates before they are used: each defect with its remedy."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maestropy.aio.checks import Outcome
from maestropy.transport.tls import credentials, inspection
from maestropy.transport.tls.certificates import Certificates
from tests.certificates import Authority, CertFiles, make_ca

NOW = dt.datetime.now(dt.UTC)


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    return make_ca(tmp_path)


def files(pair: CertFiles, *, client_ca: Path | None = None) -> credentials.TlsFiles:
    return credentials.TlsFiles(cert=pair.cert, key=pair.key, client_ca=client_ca, flags=credentials.SOURCES)


def test_good_certificate_of_a_listener(ca: Authority) -> None:
    pair = ca.issue(cn="a", san=["maestro.example.com", "*.svc"], lifetime=dt.timedelta(days=90))
    found = inspection.listener(files(pair, client_ca=ca.cert), hostname="maestro.example.com", now=NOW)
    assert [check.outcome for check in found] == [Outcome.OK] * 3
    assert found[1].detail == "issued for maestro.example.com, *.svc"
    (_, names) = inspection.listener(files(pair), hostname="grpc.svc", now=NOW)
    assert names.outcome is Outcome.OK
    (_, everywhere) = inspection.listener(files(pair), hostname="", now=NOW)
    assert everywhere.outcome is Outcome.NOT_SEEN
    assert "maestro.example.com" in everywhere.detail


@pytest.mark.parametrize(
    ("change", "outcome", "text"),
    [
        pytest.param("missing", Outcome.FAILED, "does not exist", id="missing"),
        pytest.param("other-key", Outcome.FAILED, "does not belong to the first certificate", id="other-key"),
        pytest.param("expired", Outcome.FAILED, "has expired on", id="expired"),
        pytest.param("soon", Outcome.WARNING, "expires on", id="expires-soon"),
        pytest.param("early", Outcome.FAILED, "is not valid before", id="not-yet-valid"),
        pytest.param("other-name", Outcome.WARNING, "not for --server-hostname=maestro", id="other-name"),
        pytest.param("no-name", Outcome.FAILED, "no subject alternative name", id="no-name"),
        pytest.param("damaged", Outcome.FAILED, "no readable PEM certificate", id="damaged"),
    ],
)
def test_defect_of_a_listener(ca: Authority, tmp_path: Path, change: str, outcome: Outcome, text: str) -> None:
    long = dt.timedelta(days=90)
    pair, now = ca.issue(cn="a", san=["maestro"], lifetime=long), NOW
    match change:
        case "missing":
            pair = CertFiles(cert=tmp_path / "none", key=pair.key)
        case "other-key":
            pair = CertFiles(cert=pair.cert, key=ca.issue(cn="b").key)
        case "expired":
            pair = ca.issue(cn="a", san=["maestro"], expired=True)
        case "soon":
            pair = ca.issue(cn="a", san=["maestro"], lifetime=dt.timedelta(days=2))
        case "early":
            now = NOW - dt.timedelta(days=30)
        case "other-name":
            pair = ca.issue(cn="a", san=["elsewhere"], lifetime=long)
        case "no-name":
            pair = ca.issue(cn="maestro", lifetime=long)
        case "damaged":
            pair.cert.write_text("no certificate")
    found = [
        check for check in inspection.listener(files(pair), hostname="maestro", now=now) if check.outcome != Outcome.OK
    ]
    (check,) = found
    assert (check.outcome, text in check.detail) == (outcome, True), check
    assert check.remedy


def test_client_certificate_and_authority(ca: Authority, tmp_path: Path) -> None:
    pair = ca.issue(cn="cluster1", lifetime=dt.timedelta(days=90))
    good = Certificates(ca_file=ca.cert, client_cert_file=pair.cert, client_key_file=pair.key)
    assert [check.outcome for check in inspection.connection(good, setting="x", now=NOW)] == [Outcome.OK] * 2
    other = Certificates(
        ca_file=tmp_path / "none", client_cert_file=pair.cert, client_key_file=ca.issue(cn="other").key
    )
    authority, client = inspection.connection(other, setting="x", now=NOW)
    assert (authority.outcome, client.outcome) == (Outcome.FAILED, Outcome.FAILED)
    assert client.detail == "the key does not belong to the certificate"
    unreadable = Certificates(client_cert_file=tmp_path / "none", client_key_file=pair.key)
    (missing,) = inspection.connection(unreadable, setting="x", now=NOW)
    assert missing.detail == f"{tmp_path / 'none'} cannot be read: No such file or directory"


@asynccontextmanager
async def tls_server(pair: CertFiles) -> AsyncIterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("san", "expired", "trusted", "text"),
    [
        pytest.param("127.0.0.1", False, True, "", id="good"),
        pytest.param("elsewhere", False, True, "not valid for '127.0.0.1'", id="other-name"),
        pytest.param("127.0.0.1", True, True, "certificate has expired", id="expired"),
        pytest.param("127.0.0.1", False, False, "unable to get local issuer certificate", id="other-authority"),
    ],
)
async def test_handshake_says_what_is_wrong(
    ca: Authority, tmp_path: Path, san: str, expired: bool, trusted: bool, text: str
) -> None:
    authority = ca if trusted else make_ca(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.cert))
    async with tls_server(ca.issue(cn="server", san=[san], expired=expired)) as port:
        check = await inspection.handshake("127.0.0.1", port, context, name="server")
    assert check.outcome is (Outcome.FAILED if text else Outcome.OK), check
    assert text in check.detail


async def test_closed_port_is_named() -> None:
    check = await inspection.reach("127.0.0.1", 1, name="server")
    assert check.outcome is Outcome.FAILED
    assert check.detail == "127.0.0.1:1 cannot be reached: Connection refused"
