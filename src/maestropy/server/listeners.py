"""Every port of a server: bound together before anything starts, stopped together before anything ends."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from maestropy.aio import tasks
from maestropy.journal.fields import Key
from maestropy.server import health, observe
from maestropy.server.auth import rest as rest_auth
from maestropy.server.auth import sources as source_auth
from maestropy.server.auth.agents import AgentIdentityPolicy, default_policy
from maestropy.server.rest.app import create_app
from maestropy.server.rest.dependencies import RestDependencies
from maestropy.server.rpc.agents import Agents
from maestropy.server.rpc.sources import Sources
from maestropy.server.rpc.subscriptions import Heartbeats
from maestropy.server.settings import ServerSettings
from maestropy.server.settings.surfaces import GrpcSettings
from maestropy.server.stages import Stages
from maestropy.server.world import World
from maestropy.transport import grpc_server, tls
from maestropy.transport.http_listener import HttpListener
from maestropy.transport.http_patience import Patience

_GRACE_SECONDS = 5.0


class Listeners:
    """The open ports of one instance."""

    def __init__(self, world: World, settings: ServerSettings) -> None:
        self._world = world
        self._settings = settings
        self._http: list[tuple[str, HttpListener, ssl.SSLContext | None]] = []
        self._grpc: list[grpc_server.Listener] = []
        self._serving: list[asyncio.Task[None]] = []
        self._addresses: dict[str, str] = {}

    @classmethod
    async def bind(
        cls, stages: Stages, settings: ServerSettings, world: World, *, stack: AsyncExitStack
    ) -> "Listeners":
        """Reserve every port; an address that is taken is an error before anything has started."""
        listeners = cls(world, settings)
        listeners._bind_http(stages)
        if settings.grpc.enabled:
            await listeners._bind_sources(stages, stack)
        if settings.serves_agents:
            listeners._bind_agents(stages)
        return listeners

    def addresses(self) -> dict[str, str]:
        """Return where everything listens."""
        return dict(self._addresses)

    async def start(self, crew: tasks.Crew) -> None:
        """Begin to answer on every port."""
        for name, listener, context in self._http:
            self._serving.append(crew.start(name, listener.serve(tls=context)))
        for listening in self._grpc:
            await listening.start()

    async def stop(self) -> None:
        """Take nothing new and let what runs finish for a while."""
        for _, listener, _ in self._http:
            listener.stop()
        await asyncio.gather(*(listening.stop(grace_seconds=_GRACE_SECONDS) for listening in self._grpc))
        # Wait for the HTTP requests that run: they too may have a wish to hand over.
        if self._serving:
            await asyncio.wait(self._serving)

    def _bind_http(self, stages: Stages) -> None:
        settings, world = self._settings, self._world
        rest = create_app(
            RestDependencies(
                database=world.database,
                journal=world.journal,
                metrics=world.metrics,
                mark_deleting=stages.accept.mark_deleting,
                clock=world.clock,
                new_id=world.new_id,
                authenticate=self._rest_gate(),
            )
        )
        self._listen_http("rest", rest, port=settings.http.port, secure=settings.http.enable_https)
        probes = health.create_health_app(observe.readiness(stages.membership), journal=world.journal)
        self._listen_http("health", probes, port=settings.health.port, secure=settings.health.enable_https)
        self._listen_http(
            "metrics",
            observe.metrics_app(world.metrics),
            port=settings.metrics.port,
            secure=settings.metrics.enable_https,
        )

    def _listen_http(self, name: str, app: ASGIApp, *, port: int, secure: bool) -> None:
        http = self._settings.http
        context = tls.https_context(self._https_files(), on_problem=self._on_problem) if secure else None
        patience = Patience(read=http.read_timeout.total_seconds(), write=http.write_timeout.total_seconds())
        shares_ports = self._settings.instance.shares_ports
        listener = HttpListener(app, host=http.hostname, port=port, reuse_port=shares_ports, patience=patience)
        self._http.append((name, listener, context))
        self._addresses[name] = f"http{'s' if secure else ''}://{_shown(http.hostname)}:{listener.port}"

    async def _bind_sources(self, stages: Stages, stack: AsyncExitStack) -> None:
        settings = self._settings.grpc
        files = _files(settings.tls_cert_file, settings.tls_key_file, settings.client_ca_file, flags=tls.SOURCES)
        mode = source_auth.choose_mode(
            settings.authn_type, tls=files is not None, client_ca=settings.client_ca_file is not None
        )
        kubeconfig = str(settings.authorizer_config or "")
        gate = await stack.enter_async_context(
            source_auth.open_gate(mode, kubeconfig=kubeconfig, clock=self._world.clock.monotonic)
        )
        service = Sources(
            world=self._world,
            accept=stages.accept,
            fanout=stages.fanout,
            streams=stages.sources,
            gate=gate,
            heartbeats=self._heartbeats(),
        )
        self._listen_grpc("gRPC for sources", service, port=settings.port, files=files)

    def _bind_agents(self, stages: Stages) -> None:
        broker = self._settings.broker
        files = _files(broker.tls_cert_file, broker.tls_key_file, broker.client_ca_file, flags=tls.BROKER)
        policy = default_policy(client_ca=broker.client_ca_file is not None)
        if broker.agent_identity is not None:
            policy = AgentIdentityPolicy(broker.agent_identity)
        service = Agents(
            world=self._world,
            absorb=stages.absorb,
            rejoin=stages.rejoin,
            streams=stages.agents,
            policy=policy,
            heartbeats=self._heartbeats(),
        )
        self._listen_grpc("gRPC for agents", service, port=broker.port, files=files)

    def _listen_grpc(self, name: str, service: grpc_server.Service, *, port: int, files: tls.Files | None) -> None:
        listener = grpc_server.Listener(
            service,
            limits=_limits(self._settings.grpc, shares_ports=self._settings.instance.shares_ports),
            observer=observe.RpcObserver(self._world, by_source=isinstance(service, Sources)),
            monotonic=self._world.clock.monotonic,
        )
        credentials: Any = None
        if files is not None:
            credentials = tls.grpc_credentials(files, on_problem=self._on_problem)
        host = _shown(self._settings.http.hostname, everywhere="[::]")
        bound = listener.bind(f"{host}:{port}", credentials=credentials)
        self._grpc.append(listener)
        security = "TLS" if files is None else ("mTLS" if files.client_ca else "TLS")
        self._addresses[name] = f"{_shown(self._settings.http.hostname)}:{bound}" + (
            f" ({security})" if files is not None else ""
        )

    def _heartbeats(self) -> Heartbeats:
        grpc = self._settings.grpc
        seconds = None if grpc.heartbeat_disable else grpc.heartbeat_check_interval.total_seconds()
        return Heartbeats(seconds=seconds, new_id=self._world.new_id)

    def _rest_gate(self) -> Any:
        auth = self._settings.rest_auth
        if auth.authn_type == "none":
            return None
        settings = rest_auth.JwtSettings(
            keys=str(auth.jwks_file or auth.jwks_url),
            algorithms=auth.jwt_algorithms,
            issuer=auth.jwt_issuer,
            audience=auth.jwt_audience,
        )
        gate = rest_auth.RestGate(settings, clock=self._world.clock.monotonic, on_problem=self._on_problem)
        return gate.authenticate

    def _https_files(self) -> tls.Files:
        http = self._settings.http
        files = _files(http.cert_file, http.key_file, None, flags=tls.HTTPS)
        if files is None:
            raise tls.TlsError("HTTPS needs --https-cert-file and --https-key-file")
        return files

    def _on_problem(self, text: str) -> None:
        self._world.journal.warning("a security file was not taken", {Key.REASON: text})


def _files(cert: Path | None, key: Path | None, client_ca: Path | None, *, flags: tls.Flags) -> tls.Files | None:
    return tls.name_files(str(cert or ""), str(key or ""), flags=flags, client_ca=str(client_ca or ""))


def _limits(settings: GrpcSettings, *, shares_ports: bool) -> grpc_server.Limits:
    # Go's "never" is the longest duration it can write.
    age = settings.max_connection_age.total_seconds()
    return grpc_server.Limits(
        max_receive_bytes=settings.max_receive_message_size,
        max_send_bytes=settings.max_send_message_size,
        max_concurrent_streams=settings.max_concurrent_streams,
        max_connection_age_seconds=age if age < 10 * 365 * 86400 else None,
        client_min_ping_seconds=settings.client_min_ping_interval.total_seconds(),
        server_ping_seconds=settings.server_ping_interval.total_seconds(),
        server_ping_timeout_seconds=settings.server_ping_timeout.total_seconds(),
        permit_ping_without_stream=settings.permit_ping_without_stream,
        handshake_seconds=settings.connection_timeout.total_seconds(),
        share_port=shares_ports,
    )


def _shown(host: str, *, everywhere: str = "*") -> str:
    if not host:
        return everywhere
    return f"[{host}]" if ":" in host else host
