"""The HyperFleet API as adapters use it: read a resource, put a status.

A status that the API discards is answered 204, silently; `Kept` and `Discarded` make it visible, with what is known of
the reason. The token file is read for every request. Failures are the client's (`maestropy.sdk.errors`), retried by
its policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self

import httpx

from maestropy.adapter import resource as resources
from maestropy.adapter.event import Event
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource
from maestropy.aio.clock import Clock
from maestropy.sdk import errors
from maestropy.sdk.retry import Retrier, RetryPolicy

API_VARIABLES = ("HYPERFLEET_API_URL", "HYPERFLEET_API_BASE_URL")
TOKEN_VARIABLES = ("HYPERFLEET_API_TOKEN_FILE", "HYPERFLEET_API_AUTH_TOKEN_PATH")
_ROOT = "/api/hyperfleet/v1"
_SKEW_SECONDS = 5.0
_PLURALS = {"Cluster": "clusters", "NodePool": "nodepools"}


@dataclass(frozen=True, slots=True)
class Kept:
    """The API stored the status."""


@dataclass(frozen=True, slots=True)
class Discarded:
    """The API answered 204: it took the status and threw it away."""

    why: str


Reception = Kept | Discarded


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Where the API is."""

    url: str
    token_file: Path | None = None
    """Without one, requests carry no token."""
    timeout: float = 10.0
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(attempts=60, deadline_seconds=60))


def from_environment(environ: Mapping[str, str]) -> ApiSettings | None:
    """Return the settings that variables give; None if no API is named."""
    url = next((environ[name] for name in API_VARIABLES if environ.get(name)), None)
    token = next((environ[name] for name in TOKEN_VARIABLES if environ.get(name)), None)
    return ApiSettings(url=url, token_file=Path(token) if token else None) if url else None


class HyperFleet:
    """A client of the API, while entered."""

    def __init__(self, settings: ApiSettings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or Clock()
        self._retrier = Retrier(policy=settings.retry, current_token=self._token)
        try:
            self._http = httpx.AsyncClient(base_url=settings.url.rstrip("/"), timeout=settings.timeout)
        except httpx.InvalidURL as error:
            raise errors.ConfigError(f"{API_VARIABLES[0]} is {settings.url!r}, which is no address") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def fetch(self, event: Event) -> Resource | None:
        """Return the resource of an event as it is now; None if it is gone."""
        doing = f"read {event.kind} {event.resource_id}"
        try:
            answer = await self._ask("GET", path_of(event), doing=doing)
        except errors.NotFound:
            return None
        return resources.parse(_object(answer, doing=doing), event)

    async def put_status(self, event: Event, report: Report) -> Reception:
        """Store a report; says so when the API discards it."""
        doing = f"put the status of {event.kind} {event.resource_id}"
        now = self._clock.now()
        answer = await self._ask("PUT", f"{path_of(event)}/statuses", doing=doing, body=report.status(now))
        if answer.status_code == httpx.codes.NO_CONTENT:
            return Discarded(_why_discarded(report, skew=_skew(answer, now)))
        return Kept()

    async def _ask(
        self, method: str, path: str, *, doing: str, body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        async def once() -> httpx.Response:
            token = self._token()
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            try:
                answer = await self._http.request(method, path, json=body, headers=headers)
            except httpx.TimeoutException as error:
                raise errors.Timeout("the HyperFleet API did not answer in time", doing=doing) from error
            except httpx.HTTPError as error:
                words = str(error) or type(error).__name__
                advice = f"check {API_VARIABLES[0]} ({self._settings.url})"
                raise errors.Unavailable(words, doing=doing, advice=advice) from error
            if answer.status_code >= 300:
                raise refusal(answer.status_code, _problem(answer), doing=doing)
            return answer

        return await self._retrier.run(once)

    def _token(self) -> str:
        path = self._settings.token_file
        if path is None:
            return ""
        try:
            return path.read_text().strip()
        except OSError as error:
            raise errors.ConfigError(
                f"the token file {path} cannot be read: {error.strerror}", advice=f"check {TOKEN_VARIABLES[0]}"
            ) from error


def path_of(event: Event) -> str:
    """Return where the API has the resource of an event."""
    if event.href:
        return event.href if event.href.startswith("/") else httpx.URL(event.href).path
    if event.kind == "NodePool" and event.owner_id:
        return f"{_ROOT}/clusters/{event.owner_id}/nodepools/{event.resource_id}"
    return f"{_ROOT}/{_PLURALS.get(event.kind, 'resources')}/{event.resource_id}"


def refusal(status: int, problem: Mapping[str, Any], *, doing: str) -> errors.MaestroError:
    """Return the error that an answer of the API means; `problem` is its body (RFC 9457)."""
    code = str(problem.get("code") or "")
    told = str(problem.get("detail") or problem.get("reason") or problem.get("title") or f"HTTP {status}")
    reason = f"{code}: {told}" if code else told
    if status == httpx.codes.NOT_FOUND and code.endswith("NTF-000"):
        # No such route: asking for a resource that is gone reads the same, and means the opposite.
        return errors.ConfigError(reason, doing=doing, advice=f"the API has no such path; check {API_VARIABLES[0]}")
    if status >= 500 or status in (408, 429):
        return errors.Unavailable(reason, doing=doing, advice="the HyperFleet API failed; its log has the details")
    kinds: dict[int, tuple[type[errors.MaestroError], str]] = {
        401: (errors.Unauthorized, f"check the token file ({TOKEN_VARIABLES[0]})"),
        403: (errors.Forbidden, "an adapter may only write statuses; ask for that right"),
        404: (errors.NotFound, ""),
        405: (errors.ConfigError, "this API wants another method: it is older or newer than this kit"),
        409: (errors.Conflict, ""),
    }
    kind, advice = kinds.get(status, (errors.Invalid, ""))
    return kind(reason, doing=doing, advice=advice)


def _why_discarded(report: Report, *, skew: float | None) -> str:
    if report.available.status == "Unknown":
        return "Available is Unknown, and the API keeps what it knew before"
    if skew is not None and abs(skew) > _SKEW_SECONDS:
        ahead = "ahead of" if skew > 0 else "behind"
        return f"this machine's clock is {abs(skew):.0f} s {ahead} the API's; set it right"
    return f"it has a newer status of this adapter, or does not know generation {report.generation}"


def _skew(answer: httpx.Response, now: datetime) -> float | None:
    try:
        return (now - parsedate_to_datetime(answer.headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError):
        return None


def _problem(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _object(answer: httpx.Response, *, doing: str) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except ValueError as error:
        raise errors.ServerError("the answer is no JSON", doing=doing) from error
    if not isinstance(found, Mapping):
        raise errors.ServerError("the answer is no object", doing=doing)
    return found
