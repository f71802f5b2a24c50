"""Authentication and authorization of source clients, with a Kubernetes API on a real socket."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from maestropy.server.auth.denied import Denied, DeniedCode
from maestropy.server.auth.sources import (
    MOCK_IDENTITY,
    AuthnMode,
    InvalidAuthnMode,
    SourceAccessControl,
    choose_mode,
    open_access_control,
)
from maestropy.transport.peer_identity import ANONYMOUS, Peer, PeerIdentity
from tests.certificates import make_ca
from tests.review_api import ACCESS, TOKENS, ReviewApi, status_body

ALICE = PeerIdentity(user="alice", groups=("devs",))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def opened(tmp_path: Path, mode: AuthnMode) -> AsyncIterator[tuple[ReviewApi, SourceAccessControl, Clock]]:
    clock = Clock()
    async with (
        ReviewApi(tokens={"good": ("alice", ["devs"])}, grants={("alice", "/sources/policy", "pub")}) as api,
        open_access_control(mode, kubeconfig=api.write_kubeconfig(tmp_path), clock=clock) as gate,
    ):
        yield api, gate, clock


async def denial(call: Awaitable[object]) -> tuple[DeniedCode, str]:
    with pytest.raises(Denied) as caught:
        await call
    return caught.value.code, caught.value.text


@pytest.mark.parametrize(
    ("authn_type", "tls", "client_ca", "mode"),
    [
        pytest.param("mock", True, False, AuthnMode.MOCK, id="mock"),
        pytest.param("token", True, False, AuthnMode.TOKEN, id="token"),
        pytest.param("mtls", True, True, AuthnMode.MTLS, id="mtls"),
        pytest.param("mtls", False, False, AuthnMode.OPEN, id="mtls-without-tls-is-open"),
        pytest.param("token", False, False, AuthnMode.OPEN, id="token-without-tls-is-open"),
    ],
)
def test_mode(authn_type: str, tls: bool, client_ca: bool, mode: AuthnMode) -> None:
    assert choose_mode(authn_type, tls=tls, client_ca=client_ca) is mode


@pytest.mark.parametrize(
    ("authn_type", "words"),
    [
        pytest.param("kerberos", "give one of mock, mtls, token", id="unknown"),
        pytest.param("open", "give one of mock, mtls, token", id="open-is-not-a-flag-value"),
        pytest.param("mtls", "needs --grpc-client-ca-file", id="mtls-without-client-ca"),
    ],
)
def test_invalid_flags(authn_type: str, words: str) -> None:
    with pytest.raises(InvalidAuthnMode, match=words):
        choose_mode(authn_type, tls=True, client_ca=False)


@pytest.mark.parametrize(
    ("mode", "identity"),
    [pytest.param(AuthnMode.OPEN, ANONYMOUS, id="open"), pytest.param(AuthnMode.MOCK, MOCK_IDENTITY, id="mock")],
)
async def test_modes_without_kubernetes(tmp_path: Path, mode: AuthnMode, identity: PeerIdentity) -> None:
    async with opened(tmp_path, mode) as (api, gate, _):
        assert await gate.authenticate(Peer()) == identity
        await gate.authorize(identity, source="anything", verb="pub")
        await gate.authorize(identity, source="", verb="sub")
        assert not api.requests


def test_modes_without_kubernetes_do_not_import_its_client() -> None:
    program = """
import asyncio, sys
from maestropy.server.auth.sources import AuthnMode, open_access_control
async def main():
    async with open_access_control(AuthnMode.MOCK, kubeconfig="", clock=lambda: 0.0):
        return [name for name in ("maestropy.kube.client", "aiohttp") if name in sys.modules]
sys.exit(str(asyncio.run(main()) or ""))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.stderr.strip(), done.stdout) == ("", "")


