"""The error kinds of the REST API: ID, HTTP status and default reason.

IDs and texts are those of Go Maestro; clients and dashboards compare them. `/errors` serves this table.
"""

from dataclasses import dataclass
from typing import Final

HREF: Final = "/api/maestro/v1/errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorKind:
    """One kind of error."""

    id: int
    status: int
    reason: str

    @property
    def code(self) -> str:
        """The code of the error for clients."""
        return f"maestro-{self.id}"

    def body(self, *, reason: str | None = None, operation_id: str = "") -> dict[str, str]:
        """Return an error of this kind as JSON members in alphabetical order."""
        return {
            "code": self.code,
            "href": f"{HREF}/{self.id}",
            "id": str(self.id),
            "kind": "Error",
            "operation_id": operation_id,
            "reason": self.reason if reason is None else reason,
        }


INVALID_TOKEN: Final = ErrorKind(id=1, status=403, reason="Invalid token provided")
FORBIDDEN: Final = ErrorKind(id=4, status=403, reason="Forbidden to perform this action")
CONFLICT: Final = ErrorKind(id=6, status=409, reason="An entity with the specified unique values already exists")
NOT_FOUND: Final = ErrorKind(id=7, status=404, reason="Resource not found")
VALIDATION: Final = ErrorKind(id=8, status=400, reason="General validation failure")
GENERAL: Final = ErrorKind(id=9, status=500, reason="Unspecified error")
NOT_IMPLEMENTED: Final = ErrorKind(id=10, status=405, reason="HTTP Method not implemented for this endpoint")
UNAUTHORIZED: Final = ErrorKind(id=11, status=403, reason="Account is unauthorized to perform this action")
UNAUTHENTICATED: Final = ErrorKind(id=15, status=401, reason="Account authentication could not be verified")
MALFORMED: Final = ErrorKind(id=17, status=400, reason="Unable to read request body")
BAD_REQUEST: Final = ErrorKind(id=21, status=400, reason="Bad request")
BAD_SEARCH: Final = ErrorKind(id=23, status=400, reason="Failed to parse search query")
LOCKING: Final = ErrorKind(id=26, status=500, reason="Database advisory lock error")

ALL: Final = (
    INVALID_TOKEN,
    FORBIDDEN,
    CONFLICT,
    NOT_FOUND,
    VALIDATION,
    GENERAL,
    NOT_IMPLEMENTED,
    UNAUTHORIZED,
    UNAUTHENTICATED,
    MALFORMED,
    BAD_REQUEST,
    BAD_SEARCH,
    LOCKING,
)

# Not in the table: an internal error of the server.
UNEXPECTED: Final = ErrorKind(
    id=1000,
    status=500,
    reason="An unexpected error happened, please check the log of the service for details",
)

_BY_ID: Final = {kind.id: kind for kind in ALL}


def find(text: str) -> ErrorKind | None:
    """Return the error kind with this ID, or None."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        return None
    return _BY_ID.get(int(text))


def by_id(number: int) -> ErrorKind:
    """Return the error kind with this ID; an unknown ID is a general error."""
    return _BY_ID.get(number, GENERAL)
