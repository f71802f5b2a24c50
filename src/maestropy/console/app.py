"""Serve the console: pages as JSON, changes as server-sent events, and its files."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from maestropy import __version__
from maestropy.aio.clock import Clock
from maestropy.console import assets, sessions
from maestropy.console.actions import OperatorPages
from maestropy.console.oidc.login import Login
from maestropy.console.pages import filters, fleet, stuck
from maestropy.console.pages.work_page import NoSuchWork, WorkPages
from maestropy.console.picture import FleetReader, Picture, count_by_consumer
from maestropy.console.requests import RequestFeed
from maestropy.console.rows import WorkRow, moment_of
from maestropy.sdk.errors import Invalid, MaestroError
from maestropy.trace.errors import TraceError
from maestropy.trace.findings.codes import CODES
from maestropy.trace.stages import STAGES
from maestropy.untrusted.printable import escape

_MOST_ROWS: Final = 500
_MOST_STREAMS: Final = 64
_BEAT_SECONDS: Final = 15.0
_STREAM_TICK: Final = 0.5
_RECHECK_SECONDS: Final = 60.0
_KEPT_LISTS: Final = 8
_FRESH_SECONDS: Final = 2.0
_RECENT_SECONDS: Final = 1.0
_COST_FACTOR: Final = 20
"""A result is made so rarely that it takes at most a twentieth of the time."""

Page = Callable[[Request], Awaitable[Any]]


class _Recent:
    """Results of the last second, or longer if they are expensive: many viewers cost as much as one."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Any]] = OrderedDict()

    def get(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """Return what was made a moment ago, or make it."""
        until, value = self._kept.get(key, (float("-inf"), None))
        began = self._monotonic()
        if began >= until:
            value = make()
            done = self._monotonic()
            self._kept[key] = (done + max(_RECENT_SECONDS, _COST_FACTOR * (done - began)), value)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT_LISTS:
                self._kept.popitem(last=False)
        return value


@dataclass(slots=True, kw_only=True)
class _KeptList:
    """The result of one filter, for the windows that a scrolling list asks for one after the other."""

    rows: list[WorkRow]
    generation: int
    at: float


@dataclass(slots=True, kw_only=True)
class Console:
    """The pages of the console. Everything that it shows is redacted before it gets here."""

    picture: Picture
    collector: FleetReader
    requests: RequestFeed
    pages: WorkPages
    gate: sessions.Gate
    operator: OperatorPages
    login: Login | None = None
    title: str = "Maestro"
    clock: Clock = field(default_factory=Clock)
    _lists: OrderedDict[tuple[str, str], _KeptList] = field(default_factory=OrderedDict)
    _recent: _Recent = field(init=False)
    _streams: int = 0
    _is_ending: bool = False

    def __post_init__(self) -> None:
        self._recent = _Recent(self.clock.monotonic)

    def end(self) -> None:
        """End all streams, so that a listener can stop."""
        self._is_ending = True

    def app(self, base: str = "") -> ASGIApp:
        """Return the console as an ASGI app under a path."""
        routes = [
            Route(f"{base}/", self._guarded(self._index, is_public=True)),
            Route(f"{base}/static/{{name}}", self._guarded(self._asset, is_public=True)),
            Route(
                f"{base}/api/session",
                self._guarded(self._session, is_public=True),
                methods=["GET", "POST", "DELETE"],
            ),
            Route(f"{base}/api/fleet", self._json(self._fleet)),
            Route(f"{base}/api/consumers", self._json(self._consumers)),
            Route(f"{base}/api/works", self._json(self._works)),
            Route(f"{base}/api/works/{{id}}", self._json(self._work)),
            Route(f"{base}/api/works/{{id}}/manifests/{{index:int}}", self._json(self._manifest)),
            Route(f"{base}/api/stuck", self._json(self._stuck)),
            Route(f"{base}/api/requests", self._json(self._requests)),
            Route(f"{base}/api/requests/{{name:path}}", self._json(self._request)),
            Route(f"{base}/api/codes", self._json(self._codes)),
            Route(f"{base}/api/actions", self._json(self.operator.perform), methods=["POST"]),
            Route(f"{base}/api/actions/plan", self._json(self.operator.plan), methods=["POST"]),
            Route(f"{base}/api/stream", self._guarded(self._stream)),
        ]
        if self.login is not None:
            routes += self.login.routes(base, lambda handler: self._guarded(handler, is_public=True))
        if base:
            routes.append(Route(base, self._guarded(lambda _: _redirect(f"{base}/"), is_public=True)))
        return _HttpOnly(Router(routes, redirect_slashes=False, default=_not_found))

    def _guarded(
        self, handler: Callable[[Request], Awaitable[Response]], *, is_public: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                self.gate.check(request)
                if not is_public:
                    request.state.viewer = await self.gate.viewer(request)
                    self.collector.want()
                response = await handler(request)
            except sessions.Refused as error:
                response = _error(error.status, error.reason)
            response.headers.update(assets.HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return guarded

    def _json(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            try:
                return _response(await page(request))
            except filters.InvalidFilter as error:
                return _error(HTTPStatus.BAD_REQUEST, str(error))
            except NoSuchWork as error:
                return _error(HTTPStatus.NOT_FOUND, f"Nothing is known of work {error}: no row and no history.")
            except Invalid as error:
                return _error(HTTPStatus.BAD_REQUEST, str(error))
            except (MaestroError, TraceError) as error:
                return _error(HTTPStatus.BAD_GATEWAY, str(error))

        return self._guarded(handler)

    async def _index(self, request: Request) -> Response:
        attributes = self.gate.entered(request)
        if attributes:
            # Away from the key, which would stay in the history of the browser.
            response = RedirectResponse("./", status_code=HTTPStatus.SEE_OTHER)
            response.set_cookie(self.gate.cookie, self.gate.key, path=_base(request), **attributes)  # type: ignore[arg-type]  # their types differ by name
            return response
        return _asset_response(request, "index.html")

    async def _asset(self, request: Request) -> Response:
        return _asset_response(request, request.path_params["name"])

    async def _session(self, request: Request) -> Response:
        gate = self.gate
        if request.method == "POST":
            viewer, token, attributes = await gate.sign_in(request, now=self.clock.epoch())
            response = _response(self._identity(viewer, request))
            response.set_cookie(gate.cookie, token, path=_base(request), **attributes)  # type: ignore[arg-type]  # their types differ by name
            return response
        if request.method == "DELETE":
            response = _response({"isSignedIn": False}) if self.login is None else await self.login.sign_out(request)
            response.delete_cookie(gate.cookie, path=_base(request))
            return response
        try:
            return _response(self._identity(await gate.viewer(request), request))
        except sessions.Refused as error:
            facts = self._login_facts(request)
            nobody = {"isSignedIn": False, "needsLogin": True, "reason": error.reason, "title": self.title}
            return _response({**nobody, **facts})

    def _login_facts(self, request: Request) -> dict[str, Any]:
        return {} if self.login is None else self.login.facts(request)

    def _identity(self, viewer: sessions.Viewer, request: Request) -> dict[str, Any]:
        return {
            **self._login_facts(request),
            "isSignedIn": True,
            "needsLogin": self.gate.authenticate is not None,
            "user": escape(viewer.user),
            "role": self.operator.role(viewer),
            "title": self.title,
            "version": __version__,
            "hasLogs": self.requests.has_logs,
            "archive": fleet.archive_model(self.picture),
        }

    async def _fleet(self, request: Request) -> Any:
        page = self._recent.get(
            ("fleet",), lambda: fleet.model(self.picture, self.requests.traces, now=self.clock.epoch())
        )
        return {**page, "actions": self._actions(request)}

    def _actions(self, request: Request) -> dict[str, Any]:
        """Return what the viewer may do; pages that many viewers share do not have it."""
        return self.operator.availability(request.state.viewer)

    async def _consumers(self, request: Request) -> Any:
        sort = request.query_params.get("sort", "worst")
        if sort.removeprefix("-") not in fleet.SORTS:
            raise filters.InvalidFilter(f"sort={sort} is not known; use one of {', '.join(fleet.SORTS)}")
        text = request.query_params.get("q", "")
        # One pass over all works for every text and order.
        counts = self._recent.get(("counts",), lambda: count_by_consumer(self.picture))
        found = self._recent.get(
            ("consumers", text, sort),
            lambda: fleet.consumers(self.picture, text=text, sort=sort, now=self.clock.epoch(), counts=counts),
        )
        offset, limit = _window(request)
        items = found[offset : offset + limit]
        return {"total": len(found), "offset": offset, "items": items, "actions": self._actions(request)}

    async def _works(self, request: Request) -> Any:
        found = await self._chosen(request.query_params.get("q", ""), request.query_params.get("sort", "severity"))
        offset, limit = _window(request)
        return {
            "generation": self.picture.generation,
            "source": fleet.source_model(self.picture),
            "all": len(self.picture.works),
            "total": len(found),
            "offset": offset,
            "items": [_work_row(row) for row in found[offset : offset + limit]],
        }

    async def _chosen(self, text: str, sort: str) -> list[WorkRow]:
        """Return the works of a filter; one that was just applied is not applied again."""
        now = self.clock.monotonic()
        kept = self._lists.get((text, sort))
        if kept is not None and (kept.generation == self.picture.generation or now - kept.at < _FRESH_SECONDS):
            return kept.rows
        terms = filters.parse(text)
        filters.ordered([], sort)
        of_sources = {source: await self.collector.ids_of_source(source) for source in filters.sources(terms)}
        context = filters.Context(
            now=self.clock.epoch(), of_sources=of_sources, away=frozenset(self.picture.away_consumers())
        )
        generation, rows = self.picture.generation, list(self.picture.works.values())
        # A hundred thousand rows take a part of a second, in which others must be served.
        chosen = await asyncio.to_thread(lambda: filters.ordered(filters.choose(rows, terms, context), sort))
        self._lists[text, sort] = _KeptList(rows=chosen, generation=generation, at=self.clock.monotonic())
        self._lists.move_to_end((text, sort))
        while len(self._lists) > _KEPT_LISTS:
            self._lists.popitem(last=False)
        return chosen

    async def _work(self, request: Request) -> Any:
        return {**await self.pages.page(request.path_params["id"]), "actions": self._actions(request)}

    async def _manifest(self, request: Request) -> Any:
        return await self.pages.manifest(request.path_params["id"], request.path_params["index"])

    async def _stuck(self, request: Request) -> Any:
        page = self._recent.get(("stuck",), lambda: stuck.model(self.picture, now=self.clock.epoch()))
        return {**page, "actions": self._actions(request)}

    async def _requests(self, request: Request) -> Any:
        titles = [{"n": number, "title": names[1]} for number, names in STAGES.items()]
        items = self.requests.listed(text=request.query_params.get("q", ""))
        return {
            "hasLogs": self.requests.has_logs,
            "problem": self.picture.source.log_problem,
            "stages": titles,
            "items": items,
        }

    async def _request(self, request: Request) -> Any:
        found = self.requests.one(request.path_params["name"])
        if found is None:
            raise sessions.Refused(HTTPStatus.NOT_FOUND, "The request is not among the newest any more.")
        return found

    async def _codes(self, _: Request) -> Any:
        return {"items": [_code(code) for code in CODES]}

    async def _stream(self, request: Request) -> Response:
        if request.method == "HEAD":
            # It has no body that could end, so it must not hold a place.
            return Response(media_type="text/event-stream")
        if self._streams >= _MOST_STREAMS:
            raise sessions.Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{_MOST_STREAMS} consoles are open here; this one reads every 10 s."
            )
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[bytes]:
        """Tell when something changed, twice a second at most; the page reads what it shows."""
        self._streams += 1
        try:
            shown: tuple[int, str] | None = None
            beat = checked = self.clock.monotonic()
            while not self._is_ending:
                self.collector.want()
                now = self.clock.monotonic()
                if now - checked >= _RECHECK_SECONDS:
                    checked = now
                    await self.gate.viewer(request)
                state = (self.picture.generation, self.picture.source.problem)
                if state != shown:
                    shown, beat = state, now
                    yield _event({"generation": state[0], "problem": state[1], "source": self._source()})
                elif now - beat >= _BEAT_SECONDS:
                    beat = now
                    yield _event({"generation": state[0], "problem": state[1], "source": self._source()})
                await asyncio.sleep(_STREAM_TICK)
        except sessions.Refused:
            yield b"event: expired\ndata: {}\n\n"
        finally:
            self._streams -= 1

    def _source(self) -> dict[str, Any]:
        return fleet.source_model(self.picture)


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _work_row(row: WorkRow) -> dict[str, Any]:
    entry = CODES[row.code]
    return {
        "id": row.id,
        "name": row.name,
        "consumer": row.consumer,
        "version": row.version,
        "observed": row.observed,
        "labels": row.labels,
        "conditions": row.conditions,
        "objects": row.objects,
        "manifests": row.manifest_count,
        "created": moment_of(row.created),
        "updated": moment_of(row.updated),
        "deleted": moment_of(row.deleted),
        "reported": moment_of(row.reported),
        "code": row.code,
        "verdict": entry.name,
        "severity": row.severity,
        "problem": row.problem,
    }


def _code(code: str) -> dict[str, Any]:
    entry = CODES[code]
    return {
        "code": code,
        "severity": entry.severity,
        "name": entry.name,
        "title": entry.title,
        "cause": entry.cause,
        "advice": [text.replace("{{", "{").replace("}}", "}") for text in entry.advice],
        "phrases": entry.phrases,
        "normal": entry.normal,
        "stage": entry.stage,
        "hop": entry.hop,
    }


def _window(request: Request) -> tuple[int, int]:
    return _number(request, "offset", 0, 10_000_000), _number(request, "limit", 100, _MOST_ROWS)


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and int(text[:9]) <= most):
        raise filters.InvalidFilter(f"{name} is not a number from 0 to {most}")
    return int(text)


def _base(request: Request) -> str:
    return request.url.path.partition("/api/")[0] or "/"


def _asset_response(request: Request, name: str) -> Response:
    asset = assets.assets().get(name)
    if asset is None:
        return _error(HTTPStatus.NOT_FOUND, "There is no such file.")
    headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _response(body: object) -> Response:
    return Response(orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS), media_type="application/json")


def _error(status: HTTPStatus, reason: str) -> Response:
    body = orjson.dumps({"error": reason})
    return Response(body, status, media_type="application/json")


async def _redirect(path: str) -> Response:
    return RedirectResponse(path, HTTPStatus.PERMANENT_REDIRECT)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    response = _error(HTTPStatus.NOT_FOUND, "There is no such page.")
    response.headers.update(assets.HEADERS)
    await response(scope, receive, send)


class _HttpOnly:
    """Passes HTTP on, and closes websockets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
