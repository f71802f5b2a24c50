"""Tokens end to end: Kubernetes tokens of sources, signed tokens of REST clients, and no secret in any log."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from maestropy.server.auth import review_cache
from maestropy.store.dsn import Dsn
from maestropy.wire.events import grpc_binding
from tests import certificates
from tests.review_api import ACCESS, TOKENS, ReviewApi, status_body
from tests.stack.secure_server import BUNDLES, CONSUMER, SOURCE, add_consumers, refusal, running, send, spec, subscribe

TOKEN = "s3cr3t-t0ken-0f-alice"


class Time:
    """Seconds that pass when a test says so, on top of those that pass anyway."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.skipped


def tls_flags(folder: Path) -> tuple[bytes, dict[str, str]]:
    ca = certificates.make_ca(folder)
    server = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    flags = {"--grpc-tls-cert-file": str(server.cert), "--grpc-tls-key-file": str(server.key)}
    return ca.cert.read_bytes(), flags


def spec_request(number: int) -> bytes:
    return grpc_binding.encode_publish(spec(f"bundle-{number}"))


async def test_a_token_is_reviewed_remembered_and_forgotten(database: Dsn, tmp_path: Path) -> None:
    await add_consumers(database, CONSUMER)
    ca, flags = tls_flags(tmp_path)
    clock = Time()
    grants = {("alice", f"/sources/{SOURCE}", "pub"), ("alice", f"/sources/{SOURCE}", "sub")}
    async with ReviewApi(tokens={TOKEN: ("alice", ["devs"])}, grants=grants) as api:
        flags |= {"--grpc-authn-type": "token", "--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
        async with running(database, flags, monotonic=clock) as server, server.sources(ca=ca) as channel:
            await send(channel, spec_request(1), token=TOKEN)
            await send(channel, spec_request(2), token=TOKEN)
            assert api.requests == {TOKENS: 1, ACCESS: 1}

            assert await refusal(channel, spec_request(3)) == ("UNAUTHENTICATED", "invalid token")
            unknown = await refusal(channel, spec_request(3), token="another")
            assert unknown == ("UNAUTHENTICATED", "token not authenticated")

            stream = subscribe(channel, source="another-source", token=TOKEN)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stream.read()
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert refused.value.details() == "unauthorized to subscribe the event from source another-source"
            assert len(server.lines("subscription rejected")) == 1

            api.tokens.clear()
            api.grants.clear()
            await send(channel, spec_request(4), token=TOKEN)  # remembered
            clock.skipped += review_cache.POSITIVE_SECONDS
            assert (await refusal(channel, spec_request(5), token=TOKEN))[0] == "UNAUTHENTICATED"
            clock.skipped += review_cache.NEGATIVE_SECONDS
            api.tokens[TOKEN] = ("alice", ["devs"])
            denied = await refusal(channel, spec_request(5), token=TOKEN)
            assert denied == ("PERMISSION_DENIED", f"unauthorized to publish the event from source {SOURCE}")
            assert (await server.counts())[0] == 3
            assert len(server.refusals()) == 4


async def test_no_answer_from_kubernetes_is_never_a_yes(database: Dsn, tmp_path: Path) -> None:
    await add_consumers(database, CONSUMER)
    ca, flags = tls_flags(tmp_path)
    clock = Time()
    grants = {("alice", f"/sources/{SOURCE}", "pub")}
    async with ReviewApi(tokens={TOKEN: ("alice", [])}, grants=grants) as api:
        flags |= {"--grpc-authn-type": "token", "--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
        async with running(database, flags, monotonic=clock) as server, server.sources(ca=ca) as channel:
            api.answer_with = status_body(403, "Forbidden")
            code, text = await refusal(channel, spec_request(1), token=TOKEN)
            assert code == "UNAVAILABLE"
            assert text.startswith("failed to review the token: ")
            api.answer_with = None
            await send(channel, spec_request(1), token=TOKEN)
            await api.stop()
            await send(channel, spec_request(2), token=TOKEN)  # remembered
            clock.skipped += review_cache.POSITIVE_SECONDS
            assert (await refusal(channel, spec_request(3), token=TOKEN))[0] == "UNAVAILABLE"
            assert (await server.counts())[0] == 2
            async with server.http("health") as health:
                assert (await health.get("/healthcheck")).status_code == 200


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def signed(*, key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
    good: dict[str, Any] = {"sub": "alice", "roles": ["maestro-read"], "aud": "maestro", "iss": "https://issuer"}
    good["exp"] = int(time.time()) + 36000
    return jwt.encode(good | claims, key, algorithm=algorithm, headers={"kid": "k1"})


def public_jwk() -> dict[str, Any]:
    found: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    return found | {"kid": "k1", "use": "sig", "alg": "RS256"}


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        pytest.param(None, "send the header Authorization: Bearer <token>", id="missing"),
        pytest.param("Basic YWxpY2U6cHc=", "send the header Authorization: Bearer <token>", id="basic"),
        pytest.param("Bearer nonsense", "the token is malformed", id="malformed"),
        pytest.param(f"Bearer {signed(exp=int(time.time()) - 600)}", "the token has expired", id="expired"),
        pytest.param(f"Bearer {signed(key=None, algorithm='none')}", "algorithm that is not accepted", id="alg-none"),
        pytest.param(f"Bearer {signed(key='x' * 32, algorithm='HS256')}", "algorithm that is not", id="alg-hs256"),
        pytest.param(f"Bearer {signed(aud='another')}", "another audience", id="wrong-audience"),
        pytest.param(f"Bearer {signed(iss='https://evil')}", "another issuer", id="wrong-issuer"),
        pytest.param(f"Bearer {signed(key=OTHER_KEY)}", "signature is wrong", id="wrong-key"),
    ],
)
async def test_rest_takes_signed_tokens_only(
    database: Dsn, tmp_path: Path, authorization: str | None, reason: str
) -> None:
    await add_consumers(database, CONSUMER)
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [public_jwk()]}))
    flags = {
        "--rest-authn-type": "jwt",
        "--jwks-file": str(keys),
        "--jwt-audience": "maestro",
        "--jwt-issuer": "https://issuer",
    }
    async with running(database, flags) as server, server.http("rest") as rest:
        headers = {"Authorization": authorization} if authorization else {}
        for method, path in (("GET", BUNDLES), ("DELETE", f"{BUNDLES}/x"), ("GET", "/api/maestro/v1/consumers")):
            refused = await rest.request(method, path, headers=headers)
            assert refused.status_code == 401
            body = refused.json()
            assert (body["id"], body["code"], body["kind"]) == ("15", "maestro-15", "Error")
            assert body["reason"].startswith("Account authentication could not be verified: ")
            assert reason in body["reason"]
            assert body["operation_id"]
        taken = await rest.get(BUNDLES, headers={"Authorization": f"Bearer {signed()}"})
        assert taken.status_code == 200
        for name, path in (("health", "/healthcheck"), ("health", "/livez"), ("metrics", "/metrics")):
            async with server.http(name) as client:
                assert (await client.get(path)).status_code == 200, path


