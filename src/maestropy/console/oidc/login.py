"""Sign in, extend and end sessions at an OpenID provider. Rules are in `flow` and `session`, requests in `provider`.

The answer of the provider is taken only by the browser that began, once, within ten minutes. Its tokens are checked as
REST checks them, and stay in sealed cookies. A browser is led to the provider and to the console, nowhere else.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from maestropy.aio.clock import Clock
from maestropy.console import sessions
from maestropy.console.oidc import flow, problems
from maestropy.console.oidc.flow import Attempt, LoginOptions
from maestropy.console.oidc.problems import LoginFailed
from maestropy.console.oidc.provider import Provider, Tokens
from maestropy.console.oidc.session import Jar, Session

_REPORT_SECONDS: Final = 1.0
Handler = Callable[[Request], Awaitable[Response]]
CheckIdToken = Callable[[str], Awaitable[Mapping[str, object]]]
"""Returns the claims of an ID token for the client of this console; raises `Refused`."""


class _Postponed(LoginFailed):
    """New tokens cannot be used; the new refresh token must not be lost, because the old one is used up."""

    def __init__(self, error: LoginFailed, session: Session) -> None:
        super().__init__(error.problem, error.detail)
        self.session = session


@dataclass(slots=True, kw_only=True)
class Login:
    """The login of one console."""

    options: LoginOptions
    provider: Provider
    jar: Jar
    authenticate: sessions.Authenticate
    check_id_token: CheckIdToken
    random: Callable[[int], bytes]
    clock: Clock
    report: Callable[[str], None]
    note_refusal: sessions.NoteRefusal = lambda _request, _status, _reason: None
    _reported_at: float = float("-inf")

    def token(self, request: Request) -> str:
        """Return the token of the session of a browser; empty if it has none."""
        session = self.jar.session(request)
        return "" if session is None else session.token

    def facts(self, request: Request) -> dict[str, Any]:
        """Return what the page has to know of the login and of its session."""
        session = None if sessions.COOKIE in request.cookies else self.jar.session(request)
        found = {} if session is None else session.facts(self.clock.epoch())
        return {"provider": urlsplit(self.options.issuer).netloc, **found}

    def routes(self, base: str, guarded: Callable[[Handler], Handler]) -> list[Route]:
        """Return the addresses of the login."""
        return [
            Route(f"{base}/api/session/login", guarded(self._begin), methods=["POST"]),
            Route(f"{base}/api/session/renewal", guarded(self._renew), methods=["POST"]),
            Route(f"{base}/{flow.CALLBACK}", guarded(self._finish), methods=["GET"]),
        ]

    async def _begin(self, request: Request) -> Response:
        """Lead the browser to the provider."""
        if request.headers.get("origin") != self.options.origin:
            raise sessions.Refused(
                HTTPStatus.CONFLICT,
                f"Open the console at {self.options.console_url} to sign in: the provider leads back there.",
            )
        try:
            metadata = await self.provider.metadata()
        except LoginFailed as error:
            self._tell(error)
            raise sessions.Refused(error.problem.status, error.problem.text) from error
        attempt = flow.begin(self.random, now=self.clock.epoch())
        response = _json({"location": flow.authorization_url(metadata, self.options, attempt)})
        self.jar.begin(response, attempt)
        return response

    async def _finish(self, request: Request) -> Response:
        """Take the answer of the provider; a problem becomes a page."""
        answer = dict(request.query_params)
        state = answer.get("state", "")
        try:
            attempt = flow.check_attempt(answer, self.jar.attempt(request, state), now=self.clock.epoch())
            session = await self._signed_in(answer, attempt)
            response: Response = RedirectResponse(self.options.console_url, HTTPStatus.SEE_OTHER)
            self.jar.keep(response, request, session)
            # A token that was pasted before would win over the session.
            response.delete_cookie(sessions.COOKIE, path=request.url.path.removesuffix(f"/{flow.CALLBACK}") or "/")
        except LoginFailed as error:
            self._tell(error)
            self.note_refusal(request, error.problem.status, error.told)
            page = problems.page(error.problem, console_url=self.options.console_url)
            response = Response(page, error.problem.status, media_type="text/html")
        self.jar.end_attempt(response, state)
        return response

    async def _signed_in(self, answer: Mapping[str, str], attempt: Attempt) -> Session:
        code = flow.accepted_code(answer, metadata=await self.provider.metadata())
        tokens = await self.provider.exchange(code, verifier=attempt.verifier)
        if not tokens.identity:
            raise LoginFailed(problems.NO_TOKEN)
        claims = await self._claims(tokens.identity)
        flow.check_id_token(claims, attempt, client_id=self.options.client_id)
        viewer = await self._viewer(tokens)
        flow.check_subject(claims, self._chosen(tokens))
        now = self.clock.epoch()
        token = self._chosen(tokens)
        return Session(token=token, refresh=tokens.refresh, user=viewer.user, began=now, obtained=now)

    async def _renew(self, request: Request) -> Response:
        """Get new tokens for a session. The page asks once for all tabs, for a refresh token may be used only once."""
        try:
            session = await self._renewed(self.jar.session(request))
            response = _json({"isSignedIn": True, **session.facts(self.clock.epoch())})
            self.jar.keep(response, request, session)
        except LoginFailed as error:
            self._tell(error)
            response = _json({"error": error.problem.text}, error.problem.status)
            # While the provider or its new keys cannot be reached, the session goes on until its token expires.
            if not error.problem.is_temporary:
                self.jar.drop(response, request)
            elif isinstance(error, _Postponed):
                self.jar.keep(response, request, error.session)
        return response

    async def _renewed(self, session: Session | None) -> Session:
        if session is None or not session.refresh:
            raise LoginFailed(problems.SESSION_ENDED)
        tokens = await self.provider.renew(session.refresh)
        try:
            viewer = await self._viewer(tokens)
            claims = await self._claims(tokens.identity) if tokens.identity else {}
        except LoginFailed as error:
            raise _Postponed(error, replace(session, refresh=tokens.refresh)) from error
        # OpenID Connect Core, 12.2: a renewed session stays that of the same user.
        if not hmac.compare_digest(viewer.user.encode(), session.user.encode()):
            raise LoginFailed(problems.SESSION_ENDED, "the provider renewed the session for another user")
        if claims:
            flow.check_subject(claims, self._chosen(tokens), problem=problems.SESSION_ENDED)
        return replace(session, token=self._chosen(tokens), refresh=tokens.refresh, obtained=self.clock.epoch())

    async def sign_out(self, request: Request) -> Response:
        """End the session here and its refresh token at the provider; say where the provider's own session ends."""
        session = self.jar.session(request)
        location = ""
        if session is not None:
            try:
                location = flow.sign_out_url(await self.provider.metadata(), self.options)
                if session.refresh:
                    await self.provider.revoke(session.refresh)
            except LoginFailed as error:
                # The cookies are removed in any case.
                self._tell(error)
        response = _json({"isSignedIn": False, "location": location})
        self.jar.drop(response, request)
        return response

    async def _claims(self, identity: str) -> Mapping[str, object]:
        try:
            return await self.check_id_token(identity)
        except sessions.Refused as error:
            raise LoginFailed(problems.of_token(error.reason), f"ID token: {error.reason}") from error

    async def _viewer(self, tokens: Tokens) -> sessions.Viewer:
        token = self._chosen(tokens)
        if not token:
            raise LoginFailed(problems.NO_TOKEN)
        try:
            return await self.authenticate(f"Bearer {token}")
        except sessions.Refused as error:
            problem = problems.of_token(error.reason, status=error.status)
            raise LoginFailed(problem, f"{self.options.roles_from} token: {error.reason}") from error

    def _chosen(self, tokens: Tokens) -> str:
        return tokens.identity if self.options.roles_from == "id" else tokens.access

    def _tell(self, error: LoginFailed) -> None:
        """Log what an operator can act on, once a second at most: anybody can fail to sign in."""
        now = self.clock.monotonic()
        if error.problem is problems.OTHER_BROWSER or now - self._reported_at < _REPORT_SECONDS:
            return
        self._reported_at = now
        self.report(error.told)


def _json(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
