"""Bind, start and stop the HTTP and gRPC listeners of one server instance."""

import asyncio
import contextlib
import functools
import ssl
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from maestropy.aio import tasks
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import LifecyclePhrase
from maestropy.server.api.grpc.agents import AgentService
from maestropy.server.api.grpc.sources import SourceService, no_position
from maestropy.server.api.grpc.subscriptions import Heartbeats
from maestropy.server.api.rest.app import create_app
from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.hosts import EVERY_NAME, HostRules
from maestropy.server.api.rest.http import refused_requests
from maestropy.server.auth import rest as rest_auth
from maestropy.server.auth import sources as source_auth
from maestropy.server.auth.agents import AgentIdentityPolicy, default_policy
from maestropy.server.auth.roles import Role, RoleMapping
from maestropy.server.context import Context
from maestropy.server.read_replica import ReadReplica
from maestropy.server.runtime import health, instrumentation
from maestropy.server.runtime.dependencies import Dependencies
from maestropy.server.runtime.mounts import Mount, MountContext, PathSwitch, ReadOnly
from maestropy.server.runtime.wiring import Controllers
from maestropy.server.settings import ServerSettings, certificates
from maestropy.server.settings.listeners import GrpcSettings, HttpSettings
from maestropy.transport.grpc import connection_guard
from maestropy.transport.grpc import server as grpc_server
from maestropy.transport.grpc.connection_rules import PendingLimits
from maestropy.transport.grpc.limits import GrpcLimits
from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener
from maestropy.transport.tls import credentials as tls

