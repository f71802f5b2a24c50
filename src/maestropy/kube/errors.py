"""What can go wrong between us and a Kubernetes API server, by who has to act.

    KubeError
    ├── BadConfig            the kubeconfig or service account cannot be used: the operator fixes it
    ├── Malformed            the object or request cannot be sent as it is: its author fixes it
    ├── UnknownKind          the API server has no such kind (yet)
    ├── Unreachable          no answer, or none that a Kubernetes API server gives: try again later
    │   └── Timeout          no answer in time; the request may have been carried out all the same
    ├── Refused              the server's reviews are not allowed: the operator grants them
    └── ApiError             the API server answered that it did not work
        ├── Unauthorized, Forbidden, NotFound, AlreadyExists, Conflict, Gone, Invalid
        ├── TooManyRequests  with `retry_after` seconds, if the API server named them
        └── ServerError
            └── Unavailable

Only answers that somebody handles have a class. The HTTP library's own errors end here: callers see these
classes and nothing else, with the library's error chained as the cause. Every error carries `status` (HTTP,
0 without an answer), `reason` (Kubernetes' word, empty without one) and a message that is the API server's own.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

MESSAGE_LIMIT = 4096
"""Characters kept of an API server's message: enough for a long validation error, bounded for logs and conditions."""


class KubeError(Exception):
    """A question to the API server got no answer, or not the one asked for."""

    default_reason: ClassVar[str] = ""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        capped = message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"
        super().__init__(capped)
        self.message = capped
        self.status = status
        self.reason = reason or self.default_reason


class BadConfig(KubeError):
    """The kubeconfig or service account cannot be used; the operator has to fix it."""


class Malformed(KubeError):
    """The object or request cannot be sent as it is; its author has to fix it."""


class UnknownKind(KubeError):
    """The API server serves no such kind now; a custom one may come."""


class Unreachable(KubeError):
    """The API server did not answer, or answered with a failure of its own; try again later."""


class Timeout(Unreachable):
    """No answer in time; nobody knows whether the request was carried out."""

    default_reason = "Timeout"


class Refused(KubeError):
    """The API server does not let this server ask; the operator has to grant it."""


class ApiError(KubeError):
    """The API server answered, and the answer is no."""


class Unauthorized(ApiError):
    """The API server does not accept our credentials."""


class Forbidden(ApiError):
    """The API server knows us and does not let us."""


class NotFound(ApiError):
    """There is no such object, namespace or resource."""


class AlreadyExists(ApiError):
    """An object of that name is there already."""


class Conflict(ApiError):
    """The object changed since it was read, is not the one meant, or another manager owns a field."""


class Gone(ApiError):
    """The resource version or continue token is too old: list again."""


class Invalid(ApiError):
    """The API server's validation refuses the object."""


class TooManyRequests(ApiError):
    """The API server wants us to slow down."""

    def __init__(self, message: str, *, status: int = 429, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class ServerError(ApiError):
    """The API server failed; the request may or may not have been carried out."""

    def __init__(self, message: str, *, status: int = 500, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Unavailable(ServerError):
    """The API server, or the server behind one of its groups, is not up."""


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

    The body of anything else is not quoted: it may be a proxy's page, or data.
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
    found = status.get(name)
    return found if isinstance(found, str) else ""


def _retry_after(status: Mapping[str, Any] | None) -> float | None:
    details = status.get("details") if status is not None else None
    seconds = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else None