OPEN_DOORS = ("--rest-authn-type=jwt", "--grpc-authn-type", "--grpc-broker-client-ca-file")


@pytest.mark.parametrize(
    ("host", "doors"),
    [
        pytest.param("localhost", (), id="localhost"),
        pytest.param("127.0.0.1", (), id="loopback"),
        pytest.param("0.0.0.0", OPEN_DOORS, id="every-ipv4"),
        pytest.param("", OPEN_DOORS, id="everywhere"),
    ],
)
async def test_unauthenticated_listeners_are_logged(database: Dsn, host: str, doors: tuple[str, ...]) -> None:
    flags = {"--server-hostname": host, "--enable-https": "false", "--insecure-grpc": "true"}
    async with running(database, flags) as server:
        told = [line["reason"] for line in server.lines("this server is open to the network")]
        assert len(told) == len(doors)
        for remedy, line in zip(doors, told, strict=True):
            assert remedy in line


async def test_no_secret_reaches_a_log(
    database: Dsn, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """At the highest verbosity, and with every library's own log at its loudest."""
    caplog.set_level(logging.DEBUG)
    password, secret = "pa55word-0f-the-database", "c2VjcmV0LWRhdGE="

    async def scenario() -> tuple[str, str]:
        await add_consumers(database, CONSUMER)
        ca, flags = tls_flags(tmp_path)
        grants = {("alice", f"/sources/{SOURCE}", "pub")}
        keys = tmp_path / "jwks.json"
        keys.write_text(json.dumps({"keys": [public_jwk()]}))
        async with ReviewApi(tokens={TOKEN: ("alice", [])}, grants=grants) as api:
            flags |= {
                "--grpc-authn-type": "token",
                "--grpc-authorizer-config": api.write_kubeconfig(tmp_path, user={"token": "t0ken-0f-the-server"}),
                "--rest-authn-type": "jwt",
                "--jwks-file": str(keys),
                "--db-dsn": f"postgresql://maestro:{password}@db:5432/maestro",
            }
            async with running(database, flags, verbosity=10) as server, server.sources(ca=ca) as channel:
                manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": secret}}
                data = json.dumps({"manifests": [manifest]}).encode()
                await send(channel, grpc_binding.encode_publish(spec("a-secret", data=data)), token=TOKEN)
                text = spec("as-text", data=data, content_type="text/plain")
                await send(channel, grpc_binding.encode_publish(text), token=TOKEN)
                await refusal(channel, grpc_binding.encode_publish(spec("a", data=data, source="other")), token=TOKEN)
                await refusal(channel, grpc_binding.encode_publish(spec("b", data=data[:-1])), token=TOKEN)
                await refusal(channel, spec_request(1), token="unkn0wn-t0ken")
                async with server.agents() as agents:
                    stream = subscribe(agents, cluster_name=CONSUMER)
                    await stream.read()
                    stream.cancel()
                async with server.http("rest") as rest:
                    await rest.get(BUNDLES, headers={"Authorization": f"Bearer {signed()}"})
                    await rest.get(BUNDLES, headers={"Authorization": f"Bearer {signed()}x"})
                await api.stop()
                await refusal(channel, spec_request(2), token="an0ther-t0ken")
                assert len(server.lines("receive the event from client")) == 3
                private = Path(flags["--grpc-tls-key-file"]).read_text().splitlines()[1]
                return server.text(), private

    journal, private = await scenario()
    captured = capfd.readouterr()
    everything = journal + caplog.text + captured.out + captured.err
    hidden: tuple[str, ...] = (
        TOKEN,
        "unkn0wn-t0ken",
        "an0ther-t0ken",
        "t0ken-0f-the-server",
        password,
        secret,
        private,
    )
    hidden += (signed().rpartition(".")[0],)
    assert [each for each in hidden if each in everything] == []
    assert "a-secret" in everything  # the log was there to be searched
