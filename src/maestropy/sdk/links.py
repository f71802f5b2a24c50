"""The two connections of a client, made when first used and made anew when a certificate file changes."""

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

import httpx

from maestropy.sdk.errors import ConfigError, MaestroError
from maestropy.sdk.settings import Settings
from maestropy.transport import grpc_client
from maestropy.transport.grpc_client import Endpoint, GrpcClient

Made = TypeVar("Made")

_PAGES_AT_ONCE = 20


class Link(Generic[Made]):
    """A connection that follows its files."""

    def __init__(
        self,
        make: Callable[[], Made],
        *,
        close: Callable[[Made], Awaitable[None]],
        files: tuple[Path, ...],
    ) -> None:
        self._make = make
        self._close = close
        self._files = files
        self._stamp: tuple[object, ...] = ()
        self._made: list[Made] = []
        self._is_closed = False

    def current(self) -> Made:
        """Return the connection to use now."""
        if self._is_closed:
            raise MaestroError("the client is closed", advice="make a new one")
        stamp = tuple(map(_stamp, self._files))
        if not self._made or stamp != self._stamp:
            # Calls under way finish on the older connection, so it stays open with the client.
            self._made.append(self._make())
            self._stamp = stamp
        return self._made[-1]

    async def close(self) -> None:
        """Close every connection that was made, and make no other."""
        self._is_closed = True
        made, self._made = self._made, []
        for each in made:
            await self._close(each)


def grpc_link(settings: Settings) -> Link[GrpcClient]:
    """Return the connection for writes and watches."""

    def make() -> GrpcClient:
        try:
            return GrpcClient(
                Endpoint(
                    url=settings.needs("grpc_url"),
                    ca_file=settings.ca_file,
                    client_cert_file=settings.client_cert_file,
                    client_key_file=settings.client_key_file,
                    token=settings.token,
                    token_file=settings.token_file,
                    keepalive_seconds=settings.silence,
                    silence_seconds=settings.silence,
                )
            )
        except grpc_client.BadCredentials as error:
            raise ConfigError(str(error)) from error

    return Link(make, close=GrpcClient.close, files=settings.secret_files)


def rest_link(settings: Settings) -> Link[httpx.AsyncClient]:
    """Return the connection for reads."""

    def make() -> httpx.AsyncClient:
        base = f"{settings.needs('api_url')}/api/maestro/v1"
        return httpx.AsyncClient(
            base_url=base,
            verify=_trust(settings) if base.startswith("https") else False,
            timeout=settings.timeout,
            limits=httpx.Limits(max_connections=_PAGES_AT_ONCE),
            headers={"Accept": "application/json"},
            trust_env=False,
        )

    return Link(make, close=httpx.AsyncClient.aclose, files=settings.secret_files)


def _trust(settings: Settings) -> ssl.SSLContext:
    authority = settings.api_ca_file or settings.ca_file
    try:
        context = ssl.create_default_context(cafile=authority)
        if settings.client_cert_file and settings.client_key_file:
            # The password keeps OpenSSL from asking for one at a terminal.
            context.load_cert_chain(settings.client_cert_file, settings.client_key_file, password="")
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(map(str, settings.secret_files))
        raise ConfigError(
            f"the certificate files cannot be used ({named}): {error.strerror or error}", advice="check the files"
        ) from error
    if settings.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
