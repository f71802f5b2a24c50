"""How a client proves who it is, on a real port that asks for a certificate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import CertFiles, make_ca

from maestropy.transport import grpc_server, identity, tls
from maestropy.transport.grpc_client import BadCredentials, Endpoint, GrpcClient
from maestropy.transport.status import Code, Refused
from maestropy.wire import envelope, errors, event

SENT = event.Event(
    id="1", source="s", type="io.open-cluster-management.works.v1alpha1.manifestbundles.status.update_request"
)


class Visitors:
    """Takes every event and remembers who brought it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tokens: list[str | None] = []

    async def publish(self, received: event.Event, peer: identity.Peer) -> None:
        self.names.append(identity.identify(peer).user)
        self.tokens.append(peer.authorization)

    async def malformed(self, problem: errors.WireError, peer: identity.Peer) -> Refused:
        return Refused(Code.INVALID_ARGUMENT, str(problem))

    def subscribe(
        self, wanted: envelope.Subscription, peer: identity.Peer
    ) -> AbstractAsyncContextManager[grpc_server.Stream]:
        raise AssertionError("nobody subscribes here")


class Silent:
    def called(self, method: grpc_server.Method, source: str) -> None: ...

    def finished(self, method: grpc_server.Method, source: str, *, code: str, seconds: float) -> None: ...

    def sent(self, method: str, source: str, *, count: int) -> None:
        pass

    def crashed(self, method: str, error: Exception) -> None:
        raise error


@asynccontextmanager
async def listening(server: CertFiles, client_ca: Path, visitors: Visitors) -> AsyncIterator[str]:
    files = tls.name_files(str(server.cert), str(server.key), flags=tls.BROKER, client_ca=str(client_ca))
    assert files is not None
    listener = grpc_server.Listener(
        visitors,
        limits=grpc_server.Limits(),
        observer=Silent(),
        monotonic=asyncio.get_running_loop().time,
    )
    port = listener.bind("127.0.0.1:0", credentials=tls.grpc_credentials(files, on_problem=pytest.fail))
    await listener.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await listener.stop(grace_seconds=0)


async def publish(endpoint: Endpoint) -> None:
    async with GrpcClient(endpoint) as client:
        await client.publish(SENT, timeout_seconds=5)


def test_certificates_by_file_and_by_content(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server, client = ca.issue(cn="localhost", san=["127.0.0.1"]), ca.issue(cn="agent", o=["agents"])

    async def scenario() -> None:
        visitors = Visitors()
        async with listening(server, ca.cert, visitors) as url:
            files = Endpoint(url=url, ca_file=ca.cert, client_cert_file=client.cert, client_key_file=client.key)
            await publish(files)
            await publish(
                Endpoint(
                    url=url,
                    ca_data=ca.cert.read_bytes(),
                    client_cert_data=client.cert.read_bytes(),
                    client_key_data=client.key.read_bytes(),
                    token="t0ken",
                )
            )
            nowhere = tmp_path / "nowhere"
            await publish(replace(files, ca_file=nowhere, ca_data=ca.cert.read_bytes()))
        assert visitors.names == ["agent"] * 3
        assert visitors.tokens == [None, "Bearer t0ken", None]

    asyncio.run(scenario())


def test_files_are_read_again_for_every_connection(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server, client = ca.issue(cn="localhost", san=["127.0.0.1"]), ca.issue(cn="old", o=["agents"])

    async def scenario() -> None:
        visitors = Visitors()
        async with listening(server, ca.cert, visitors) as url:
            endpoint = Endpoint(url=url, ca_file=ca.cert, client_cert_file=client.cert, client_key_file=client.key)
            await publish(endpoint)
            client.replace_with(ca.issue(cn="new", o=["agents"]))
            await publish(endpoint)
        assert visitors.names == ["old", "new"]

    asyncio.run(scenario())


def test_without_a_certificate_nobody_is_let_in(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    server = ca.issue(cn="localhost", san=["127.0.0.1"])

    async def scenario() -> None:
        async with listening(server, ca.cert, Visitors()) as url:
            with pytest.raises(Refused):
                await publish(Endpoint(url=url, ca_file=ca.cert))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("endpoint", "complaint"),
    [
        pytest.param(Endpoint(url="h:1", client_cert_data=b"c"), "needs its key", id="certificate-without-key"),
        pytest.param(Endpoint(url="h:1", token="t", client_key_data=b"k"), "needs its key", id="key-alone"),
        pytest.param(Endpoint(url="h:1", ca_file=Path("/no/ca")), "cannot read /no/ca", id="missing-file"),
    ],
)
def test_credentials_that_cannot_be_used(endpoint: Endpoint, complaint: str) -> None:
    async def scenario() -> None:
        with pytest.raises(BadCredentials, match=complaint):
            GrpcClient(endpoint)

    asyncio.run(scenario())
