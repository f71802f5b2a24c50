"""The client proves who it is: TLS, client certificates, tokens that rotate."""

from pathlib import Path
from typing import Any

import certificates
import harness
import pytest
from review_api import ReviewApi
from secure_server import Running, running
from test_sdk_lifecycle import work

from maestropy import AsyncMaestro, RetryPolicy, errors
from maestropy.store.dsn import Dsn

SOURCE = "sdk-test"
QUICK = RetryPolicy(attempts=2, base_seconds=0.01, deadline_seconds=2)


def client_of(server: Running, **options: Any) -> AsyncMaestro:
    where = {
        "api_url": f"https://localhost:{server.port('rest')}",
        "grpc_url": f"localhost:{server.port('gRPC for sources')}",
        "source": SOURCE,
        "retry": QUICK,
    }
    return AsyncMaestro(environ={}, **(where | options))


def tls_flags(cert: certificates.CertFiles) -> dict[str, str]:
    flags = {"--enable-https": "true"}
    for prefix in ("https", "grpc-tls"):
        flags |= {f"--{prefix}-cert-file": str(cert.cert), f"--{prefix}-key-file": str(cert.key)}
    return flags


def test_tls_with_client_certificates_that_rotate(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        ca, clients = certificates.make_ca(tmp_path), certificates.make_ca(tmp_path)
        flags = tls_flags(ca.issue(cn="localhost", san=["localhost"]))
        flags |= {"--grpc-authn-type": "mtls", "--grpc-client-ca-file": str(clients.cert)}
        grants = {("alice", f"/sources/{SOURCE}", verb) for verb in ("pub", "sub")}
        async with ReviewApi(grants=grants) as api:
            flags |= {"--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
            mine = clients.issue(cn="mallory", o=["devs"])
            async with running(database, flags) as server:
                files = {"ca_file": ca.cert, "client_cert_file": mine.cert, "client_key_file": mine.key}
                async with client_of(server, **files) as client:
                    await client.consumers.create("c1")
                    works = client.works("c1")
                    with pytest.raises(errors.Forbidden, match="unauthorized to publish"):
                        await works.create(work("one"))
                    mine.replace_with(clients.issue(cn="alice", o=["devs"]))
                    await works.create(work("one"))
                    assert (await anext(works.watch())).work.name == "one"

    harness.play(scenario())


@pytest.mark.parametrize("expired", [pytest.param(True, id="expired"), pytest.param(False, id="stranger")])
def test_a_server_that_cannot_be_trusted_is_told_at_once(database: Dsn, tmp_path: Path, *, expired: bool) -> None:
    async def scenario() -> None:
        ca = certificates.make_ca(tmp_path)
        flags = tls_flags(ca.issue(cn="localhost", san=["localhost"], expired=expired))
        trusted = ca if expired else certificates.make_ca(tmp_path)
        async with running(database, flags) as server, client_of(server, ca_file=trusted.cert) as client:
            for call in (client.works("c1").get("x"), client.works("c1").create(work("x"))):
                with pytest.raises(errors.Unavailable, match="check the CA file") as refused:
                    await call
                assert not refused.value.is_retryable

    harness.play(scenario())


def test_a_token_file_is_read_again_when_it_rotates(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        ca = certificates.make_ca(tmp_path)
        flags = tls_flags(ca.issue(cn="localhost", san=["localhost"]))
        grants = {("alice", f"/sources/{SOURCE}", verb) for verb in ("pub", "sub")}
        token_file = tmp_path / "token"
        token_file.write_text("first\n")
        async with ReviewApi(tokens={"first": ("alice", [])}, grants=grants) as api:
            flags |= {"--grpc-authn-type": "token", "--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
            async with (
                running(database, flags) as server,
                client_of(server, ca_file=ca.cert, token_file=token_file) as client,
            ):
                await client.consumers.create("c1")
                works = client.works("c1")
                await works.create(work("one"))
                token_file.write_text("unknown")
                with pytest.raises(errors.Unauthorized, match="token not authenticated") as refused:
                    await works.create(work("two"))
                assert "unknown" not in str(refused.value)
                with pytest.raises(errors.Unauthorized):
                    await anext(works.watch())
                api.tokens["second"] = ("alice", [])
                token_file.write_text("second")
                await works.create(work("two"))
                assert (await anext(works.watch())).work.name in ("one", "two")
                token_file.unlink()
                with pytest.raises(errors.ConfigError, match="token"):
                    await works.create(work("three"))

    harness.play(scenario())