async def test_mtls(tmp_path: Path) -> None:
    async with opened(tmp_path, AuthnMode.MTLS) as (api, gate, _):
        ca = make_ca(tmp_path)
        identity = await gate.authenticate(Peer(certificate=ca.issue(cn="alice", o=["devs"]).pem()))
        assert identity == ALICE
        table = [
            (Peer(), "could not verify peer certificate"),
            (Peer(authorization="Bearer good"), "could not verify peer certificate"),
            (Peer(certificate=ca.issue(cn="", o=["devs"]).pem()), "could not find user in peer certificate"),
            (Peer(certificate=ca.issue(cn="alice").pem()), "could not find group in peer certificate"),
        ]
        for peer, text in table:
            assert await denial(gate.authenticate(peer)) == (DeniedCode.UNAUTHENTICATED, text)
        assert TOKENS not in api.requests
        await gate.authorize(identity, source="policy", verb="pub")


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        pytest.param(None, "invalid token", id="absent"),
        pytest.param("Bearer ", "invalid token", id="empty"),
        pytest.param("Basic Zm9v", "invalid token", id="another-scheme"),
        pytest.param("Bearer bad", "token not authenticated", id="rejected"),
    ],
)
async def test_token_denied(tmp_path: Path, authorization: str | None, text: str) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (_, gate, _):
        call = gate.authenticate(Peer(authorization=authorization))
        assert await denial(call) == (DeniedCode.UNAUTHENTICATED, text)


@pytest.mark.parametrize("authorization", ["Bearer good", "good"])
async def test_token_accepted(tmp_path: Path, authorization: str) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (_, gate, _):
        assert await gate.authenticate(Peer(authorization=authorization)) == ALICE


async def test_authorize(tmp_path: Path) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (api, gate, _):
        await gate.authorize(ALICE, source="policy", verb="pub")
        assert await denial(gate.authorize(ALICE, source="policy", verb="sub")) == (
            DeniedCode.PERMISSION_DENIED,
            "unauthorized to subscribe the event from source policy",
        )
        assert await denial(gate.authorize(ALICE, source="other", verb="pub")) == (
            DeniedCode.PERMISSION_DENIED,
            "unauthorized to publish the event from source other",
        )
        assert await denial(gate.authorize(ALICE, source="", verb="pub")) == (
            DeniedCode.INVALID_ARGUMENT,
            "failed to authorize the request: resource cannot be empty",
        )
        assert api.requests == {ACCESS: 3}


async def test_reviews_are_cached_for_a_short_time(tmp_path: Path) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (api, gate, clock):

        async def publish() -> None:
            identity = await gate.authenticate(Peer(authorization="Bearer good"))
            await gate.authorize(identity, source="policy", verb="pub")

        await asyncio.gather(*(publish() for _ in range(100)))
        assert api.requests == {TOKENS: 1, ACCESS: 1}

        # A revoked token is out after ten seconds, a new grant is in after two.
        api.tokens.clear()
        clock.now += 9.9
        await publish()
        clock.now += 0.2
        code, _ = await denial(publish())
        assert code is DeniedCode.UNAUTHENTICATED
        api.tokens["good"] = ("alice", ["devs"])
        clock.now += 2.1
        await publish()


async def test_cached_access_is_not_shared_between_identities(tmp_path: Path) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (_, gate, _):
        await gate.authorize(ALICE, source="policy", verb="pub")
        for identity in (PeerIdentity(user="bob", groups=("devs",)), PeerIdentity(user="", groups=("alice",))):
            code, _ = await denial(gate.authorize(identity, source="policy", verb="pub"))
            assert code is DeniedCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("response", "words"),
    [
        pytest.param(None, "cannot be reached", id="unreachable"),
        pytest.param(status_body(500, "InternalError"), "HTTP 500", id="failing"),
        pytest.param(status_body(403, "Forbidden"), "needs the verb create", id="reviews-forbidden"),
    ],
)
async def test_failed_review_denies_access(tmp_path: Path, response: tuple[int, str, str] | None, words: str) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (api, gate, clock):
        peer = Peer(authorization="Bearer good")
        await gate.authorize(await gate.authenticate(peer), source="policy", verb="pub")
        clock.now += 10.1
        if response is None:
            await api.stop()
        api.answer_with = response
        for call in (gate.authenticate(peer), gate.authorize(ALICE, source="policy", verb="pub")):
            code, text = await denial(call)
            assert code is DeniedCode.UNAVAILABLE
            assert words in text
            assert "good" not in text


async def test_tokens_are_not_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, AuthnMode.TOKEN) as (_, gate, _):
        await gate.authenticate(Peer(authorization="Bearer good"))
        assert b"good" not in repr(vars(gate._tokens)).encode()
