"""Decide who may use the console: host, origin, token, role and session. Pure but for the authenticator it is given.

The session is the token itself in a cookie that scripts cannot read and other sites cannot send. It needs no memory, so
every instance and worker accepts it, and every request is authenticated like a request of the REST API. Requests that
change something need a header that a form of another site cannot send.
"""

import base64
import binascii
import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request

COOKIE: Final = "maestro-console"
CSRF_HEADER: Final = "X-Maestro-Console"
LONGEST_SECONDS: Final = 8 * 3600
_MOST_TOKEN: Final = 3800
"""Browsers drop cookies of more than four kilobytes."""
_NO_KEY: Final = "Open the whole address that maestro console has printed: its key is that of this start."
_SAFE: Final = frozenset({"GET", "HEAD"})


class Refused(Exception):
    """The request is refused; the response says why and what to do."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks."""

    user: str = ""
    role: str = ""
    """Empty: only the server that is read knows it."""


NoteRefusal = Callable[[Request, HTTPStatus, str], None]
"""Called with a sign-in whose token was not accepted, the status of the answer, and why; gets no secrets."""

Authenticate = Callable[[str | None], Awaitable[Viewer]]
"""Returns the viewer of an `Authorization` header; raises `Refused`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Checks every request before anything is read."""

    allows_host: Callable[[str | None], bool]
    authenticate: Authenticate | None = None
    """None: no login, as for the REST API without authentication and on loopback."""
    open_role: str = ""
    """The role of everyone where there is no login; empty: that of the console's own token, which may not be known."""
    session_token: Callable[[Request], str] = lambda _: ""
    """Returns the token of a session that was begun at an OpenID provider; empty if there is none."""
    note_refusal: NoteRefusal = lambda _request, _status, _reason: None
    cookie: str = COOKIE
    key: str = field(default="", repr=False)
    """What the address of a console of one user has to hold, once for each browser; empty: no key."""

    def check(self, request: Request) -> None:
        """Raise `Refused` for a request of another site, or for another host."""
        headers = request.headers
        hosts = headers.getlist("host")
        if not any(host.strip() for host in hosts):
            raise Refused(HTTPStatus.BAD_REQUEST, "The request has no Host header.")
        if len(hosts) > 1 or not self.allows_host(hosts[0]):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "The console is not served under this name. Use its address, or add the name to --http-allowed-hosts.",
            )
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_navigation:
            raise Refused(HTTPStatus.FORBIDDEN, "The request comes from another site.")
        if request.method not in _SAFE:
            _check_change(request)

    async def viewer(self, request: Request) -> Viewer:
        """Return who looks; raises `Refused`."""
        if self.authenticate is None:
            return Viewer(role=self.open_role)
        authorization = self._authorization(request)
        if authorization is None:
            reason = _NO_KEY if self.key else "Sign in with a token that has the role read."
            raise Refused(HTTPStatus.UNAUTHORIZED, reason)
        return await self.authenticate(authorization)

    def token(self, request: Request) -> str:
        """Return the token of a viewer that `viewer` has accepted, to act as the viewer; empty without a login."""
        return "" if self.authenticate is None else (self._authorization(request) or "").partition(" ")[2].strip()

    def _authorization(self, request: Request) -> str | None:
        token = request.cookies.get(self.cookie) or self.session_token(request)
        return request.headers.get("authorization") or (f"Bearer {token}" if token else None)

    async def sign_in(self, request: Request, *, now: float) -> tuple[Viewer, str, dict[str, object]]:
        """Check the token in the body; return the viewer, the token and the attributes of its cookie."""
        if self.authenticate is None:
            raise Refused(HTTPStatus.CONFLICT, "This console needs no login.")
        token = await _token(request)
        origin = urlsplit(request.headers.get("origin") or "")
        is_secure = origin.scheme == "https"
        if not is_secure and not is_loopback(origin.hostname or ""):
            raise Refused(HTTPStatus.BAD_REQUEST, "A token is not accepted without TLS. Open the console by https.")
        try:
            viewer = await self.authenticate(f"Bearer {token}")
        except Refused as error:
            self.note_refusal(request, error.status, error.reason)
            raise
        seconds = min(float(LONGEST_SECONDS), max(0.0, token_expiry(token) - now))
        return viewer, token, {"max_age": int(seconds), "secure": is_secure, "httponly": True, "samesite": "strict"}

    def entered(self, request: Request) -> dict[str, object]:
        """Return the attributes of the cookie for a browser that opened the address with the key; empty otherwise."""
        given = request.query_params.get("key", "")
        if not self.key or not hmac.compare_digest(given.encode(), self.key.encode()):
            return {}
        return {"max_age": LONGEST_SECONDS, "httponly": True, "samesite": "strict"}


def with_key(key: str) -> Gate:
    """Return the gate of a console on loopback that acts: other users of the computer reach its port, too."""

    async def authenticate(authorization: str | None) -> Viewer:
        given = (authorization or "").partition(" ")[2].strip()
        if not hmac.compare_digest(given.encode(), key.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, _NO_KEY)
        return Viewer()

    # Cookies do not know ports: two consoles of one computer would replace each other's.
    name = f"{COOKIE}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
    return Gate(allows_host=loopback_host, authenticate=authenticate, cookie=name, key=key)


def _check_change(request: Request) -> None:
    """Raise `Refused` unless a request that changes something is of the console's own pages, or of no browser."""
    headers = request.headers
    origin = headers.get("origin")
    if headers.get(CSRF_HEADER) != "1" or (origin is not None and not _is_own(origin, request)):
        raise Refused(HTTPStatus.FORBIDDEN, f"The request needs the header {CSRF_HEADER} and its own origin.")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    # Not even of a request without a body, but for DELETE: a form of another site can send every other type.
    if media_type != "application/json" and (media_type or request.method != "DELETE"):
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The request needs Content-Type: application/json.")


def _is_own(origin: str, request: Request) -> bool:
    """Return whether an `Origin` header is that of the console: scheme, host and port."""
    scheme, _, place = origin.lower().partition("://")
    # A proxy in front may end TLS; what the console gets without a proxy by https is never of a page without.
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return scheme in schemes and place == request.headers["host"].strip().lower()


async def _token(request: Request) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > 2 * _MOST_TOKEN:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The token is too long for a cookie.")
    try:
        token = orjson.loads(body)["token"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise Refused(HTTPStatus.BAD_REQUEST, 'Send {"token": "…"}.') from None
    if not isinstance(token, str) or not token.strip() or not token.isascii() or any(sign in token for sign in ' ";,'):
        raise Refused(HTTPStatus.BAD_REQUEST, "This is no token: paste it without quotes and spaces.")
    if len(token) > _MOST_TOKEN:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The token has more than {_MOST_TOKEN} characters.")
    return token


def token_expiry(token: str) -> float:
    """Return when a verified token expires; the longest session from now on if it does not say."""
    try:
        return float(token_claims(token)["exp"])
    except (KeyError, TypeError, ValueError):
        return float("inf")


def token_claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a token that was verified; empty if it is no JWT."""
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    except (IndexError, binascii.Error, orjson.JSONDecodeError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def is_loopback(name: str) -> bool:
    """Return whether a host name is that of this computer."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def loopback_host(header: str | None) -> bool:
    """Return whether a `Host` header names this computer: a page of another name cannot be rebound to it."""
    return header is not None and is_loopback(urlsplit(f"//{header}").hostname or "")
