"""Refuse HTTP requests of other sites and without the token, before the protocol reads them. Plain ASGI.

A page in a browser can send requests to loopback, and with a name that resolves to 127.0.0.1 (DNS rebinding) also read
the answers. Its requests have another `Host` or an `Origin` of another site. A page of another port of this computer is
another site too: whatever listens there may be of somebody else.
"""

import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpGate:
    """Passes on what may be passed on."""

    app: ASGIApp
    hosts: tuple[str, ...]
    """Names under which the server may be asked, without ports."""
    token: str = ""
    """The bearer token that every request needs; empty for none."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        refusal = (
            self._refusal(Headers(scope=scope), scheme=scope.get("scheme", "http")) if scope["type"] == "http" else None
        )
        if refusal is not None:
            status, reason = refusal
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            await PlainTextResponse(f"{reason}\n", status_code=status, headers=headers)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _refusal(self, headers: Headers, *, scheme: str) -> tuple[int, str] | None:
        if _name(f"//{headers.get('host', '')}") not in self.hosts:
            return 421, "This server is not asked under this name; use its address, or start it with --allowed-host."
        origin = headers.get("origin")
        if origin is not None and _address(origin) != _address(f"{scheme}://{headers.get('host', '')}"):
            return 403, "The request comes from a page of another site or port."
        if self.token:
            kind, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.strip().encode(), self.token.encode())
            if kind.lower() != "bearer" or not is_right:
                return 401, "The token is missing or wrong; send it as `Authorization: Bearer TOKEN`."
        return None


def _address(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None for what is no address, such as the origin `null`."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
