"""Read resources from the HyperFleet API and put adapter statuses.

The API answers 204 without a reason when it discards a status; `StatusDiscarded` carries the likely reason. The token
file is read for every request. Failures are errors of `maestropy.sdk.errors`, retried by the client's policy. The
address may lead to another service or to a proxy: responses are read up to a limit, and redirects are not followed.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self

import httpx

from maestropy.adapter import resource as resources
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.api_paths import full_path, path_of
from maestropy.adapter.decide.effects import CallApi
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.aio.clock import Clock
from maestropy.sdk import errors
from maestropy.sdk import settings as client_settings
from maestropy.sdk.retry import Retrier, RetryPolicy
from maestropy.untrusted import printable

API_VARIABLES = ("HYPERFLEET_API_URL", "HYPERFLEET_API_BASE_URL")
TOKEN_VARIABLES = ("HYPERFLEET_API_TOKEN_FILE", "HYPERFLEET_API_AUTH_TOKEN_PATH")
SCHEME_VARIABLES = ("HYPERFLEET_API_AUTH_SCHEME",)
MOST_BYTES = 8 * 2**20
"""The limit of one response; a resource has kilobytes."""
_OTHER_SERVICE = f"check that {API_VARIABLES[0]} leads to the HyperFleet API"
_SKEW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StatusStored:
    """The API stored the status."""


@dataclass(frozen=True, slots=True)
class StatusDiscarded:
    """The API answered 204: it did not store the status."""

    reason: str


StatusReceipt = StatusStored | StatusDiscarded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A complete response."""

    status: int
    headers: httpx.Headers
    content: bytes
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """The address and credentials of the API."""

    url: str
    token_file: Path | None = None
    """Without one, requests carry no token."""
    scheme: str = "Bearer"
    """The word before the token in the header Authorization: `ServiceAccount` behind HyperFleet's gateway."""
    timeout: float = 10.0
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(attempts=60, deadline_seconds=60))


def from_environment(environ: Mapping[str, str]) -> ApiSettings | None:
    """Return the settings from environment variables; None if no API is configured."""
    url = next((environ[name] for name in API_VARIABLES if environ.get(name)), None)
    token = next((environ[name] for name in TOKEN_VARIABLES if environ.get(name)), None)
    scheme = next((environ[name] for name in SCHEME_VARIABLES if environ.get(name)), "Bearer")
    return ApiSettings(url=url, token_file=Path(token) if token else None, scheme=scheme) if url else None