_GRACE_SECONDS = 5.0
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Listeners:
    """The listeners of one instance."""

    def __init__(self, context: Context, settings: ServerSettings, *, replica: ReadReplica | None) -> None:
        self._context = context
        self._replica = replica
        self._settings = settings
        self._http: list[tuple[str, HttpListener, ssl.SSLContext | None]] = []
        self._grpc: list[grpc_server.GrpcListener] = []
        self._serving: list[asyncio.Task[None]] = []
        self._addresses: dict[str, str] = {}
        self._guard = connection_guard.ConnectionGuard(
            limits=PendingLimits(
                connections=settings.grpc.max_connections, per_address=settings.grpc.max_pending_connections
            ),
            monotonic=context.clock.monotonic,
            on_closed=instrumentation.ClosedConnections(context).closed,
        )

    @classmethod
    async def bind(
        cls,
        controllers: Controllers,
        settings: ServerSettings,
        context: Context,
        *,
        stack: AsyncExitStack,
        replica: ReadReplica | None = None,
        mount: Mount | None = None,
    ) -> "Listeners":
        """Bind every port, so that a port in use is an error before anything starts; `mount` is served beside REST."""
        listeners = cls(context, settings, replica=replica)
        await listeners._bind_http(controllers, stack, mount=mount)
        if settings.grpc.enabled:
            await listeners._bind_sources(controllers, stack)
        if settings.serves_agents:
            listeners._bind_agents(controllers)
        return listeners

    def addresses(self) -> dict[str, str]:
        """Return the addresses of the listeners by name."""
        return dict(self._addresses)

    async def start(self, task_owner: tasks.TaskOwner) -> None:
        """Serve on every port."""
        for name, listener, tls_context in self._http:
            self._serving.append(task_owner.start(name, listener.serve(tls=tls_context)))
        for grpc_listener in self._grpc:
            await grpc_listener.start()
        if self._grpc:
            task_owner.start("connection guard", self._guard.run())

    async def stop(self, *, release_seconds: float = 0.0) -> None:
        """Accept no new requests, and wait for running ones for a grace period.

        It begins when the streams of all agents have been ended, which takes `release_seconds`.
        """
        for _, listener, _ in self._http:
            listener.stop()
        grace = release_seconds + _GRACE_SECONDS
        await asyncio.gather(*(grpc_listener.stop(grace_seconds=grace) for grpc_listener in self._grpc))
        # Running HTTP requests may still submit spec requests.
        if self._serving:
            await asyncio.wait(self._serving)

    async def _bind_http(self, controllers: Controllers, stack: AsyncExitStack, *, mount: Mount | None) -> None:
        settings, context = self._settings, self._context
        authenticator = self._rest_authenticator()
        dependencies = RestDependencies(
            database=context.database,
            journal=context.journal,
            metrics=context.metrics,
            mark_deleting=controllers.spec_writer.mark_deleting,
            clock=context.clock,
            new_id=context.new_id,
            authenticate=None if authenticator is None else authenticator.authenticate,
            history=controllers.history,
            spans=context.spans,
            request_resync=controllers.agent_subscribers.close_topic,
            actions=controllers.operator_actions,
            hosts=HostRules(names=_host_names(settings.http)),
            allowed_origins=settings.http.allowed_origins,
            replica=self._replica,
        )
        rest_app = create_app(dependencies)
        if mount is not None:
            logins = {"authenticator": authenticator, "report": self._on_failed_login}
            rest_app = await _with_mount(rest_app, mount, dependencies, stack, **logins)
        self._listen_http("rest", rest_app, port=settings.http.port, secure=settings.http.enable_https)
        readiness = instrumentation.readiness(controllers.membership, controllers.primary_watch)
        probes = health.create_health_app(
            readiness,
            journal=context.journal,
            note=lambda: self._note(controllers),
            dependencies=Dependencies(
                controllers.membership,
                controllers.primary_watch,
                replica=self._replica,
                broker=controllers.message_broker.broker if controllers.message_broker is not None else None,
                certificates=certificates.watched(settings),
                now=context.clock.epoch,
            ).check,
        )
        self._listen_http("health", probes, port=settings.health.port, secure=settings.health.enable_https)
        self._listen_http(
            "metrics",
            instrumentation.metrics_app(context.metrics),
            port=settings.metrics.port,
            secure=settings.metrics.enable_https,
        )

    def _listen_http(self, name: str, app: ASGIApp, *, port: int, secure: bool) -> None:
        http = self._settings.http
        tls_context = tls.https_context(self._https_files(), on_problem=self._on_problem) if secure else None
        limits = HttpLimits(
            read_seconds=http.read_timeout.total_seconds(),
            write_seconds=http.write_timeout.total_seconds(),
            header_bytes=http.max_header_bytes,
            connections=http.max_connections,
        )
        shares_ports = self._settings.instance.shares_ports
        listener = HttpListener(app, host=http.hostname, port=port, reuse_port=shares_ports, limits=limits)
        self._http.append((name, listener, tls_context))
        self._addresses[name] = f"http{'s' if secure else ''}://{_display_host(http.hostname)}:{listener.port}"

    async def _bind_sources(self, controllers: Controllers, stack: AsyncExitStack) -> None:
        settings = self._settings.grpc
        # With a CA, gRPC rejects clients without a certificate; those with a token have none.
        client_ca = settings.client_ca_file if settings.authn_type == "mtls" else None
        files = _files(settings.tls_cert_file, settings.tls_key_file, client_ca, flags=tls.SOURCES)
        mode = source_auth.choose_mode(
            settings.authn_type, tls=files is not None, client_ca=settings.client_ca_file is not None
        )
        kubeconfig = str(settings.authorizer_config or "")
        access_control = await stack.enter_async_context(
            source_auth.open_access_control(
                mode,
                kubeconfig=kubeconfig,
                clock=self._context.clock.monotonic,
                on_limited=self._context.metrics.token_review_limited,
            )
        )
        service = SourceService(
            context=self._context,
            spec_writer=controllers.spec_writer,
            status_dispatcher=controllers.status_dispatcher,
            answers=controllers.source_answers,
            subscribers=controllers.source_subscribers,
            access_control=access_control,
            history=controllers.history,
            heartbeats=self._heartbeats(),
            recheck_seconds=self._recheck_seconds(),
            position_after_write=no_position if self._replica is None else self._replica.position_after_write,
        )
        self._listen_grpc("gRPC for sources", service, port=settings.port, files=files)

    def _bind_agents(self, controllers: Controllers) -> None:
        broker = self._settings.broker
        files = _files(broker.tls_cert_file, broker.tls_key_file, broker.client_ca_file, flags=tls.BROKER)
        policy = default_policy(client_ca=broker.client_ca_file is not None)
        if broker.agent_identity is not None:
            policy = AgentIdentityPolicy(broker.agent_identity)
        service = AgentService(
            context=self._context,
            intake=controllers.status_intake,
            resync=controllers.resync,
            answers=controllers.agent_answers,
            subscribers=controllers.agent_subscribers,
            policy=policy,
            history=controllers.history,
            heartbeats=self._heartbeats(),
            recheck_seconds=self._recheck_seconds(),
            note_seen=controllers.presence.note,
        )
        self._listen_grpc("gRPC for agents", service, port=broker.port, files=files)

    def _listen_grpc(
        self, name: str, service: grpc_server.CloudEventService, *, port: int, files: tls.TlsFiles | None
    ) -> None:
        metrics = self._context.metrics
        calls = metrics.source_calls if isinstance(service, SourceService) else metrics.agent_calls
        listener = grpc_server.GrpcListener(
            service,
            limits=_limits(self._settings.grpc, shares_ports=self._settings.instance.shares_ports),
            observer=instrumentation.RpcObserver(self._context, calls),
            monotonic=self._context.clock.monotonic,
            authenticating=self._guard.authenticating,
        )
        credentials: Any = None
        if files is not None:
            credentials = tls.grpc_credentials(files, on_problem=self._on_problem)
        host = _display_host(self._settings.http.hostname, everywhere="[::]")
        bound = listener.bind(f"{host}:{port}", credentials=credentials)
        self._grpc.append(listener)
        self._guard.watch(bound)
        security = "TLS" if files is None else ("mTLS" if files.client_ca else "TLS")
        self._addresses[name] = f"{_display_host(self._settings.http.hostname)}:{bound}" + (
            f" ({security})" if files is not None else ""
        )

    def _note(self, controllers: Controllers) -> str:
        """Return what an operator has to change although the instance is ready."""
        replica_problem = "" if self._replica is None else self._replica.problem
        return "; ".join(filter(None, (controllers.broker_problem, replica_problem)))

    def _heartbeats(self) -> Heartbeats:
        grpc = self._settings.grpc
        seconds = None if grpc.heartbeat_disable else grpc.heartbeat_check_interval.total_seconds()
        return Heartbeats(seconds=seconds, new_id=self._context.new_id)

    def _recheck_seconds(self) -> float | None:
        return self._settings.grpc.stream_recheck_interval.total_seconds() or None

    def _rest_authenticator(self) -> rest_auth.RestAuthenticator | None:
        auth = self._settings.rest_auth
        if auth.authn_type == "none":
            return None
        settings = rest_auth.JwtSettings(
            keys=str(auth.jwks_file or auth.jwks_url),
            algorithms=auth.jwt_algorithms,
            issuer=auth.jwt_issuer,
            audience=auth.jwt_audience,
            roles=RoleMapping(
                claim=auth.role_claim,
                read=auth.role_read,
                write=auth.role_write,
                admin=auth.role_admin,
                default=Role[auth.default_role.upper()],
                source_claim=auth.source_claim,
            ),
        )
        return rest_auth.RestAuthenticator(settings, clock=self._context.clock.monotonic, on_problem=self._on_problem)

    def _https_files(self) -> tls.TlsFiles:
        http = self._settings.http
        files = _files(http.cert_file, http.key_file, None, flags=tls.HTTPS)
        if files is None:
            raise tls.TlsError("HTTPS needs --https-cert-file and --https-key-file")
        return files

    def _on_problem(self, text: str) -> None:
        self._context.journal.warning(LifecyclePhrase.SECURITY_FILE_FAILED, {LogKey.REASON: text})

    def _on_failed_login(self, text: str) -> None:
        self._context.journal.warning(LifecyclePhrase.CONSOLE_LOGIN_FAILED, {LogKey.REASON: text})


