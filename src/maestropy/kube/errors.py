"""Errors of requests to a Kubernetes API server, ordered by who can act on them.

    KubeError
    ├── BadConfig            the kubeconfig or service account cannot be used: the operator fixes it
    ├── MalformedObject      the object or request cannot be sent as it is: its author fixes it
    ├── UnknownKind          the API server has no such kind (yet)
    ├── Unreachable          no response, or not one of a Kubernetes API server: try again later
    │   └── Timeout          no response in time; the request may have been carried out
    ├── ReviewsForbidden     the server is not allowed to create reviews: the operator grants it
    └── ApiError             the API server responded with an error
        ├── Unauthorized, Forbidden, NotFound, AlreadyExists, Conflict, Gone, Invalid
        ├── TooManyRequests  with `retry_after` seconds, if the API server named them
        └── ServerError
            └── Unavailable

Only responses that a caller handles have a class. Errors of the HTTP library are translated to these classes, with the
library's error as the cause. Every error has `status` (HTTP, 0 without a response), `reason` (of the Kubernetes Status,
or empty) and the message of the API server.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

MESSAGE_LIMIT = 4096
"""Length limit of a message in characters: enough for a long validation error, bounded for logs and conditions."""


class KubeError(Exception):
    """Base class: a request to the API server failed."""

    default_reason: ClassVar[str] = ""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        capped = message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"
        super().__init__(capped)
        self.message = capped
        self.status = status
        self.reason = reason or self.default_reason


class BadConfig(KubeError):
    """The kubeconfig or service account cannot be used; the operator has to fix it."""


class MalformedObject(KubeError):
    """The object or request cannot be sent as it is; its author has to fix it."""


class UnknownKind(KubeError):
    """The API server does not serve this kind now; a CRD may add it."""


class Unreachable(KubeError):
    """The API server did not respond, or not as a Kubernetes API server does; try again later."""


class Timeout(Unreachable):
    """No response in time; the request may have been carried out."""

    default_reason = "Timeout"


class ReviewsForbidden(KubeError):
    """The API server does not allow this server to create reviews; the operator has to grant it."""


class ApiError(KubeError):
    """The API server responded with an error."""


class Unauthorized(ApiError):
    """The API server does not accept our credentials."""


class Forbidden(ApiError):
    """The API server does not allow the request."""


class NotFound(ApiError):
    """There is no such object, namespace or resource."""


class AlreadyExists(ApiError):
    """An object of that name exists."""


class Conflict(ApiError):
    """The object changed since it was read, is not the one meant, or another manager owns a field."""


class Gone(ApiError):
    """The resource version or continue token is too old: list again."""


class Invalid(ApiError):
    """The validation of the API server rejects the object."""


class TooManyRequests(ApiError):
    """The API server throttles the client."""

    def __init__(self, message: str, *, status: int = 429, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class ServerError(ApiError):
    """The API server failed; the request may or may not have been carried out."""

    def __init__(self, message: str, *, status: int = 500, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Unavailable(ServerError):
    """The API server, or the server of an aggregated API, is not available."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def from_status(code: int, status: Mapping[str, Any] | None, *, retry_after: float | None = None) -> KubeError:
    """Return the error for an HTTP `code` and the `Status` object of its body, if the body was one.

    Another body is not quoted: it may be the page of a proxy, or data.
    """
    if status is None:
        message, reason = f"HTTP {code} without a Kubernetes Status", ""
    else:
        message = _text(status, "message") or f"HTTP {code}"
        reason = _text(status, "reason")
    retry_after = retry_after if retry_after is not None else _retry_after(status)
    if code == 504:
        return Timeout(message, status=code, reason=reason)
    if code == 429:
        return TooManyRequests(message, status=code, reason=reason, retry_after=retry_after)
    if code >= 500:
        family = Unavailable if code == 503 else ServerError
        return family(message, status=code, reason=reason, retry_after=retry_after)
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists(message, status=code, reason=reason)
    return _BY_STATUS.get(code, ApiError)(message, status=code, reason=reason)


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""


def _retry_after(status: Mapping[str, Any] | None) -> float | None:
    details = status.get("details") if status is not None else None
    seconds = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else None
