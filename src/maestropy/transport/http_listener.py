"""One HTTP port with one ASGI app behind it, in an event loop that is not its own."""

import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from maestropy.transport import http_patience
from maestropy.transport.http_patience import Patience

_BACKLOG = 1024
# Long enough for a list that is being sent, short enough for a pod that must go.
_GRACE_SECONDS = 5


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpListener:
    """Binds first and serves later, so that an address that is taken is known before anything starts."""

    def __init__(
        self, app: ASGIApp, *, host: str, port: int, reuse_port: bool = False, patience: Patience | None = None
    ) -> None:
        self._app = app
        self._patience = patience
        self._socket = _bind(host, port, reuse_port=reuse_port)
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        """The port, also when the system chose it."""
        return int(self._socket.getsockname()[1])

    async def serve(self, *, tls: ssl.SSLContext | None) -> None:
        """Answer requests until `stop`."""
        config = uvicorn.Config(
            self._app,
            http=http_patience.protocol(self._patience) if self._patience else "httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        config.load()
        # Given ready-made, because ours follows its certificate files.
        config.ssl = tls
        self._server = _Server(config)
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Take no new connections and let running requests finish."""
        if self._server is not None:
            self._server.should_exit = True
        else:
            self._socket.close()


def _bind(host: str, port: int, *, reuse_port: bool) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse_port:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror}") from error
    bound.listen(_BACKLOG)
    bound.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return bound
