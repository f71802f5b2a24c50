"""The gate before source clients, with Kubernetes at the other end of a real socket."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from certificates import make_ca
from review_api import ACCESS, TOKENS, ReviewApi, status_body

from maestropy.server.auth.denied import Code, Denied
from maestropy.server.auth.sources import MOCK_IDENTITY, BadMode, Mode, SourceGate, choose_mode, open_gate
from maestropy.transport.identity import ANONYMOUS, Identity, Peer

ALICE = Identity(user="alice", groups=("devs",))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(tmp_path: Path, mode: Mode, scenario: Callable[[ReviewApi, SourceGate, Clock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = Clock()
        async with (
            ReviewApi(tokens={"good": ("alice", ["devs"])}, grants={("alice", "/sources/policy", "pub")}) as api,
            open_gate(mode, kubeconfig=api.write_kubeconfig(tmp_path), clock=clock) as gate,
        ):
            await scenario(api, gate, clock)

    asyncio.run(main())


async def denial(call: Awaitable[object]) -> tuple[Code, str]:
    with pytest.raises(Denied) as caught:
        await call
    return caught.value.code, caught.value.text


@pytest.mark.parametrize(
    ("authn_type", "tls", "client_ca", "mode"),
    [
        pytest.param("mock", True, False, Mode.MOCK, id="mock"),
        pytest.param("token", True, False, Mode.TOKEN, id="token"),
        pytest.param("mtls", True, True, Mode.MTLS, id="mtls"),
        pytest.param("mtls", False, False, Mode.OPEN, id="mtls-without-tls-is-open"),
        pytest.param("token", False, False, Mode.OPEN, id="token-without-tls-is-open"),
    ],
)
def test_mode(authn_type: str, tls: bool, client_ca: bool, mode: Mode) -> None:
    assert choose_mode(authn_type, tls=tls, client_ca=client_ca) is mode


@pytest.mark.parametrize(
    ("authn_type", "words"),
    [
        pytest.param("kerberos", "give one of mock, mtls, token", id="unknown"),
        pytest.param("open", "give one of mock, mtls, token", id="open-cannot-be-asked-for"),
        pytest.param("mtls", "needs --grpc-client-ca-file", id="mtls-without-client-ca"),
    ],
)
def test_flags_that_do_not_fit(authn_type: str, words: str) -> None:
    with pytest.raises(BadMode, match=words):
        choose_mode(authn_type, tls=True, client_ca=False)


@pytest.mark.parametrize(
    ("mode", "identity"),
    [pytest.param(Mode.OPEN, ANONYMOUS, id="open"), pytest.param(Mode.MOCK, MOCK_IDENTITY, id="mock")],
)
def test_modes_that_ask_nobody(tmp_path: Path, mode: Mode, identity: Identity) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        assert await gate.authenticate(Peer()) == identity
        await gate.authorize(identity, source="anything", verb="pub")
        await gate.authorize(identity, source="", verb="sub")
        assert not api.requests

    run(tmp_path, mode, scenario)


def test_server_that_asks_nobody_never_loads_the_kubernetes_client() -> None:
    program = """
import asyncio, sys
from maestropy.server.auth.sources import Mode, open_gate
async def main():
    async with open_gate(Mode.MOCK, kubeconfig="", clock=lambda: 0.0):
        return [name for name in ("maestropy.kube.client", "aiohttp") if name in sys.modules]
sys.exit(str(asyncio.run(main()) or ""))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.stderr.strip(), done.stdout) == ("", "")


def test_mtls(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
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
            assert await denial(gate.authenticate(peer)) == (Code.UNAUTHENTICATED, text)
        assert TOKENS not in api.requests
        await gate.authorize(identity, source="policy", verb="pub")

    run(tmp_path, Mode.MTLS, scenario)


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        pytest.param(None, "invalid token", id="absent"),
        pytest.param("Bearer ", "invalid token", id="empty"),
        pytest.param("Basic Zm9v", "invalid token", id="another-scheme"),
        pytest.param("Bearer bad", "token not authenticated", id="rejected"),
    ],
)
def test_token_denied(tmp_path: Path, authorization: str | None, text: str) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        call = gate.authenticate(Peer(authorization=authorization))
        assert await denial(call) == (Code.UNAUTHENTICATED, text)

    run(tmp_path, Mode.TOKEN, scenario)


@pytest.mark.parametrize("authorization", ["Bearer good", "good"])
def test_token_accepted(tmp_path: Path, authorization: str) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        assert await gate.authenticate(Peer(authorization=authorization)) == ALICE

    run(tmp_path, Mode.TOKEN, scenario)


def test_authorize(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        await gate.authorize(ALICE, source="policy", verb="pub")
        assert await denial(gate.authorize(ALICE, source="policy", verb="sub")) == (
            Code.PERMISSION_DENIED,
            "unauthorized to subscribe the event from source policy",
        )
        assert await denial(gate.authorize(ALICE, source="other", verb="pub")) == (
            Code.PERMISSION_DENIED,
            "unauthorized to publish the event from source other",
        )
        assert await denial(gate.authorize(ALICE, source="", verb="pub")) == (
            Code.INVALID_ARGUMENT,
            "failed to authorize the request: resource cannot be empty",
        )
        assert api.requests == {ACCESS: 3}

    run(tmp_path, Mode.TOKEN, scenario)


def test_answers_are_remembered_for_a_short_while(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
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
        assert code is Code.UNAUTHENTICATED
        api.tokens["good"] = ("alice", ["devs"])
        clock.now += 2.1
        await publish()

    run(tmp_path, Mode.TOKEN, scenario)


def test_one_identity_never_uses_the_grant_of_another(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        await gate.authorize(ALICE, source="policy", verb="pub")
        for identity in (Identity(user="bob", groups=("devs",)), Identity(user="", groups=("alice",))):
            code, _ = await denial(gate.authorize(identity, source="policy", verb="pub"))
            assert code is Code.PERMISSION_DENIED

    run(tmp_path, Mode.TOKEN, scenario)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(None, "cannot be reached", id="gone"),
        pytest.param(status_body(500, "InternalError"), "HTTP 500", id="failing"),
        pytest.param(status_body(403, "Forbidden"), "needs the verb create", id="not-allowed-to-ask"),
    ],
)
def test_no_answer_is_never_a_yes(tmp_path: Path, answer: tuple[int, str, str] | None, words: str) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        peer = Peer(authorization="Bearer good")
        await gate.authorize(await gate.authenticate(peer), source="policy", verb="pub")
        clock.now += 10.1
        if answer is None:
            await api.stop()
        api.answer_with = answer
        for call in (gate.authenticate(peer), gate.authorize(ALICE, source="policy", verb="pub")):
            code, text = await denial(call)
            assert code is Code.UNAVAILABLE
            assert words in text
            assert "good" not in text

    run(tmp_path, Mode.TOKEN, scenario)


def test_no_token_is_kept(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, gate: SourceGate, clock: Clock) -> None:
        await gate.authenticate(Peer(authorization="Bearer good"))
        assert b"good" not in repr(vars(gate._tokens)).encode()

    run(tmp_path, Mode.TOKEN, scenario)
