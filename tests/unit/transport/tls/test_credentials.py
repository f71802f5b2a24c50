"""Listeners reload rotated certificate files: real sockets, real handshakes."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from maestropy.transport.tls import credentials as tls
from tests.certificates import Authority, CertFiles, make_ca, put, rsa_key

METHOD = "/test.Echo/Say"


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    return make_ca(tmp_path)


@pytest.fixture
def problems() -> list[str]:
    return []


def issue_server(ca: Authority, **more: Any) -> CertFiles:
    return ca.issue(cn="localhost", san=["localhost", "127.0.0.1"], **more)


def files_for(server: CertFiles, client_ca: Path | None = None, flags: tls.TlsFlags = tls.SOURCES) -> tls.TlsFiles:
    files = tls.tls_files(str(server.cert), str(server.key), client_ca=str(client_ca) if client_ca else "", flags=flags)
    assert files is not None
    return files


# --- flags and files -------------------------------------------------------------------------------


def test_no_files_mean_no_tls() -> None:
    assert tls.tls_files("", "", flags=tls.HTTPS) is None


@pytest.mark.parametrize(
    ("cert", "key", "client_ca", "text"),
    [
        pytest.param("c", "", "", "--grpc-tls-cert-file is set but --grpc-tls-key-file is not", id="no-key"),
        pytest.param("", "k", "", "--grpc-tls-key-file is set but --grpc-tls-cert-file is not", id="no-certificate"),
        pytest.param("", "", "a", "--grpc-client-ca-file is set but", id="client-ca-without-tls"),
    ],
)
def test_incomplete_tls_flags_are_rejected(cert: str, key: str, client_ca: str, text: str) -> None:
    with pytest.raises(tls.TlsError, match=text):
        tls.tls_files(cert, key, client_ca=client_ca, flags=tls.SOURCES)


def test_unusable_file_is_reported_by_flag(ca: Authority, tmp_path: Path, problems: list[str]) -> None:
    good, other_server = issue_server(ca), issue_server(ca)
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("this is not PEM")
    half = tmp_path / "half"
    half.write_bytes(good.pem()[: len(good.pem()) // 2])
    encrypted = tmp_path / "encrypted"
    key = serialization.load_pem_private_key(good.key.read_bytes(), password=None)
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    table = [
        (CertFiles(tmp_path / "gone", good.key), None, "--grpc-tls-cert-file: .*gone does not exist"),
        (CertFiles(good.cert, tmp_path / "gone"), None, "--grpc-tls-key-file: .*gone does not exist"),
        (CertFiles(tmp_path, good.key), None, "--grpc-tls-cert-file: .* cannot be read"),
        (CertFiles(nonsense, good.key), None, "--grpc-tls-cert-file: .* no readable PEM certificate"),
        (CertFiles(half, good.key), None, "--grpc-tls-cert-file: .* no readable PEM certificate"),
        (CertFiles(good.cert, nonsense), None, "--grpc-tls-key-file: .* no readable PEM private key"),
        (CertFiles(good.cert, encrypted), None, "--grpc-tls-key-file: .* is encrypted"),
        (CertFiles(good.cert, other_server.key), None, "--grpc-tls-key-file: .* does not belong"),
        (good, tmp_path / "gone", "--grpc-client-ca-file: .*gone does not exist"),
        (good, nonsense, "--grpc-client-ca-file: .* no readable PEM certificate"),
    ]
    for server, client_ca, text in table:
        with pytest.raises(tls.TlsError, match=text):
            tls.https_context(files_for(server, client_ca), on_problem=problems.append)
        with pytest.raises(tls.TlsError, match=text):
            tls.grpc_credentials(files_for(server, client_ca), on_problem=problems.append)
    assert problems == []


def test_client_ca_bundle_may_hold_non_ascii_comments(ca: Authority, problems: list[str]) -> None:
    put(ca.cert, "# Zertifizierungsstelle für Zürich\n".encode() + ca.cert.read_bytes())
    context = tls.https_context(files_for(issue_server(ca), ca.cert), on_problem=problems.append)
    assert len(context.get_ca_certs()) == 1


# --- HTTPS -----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def https_listener(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Echo one line per connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(await reader.readline())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def client_context(trusted: Path, client: CertFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(trusted))
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    return context


class TlsClient:
    """The client side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.tls = writer.get_extra_info("ssl_object")

    async def send(self, line: bytes) -> bytes:
        self.writer.write(line)
        return await self.reader.readline()


