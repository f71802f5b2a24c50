"""Authentication of REST clients by JWT, and the signing keys."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from maestropy.server.auth.rest import JwtSettings, RestAuthenticator, Unverified
from maestropy.server.auth.signing_keys import MAX_AGE_SECONDS, REFRESH_SECONDS, RETRY_SECONDS
from maestropy.transport.peer_identity import PeerIdentity

EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def jwk(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, kid: str, **more: str) -> dict[str, Any]:
    kind: Any = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


KEYS = [jwk(EC_KEY, "ec"), jwk(RSA_KEY, "rsa", alg="RS256", use="sig")]


def sign(key: Any = EC_KEY, *, alg: str = "ES256", kid: str | None = "ec", drop: str = "", **claims: object) -> str:
    content = {"sub": "alice", "exp": time.time() + 300} | claims
    content.pop(drop, None)
    return jwt.encode(content, key, algorithm=alg, headers={"kid": kid} if kid else None)


def forge(header: dict[str, object], payload: dict[str, object], signature: str = "") -> str:
    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(payload)}.{signature}"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def settings(tmp_path: Path) -> JwtSettings:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": KEYS}))
    return JwtSettings(keys=str(path))


def authenticate(settings: JwtSettings, authorization: str | None) -> PeerIdentity:
    gate = RestAuthenticator(settings, clock=Clock(), on_problem=print)
    return asyncio.run(gate.authenticate(authorization)).identity


@pytest.mark.parametrize(
    ("make_token", "identity"),
    [
        pytest.param(lambda: sign(), PeerIdentity(user="alice"), id="ec"),
        pytest.param(lambda: sign(RSA_KEY, alg="RS256", kid="rsa"), PeerIdentity(user="alice"), id="rsa"),
        pytest.param(
            lambda: sign(groups=["a", 7, "b"]),
            PeerIdentity(user="alice", groups=("a", "b")),
            id="groups-that-are-names",
        ),
        pytest.param(lambda: sign(groups="admins"), PeerIdentity(user="alice"), id="groups-of-the-wrong-shape"),
        pytest.param(lambda: sign(exp=time.time() - 10), PeerIdentity(user="alice"), id="expired-within-the-leeway"),
        pytest.param(lambda: sign(aud="somebody"), PeerIdentity(user="alice"), id="any-audience-by-default"),
    ],
)
def test_accepted(settings: JwtSettings, make_token: Callable[[], str], identity: PeerIdentity) -> None:
    assert authenticate(settings, f"Bearer {make_token()}") == identity


@pytest.mark.parametrize(
    ("make_token", "words"),
    [
        pytest.param(lambda: forge({"alg": "none", "kid": "ec"}, {"sub": "a", "exp": 9e9}), "algorithm", id="alg-none"),
        pytest.param(lambda: forge({"alg": "NONE", "kid": "ec"}, {"sub": "a", "exp": 9e9}), "algorithm", id="alg-NONE"),
        pytest.param(
            lambda: jwt.encode({"sub": "a", "exp": 9e9}, "x" * 64, algorithm="HS256", headers={"kid": "rsa"}),
            "algorithm",
            id="symmetric",
        ),
        pytest.param(lambda: forge({"kid": "ec"}, {"sub": "a", "exp": 9e9}), "algorithm", id="no-algorithm"),
        pytest.param(lambda: sign(RSA_KEY, alg="RS512", kid="rsa"), "algorithm", id="algorithm-not-configured"),
        pytest.param(lambda: sign(RSA_KEY, alg="RS256", kid="ec"), "key", id="algorithm-of-another-key"),
        pytest.param(lambda: sign(OTHER_KEY), "signature is wrong", id="wrong-key"),
        pytest.param(lambda: sign()[:-4] + "AAAA", "signature is wrong", id="changed-signature"),
        pytest.param(lambda: sign(kid="unheard-of"), "key that is not known", id="unknown-key-id"),
        pytest.param(lambda: sign(kid=None), "key that is not known", id="no-key-id-among-several"),
        pytest.param(lambda: sign(exp=time.time() - 31), "expired", id="expired"),
        pytest.param(lambda: sign(nbf=time.time() + 300), "not valid yet", id="not-yet"),
        pytest.param(lambda: sign(drop="exp"), "lacks the claim exp", id="never-expires"),
        pytest.param(lambda: sign(drop="sub"), "lacks the claim sub", id="no-subject"),
        pytest.param(lambda: sign(sub=""), "lacks the claim sub", id="empty-subject"),
        pytest.param(lambda: "not.a.token", "malformed", id="malformed"),
        pytest.param(lambda: "ünïcödé", "malformed", id="not-ascii"),
    ],
)
def test_rejected(settings: JwtSettings, make_token: Callable[[], str], words: str) -> None:
    token = make_token()
    with pytest.raises(Unverified, match=words) as caught:
        authenticate(settings, f"Bearer {token}")
    assert (caught.value.status, caught.value.error_id) == (401, 15)
    assert caught.value.reason.startswith("Account authentication could not be verified: ")
    assert token not in caught.value.reason


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Basic YTpi"])
def test_no_token(settings: JwtSettings, authorization: str | None) -> None:
    with pytest.raises(Unverified, match="Authorization: Bearer"):
        authenticate(settings, authorization)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        pytest.param({"iss": "https://sso", "aud": ["x", "maestro"]}, None, id="right"),
        pytest.param({"iss": "https://sso", "aud": "other"}, "another audience", id="wrong-audience"),
        pytest.param({"iss": "https://sso"}, "lacks the claim aud", id="no-audience"),
        pytest.param({"iss": "https://evil", "aud": "maestro"}, "another issuer", id="wrong-issuer"),
        pytest.param({"aud": "maestro"}, "lacks the claim iss", id="no-issuer"),
    ],
)
def test_issuer_and_audience(settings: JwtSettings, claims: dict[str, Any], words: str | None) -> None:
    strict = replace(settings, issuer="https://sso", audience="maestro")
    with pytest.raises(Unverified, match=words) if words else contextlib.nullcontext():
        authenticate(strict, f"Bearer {sign(**claims)}")


@pytest.mark.parametrize(
    "algorithms", [(), ("none",), ("HS256",), ("RS256", "HS512"), ("",)], ids=lambda names: "+".join(names)
)
def test_unsafe_algorithms_cannot_be_configured(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"^algorithms: .*choose from ES256"):
        JwtSettings(keys="x", algorithms=algorithms)


def test_public_key_used_as_shared_secret_is_rejected(tmp_path: Path) -> None:
    secret = base64.urlsafe_b64encode(PUBLIC_PEM).decode()
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{"kty": "oct", "kid": "rsa", "k": secret, "alg": "HS256"}, *KEYS]}))
    head = forge({"alg": "HS256", "kid": "rsa"}, {"sub": "a", "exp": 9e9}).rsplit(".", 1)[0]
    with pytest.raises(Unverified, match="algorithm"):
        authenticate(JwtSettings(keys=str(path)), f"Bearer {head}.AAAA")


def test_single_key_needs_no_id(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = jwk(EC_KEY, "")
    del key["kid"]
    path.write_text(json.dumps({"keys": [key]}))
    assert authenticate(JwtSettings(keys=str(path)), f"Bearer {sign(kid=None)}").user == "alice"


# --- where keys come from --------------------------------------------------------------------------


class Issuer:
    """Serves a key set over HTTP and counts how often it is asked."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = KEYS
        self.status = 200
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        await self.may_answer.wait()
        body = json.dumps({"keys": self.keys}).encode()
        head = f"HTTP/1.1 {self.status} Test\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()


