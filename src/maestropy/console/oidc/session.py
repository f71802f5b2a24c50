"""The session of a user who signed in at a provider: what its sealed cookies hold, and how long it lasts. Pure.

The tokens are in cookies that scripts cannot read, other sites cannot send, and that only the server can decrypt.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from maestropy.console import sessions
from maestropy.console.oidc import problems, sealing
from maestropy.console.oidc.flow import ATTEMPT_SECONDS, Attempt
from maestropy.console.oidc.problems import LoginFailed
from maestropy.console.oidc.sealing import Seal

_RENEWED_BEFORE: Final = 60.0
_SESSION: Final = "session"
_ATTEMPT: Final = "login"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The tokens of a user."""

    token: str = field(repr=False)
    refresh: str = field(repr=False)
    user: str
    began: float
    """When the user signed in."""
    obtained: float
    """When the token was obtained."""

    @property
    def expires(self) -> float:
        """When the token expires."""
        return min(self.began + sessions.LONGEST_SECONDS, sessions.token_expiry(self.token))

    @property
    def ends(self) -> float:
        """When the user has to sign in again."""
        return self.began + sessions.LONGEST_SECONDS if self.refresh else self.expires

    @property
    def is_due(self) -> float:
        """When the token is to be renewed: a minute before it expires, or in the last third of its time."""
        return self.expires - min(_RENEWED_BEFORE, (self.expires - self.obtained) / 3)

    def facts(self, now: float) -> dict[str, Any]:
        """Return what the page has to know."""
        return {
            "endsIn": max(0.0, round(self.ends - now, 1)),
            "renewIn": max(0.0, round(self.is_due - now, 1)) if self.refresh and now < self.ends else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """The cookies of one console. With TLS they have the prefix with which no other host can set them."""

    seal: Seal
    is_secure: bool
    now: Callable[[], float]

    def session(self, request: Request) -> Session | None:
        """Return the session of a browser, if it has not ended."""
        text = sealing.join(self._name(_SESSION), request.cookies)
        value = self.seal.open(_SESSION, text) if text else None
        try:
            session = None if value is None else Session(**value)
        except TypeError:  # sealed by another version, with other fields
            return None
        return session if session is not None and self.now() < session.began + sessions.LONGEST_SECONDS else None

    def keep(self, response: Response, request: Request, session: Session) -> None:
        """Write a session; raises `LoginFailed` if it is too large."""
        try:
            parts = sealing.split(self._name(_SESSION), self.seal.close(_SESSION, asdict(session)))
        except sealing.TooLarge:
            raise LoginFailed(problems.TOO_LARGE) from None
        seconds = max(1, int(session.ends - self.now()))
        for name, text in parts.items():
            self._set(response, name, text, seconds=seconds, same_site="strict")
        self._forget(response, request, without=parts)

    def drop(self, response: Response, request: Request) -> None:
        """Remove the session."""
        self._forget(response, request, without={})

    def begin(self, response: Response, attempt: Attempt) -> None:
        """Write an attempt: lax, because the answer comes from the provider's site."""
        name, seconds = self._attempt_name(attempt.state), int(ATTEMPT_SECONDS)
        self._set(response, name, self.seal.close(_ATTEMPT, asdict(attempt)), seconds=seconds, same_site="lax")

    def attempt(self, request: Request, state: str) -> Attempt | None:
        """Return the attempt of a state, if this browser began it."""
        value = self.seal.open(_ATTEMPT, request.cookies.get(self._attempt_name(state), ""))
        return None if value is None else Attempt(**value)

    def end_attempt(self, response: Response, state: str) -> None:
        """Remove an attempt: its answer is taken once."""
        self._delete(response, self._attempt_name(state))

    def _forget(self, response: Response, request: Request, *, without: Mapping[str, str]) -> None:
        names = [sealing.part_name(self._name(_SESSION), index) for index in range(sealing.MOST_PARTS)]
        for name in names:
            if name in request.cookies and name not in without:
                self._delete(response, name)

    def _name(self, purpose: str) -> str:
        return f"{'__Host-' if self.is_secure else ''}{sessions.COOKIE}-{purpose}"

    def _attempt_name(self, state: str) -> str:
        # One for each attempt, so that two tabs can sign in at the same time; only letters that a cookie may have.
        kept = "".join(sign for sign in state[:12] if sign.isascii() and (sign.isalnum() or sign in "-_"))
        return f"{self._name(_ATTEMPT)}-{kept}"

    def _set(self, response: Response, name: str, text: str, *, seconds: int, same_site: Any) -> None:
        response.set_cookie(
            name, text, max_age=seconds, path="/", secure=self.is_secure, httponly=True, samesite=same_site
        )

    def _delete(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path="/", secure=self.is_secure, httponly=True)