class HyperFleetClient:
    """A client of the HyperFleet API; an asynchronous context manager."""

    def __init__(self, settings: ApiSettings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or Clock()
        self._retrier = Retrier(policy=settings.retry, current_token=self._token)
        advice = f"keep a token in a file, and set {TOKEN_VARIABLES[0]}"
        client_settings.reject_login(settings.url, origin=API_VARIABLES[0], advice=advice)
        try:
            address = httpx.URL(settings.url.rstrip("/"))
        except httpx.InvalidURL as error:
            raise errors.ConfigError(f"{API_VARIABLES[0]} is {settings.url!r}, which is not a URL") from error
        if address.scheme not in ("http", "https") or not address.host:
            raise errors.ConfigError(f"{API_VARIABLES[0]} is {settings.url!r}: use http://HOST or https://HOST")
        self._http = httpx.AsyncClient(base_url=address, timeout=settings.timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def fetch(self, event: Event) -> Resource | None:
        """Return the current resource of an event; None if it is gone."""
        doing = f"read {event.kind} {event.resource_id}"
        try:
            response = await self._ask("GET", path_of(event), doing=doing)
        except errors.NotFound:
            return None
        return resources.parse(_object(response, doing=doing), event)

    async def put_status(self, event: Event, status: AdapterStatus) -> StatusReceipt:
        """Put the adapter status; returns StatusDiscarded if the API did not store it."""
        doing = f"put the status of {event.kind} {event.resource_id}"
        now = self._clock.now()
        response = await self._ask("PUT", f"{path_of(event)}/statuses", doing=doing, body=status.to_api(now))
        if response.status == httpx.codes.NO_CONTENT:
            return StatusDiscarded(_discard_reason(status, skew=_skew(response, now)))
        if response.status != httpx.codes.CREATED or response.content:
            # A login page before the API answers with 200, and has stored nothing.
            _object(response, doing=doing)
        return StatusStored()

    async def call(self, effect: CallApi) -> Any:
        """Make a request that a task asks for; returns the JSON of the response, None without one."""
        doing = f"{effect.method} {effect.url}"
        response = await self._ask(
            effect.method, full_path(effect.url), doing=doing, body=effect.body, headers=effect.headers
        )
        return _json(response, doing=doing) if response.content else None

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        async def once() -> _Answer:
            token = self._token()
            authorization = {"Authorization": f"{self._settings.scheme} {token}"} if token else {}
            try:
                # A header that a task sets replaces ours. The timeout of httpx is that of one read: a server that sends
                # byte by byte would never reach it.
                async with (
                    asyncio.timeout(self._settings.timeout),
                    self._http.stream(
                        method, path, json=body, headers={**authorization, **(headers or {})}
                    ) as response,
                ):
                    answer = await _read(response, doing=doing)
            except (httpx.TimeoutException, TimeoutError) as error:
                raise errors.Timeout("the HyperFleet API did not answer in time", doing=doing) from error
            except (httpx.HTTPError, ssl.SSLError) as error:
                # httpx does not translate the alert of a server that rejects the client after the handshake.
                cause = str(error) or type(error).__name__
                advice = f"check {API_VARIABLES[0]} ({self._settings.url})"
                raise errors.Unavailable(cause, doing=doing, advice=advice) from error
            if 300 <= answer.status < 400:
                raise _redirect(answer, doing=doing)
            if answer.status >= 400:
                raise error_from_response(answer.status, _problem(answer), doing=doing)
            return answer

        return await self._retrier.run(once)

    def _token(self) -> str:
        path = self._settings.token_file
        if path is None:
            return ""
        try:
            return client_settings.read_token(path)
        except errors.ConfigError as error:
            error.advice = f"check {TOKEN_VARIABLES[0]}"
            raise


def error_from_response(status: int, problem: Mapping[str, Any], *, doing: str) -> errors.MaestroError:
    """Return the error for a failed response; `problem` is its body (RFC 9457)."""
    code = str(problem.get("code") or "")
    detail = str(problem.get("detail") or problem.get("reason") or problem.get("title") or f"HTTP {status}")
    reason = f"{code}: {detail}" if code else detail
    if status == httpx.codes.NOT_FOUND and code.endswith("NTF-000"):
        # 404 for an unknown route is a wrong address; 404 for a resource means that it is gone.
        return errors.ConfigError(reason, doing=doing, advice=f"the API has no such path; check {API_VARIABLES[0]}")
    if status >= 500 or status in (408, 429):
        return errors.Unavailable(reason, doing=doing, advice="the HyperFleet API failed; its log has the details")
    kinds: dict[int, tuple[type[errors.MaestroError], str]] = {
        401: (errors.Unauthorized, f"check the token file ({TOKEN_VARIABLES[0]})"),
        403: (errors.Forbidden, "an adapter may only write statuses; request that permission"),
        404: (errors.NotFound, ""),
        405: (errors.ConfigError, "this API expects another method: its version does not match maestropy's"),
        409: (errors.Conflict, ""),
    }
    kind, advice = kinds.get(status, (errors.Invalid, ""))
    return kind(reason, doing=doing, advice=advice)


def _discard_reason(status: AdapterStatus, *, skew: float | None) -> str:
    if status.available.status == "Unknown":
        return "Available is Unknown, and the API keeps the previous value"
    if skew is not None and abs(skew) > _SKEW_SECONDS:
        ahead = "ahead of" if skew > 0 else "behind"
        return f"this machine's clock is {abs(skew):.0f} s {ahead} the API's; correct it"
    return f"the API has a newer status of this adapter, or does not know generation {status.generation}"


def _skew(response: _Answer, now: datetime) -> float | None:
    try:
        return (now - parsedate_to_datetime(response.headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError):
        return None


async def _read(response: httpx.Response, *, doing: str) -> _Answer:
    """Read a response, up to the limit."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MOST_BYTES:
            reason = f"{response.url} sent more than {MOST_BYTES // 2**20} MiB, which is the limit of a response"
            raise errors.ServerError(reason, doing=doing, advice=_OTHER_SERVICE)
    return _Answer(status=response.status_code, headers=response.headers, content=bytes(content), url=str(response.url))


def _redirect(response: _Answer, *, doing: str) -> errors.ServerError:
    """Return the error of a redirect, which is not followed: a token would go to another server."""
    location = printable.escape(response.headers.get("Location", ""))[:200] or "nowhere"
    return errors.ServerError(
        f"HTTP {response.status}: {response.url} redirects to {location}",
        doing=doing,
        advice=f"redirects are not followed; if that is the API, or a login page before it, correct {API_VARIABLES[0]}",
    )


def _problem(response: _Answer) -> Mapping[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def _json(response: _Answer, *, doing: str) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError) as error:
        kind = printable.escape(response.headers.get("Content-Type", ""))[:100] or "no type"
        reason = f"{response.url} sent {len(response.content)} bytes of {kind}, which are not JSON"
        raise errors.ServerError(reason, doing=doing, advice=_OTHER_SERVICE) from error


def _object(response: _Answer, *, doing: str) -> Mapping[str, Any]:
    body = _json(response, doing=doing)
    if not isinstance(body, Mapping):
        reason = f"{response.url} sent JSON that is not an object"
        raise errors.ServerError(reason, doing=doing, advice=_OTHER_SERVICE)
    return body
