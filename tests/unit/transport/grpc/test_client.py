"""A gRPC client authenticates with certificates and tokens, on a real port that requires a certificate."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.journal import chain
from maestropy.transport import peer_identity
from maestropy.transport.grpc import server as grpc_server
from maestropy.transport.grpc.client import BadCredentials, GrpcClient, GrpcEndpoint
from maestropy.transport.grpc.limits import GrpcLimits
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.transport.tls import credentials
from maestropy.wire import errors
from maestropy.wire.events import event, grpc_binding
from tests.certificates import CertFiles, make_ca

SENT = event.CloudEvent(
    id="1", source="s", type="io.open-cluster-management.works.v1alpha1.manifestbundles.status.update_request"
)


class RecordingService:
    """A service that accepts every event and records the identity of its peer."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tokens: list[str | None] = []

    async def authenticate(self, peer: peer_identity.Peer) -> peer_identity.PeerIdentity:
        return peer_identity.ANONYMOUS

    async def publish(self, received: event.CloudEvent, peer: peer_identity.Peer) -> None:
        self.names.append(peer_identity.identify(peer).user)
        self.tokens.append(peer.authorization)

    async def malformed(self, problem: errors.WireError, peer: peer_identity.Peer) -> CallRejected:
        return CallRejected(StatusCode.INVALID_ARGUMENT, str(problem))

    def subscribe(
        self, subscription: grpc_binding.Subscription, peer: peer_identity.Peer
    ) -> AbstractAsyncContextManager[grpc_server.Stream]:
        raise AssertionError("no test subscribes")


class NoMetrics:
    def called(self, method: grpc_server.Method, source: str) -> None: ...

    def finished(self, method: grpc_server.Method, source: str, *, code: str, seconds: float) -> None: ...

    def sent(self, method: str, source: str, *, count: int) -> None:
        pass

    def crashed(self, method: str, error: Exception) -> None:
        raise error


@asynccontextmanager
async def listening(server: CertFiles, client_ca: Path, service: RecordingService) -> AsyncIterator[str]:
    files = credentials.tls_files(str(server.cert), str(server.key), flags=credentials.BROKER, client_ca=str(client_ca))
    assert files is not None
    listener = grpc_server.GrpcListener(
        service,
        limits=GrpcLimits(),
        observer=NoMetrics(),
        monotonic=asyncio.get_running_loop().time,
    )
    port = listener.bind("127.0.0.1:0", credentials=credentials.grpc_credentials(files, on_problem=pytest.fail))
    await listener.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await listener.stop(grace_seconds=0)


async def publish(endpoint: GrpcEndpoint) -> None:
    async with GrpcClient(endpoint) as client:
        await client.publish(SENT, timeout_seconds=5)


async def test_certificates_are_read_from_files_or_data(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server, client = ca.issue(cn="localhost", san=["127.0.0.1"]), ca.issue(cn="agent", o=["agents"])

    service = RecordingService()
    async with listening(server, ca.cert, service) as url:
        files = GrpcEndpoint(url=url, ca_file=ca.cert, client_cert_file=client.cert, client_key_file=client.key)
        await publish(files)
        await publish(
            GrpcEndpoint(
                url=url,
                ca_data=ca.cert.read_bytes(),
                client_cert_data=client.cert.read_bytes(),
                client_key_data=client.key.read_bytes(),
                token="t0ken",
            )
        )
        missing = tmp_path / "missing"
        await publish(replace(files, ca_file=missing, ca_data=ca.cert.read_bytes()))
    assert service.names == ["agent"] * 3
    assert service.tokens == [None, "Bearer t0ken", None]


async def test_certificate_files_are_read_again_for_every_connection(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server, client = ca.issue(cn="localhost", san=["127.0.0.1"]), ca.issue(cn="old", o=["agents"])

    service = RecordingService()
    async with listening(server, ca.cert, service) as url:
        endpoint = GrpcEndpoint(url=url, ca_file=ca.cert, client_cert_file=client.cert, client_key_file=client.key)
        await publish(endpoint)
        client.replace_with(ca.issue(cn="new", o=["agents"]))
        await publish(endpoint)
    assert service.names == ["old", "new"]


async def test_client_without_certificate_is_rejected(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server = ca.issue(cn="localhost", san=["127.0.0.1"])

    async with listening(server, ca.cert, RecordingService()) as url:
        with pytest.raises(CallRejected):
            await publish(GrpcEndpoint(url=url, ca_file=ca.cert))


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        pytest.param(GrpcEndpoint(url="h:1", client_cert_data=b"c"), "needs its key", id="certificate-without-key"),
        pytest.param(
            GrpcEndpoint(url="h:1", token="t", client_key_data=b"k"), "needs its key", id="key-without-certificate"
        ),
        pytest.param(GrpcEndpoint(url="h:1", ca_file=Path("/no/ca")), "cannot read /no/ca", id="missing-file"),
    ],
)
async def test_unusable_credentials_are_reported(endpoint: GrpcEndpoint, message: str) -> None:
    with pytest.raises(BadCredentials, match=message):
        GrpcClient(endpoint)


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
async def test_file_without_certificate_or_key_is_named_before_the_connection(content: bytes, tmp_path: Path) -> None:
    ca, bad = make_ca(tmp_path), tmp_path / "bad.pem"
    client = ca.issue(cn="agent")
    bad.write_bytes(content)
    endpoint = GrpcEndpoint(url="h:1", ca_file=ca.cert, client_cert_file=client.cert, client_key_file=client.key)
    for changed in (replace(endpoint, ca_file=bad), replace(endpoint, client_cert_file=bad)):
        with pytest.raises(BadCredentials, match=r"bad\.pem holds no PEM certificate"):
            GrpcClient(changed)
    with pytest.raises(BadCredentials, match=r"bad\.pem holds no PEM private key"):
        GrpcClient(replace(endpoint, client_key_file=bad))


async def test_comments_of_a_bundle_may_have_any_characters(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    ca.cert.write_bytes("# Autorité\n".encode() + ca.cert.read_bytes())
    async with GrpcClient(GrpcEndpoint(url="h:1", ca_file=ca.cert)):
        pass


async def test_failed_call_is_described_in_one_line_with_its_status() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with GrpcClient(GrpcEndpoint(url=f"127.0.0.1:{port}")) as client:
        with pytest.raises(CallRejected) as raised:
            await client.publish(SENT)
    text = chain.describe(raised.value)
    assert text.endswith(": gRPC status UNAVAILABLE")
    assert "\n" not in text
