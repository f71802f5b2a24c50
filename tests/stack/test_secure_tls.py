"""Certificates end to end: every port over TLS, who is let in with which certificate, and rotation under load."""

import ssl
from datetime import timedelta
from pathlib import Path

import grpc
import httpx
import pytest

from maestropy.journal.phrases import BrokerPhrase
from maestropy.store.dsn import Dsn
from maestropy.wire.events import event, grpc_binding
from tests import certificates
from tests.review_api import ReviewApi
from tests.stack.secure_server import (
    BUNDLES,
    CONSUMER,
    SOURCE,
    add_consumers,
    next_event,
    refusal,
    report,
    running,
    send,
    spec,
    subscribe,
)

NAMES = ["localhost", "127.0.0.1"]


class Pki:
    """One authority for servers, one for clients, and one that nobody trusts."""

    def __init__(self, folder: Path) -> None:
        self.servers = certificates.make_ca(folder)
        self.clients = certificates.make_ca(folder)
        self.strangers = certificates.make_ca(folder)
        self.server = self.servers.issue(cn="localhost", san=NAMES)

    @property
    def trusted(self) -> bytes:
        return self.servers.cert.read_bytes()

    def flags(self, *prefixes: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for prefix in prefixes:
            found |= {f"--{prefix}-cert-file": str(self.server.cert), f"--{prefix}-key-file": str(self.server.key)}
        return found


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


async def test_every_port_over_tls(pki: Pki, database: Dsn) -> None:
    await add_consumers(database, CONSUMER)
    switches = ("--enable-https", "--enable-metrics-https", "--enable-health-check-https")
    flags = pki.flags("https", "grpc-tls", "grpc-broker-tls") | dict.fromkeys(switches, "true")
    trust = ssl.create_default_context(cadata=pki.trusted.decode())
    async with running(database, flags) as server:
        for name, path in (("rest", BUNDLES), ("health", "/healthcheck"), ("metrics", "/metrics")):
            async with server.http(name, verify=trust) as client:
                assert (await client.get(path)).status_code == 200, name
            async with server.http(name) as distrustful:
                with pytest.raises(httpx.ConnectError):
                    await distrustful.get(path)
            async with httpx.AsyncClient() as plain:
                with pytest.raises(httpx.TransportError):
                    await plain.get(f"http://localhost:{server.port(name)}{path}")
        async with server.sources(ca=pki.trusted) as sources, server.agents(ca=pki.trusted) as agents:
            await send(sources, grpc_binding.encode_publish(spec("over-tls")))
            stream = subscribe(agents, cluster_name=CONSUMER)
            assert (await next_event(stream)).extensions[event.RESOURCE_ID] == "over-tls"
            stream.cancel()
        async with server.sources() as plain_text:
            code, _ = await refusal(plain_text, grpc_binding.encode_publish(spec("in-clear")))
            assert code == "UNAVAILABLE"
        # A handshake that fails is the client's affair: nothing of it is an error here.
        assert not server.lines("a call failed unexpectedly")


async def test_server_warns_of_expired_certificates_when_it_starts(pki: Pki, database: Dsn) -> None:
    pki.server = pki.servers.issue(cn="localhost", san=NAMES, expired=True)
    async with running(database, pki.flags("grpc-tls")) as server:
        (line,) = server.lines("a certificate has expired or expires soon")
    assert line["reason"].startswith(f"certificate grpc-tls-cert-file ({pki.server.cert}) has expired on ")
    assert line["reason"].endswith("; rotate it; a restart is not needed")


async def test_server_does_not_warn_of_certificates_that_are_valid_for_long(pki: Pki, database: Dsn) -> None:
    pki.server = pki.servers.issue(cn="localhost", san=NAMES, lifetime=timedelta(days=90))
    async with running(database, pki.flags("grpc-tls")) as server:
        assert not server.lines("a certificate has expired or expires soon")


@pytest.mark.parametrize("port", ["sources", "agents"])
async def test_who_passes_the_handshake(pki: Pki, database: Dsn, tmp_path: Path, port: str) -> None:
    groups = ["maestro-sources"]
    cases = {
        "signed by another authority": pki.strangers.issue(cn=CONSUMER, o=groups),
        "signed by the servers' authority": pki.servers.issue(cn=CONSUMER, o=groups),
        "expired": pki.clients.issue(cn=CONSUMER, o=groups, expired=True),
        "none": None,
    }

    await add_consumers(database, CONSUMER)
    grants = {(CONSUMER, f"/sources/{SOURCE}", "pub"), (CONSUMER, f"/sources/{SOURCE}", "sub")}
    async with ReviewApi(grants=grants) as api:
        flags = pki.flags("grpc-tls", "grpc-broker-tls") | {
            "--grpc-authn-type": "mtls",
            "--grpc-client-ca-file": str(pki.clients.cert),
            "--grpc-broker-client-ca-file": str(pki.clients.cert),
            "--grpc-authorizer-config": api.write_kubeconfig(tmp_path),
        }
        async with running(database, flags) as server:
            request = grpc_binding.encode_publish(spec("mine") if port == "sources" else report("mine"))
            reach = server.sources if port == "sources" else server.agents
            for name, client in cases.items():
                async with reach(ca=pki.trusted, client=client) as channel:
                    code, _ = await refusal(channel, request)
                    assert code == "UNAVAILABLE", name
                    stream = subscribe(channel, source=SOURCE, cluster_name=CONSUMER)
                    with pytest.raises(grpc.aio.AioRpcError):
                        await stream.read()
            good = pki.clients.issue(cn=CONSUMER, o=groups)
            async with reach(ca=pki.trusted, client=good) as channel:
                await send(channel, request)
            assert (await server.counts())[0] == (1 if port == "sources" else 0)


@pytest.mark.parametrize(
    ("cn", "groups", "code", "text"),
    [
        pytest.param("alice", [], "UNAUTHENTICATED", "could not find group in peer certificate", id="no-organization"),
        pytest.param(None, ["devs"], "UNAUTHENTICATED", "could not find user in peer certificate", id="no-name"),
        pytest.param(
            "bob",
            ["devs"],
            "PERMISSION_DENIED",
            f"unauthorized to publish the event from source {SOURCE}",
            id="not-granted",
        ),
        pytest.param("alice", ["devs"], "OK", "", id="granted"),
    ],
)
async def test_whom_a_source_certificate_names(
    pki: Pki, database: Dsn, tmp_path: Path, cn: str | None, groups: list[str], code: str, text: str
) -> None:
    await add_consumers(database, CONSUMER)
    async with ReviewApi(grants={("alice", f"/sources/{SOURCE}", "pub")}) as api:
        flags = pki.flags("grpc-tls") | {
            "--grpc-authn-type": "mtls",
            "--grpc-client-ca-file": str(pki.clients.cert),
            "--grpc-authorizer-config": api.write_kubeconfig(tmp_path),
        }
        async with running(database, flags) as server:
            client = pki.clients.issue(cn=cn, o=groups)
            async with server.sources(ca=pki.trusted, client=client) as channel:
                assert await refusal(channel, grpc_binding.encode_publish(spec("mine"))) == (code, text)
                # Whoever may not speak here does not even learn what is wrong with what was said.
                garbage, _ = await refusal(channel, b"\xff")
                assert garbage == ("UNAUTHENTICATED" if code == "UNAUTHENTICATED" else "UNKNOWN")
            refused = [line["reason"] for line in server.refusals()]
            assert refused[:1] == ([text] if text else ["failed to convert to cloudevent: " + NOT_A_REQUEST])
            assert (await server.counts())[0] == (code == "OK")


NOT_A_REQUEST = "the request is not a PublishRequest message"


@pytest.mark.parametrize(
    ("identity", "may"),
    [
        pytest.param({}, True, id="by-default"),
        pytest.param({"--grpc-broker-agent-identity": "warn"}, True, id="warn"),
        pytest.param({"--grpc-broker-agent-identity": "exact"}, False, id="exact"),
        pytest.param({"--grpc-broker-agent-identity": "suffix"}, False, id="suffix"),
        pytest.param({"--grpc-broker-agent-identity": "any"}, True, id="any"),
    ],
)
async def test_an_agent_speaks_for_its_own_cluster_only(
    pki: Pki, database: Dsn, identity: dict[str, str], may: bool
) -> None:
    await add_consumers(database, CONSUMER, "cluster2")
    ca = {"--grpc-broker-client-ca-file": str(pki.clients.cert)}
    async with running(database, pki.flags("grpc-broker-tls") | ca | identity) as server:
        async with server.sources() as sources:
            await send(sources, grpc_binding.encode_publish(spec("of-one")))
            await send(sources, grpc_binding.encode_publish(spec("of-two", extensions=in_cluster("cluster2"))))
        own = pki.clients.issue(cn=CONSUMER)
        async with server.agents(ca=pki.trusted, client=own) as agent:
            stream = subscribe(agent, cluster_name=CONSUMER)
            assert (await next_event(stream)).extensions[event.RESOURCE_ID] == "of-one"
            await send(agent, grpc_binding.encode_publish(report("of-one")))

            foreign = subscribe(agent, cluster_name="cluster2")
            lie = grpc_binding.encode_publish(report("of-two", extensions=in_cluster("cluster2")))
            resync = report("of-two", type=event.SPEC_RESYNC_REQUEST, extensions=in_cluster("cluster2"), data=b"")
            if may:
                assert (await next_event(foreign)).extensions[event.RESOURCE_ID] == "of-two"
                await send(agent, lie)
                await send(agent, grpc_binding.encode_publish(resync))
            else:
                with pytest.raises(grpc.aio.AioRpcError, match="may not act for consumer 'cluster2'") as refused:
                    await foreign.read()
                assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
                for attempt in (lie, grpc_binding.encode_publish(resync)):
                    code, text = await refusal(agent, attempt)
                    assert code == "PERMISSION_DENIED"
                    assert "may not act for consumer 'cluster2'" in text
                    assert "maestro:consumer:cluster2" in text
                assert len(server.refusals()) == 2
                assert len(server.lines("subscription rejected")) == 1
            stream.cancel()
            foreign.cancel()
        assert (await server.counts())[4] == (2 if may else 1)


@pytest.mark.parametrize("authn_type", ["mock", "token"])
async def test_ca_of_sources_asks_for_certificates_only_with_mtls(
    pki: Pki, database: Dsn, tmp_path: Path, authn_type: str
) -> None:
    """Maestro's chart always gives --grpc-client-ca-file, and its clients have a token."""
    await add_consumers(database, CONSUMER)
    async with ReviewApi(tokens={"t": ("alice", [])}, grants={("alice", f"/sources/{SOURCE}", "pub")}) as api:
        flags = pki.flags("grpc-tls") | {
            "--grpc-authn-type": authn_type,
            "--grpc-client-ca-file": str(pki.clients.cert),
            "--grpc-authorizer-config": api.write_kubeconfig(tmp_path),
        }
        async with running(database, flags) as server, server.sources(ca=pki.trusted) as sources:
            await send(sources, grpc_binding.encode_publish(spec("mine")), token="t")
            assert (await server.counts())[0] == 1


@pytest.mark.parametrize("name", ["grpc-client", "test-client"])
async def test_agent_with_the_certificate_of_all_is_accepted_with_a_warning(pki: Pki, database: Dsn, name: str) -> None:
    """Maestro's test set-up and its tests give all agents one certificate."""
    await add_consumers(database, CONSUMER)
    flags = pki.flags("grpc-broker-tls") | {"--grpc-broker-client-ca-file": str(pki.clients.cert)}
    async with running(database, flags) as server:
        async with server.sources() as sources:
            await send(sources, grpc_binding.encode_publish(spec("mine")))
        client = pki.clients.issue(cn=name, o=["open-cluster-management"])
        async with server.agents(ca=pki.trusted, client=client) as agent:
            stream = subscribe(agent, cluster_name=CONSUMER)
            assert (await next_event(stream)).extensions[event.RESOURCE_ID] == "mine"
            await send(agent, grpc_binding.encode_publish(report("mine")))
            stream.cancel()
        (line,) = server.lines(BrokerPhrase.CONSUMER_NOT_NAMED)
        assert (line["identity"], line["clusterName"]) == (name, CONSUMER)
        assert (await server.counts())[4] == 1


def in_cluster(name: str) -> dict[str, str]:
    return {event.CLUSTER_NAME: name}


async def test_rotation_under_an_open_stream(pki: Pki, database: Dsn, tmp_path: Path) -> None:
    await add_consumers(database, CONSUMER)
    client = pki.clients.issue(cn=CONSUMER)
    ca = {"--grpc-broker-client-ca-file": str(pki.clients.cert)}
    flags = pki.flags("grpc-tls", "grpc-broker-tls", "https") | ca | {"--enable-https": "true"}
    async with running(database, flags) as server:
        async with server.sources(ca=pki.trusted) as sources, server.agents(ca=pki.trusted, client=client) as agent:
            stream = subscribe(agent, cluster_name=CONSUMER)
            await stream.initial_metadata()
            received = []
            for number in range(30):
                if number == 10:
                    renewed = certificates.make_ca(tmp_path)
                    pki.server.replace_with(renewed.issue(cn="localhost", san=NAMES))
                    async with server.sources(ca=renewed.cert.read_bytes()) as newcomer:
                        assert (await refusal(newcomer, b""))[0] == "UNKNOWN"
                    trust = ssl.create_default_context(cadata=renewed.cert.read_text())
                    async with server.http("rest", verify=trust) as rest:
                        assert (await rest.get(BUNDLES)).json()["total"] == 10
                if number == 20:
                    pki.server.cert.write_text("half a certifi")
                await send(sources, grpc_binding.encode_publish(spec(f"bundle-{number}")))
                received.append((await next_event(stream)).extensions[event.RESOURCE_ID])
            assert received == [f"bundle-{number}" for number in range(30)]

            # Newcomers get the new certificate, also after a rotation that went wrong.
            async with server.sources(ca=pki.trusted) as late:
                code, _ = await refusal(late, grpc_binding.encode_publish(spec("late")))
                assert code == "UNAVAILABLE"
            async with server.sources(ca=renewed.cert.read_bytes()) as fresh:
                await send(fresh, grpc_binding.encode_publish(spec("fresh")))
            assert (await next_event(stream)).extensions[event.RESOURCE_ID] == "fresh"
            async with server.http("rest", verify=trust) as rest:
                assert (await rest.get(BUNDLES)).json()["total"] == 31
            stream.cancel()
        problems = server.lines("a certificate or key file could not be loaded")
        assert problems
        assert {line["reason"].rpartition("; ")[2] for line in problems} == {"the last good certificate stays in use"}
