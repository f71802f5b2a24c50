"""Define the errors of the client, by who can correct them.

    MaestroError
     ├── ConfigError        a setting of the client is wrong or missing; the message names the variable
     ├── NotFound           the work, resource bundle or consumer does not exist
     │    └── ConsumerNotFound   the consumer of a work does not exist
     ├── AlreadyExists      a create request for an existing object
     ├── Conflict           an old version, or a work that is being deleted
     ├── Invalid            the request breaks a rule; a retry cannot help
     ├── Unauthorized       the client is not authenticated
     ├── Forbidden          the client is authenticated, but not authorized
     ├── Unavailable        the server is unreachable or overloaded
     ├── Timeout            no response, or not the awaited state, in time
     ├── Unsupported        the server cannot do this, such as a Go server that keeps no history
     └── ServerError        the server failed without a known reason

An error carries the server's message, the operation ID that logs show, and the remedy.
"""

from collections.abc import Callable
from typing import TypeVar

from maestropy.untrusted import tokens


class MaestroError(Exception):
    """The root of everything this client raises."""

    is_retryable: bool = False
    """Whether the same request may succeed later; the client has already retried as its policy allows."""

    default_advice: str = ""

    def __init__(self, reason: str, *, doing: str = "", advice: str = "", operation_id: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """The message of the server, or of the check that failed."""
        self.doing = doing
        """The operation, as it reads after "cannot"."""
        self.advice = advice or self.default_advice
        """The remedy."""
        self.operation_id = operation_id
        """The operation ID of the request in the logs of server and agent; empty if it was never sent."""
        self.retry_after: float | None = None
        """The seconds to wait before a retry, if the server gave them."""
        self.was_sent = True
        """Whether the request may have reached a server; a request that was never sent can be repeated safely."""

    def hide(self, token: str) -> None:
        """Remove the client's own token from what the server said."""
        self.reason, self.doing, self.advice = (
            tokens.hide(text, token) for text in (self.reason, self.doing, self.advice)
        )
        self.args = (self.reason,)
        if hasattr(self, "__notes__"):
            self.__notes__ = [tokens.hide(note, token) for note in self.__notes__]

    def __str__(self) -> str:
        sentence = f"cannot {self.doing}: {self.reason}" if self.doing else self.reason
        advice = f"; {self.advice}" if self.advice else ""
        operation = f" (operation id {self.operation_id})" if self.operation_id else ""
        return f"{sentence}{advice}{operation}"


class ConfigError(MaestroError):
    """A setting of the client is wrong or missing."""


class NotFound(MaestroError):
    """The work, resource bundle or consumer does not exist."""

    default_advice = "check the name"


class ConsumerNotFound(NotFound):
    """The consumer does not exist."""

    default_advice = "create the consumer first, or correct its name"


class AlreadyExists(MaestroError):
    """An object of that name exists already."""

    default_advice = "use apply() to create or update, or check its owner"


class Conflict(MaestroError):
    """The stored version differs, or the work is being deleted."""

    default_advice = "read it again and repeat the change"


class Invalid(MaestroError):
    """The request breaks a rule."""

    default_advice = "correct the request; sending it again cannot help"


class Unauthorized(MaestroError):
    """The client is not authenticated."""

    default_advice = (
        "check the token file or the client certificate (MAESTRO_GRPC_TOKEN_FILE, MAESTRO_GRPC_CLIENT_CERT_FILE)"
    )


class Forbidden(MaestroError):
    """The client is authenticated, but not authorized."""

    default_advice = "request permission to publish and subscribe as this source"


class Unavailable(MaestroError):
    """The server is unreachable or overloaded."""

    is_retryable = True
    default_advice = "check that the server runs and that the address is right"


class Timeout(MaestroError):
    """No response, or not the awaited state, in time."""

    is_retryable = True
    default_advice = "retry, or allow more time"


class Unsupported(MaestroError):
    """The server cannot do this."""

    default_advice = "use a maestropy server"


class ServerError(MaestroError):
    """The server failed without a known reason."""

    default_advice = "the server's log has the details"


Kind = TypeVar("Kind", bound=MaestroError)


def find(error: BaseException | None, kind: type[Kind]) -> Kind | None:
    """Return the first error of `kind` in the cause chain of `error`."""
    while error is not None:
        if isinstance(error, kind):
            return error
        error = error.__cause__
    return None


def _predicate(kind: type[MaestroError]) -> Callable[[BaseException], bool]:
    def is_kind(error: BaseException) -> bool:
        return find(error, kind) is not None

    is_kind.__doc__ = f"Return whether the cause chain of `error` holds a {kind.__name__}."
    return is_kind


is_not_found = _predicate(NotFound)
is_already_exists = _predicate(AlreadyExists)
is_conflict = _predicate(Conflict)
is_invalid = _predicate(Invalid)
is_unauthorized = _predicate(Unauthorized)
is_forbidden = _predicate(Forbidden)
is_unavailable = _predicate(Unavailable)
is_timeout = _predicate(Timeout)


def is_retryable(error: BaseException) -> bool:
    """Return whether the cause chain of `error` holds a retryable MaestroError."""
    maestro_error = find(error, MaestroError)
    return maestro_error is not None and maestro_error.is_retryable
