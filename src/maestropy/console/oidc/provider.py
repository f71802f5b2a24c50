"""Talk to the OpenID provider: discovery, tokens for a code or a refresh token, revocation.

No response is trusted beyond its size and shape, and no error quotes one: it could hold a token.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson

from maestropy.console.oidc import problems
from maestropy.console.oidc.flow import LoginOptions, Metadata, parse_metadata
from maestropy.console.oidc.problems import LoginFailed

TIMEOUT_SECONDS: Final = 8.0
_FRESH_SECONDS: Final = 600.0
_RETRY_SECONDS: Final = 3.0
"""While the provider is away, it is asked once in this time, however many users try."""
_MOST_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a provider gave. Never written to a log or a page."""

    access: str = field(repr=False)
    identity: str = field(repr=False)
    refresh: str = field(repr=False)


class Provider:
    """The provider of one console. For one event loop."""

    def __init__(
        self,
        options: LoginOptions,
        *,
        monotonic: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._options = options
        self._monotonic = monotonic
        self._transport = transport
        self._reading = asyncio.Lock()
        self._known: Metadata | None = None
        self._failure: LoginFailed | None = None
        self._asked_at = float("-inf")

    async def metadata(self) -> Metadata:
        """Return the discovery document; one that was read stays in use while it cannot be read again."""
        async with self._reading:
            age = self._monotonic() - self._asked_at
            if age >= (_RETRY_SECONDS if self._failure else _FRESH_SECONDS):
                try:
                    self._known, self._failure = await self._discover(), None
                except LoginFailed as error:
                    self._failure = error
                self._asked_at = self._monotonic()
        if self._known is not None:
            return self._known
        assert self._failure is not None
        raise LoginFailed(self._failure.problem, self._failure.detail)

    async def exchange(self, code: str, *, verifier: str) -> Tokens:
        """Return the tokens for a code; raises `LoginFailed`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._options.redirect_url,
            "code_verifier": verifier,
        }
        return await self._tokens(form, refused=problems.CODE_REFUSED)

    async def renew(self, refresh: str) -> Tokens:
        """Return new tokens for a refresh token, which may be a new one; raises `LoginFailed`."""
        form = {"grant_type": "refresh_token", "refresh_token": refresh}
        tokens = await self._tokens(form, refused=problems.SESSION_ENDED)
        return Tokens(access=tokens.access, identity=tokens.identity, refresh=tokens.refresh or refresh)

    async def revoke(self, refresh: str) -> None:
        """Make a refresh token invalid, if the provider offers that; raises `LoginFailed`."""
        metadata = await self.metadata()
        if metadata.revocation_endpoint:
            form = {"token": refresh, "token_type_hint": "refresh_token"}
            await self._ask("POST", metadata.revocation_endpoint, **self._credentials(metadata, form))

    async def _discover(self) -> Metadata:
        address = f"{self._options.issuer.rstrip('/')}/.well-known/openid-configuration"
        status, body = await self._ask("GET", address)
        if status != HTTPStatus.OK:
            raise LoginFailed(problems.UNREACHABLE, f"{address} answers with status {status}")
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise LoginFailed(problems.WRONG_DISCOVERY, f"{address} is not JSON") from None
        return parse_metadata(document, issuer=self._options.issuer)

    async def _tokens(self, form: Mapping[str, str], *, refused: problems.Problem) -> Tokens:
        metadata = await self.metadata()
        status, body = await self._ask("POST", metadata.token_endpoint, **self._credentials(metadata, form))
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise LoginFailed(problems.UNREACHABLE, f"the token endpoint answers {status} without JSON")
        if status != HTTPStatus.OK:
            raise _refusal(status, answer, refused)
        # RFC 6749, 7.1: a token of a type that is not understood must not be used.
        if str(answer.get("token_type") or "Bearer").lower() != "bearer":
            raise LoginFailed(problems.OTHER_TYPE, f"token_type is {str(answer['token_type'])[:80]!r}")
        access, identity, refresh = (
            value if isinstance(value := answer.get(name), str) else ""
            for name in ("access_token", "id_token", "refresh_token")
        )
        return Tokens(access=access, identity=identity, refresh=refresh)

    def _credentials(self, metadata: Metadata, form: Mapping[str, str]) -> dict[str, Any]:
        client_id, secret = self._options.client_id, self._options.client_secret
        if metadata.sends_secret_in_body:
            return {"data": {**form, "client_id": client_id, "client_secret": secret}}
        # RFC 6749, 2.3.1: both are encoded as in a form before they become a user and a password.
        return {"data": dict(form), "auth": (quote(client_id, safe=""), quote(secret, safe=""))}

    async def _ask(self, method: str, address: str, **more: Any) -> tuple[int, bytes]:
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                httpx.AsyncClient(transport=self._transport, timeout=TIMEOUT_SECONDS) as client,
                client.stream(method, address, headers={"Accept": "application/json"}, **more) as response,
            ):
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise LoginFailed(problems.UNREACHABLE, f"{address} answers with more than {_MOST_BYTES} bytes")
                return response.status_code, body
        except TimeoutError:
            raise LoginFailed(problems.UNREACHABLE, f"{address} did not answer in {TIMEOUT_SECONDS:g}s") from None
        except httpx.HTTPError as error:
            raise LoginFailed(problems.UNREACHABLE, f"{address}: {type(error).__name__}") from error


def _refusal(status: int, answer: Mapping[str, Any], refused: problems.Problem) -> LoginFailed:
    error = str(answer.get("error", ""))[:80]
    detail = f"the token endpoint answers {status} {error!r}"
    if error == "invalid_grant":
        return LoginFailed(refused, detail)
    if error in ("invalid_client", "unauthorized_client"):
        return LoginFailed(problems.CLIENT_REFUSED, detail)
    return LoginFailed(problems.UNREACHABLE if status >= 500 else problems.of_provider(error), detail)
