"""What a request can end in other than success, and the answer it then gets.

Handlers raise `Problem`; errors of the store, of searching and of authentication are translated here, once. No text
of the database or of Python reaches a client, apart from what it needs to correct its own request.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from maestropy.server.auth import rest as tokens
from maestropy.server.rest import catalogue
from maestropy.store import errors, search

_SHOWN_CHARACTERS: Final = 256
_RETRY_SECONDS: Final = 5
_UNAVAILABLE: Final = f"The database is not available at the moment; try again in {_RETRY_SECONDS} seconds"


class Problem(Exception):
    """A request is refused or failed; the client gets `reason`."""

    def __init__(self, kind: catalogue.Kind, reason: str | None = None, *, status: int | None = None) -> None:
        super().__init__(kind.reason if reason is None else reason)
        self.kind = kind
        self.reason = str(self)
        self.status = kind.status if status is None else status


def translate(error: Exception) -> Problem:
    """Return what `error` means to the client."""
    match error:
        case Problem():
            return error
        case search.SearchError():
            return Problem(catalogue.by_id(error.code), error.reason)
        case tokens.Unverified():
            return Problem(catalogue.UNAUTHENTICATED, error.reason)
        case errors.Unavailable():
            return Problem(catalogue.GENERAL, _UNAVAILABLE, status=503)
        case errors.BadValue():
            return Problem(catalogue.BAD_REQUEST, "The request holds a value that cannot be stored or compared")
        case _:
            return Problem(catalogue.UNEXPECTED)


def answer(problem: Problem, *, operation_id: str) -> Response:
    """Return the response for `problem`."""
    body = msgspec.json.encode(problem.kind.body(reason=problem.reason, operation_id=operation_id))
    headers = {"Vary": "Authorization"}
    if problem.status == 503:
        headers["Retry-After"] = str(_RETRY_SECONDS)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body, problem.status, headers=headers, media_type="application/json")


def no_such_path(path: str) -> Response:
    """Return the answer for a path that is no route; its body has a shape of its own in Maestro."""
    body = {
        "type": "Error",
        "id": "404",
        "href": f"{catalogue.HREF}/404",
        "code": "maestro-404",
        "reason": f"The requested resource '{shorten(path)}' doesn't exist",
    }
    return Response(msgspec.json.encode(body), 404, media_type="application/json")


def shorten(text: str) -> str:
    """Return `text`, cut where it only floods logs and answers."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
