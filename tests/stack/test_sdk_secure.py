"""The client authenticates: TLS, client certificates, rotated tokens."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from maestropy import AsyncMaestro, RetryPolicy, errors
from maestropy.store.dsn import Dsn
from tests import certificates
from tests.review_api import ReviewApi
from tests.stack.secure_server import Running, running
from tests.stack.test_sdk_lifecycle import work

SOURCE = "sdk-test"
QUICK = RetryPolicy(attempts=2, base_seconds=0.01, deadline_seconds=2)


def client_of(server: Running, **options: Any) -> AsyncMaestro:
    defaults: dict[str, Any] = {
        "api_url": f"https://localhost:{server.port('rest')}",
        "grpc_url": f"localhost:{server.port('gRPC for sources')}",
        "source": SOURCE,
        "retry": QUICK,
    }
    return AsyncMaestro(environ={}, **(defaults | options))


def tls_flags(cert: certificates.CertFiles) -> dict[str, str]:
    flags = {"--enable-https": "true"}
    for prefix in ("https", "grpc-tls"):
        flags |= {f"--{prefix}-cert-file": str(cert.cert), f"--{prefix}-key-file": str(cert.key)}
    return flags


async def test_rotated_client_certificate_is_used(database: Dsn, tmp_path: Path) -> None:
    ca, clients = certificates.make_ca(tmp_path), certificates.make_ca(tmp_path)
    flags = tls_flags(ca.issue(cn="localhost", san=["localhost"]))
    flags |= {"--grpc-authn-type": "mtls", "--grpc-client-ca-file": str(clients.cert)}
    grants = {("alice", f"/sources/{SOURCE}", verb) for verb in ("pub", "sub")}
    async with ReviewApi(grants=grants) as api:
        flags |= {"--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
        client_cert = clients.issue(cn="mallory", o=["devs"])
        async with running(database, flags) as server:
            files = {"ca_file": ca.cert, "client_cert_file": client_cert.cert, "client_key_file": client_cert.key}
            async with client_of(server, **files) as client:
                await client.consumers.create("c1")
                works = client.works("c1")
                with pytest.raises(errors.Forbidden, match="unauthorized to publish"):
                    await works.create(work("one"))
                client_cert.replace_with(clients.issue(cn="alice", o=["devs"]))
                await works.create(work("one"))
                assert (await anext(works.watch())).work.name == "one"


@pytest.mark.long
async def test_error_without_the_client_certificate_that_a_server_demands_says_so(
    database: Dsn, tmp_path: Path
) -> None:
    ca, clients = certificates.make_ca(tmp_path), certificates.make_ca(tmp_path)
    flags = tls_flags(ca.issue(cn="localhost", san=["localhost", "127.0.0.1"]))
    flags |= {"--grpc-authn-type": "mtls", "--grpc-client-ca-file": str(clients.cert)}
    async with ReviewApi() as api:
        flags |= {"--grpc-authorizer-config": api.write_kubeconfig(tmp_path)}
        async with running(database, flags) as server:
            # Of a name with several addresses gRPC reports the last one only, where nothing may listen.
            address = f"127.0.0.1:{server.port('gRPC for sources')}"
            async with client_of(server, ca_file=ca.cert, grpc_url=address) as client:
                await client.consumers.create("c1")
                works = client.works("c1")
                for call in (works.create(work("one")), anext(works.watch())):
                    with pytest.raises(errors.Unavailable) as failed:
                        await call
                    advice = failed.value.advice
                    assert advice.startswith("the server may ask for a client certificate: give client_cert_")
            foreign = certificates.make_ca(tmp_path).issue(cn="alice", o=["devs"])
            files = {"client_cert_file": foreign.cert, "client_key_file": foreign.key}
            async with client_of(server, ca_file=ca.cert, grpc_url=address, **files) as client:
                with pytest.raises(errors.Unavailable) as failed:
                    await client.works("c1").create(work("one"))
                assert f"the issuer of the client certificate {foreign.cert}" in failed.value.advice


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["tls-1.2", "tls-1.3"])
@pytest.mark.parametrize("foreign", [False, True], ids=["no-certificate", "foreign-authority"])
async def test_rest_proxy_that_demands_a_certificate_is_named(
    tmp_path: Path, version: ssl.TLSVersion, *, foreign: bool
) -> None:
    ca, strangers = certificates.make_ca(tmp_path), certificates.make_ca(tmp_path)
    own = ca.issue(cn="localhost", san=["localhost"])
    proxy = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    proxy.load_cert_chain(own.cert, own.key)
    proxy.load_verify_locations(ca.cert)
    proxy.verify_mode = ssl.CERT_REQUIRED
    proxy.minimum_version = proxy.maximum_version = version
    client_cert = strangers.issue(cn="mallory")
    cert_file, key_file = (client_cert.cert, client_cert.key) if foreign else (None, None)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1)
        writer.close()

    async with await asyncio.start_server(answer, "localhost", 0, ssl=proxy) as server:
        address = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        async with AsyncMaestro(
            api_url=address,
            ca_file=ca.cert,
            client_cert_file=cert_file,
            client_key_file=key_file,
            retry=QUICK,
            environ={},
        ) as client:
            with pytest.raises(errors.Unavailable) as failed:
                await client.consumers.get("c1")
    assert address in failed.value.reason
    assert (str(client_cert.cert) if foreign else "client_cert_file") in failed.value.advice


@pytest.mark.parametrize("expired", [pytest.param(True, id="expired"), pytest.param(False, id="unknown-authority")])
async def test_untrusted_server_certificate_is_not_retried(database: Dsn, tmp_path: Path, *, expired: bool) -> None:
    ca = certificates.make_ca(tmp_path)
    flags = tls_flags(ca.issue(cn="localhost", san=["localhost"], expired=expired))
    trusted = ca if expired else certificates.make_ca(tmp_path)
    async with running(database, flags) as server, client_of(server, ca_file=trusted.cert) as client:
        for call in (client.works("c1").get("x"), client.works("c1").create(work("x"))):
            with pytest.raises(errors.Unavailable, match="check the CA file") as rejected:
                await call
            assert not rejected.value.is_retryable


async def test_rotated_token_file_is_read_again(database: Dsn, tmp_path: Path) -> None:
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
            with pytest.raises(errors.Unauthorized, match="token not authenticated") as rejected:
                await works.create(work("two"))
            assert "unknown" not in str(rejected.value)
            with pytest.raises(errors.Unauthorized):
                await anext(works.watch())
            api.tokens["second"] = ("alice", [])
            token_file.write_text("second")
            await works.create(work("two"))
            assert (await anext(works.watch())).work.name in ("one", "two")
            token_file.unlink()
            with pytest.raises(errors.ConfigError, match="token"):
                await works.create(work("three"))
