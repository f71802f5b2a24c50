"""An open subscription ends when its token, its permission or its certificate does."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from maestropy.server.auth import review_cache
from maestropy.store.dsn import Dsn
from maestropy.wire.events import grpc_binding
from tests import certificates, waiting
from tests.review_api import ReviewApi, status_body
from tests.stack.secure_server import CONSUMER, SOURCE, add_consumers, running, send, spec, subscribe

TOKEN = "s3cr3t-t0ken-0f-alice"
RECHECK = {"--grpc-stream-recheck-interval": "100ms"}
# Without it the cache of positive reviews would answer for ten seconds.
FORGETFUL = "maestropy.server.auth.review_cache.POSITIVE_SECONDS"


async def end_of(stream: Any) -> grpc.aio.AioRpcError:
    """Read until the stream ends, and return how."""
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await read_all(stream)
    return ended.value


async def read_all(stream: Any) -> None:
    async with asyncio.timeout(waiting.TIMEOUT):
        while isinstance(await stream.read(), bytes):
            pass


def token_flags(folder: Path, api: ReviewApi) -> tuple[bytes, dict[str, str]]:
    ca = certificates.make_ca(folder)
    server = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    flags = {"--grpc-tls-cert-file": str(server.cert), "--grpc-tls-key-file": str(server.key), **RECHECK}
    flags |= {"--grpc-authn-type": "token", "--grpc-authorizer-config": api.write_kubeconfig(folder)}
    return ca.cert.read_bytes(), flags


@pytest.mark.parametrize(
    ("taken", "code"),
    [
        pytest.param("token", grpc.StatusCode.UNAUTHENTICATED, id="token-revoked"),
        pytest.param("permission", grpc.StatusCode.PERMISSION_DENIED, id="permission-revoked"),
    ],
)
async def test_revoked_credentials_end_a_subscription(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str, code: grpc.StatusCode
) -> None:
    """keep a subscription open after the token was revoked or has expired -> the stream ends within the recheck \
interval"""
    monkeypatch.setattr(FORGETFUL, 0.0)
    assert review_cache.POSITIVE_SECONDS == 0.0
    async with ReviewApi(tokens={TOKEN: ("alice", [])}, grants={("alice", f"/sources/{SOURCE}", "sub")}) as api:
        ca, flags = token_flags(tmp_path, api)
        async with running(database, flags) as server, server.sources(ca=ca) as channel:
            stream = subscribe(channel, source=SOURCE, token=TOKEN)
            await stream.initial_metadata()
            reviews = sum(api.requests.values())
            await waiting.until(lambda: sum(api.requests.values()) >= reviews + 6, what="three checks")
            assert not stream.done(), "valid credentials keep the stream"

            (api.tokens if taken == "token" else api.grants).clear()
            assert (await end_of(stream)).code() is code
            assert len(server.lines("subscription rejected")) == 1


async def test_outage_of_kubernetes_keeps_a_subscription(
    database: Dsn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FORGETFUL, 0.0)
    async with ReviewApi(tokens={TOKEN: ("alice", [])}, grants={("alice", f"/sources/{SOURCE}", "sub")}) as api:
        ca, flags = token_flags(tmp_path, api)
        async with running(database, flags) as server, server.sources(ca=ca) as channel:
            stream = subscribe(channel, source=SOURCE, token=TOKEN)
            await stream.initial_metadata()
            api.answer_with = status_body(500, "InternalError")
            unchecked = "the credentials of a subscription could not be checked; it stays open"
            await waiting.until(lambda: len(server.lines(unchecked)) >= 2, what="two checks without an answer")
            assert not stream.done()
            api.answer_with = None
            api.tokens.clear()
            assert (await end_of(stream)).code() is grpc.StatusCode.UNAUTHENTICATED


async def test_expired_certificate_ends_a_subscription(database: Dsn, tmp_path: Path) -> None:
    """keep a subscription of specs open after the certificate of the agent has expired -> the stream ends within the \
recheck interval"""
    await add_consumers(database, CONSUMER)
    ca = certificates.make_ca(tmp_path)
    own = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    flags = {
        "--grpc-broker-tls-cert-file": str(own.cert),
        "--grpc-broker-tls-key-file": str(own.key),
        "--grpc-broker-client-ca-file": str(ca.cert),
        **RECHECK,
    }
    async with running(database, flags) as server, server.sources() as sources:
        lasting, expiring = ca.issue(cn=CONSUMER), ca.issue(cn=CONSUMER, lifetime=timedelta(seconds=5))
        async with (
            server.agents(ca=ca.cert.read_bytes(), client=expiring) as short,
            server.agents(ca=ca.cert.read_bytes(), client=lasting) as long,
        ):
            expired, valid = subscribe(short, cluster_name=CONSUMER), subscribe(long, cluster_name=CONSUMER)
            await expired.initial_metadata()
            await valid.initial_metadata()
            ended = await end_of(expired)
            assert ended.code() is grpc.StatusCode.UNAUTHENTICATED
            assert ended.details() == "the client certificate has expired; connect with a new one"
            await send(sources, grpc_binding.encode_publish(spec("for-the-valid")))
            assert isinstance(await valid.read(), bytes)
            valid.cancel()