@contextlib.asynccontextmanager
async def issuer_gate() -> AsyncIterator[tuple[Issuer, RestAuthenticator, Clock, list[str]]]:
    issuer, clock, problems = Issuer(), Clock(), list[str]()
    server = await asyncio.start_server(issuer.serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        yield issuer, RestAuthenticator(JwtSettings(keys=url), clock=clock, on_problem=problems.append), clock, problems


async def allowed(gate: RestAuthenticator, token: str) -> bool:
    try:
        await gate.authenticate(f"Bearer {token}")
    except Unverified:
        return False
    return True


async def test_concurrent_requests_fetch_keys_once() -> None:
    async with issuer_gate() as (issuer, gate, _, problems):
        assert all(await asyncio.gather(*(allowed(gate, sign()) for _ in range(20))))
        assert issuer.asked == 1
        assert problems == []


async def test_unknown_key_id_causes_one_read_a_minute() -> None:
    async with issuer_gate() as (issuer, gate, clock, _):
        assert await allowed(gate, sign())
        fresh = sign(OTHER_KEY, kid="fresh")
        issuer.keys = [*KEYS, jwk(OTHER_KEY, "fresh")]
        assert not await allowed(gate, fresh), "read a moment ago"
        clock.now += REFRESH_SECONDS
        assert await allowed(gate, fresh)
        assert issuer.asked == 2
        for number in range(50):
            assert not await allowed(gate, sign(kid=f"invented-{number}"))
        assert issuer.asked == 2


async def test_last_valid_keys_stay_when_the_issuer_fails() -> None:
    async with issuer_gate() as (issuer, gate, clock, problems):
        assert await allowed(gate, sign())
        for status, keys in ((500, KEYS), (200, []), (200, [{"kty": "oct", "kid": "ec", "k": "eA"}])):
            issuer.status, issuer.keys = status, keys
            clock.now += MAX_AGE_SECONDS
            assert await allowed(gate, sign())
        assert issuer.asked == 4
        assert len(problems) == 3
        assert all("the last valid keys stay in use" in problem for problem in problems)


async def test_withdrawn_key_is_dropped() -> None:
    async with issuer_gate() as (issuer, gate, clock, _):
        assert await allowed(gate, sign())
        issuer.keys = [jwk(OTHER_KEY, "fresh")]
        clock.now += MAX_AGE_SECONDS
        assert not await allowed(gate, sign())


async def test_without_keys_clients_are_rejected_and_keys_read_again_soon() -> None:
    async with issuer_gate() as (issuer, gate, clock, problems):
        issuer.status = 503
        with pytest.raises(Unverified, match="no signing keys"):
            await gate.authenticate(f"Bearer {sign()}")
        assert not await allowed(gate, sign())
        assert issuer.asked == 1
        assert "HTTP 503" in problems[0]
        issuer.status = 200
        clock.now += RETRY_SECONDS
        assert await allowed(gate, sign())


async def test_known_keys_do_not_wait_for_a_slow_issuer() -> None:
    async with issuer_gate() as (issuer, gate, clock, _):
        assert await allowed(gate, sign())
        clock.now += REFRESH_SECONDS
        issuer.may_answer.clear()
        stuck = asyncio.ensure_future(allowed(gate, sign(kid="invented")))
        while issuer.asked < 2:
            await asyncio.sleep(0)
        assert await asyncio.wait_for(allowed(gate, sign()), timeout=5)
        assert not stuck.done()
        issuer.may_answer.set()
        assert not await stuck


def test_keys_are_not_fetched_over_plain_http() -> None:
    with pytest.raises(ValueError, match="use https or a file"):
        RestAuthenticator(JwtSettings(keys="http://sso.example.com/keys"), clock=Clock(), on_problem=print)


async def test_missing_key_file_is_logged_with_its_path(tmp_path: Path) -> None:
    problems: list[str] = []
    gate = RestAuthenticator(JwtSettings(keys=str(tmp_path / "gone.json")), clock=Clock(), on_problem=problems.append)
    with pytest.raises(Unverified):
        await gate.authenticate(f"Bearer {sign()}")
    assert "gone.json" in problems[0]
