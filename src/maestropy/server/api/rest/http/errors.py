"""Error responses of the REST API.

Handlers raise `RestError`; errors of the store, of a search and of the authentication are translated here. No text of
the database or of Python reaches a client, except what it needs to correct its request.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from maestropy.server.api.rest.http import error_catalogue
from maestropy.server.auth import rest as tokens
from maestropy.store import errors, search
from maestropy.store.postgres import pool
from maestropy.wire import positions

_SHOWN_CHARACTERS: Final = 256
_RETRY_SECONDS: Final = 5
_UNAVAILABLE: Final = f"The database is not available at the moment; try again in {_RETRY_SECONDS} seconds"

_READ_ONLY: Final = f"The database is read-only at the moment; try again in {_RETRY_SECONDS} seconds"

_POSITION_AHEAD: Final = (
    f"{positions.HEADER} lies ahead of the database, so no response of this server had it; send what a response to a "
    "write had, or leave it out"
)

_TOO_SLOW: Final = (
    f"The list was stopped after {pool.READER_STATEMENT_MS // 1000} seconds: the database is busy, or very many items "
    "match; try again, add a condition to the search, or ask for shorter pages"
)


class RestError(Exception):
    """A request is rejected or failed; the client gets `reason`."""

    def __init__(
        self, kind: error_catalogue.ErrorKind, reason: str | None = None, *, status: int | None = None
    ) -> None:
        super().__init__(kind.reason if reason is None else reason)
        self.kind = kind
        self.reason = str(self)
        self.status = kind.status if status is None else status


def translate(error: Exception) -> RestError:
    """Return the REST error for an exception."""
    match error:
        case RestError():
            return error
        case search.SearchError():
            return RestError(error_catalogue.by_id(error.code), error.reason)
        case tokens.Unverified():
            return RestError(error_catalogue.UNAUTHENTICATED, error.reason)
        case errors.DatabaseUnavailable():
            return RestError(error_catalogue.GENERAL, _unavailable(error), status=503)
        case errors.InvalidValue():
            return RestError(error_catalogue.BAD_REQUEST, "The request holds a value that cannot be stored or compared")
        case positions.PositionAhead():
            return RestError(error_catalogue.BAD_REQUEST, _POSITION_AHEAD)
        case _:
            return RestError(error_catalogue.UNEXPECTED)


def _unavailable(error: errors.DatabaseUnavailable) -> str:
    match error:
        case errors.DatabaseReadOnly():
            return _READ_ONLY
        case errors.StatementTimeout():
            return _TOO_SLOW
        case _:
            return _UNAVAILABLE


def response(problem: RestError, *, operation_id: str) -> Response:
    """Return the response for `problem`."""
    body = msgspec.json.encode(problem.kind.body(reason=problem.reason, operation_id=operation_id))
    headers = {"Vary": "Authorization"}
    if problem.status == 503:
        headers["Retry-After"] = str(_RETRY_SECONDS)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body, problem.status, headers=headers, media_type="application/json")


def no_such_path(path: str) -> Response:
    """Return the response for an unknown path; its body differs from other errors in Maestro."""
    body = {
        "type": "Error",
        "id": "404",
        "href": f"{error_catalogue.HREF}/404",
        "code": "maestro-404",
        "reason": f"The requested resource '{shorten(path)}' doesn't exist",
    }
    return Response(msgspec.json.encode(body), 404, media_type="application/json")


def shorten(text: str) -> str:
    """Return `text`, shortened for logs and responses."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
