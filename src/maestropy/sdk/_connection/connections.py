"""Open the gRPC and REST connections of a client on first use, and again when a certificate file changes."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

import httpx

from maestropy.sdk.errors import ConfigError, MaestroError
from maestropy.sdk.settings import Settings
from maestropy.transport.grpc import client as grpc_client
from maestropy.transport.grpc.client import GrpcClient, GrpcEndpoint

Connection = TypeVar("Connection")

_MAX_CONNECTIONS = 20


class ReloadingConnection(Generic[Connection]):
    """A connection that is opened again when one of its files changes."""

    def __init__(
        self,
        open_: Callable[[], Connection],
        *,
        close: Callable[[Connection], Awaitable[None]],
        files: tuple[Path, ...],
    ) -> None:
        self._open = open_
        self._close = close
        self._files = files
        self._stamp: tuple[object, ...] = ()
        self._opened: list[Connection] = []
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def current(self) -> Connection:
        """Return the connection to use now."""
        if self._is_closed:
            raise MaestroError("the client is closed", advice="create a new one")
        if self._opened and os.getpid() != self._process:
            raise MaestroError(
                "the client was used before this process was forked, and its connections belong to the parent",
                advice="create the client after the fork, or start processes with the method spawn",
            )
        loop = asyncio.get_running_loop()
        if self._opened and loop is not self._loop:
            raise MaestroError(
                "the client was used in another event loop before, and its connections belong to that loop",
                advice="create a client in each loop, such as in each asyncio.run()",
            )
        self._loop = loop
        stamp = tuple(map(_stamp, self._files))
        if not self._opened or stamp != self._stamp:
            # Calls in progress finish on the older connection, so it stays open until the client is closed.
            self._opened.append(self._open())
            self._stamp, self._process = stamp, os.getpid()
        return self._opened[-1]

    async def close(self) -> None:
        """Close all connections; no new one is opened."""
        self._is_closed = True
        opened, self._opened = self._opened, []
        for connection in opened:
            await self._close(connection)


def grpc_connection(settings: Settings) -> ReloadingConnection[GrpcClient]:
    """Return the gRPC connection, for writes and watches."""

    def open_() -> GrpcClient:
        try:
            return GrpcClient(
                GrpcEndpoint(
                    url=settings.needs("grpc_url"),
                    ca_file=settings.ca_file,
                    client_cert_file=settings.client_cert_file,
                    client_key_file=settings.client_key_file,
                    token=settings.token,
                    token_file=settings.token_file,
                    keepalive_seconds=settings.heartbeat_timeout_seconds,
                    heartbeat_timeout_seconds=settings.heartbeat_timeout_seconds,
                )
            )
        except grpc_client.BadCredentials as error:
            raise ConfigError(str(error)) from error

    return ReloadingConnection(open_, close=GrpcClient.close, files=settings.certificate_files)


def rest_connection(
    settings: Settings, *, transport: httpx.AsyncBaseTransport | None = None
) -> ReloadingConnection[httpx.AsyncClient]:
    """Return the REST connection, for reads; `transport` sends its requests in place of the network."""

    def open_() -> httpx.AsyncClient:
        base = f"{settings.needs('api_url')}/api/maestro/v1"
        return httpx.AsyncClient(
            base_url=base,
            verify=_trust(settings) if base.startswith("https") else False,
            timeout=settings.timeout,
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS),
            headers={"Accept": "application/json"},
            trust_env=False,
            transport=transport,
        )

    return ReloadingConnection(open_, close=httpx.AsyncClient.aclose, files=settings.certificate_files)


def _trust(settings: Settings) -> ssl.SSLContext:
    authority = settings.api_ca_file or settings.ca_file
    try:
        context = ssl.create_default_context(cafile=authority)
        if settings.client_cert_file and settings.client_key_file:
            # An empty password keeps OpenSSL from prompting.
            context.load_cert_chain(settings.client_cert_file, settings.client_key_file, password="")
    except (OSError, ssl.SSLError) as error:
        paths = ", ".join(map(str, settings.certificate_files))
        raise ConfigError(
            f"the certificate files cannot be used ({paths}): {error.strerror or error}", advice="check the files"
        ) from error
    if settings.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