@contextlib.asynccontextmanager
async def tls_client(port: int, context: ssl.SSLContext, *, name: str | None = "localhost") -> AsyncIterator[TlsClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        yield TlsClient(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def https_server_certificate(port: int, context: ssl.SSLContext) -> bytes:
    async with tls_client(port, context) as connection:
        assert await connection.send(b"hello\n") == b"hello\n"
        certificate: bytes = connection.tls.getpeercert(binary_form=True)
        return certificate


def der(files: CertFiles) -> bytes:
    certificate = x509.load_pem_x509_certificate(files.pem())
    return certificate.public_bytes(serialization.Encoding.DER)


async def test_https_uses_rotated_files(ca: Authority, problems: list[str]) -> None:
    live, first, second = issue_server(ca), issue_server(ca), issue_server(ca, key=rsa_key())
    live.replace_with(first)
    async with https_listener(tls.https_context(files_for(live), on_problem=problems.append)) as port:
        trusted = client_context(ca.cert)
        async with tls_client(port, trusted) as early:
            live.replace_with(second)
            # A finished handshake is not disturbed; the next one sees the new certificate.
            assert await early.send(b"still here\n") == b"still here\n"
            assert early.tls.getpeercert(binary_form=True) == der(first)
        assert await https_server_certificate(port, trusted) == der(second)
    assert problems == []


async def test_https_uses_rotated_files_for_clients_without_server_name(ca: Authority, problems: list[str]) -> None:
    live, second = issue_server(ca), issue_server(ca)
    async with https_listener(tls.https_context(files_for(live), on_problem=problems.append)) as port:
        live.replace_with(second)
        # An address, unlike a host name, is never sent as the server name.
        async with tls_client(port, client_context(ca.cert), name="127.0.0.1") as connection:
            assert connection.tls.getpeercert(binary_form=True) == der(second)


def write_half(live: CertFiles, fresh: CertFiles) -> None:
    put(live.cert, fresh.pem()[:100])


def write_certificate_before_key(live: CertFiles, fresh: CertFiles) -> None:
    put(live.cert, fresh.pem())


def remove_key(live: CertFiles, fresh: CertFiles) -> None:
    live.key.unlink()


DAMAGES = [
    pytest.param(write_half, "no readable PEM certificate", id="half-written"),
    pytest.param(write_certificate_before_key, "does not belong", id="certificate-before-its-key"),
    pytest.param(remove_key, "does not exist", id="key-removed"),
]


@pytest.mark.parametrize(("damage", "text"), DAMAGES)
async def test_https_keeps_the_last_valid_certificate(ca: Authority, problems: list[str], damage, text: str) -> None:
    live, first, second = issue_server(ca), issue_server(ca), issue_server(ca)
    live.replace_with(first)
    async with https_listener(tls.https_context(files_for(live), on_problem=problems.append)) as port:
        trusted = client_context(ca.cert)
        damage(live, second)
        assert await https_server_certificate(port, trusted) == der(first)
        live.cert.touch()
        assert await https_server_certificate(port, trusted) == der(first)
        assert len(problems) == 1, "the problem is reported once, not at every handshake"
        assert text in problems[0]
        assert "last good certificate stays" in problems[0]

        live.replace_with(second)
        assert await https_server_certificate(port, trusted) == der(second)

        damage(live, first)
        await https_server_certificate(port, trusted)
        assert len(problems) == 2, "a new problem is reported again"


async def https_accepts(port: int, trusted: Path, client: CertFiles | None) -> bool:
    # Under TLS 1.3 a client learns of its rejection only when it reads.
    try:
        async with tls_client(port, client_context(trusted, client)) as connection:
            return await connection.send(b"hello\n") == b"hello\n"
    except (ssl.SSLError, ConnectionError):
        return False


async def test_https_requires_a_valid_client_certificate(ca: Authority, tmp_path: Path, problems: list[str]) -> None:
    other_ca = make_ca(tmp_path)
    trusted = tmp_path / "clients.crt"
    put(trusted, ca.cert.read_bytes())
    files = files_for(issue_server(ca), trusted)
    async with https_listener(tls.https_context(files, on_problem=problems.append)) as port:
        me, other_client = ca.issue(cn="me"), other_ca.issue(cn="me")
        assert await https_accepts(port, ca.cert, me)
        assert not await https_accepts(port, ca.cert, None)
        assert not await https_accepts(port, ca.cert, other_client)
        assert not await https_accepts(port, ca.cert, ca.issue(cn="me", expired=True))

        put(trusted, other_ca.cert.read_bytes())
        assert not await https_accepts(port, ca.cert, me)
        assert await https_accepts(port, ca.cert, other_client)


@pytest.mark.parametrize(
    ("minimum", "offered", "works"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, True, id="1.2-by-default"),
        pytest.param(ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2, False, id="1.2-to-1.3-only"),
        pytest.param(ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3, True, id="1.3-to-1.3-only"),
    ],
)
async def test_https_enforces_the_minimum_tls_version(ca: Authority, minimum, offered, works: bool) -> None:
    context = tls.https_context(files_for(issue_server(ca)), on_problem=print, minimum=minimum)
    async with https_listener(context) as port:
        client = client_context(ca.cert)
        client.maximum_version = offered
        with contextlib.nullcontext() if works else pytest.raises((ssl.SSLError, ConnectionError)):
            await https_server_certificate(port, client)


# --- gRPC ------------------------------------------------------------------------------------------


class Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic only in the stubs
    """Answers with the common name of the caller."""

    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(self.send)

    async def send(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        names = context.auth_context().get("x509_common_name", [b"anonymous"])
        return next(iter(names))


@contextlib.asynccontextmanager
async def grpc_listener(credentials: grpc.ServerCredentials) -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def grpc_channel(port: int, trusted: bytes, client: CertFiles | None = None) -> AsyncIterator[Any]:
    credentials = grpc.ssl_channel_credentials(
        root_certificates=trusted,
        private_key=client.key.read_bytes() if client else None,
        certificate_chain=client.pem() if client else None,
    )
    # Channels of one process otherwise share connections, and then no new handshake happens.
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options=options) as channel:
        yield channel


async def grpc_code(port: int, trusted: bytes, client: CertFiles | None = None) -> grpc.StatusCode:
    async with grpc_channel(port, trusted, client) as channel:
        try:
            await channel.unary_unary(METHOD)(b"", timeout=10)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK


async def grpc_server_certificate(port: int, trusted: Path) -> bytes:
    """Return the server certificate of a gRPC handshake, read by a plain TLS client because gRPC does not expose it."""
    context = client_context(trusted)
    context.set_alpn_protocols(["h2"])
    async with tls_client(port, context) as connection:
        assert connection.tls.version() == "TLSv1.3", "Go clients require it"
        certificate: bytes = connection.tls.getpeercert(binary_form=True)
        return certificate


async def test_grpc_uses_rotated_files(ca: Authority, tmp_path: Path, problems: list[str]) -> None:
    other_ca = make_ca(tmp_path)
    live, first, second = issue_server(ca), issue_server(ca), issue_server(other_ca, key=rsa_key())
    live.replace_with(first)
    credentials = tls.grpc_credentials(files_for(live), on_problem=problems.append)
    async with grpc_listener(credentials) as port:
        async with grpc_channel(port, ca.cert.read_bytes()) as channel:
            send = channel.unary_unary(METHOD)
            assert await send(b"", timeout=10) == b"anonymous"
            live.replace_with(second)
            assert await grpc_server_certificate(port, other_ca.cert) == der(second)
            assert await send(b"", timeout=10) == b"anonymous", "an open connection continues"
        assert await grpc_code(port, other_ca.cert.read_bytes()) is grpc.StatusCode.OK
        assert await grpc_code(port, ca.cert.read_bytes()) is grpc.StatusCode.UNAVAILABLE
    assert problems == []


@pytest.mark.parametrize(("damage", "text"), DAMAGES)
async def test_grpc_keeps_the_last_valid_certificate(ca: Authority, problems: list[str], damage, text: str) -> None:
    live, first, second = issue_server(ca), issue_server(ca), issue_server(ca)
    live.replace_with(first)
    credentials = tls.grpc_credentials(files_for(live), on_problem=problems.append)
    async with grpc_listener(credentials) as port:
        damage(live, second)
        assert await grpc_server_certificate(port, ca.cert) == der(first)
        assert await grpc_code(port, ca.cert.read_bytes()) is grpc.StatusCode.OK
        assert len(problems) == 1, "the problem is reported once, not at every handshake"
        assert text in problems[0]
        live.replace_with(second)
        assert await grpc_server_certificate(port, ca.cert) == der(second)


async def test_grpc_requires_a_valid_client_certificate(ca: Authority, tmp_path: Path, problems: list[str]) -> None:
    other_ca = make_ca(tmp_path)
    trusted = tmp_path / "clients.crt"
    put(trusted, ca.cert.read_bytes())
    server = ca.cert.read_bytes()
    credentials = tls.grpc_credentials(files_for(issue_server(ca), trusted), on_problem=problems.append)
    async with grpc_listener(credentials) as port:
        name = "system:open-cluster-management:" + "c" * 63 + ":agent"  # longer than the standard's 64
        me = ca.issue(cn=name)
        async with grpc_channel(port, server, me) as channel:
            assert await channel.unary_unary(METHOD)(b"", timeout=10) == name.encode()
        assert await grpc_code(port, server, None) is grpc.StatusCode.UNAVAILABLE
        assert await grpc_code(port, server, other_ca.issue(cn="me")) is grpc.StatusCode.UNAVAILABLE
        expired = ca.issue(cn="me", expired=True)
        assert await grpc_code(port, server, expired) is grpc.StatusCode.UNAVAILABLE

        put(trusted, other_ca.cert.read_bytes())
        assert await grpc_code(port, server, me) is grpc.StatusCode.UNAVAILABLE
        assert await grpc_code(port, server, other_ca.issue(cn="me")) is grpc.StatusCode.OK
