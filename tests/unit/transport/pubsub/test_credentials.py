"""Pub/Sub over TLS: a service account's token goes with every call, and credentials that cannot be used are named."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.pubsub_v1 import types

from maestropy.transport import port
from maestropy.transport.pubsub import connection
from maestropy.transport.pubsub.endpoint import Names, PubsubEndpoint
from maestropy.wire.events.pubsub_binding import PubsubMessage
from tests import certificates

ENDPOINT = PubsubEndpoint(
    project="my-project",
    topics=Names(events="projects/p/topics/e", broadcast="projects/p/topics/b"),
    subscriptions=Names(events="projects/p/subscriptions/e-m", broadcast="projects/p/subscriptions/b-m"),
)


class Service(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # only the stubs are generic
    """A Pub/Sub without messages, which notes who calls; it rejects tokens when told so."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self.rejects = False

    def service(self, handler_call_details: Any) -> Any:
        metadata = dict(handler_call_details.invocation_metadata)
        method = handler_call_details.method.rpartition("/")[2]
        token_kind = metadata.get("authorization", "").partition(".")[0][:10]
        self.calls.append((method, token_kind, metadata.get("x-goog-request-params", "")))
        if method == "StreamingPull":
            return grpc.stream_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._answer(method))

    def _answer(self, method: str) -> Any:
        async def answer(_: bytes, context: Any) -> bytes:
            if self.rejects:
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token has expired")
            if method == "Publish":
                return bytes(types.PublishResponse.serialize(types.PublishResponse(message_ids=["1"])))
            return b""

        return answer

    async def _stream(self, requests: Any, _: Any) -> AsyncIterator[bytes]:
        async for _request in requests:
            await asyncio.sleep(0)
        yield b""


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """The key file of a service account."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "account.json"
    content = {
        "type": "service_account",
        "client_email": "maestro@p.iam.gserviceaccount.com",
        "private_key": key.decode(),
        "private_key_id": "k",
        # Nobody is asked for a token: the account signs its own.
        "token_uri": "https://127.0.0.1:1/token",
    }
    path.write_text(json.dumps(content))
    return path


@asynccontextmanager
async def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Service, PubsubEndpoint]]:
    authority = certificates.make_ca(folder)
    files = authority.issue(cn="localhost", san=["localhost"])
    # Google's client uses the authorities of gRPC; here, that of the test.
    secure = grpc.ssl_channel_credentials(Path(authority.cert).read_bytes())
    monkeypatch.setattr(
        grpc, "compute_engine_channel_credentials", lambda token: grpc.composite_channel_credentials(secure, token)
    )
    pair = (Path(files.key).read_bytes(), Path(files.cert).read_bytes())
    server: Any = grpc.aio.server()
    service = Service()
    server.add_generic_rpc_handlers((service,))
    number = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    await server.start()
    try:
        yield service, replace(ENDPOINT, target=f"localhost:{number}")
    finally:
        await server.stop(0)


async def test_token_of_a_service_account_goes_with_every_call(
    tmp_path: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, monkeypatch) as (service, endpoint):
        async with connection.connect(replace(endpoint, credentials_file=account), client_id="c") as client:
            await client.publish(endpoint.topics.events, PubsubMessage(attributes={}, data=b"x"))
        assert {
            method: (kind, params) for method, kind, params in service.calls if params.endswith(("/e", "/e-m"))
        } == {
            "Pull": ("Bearer eyJ", "subscription=projects/p/subscriptions/e-m"),
            "StreamingPull": ("Bearer eyJ", "subscription=projects/p/subscriptions/e-m"),
            "Publish": ("Bearer eyJ", "topic=projects/p/topics/e"),
        }


async def test_refused_token_is_named_with_the_remedy(
    tmp_path: Path, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, monkeypatch) as (service, endpoint):
        service.rejects = True
        with pytest.raises(
            port.Misconfigured, match=r"no valid Google credentials \(the token has expired\); set cred"
        ):
            async with connection.connect(replace(endpoint, credentials_file=account), client_id="c"):
                pass


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "No such file or directory", id="absent"),
        pytest.param("token", "Expecting value", id="no-json"),
        pytest.param("[]", "not an object of the expected form", id="list"),
        pytest.param("[" * 100_000, "not an object of the expected form", id="deep"),
        pytest.param(
            '{"type":"service_account","client_email":"a","token_uri":"b","private_key":5}',
            "not an object of the expected form",
            id="key-of-a-number",
        ),
        pytest.param('{"type":"service_account"}', "not in the expected format", id="incomplete"),
        pytest.param('{"type":"external_account"}', "not in the expected format", id="another-kind"),
    ],
)
async def test_unusable_key_file_is_named(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "account.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(port.Misconfigured, match=f"there are no valid Google credentials .*{problem}"):
        async with connection.connect(replace(ENDPOINT, credentials_file=path), client_id="c"):
            pass


async def test_application_default_credentials_that_are_no_object_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "account.json"
    path.write_text("[]")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(port.Misconfigured, match=r"there are no valid Google credentials \(.*not an object"):
        async with connection.connect(ENDPOINT, client_id="c"):
            pass
