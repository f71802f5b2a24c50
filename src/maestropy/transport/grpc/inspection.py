"""Inspect a gRPC server before an agent uses it: certificates, TLS, and whether it accepts this agent."""

import asyncio
import ssl
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from maestropy.aio import checks
from maestropy.transport.grpc.client import BadCredentials, GrpcClient, GrpcEndpoint, StreamTimeout
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.transport.tls import inspection
from maestropy.wire.events import event, grpc_binding

_REMEDY = "check the address, and which identity the server asks of agents (--grpc-broker-agent-identity)"
_PORT_REMEDY = "give the port of the gRPC broker for agents, 8091 by default; 8090 is that of sources"


async def inspect(
    endpoint: GrpcEndpoint, *, consumer: str, flag: str, now: datetime, seconds: float
) -> list[checks.Check]:
    """Ask whether the agent of `consumer` could subscribe; an unreachable server is noticed within `seconds`."""
    found = inspection.connection(endpoint, setting=flag, now=now)
    if checks.has_failed(found):
        return [*found, checks.not_seen("server", "not tried with these certificates")]
    host, server_port = _split(endpoint.url)
    try:
        async with asyncio.timeout(seconds):
            reached = await _reached(endpoint, host, server_port)
    except TimeoutError:
        reached = checks.failed("server", f"{endpoint.url} does not answer within {seconds:g} s", remedy=_REMEDY)
    found.append(reached)
    if reached.outcome is checks.Outcome.FAILED:
        return found
    return [*found, *await _access(replace(endpoint, heartbeat_timeout_seconds=seconds), consumer=consumer)]


async def _access(endpoint: GrpcEndpoint, *, consumer: str) -> list[checks.Check]:
    subscription = grpc_binding.Subscription(cluster_name=consumer, data_type=event.MANIFEST_BUNDLES)
    accepted = checks.ok("server-access", f"the server accepts the agent of {consumer}")
    try:
        async with GrpcClient(endpoint) as client:
            knows_consumer = await client.check_agent(subscription)
    except CallRejected as error:
        if error.code is StatusCode.NOT_FOUND:
            remedy = f"check --consumer-name, or create it: maestro consumer create {consumer}"
            return [accepted, checks.failed("consumer", str(error), remedy=remedy)]
        remedy = _PORT_REMEDY if error.code is StatusCode.UNIMPLEMENTED else _REMEDY
        return [checks.failed("server-access", str(error), remedy=remedy)]
    except (StreamTimeout, BadCredentials) as error:
        return [checks.failed("server-access", str(error), remedy=_REMEDY)]
    if not knows_consumer:
        unseen = "this server does not say whether the consumer exists, nor whether the port is that of agents"
        return [accepted, checks.not_seen("consumer", unseen)]
    return [accepted, checks.ok("consumer", f"{consumer} exists")]


async def _reached(endpoint: GrpcEndpoint, host: str, server_port: int) -> checks.Check:
    if not endpoint.is_secure:
        return await inspection.reach(host, server_port, name="server")
    return await inspection.handshake(host, server_port, _context(endpoint), name="server")


def _context(endpoint: GrpcEndpoint) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authorities = endpoint.ca_data or (endpoint.ca_file.read_bytes() if endpoint.ca_file else b"")
    if authorities:
        context = ssl.create_default_context(cadata=authorities.decode("ascii", errors="ignore"))
    context.set_alpn_protocols(["h2"])
    if endpoint.has_client_cert:
        # The ssl module loads a pair only from files; these are readable by this user only and are deleted at once.
        with tempfile.TemporaryDirectory(prefix="maestropy-") as folder:
            cert, key = Path(folder) / "cert", Path(folder) / "key"
            key.touch(mode=0o600)
            cert.write_bytes(endpoint.client_cert_data or _read(endpoint.client_cert_file))
            key.write_bytes(endpoint.client_key_data or _read(endpoint.client_key_file))
            context.load_cert_chain(cert, key, password="")
    return context


def _read(path: Path | None) -> bytes:
    return path.read_bytes() if path else b""


def _split(url: str) -> tuple[str, int]:
    host, _, server_port = url.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(server_port) if server_port.isdigit() else 0