async def _with_mount(
    rest_app: ASGIApp,
    mount: Mount,
    dependencies: RestDependencies,
    stack: AsyncExitStack,
    **logins: Any,
) -> ASGIApp:
    """Return the REST API with another app beside it, which may read the API in process."""
    in_process = replace(dependencies, hosts=HostRules(names=(EVERY_NAME,)), allowed_origins=())
    context = MountContext(
        api=ReadOnly(create_app(replace(in_process, authenticate=None))),
        authenticated_api=create_app(in_process),
        authenticate=dependencies.authenticate,
        allows_host=dependencies.hosts.allows,
        note_refusal=functools.partial(refused_requests.record_sign_in, dependencies),
        **logins,
    )
    mounted = await stack.enter_async_context(mount.open(context))
    return PathSwitch(rest_app, path=mount.path, mounted=mounted)


def _files(cert: Path | None, key: Path | None, client_ca: Path | None, *, flags: tls.TlsFlags) -> tls.TlsFiles | None:
    return tls.tls_files(str(cert or ""), str(key or ""), flags=flags, client_ca=str(client_ca or ""))


def _host_names(settings: HttpSettings) -> tuple[str, ...]:
    names = [*settings.allowed_hosts, settings.hostname]
    # In a pod the Service of the charts is reached as maestro.<namespace>, which looks like a public name.
    with contextlib.suppress(OSError):
        names.append(f"maestro.{_POD_NAMESPACE.read_text().strip()}")
    return tuple(name for name in names if name)


def _limits(settings: GrpcSettings, *, shares_ports: bool) -> GrpcLimits:
    # Go's "never" is the longest duration it can write.
    age = settings.max_connection_age.total_seconds()
    return GrpcLimits(
        max_receive_bytes=settings.max_receive_message_size,
        max_send_bytes=settings.max_send_message_size,
        max_concurrent_streams=settings.max_concurrent_streams,
        max_connections=settings.max_connections,
        max_subscriptions=settings.max_subscriptions,
        max_subscriptions_per_client=settings.max_subscriptions_per_client,
        max_connection_age_seconds=age if age < 10 * 365 * 86400 else None,
        client_min_ping_seconds=settings.client_min_ping_interval.total_seconds(),
        server_ping_seconds=settings.server_ping_interval.total_seconds(),
        server_ping_timeout_seconds=settings.server_ping_timeout.total_seconds(),
        permit_ping_without_stream=settings.permit_ping_without_stream,
        handshake_seconds=settings.connection_timeout.total_seconds(),
        share_port=shares_ports,
    )


def _display_host(host: str, *, everywhere: str = "*") -> str:
    if not host:
        return everywhere
    return f"[{host}]" if ":" in host else host
