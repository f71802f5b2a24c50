"""Serve one ASGI application on one HTTP port, in the event loop of the process."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.protocol import protocol_class

_BACKLOG = 1024
_ANY_IPV6 = "::"
# Long enough to finish a list response, short enough for the shutdown of a pod.
_GRACE_SECONDS = 5
# Below errors, uvicorn logs one line without a peer for every malformed request, which anybody can send. The client
# gets a 400 with the reason, and, as with the Go server, nothing is logged.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class _Server(uvicorn.Server):
    """uvicorn with a timeout for TLS handshakes, and without signal handlers, because the process has its own."""

    def __init__(self, config: uvicorn.Config, *, handshake_seconds: float) -> None:
        super().__init__(config)
        self._handshake_seconds = handshake_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections; the original has no timeout for handshakes."""
        tls = self.config.ssl
        self.servers = [
            await asyncio.get_running_loop().create_server(
                self._create_protocol,
                sock=bound,
                ssl=tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=self._handshake_seconds if tls else None,
            )
            for bound in sockets or ()
        ]
        self.started = True

    def _create_protocol(self) -> asyncio.Protocol:
        protocol_type: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = protocol_type(config=self.config, server_state=self.server_state, app_state={})
        return protocol

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpListener:
    """Binds at construction and serves later, so that an address in use is detected before anything starts."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        reuse_port: bool = False,
        limits: HttpLimits | None = None,
        websockets: Callable[..., asyncio.Protocol] | None = None,
    ) -> None:
        """Bind the port; `websockets` makes the protocol that takes a connection over when it becomes a WebSocket."""
        self._app = app
        self._websockets: Any = websockets or "none"
        self._limits = limits
        self._socket = _bind(host, port, reuse_port=reuse_port)
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        """The bound port, also when the operating system chose it."""
        return int(self._socket.getsockname()[1])

    async def serve(self, *, tls: ssl.SSLContext | None) -> None:
        """Serve requests until `stop`."""
        config = uvicorn.Config(
            self._app,
            http=protocol_class(self._limits) if self._limits else "httptools",
            ws=self._websockets,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=round((self._limits or HttpLimits()).idle_seconds),
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        config.load()
        # Set directly, because our context reloads its certificate files.
        config.ssl = tls
        self._server = _Server(config, handshake_seconds=(self._limits or HttpLimits()).handshake_seconds)
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Accept no new connections and let running requests finish."""
        if self._server is not None:
            self._server.should_exit = True
        else:
            self._socket.close()


def _bind(host: str, port: int, *, reuse_port: bool) -> socket.socket:
    try:
        bound = _bind_any(port, reuse_port=reuse_port) if host in ("", _ANY_IPV6) else None
        bound = bound or _bind_to(_resolve(host, port), reuse_port=reuse_port)
    except OSError as error:
        shown = f"[{host}]" if ":" in host else host or "*"
        raise OSError(error.errno, f"cannot listen on {shown}:{port}: {error.strerror}") from error
    bound.listen(_BACKLOG)
    bound.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return bound


def _bind_any(port: int, *, reuse_port: bool) -> socket.socket | None:
    """Bind all addresses of both families, as Go does; None if the host has no IPv6."""
    if not socket.has_dualstack_ipv6():
        return None
    try:
        return _bind_to((socket.AF_INET6, (_ANY_IPV6, port)), reuse_port=reuse_port, is_dual=True)
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        return None


def _resolve(host: str, port: int) -> tuple[int, Any]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return family, address


def _bind_to(target: tuple[int, Any], *, reuse_port: bool, is_dual: bool = False) -> socket.socket:
    family, address = target
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if is_dual:
            # The default of the host may be IPv6 only.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
