"""What can go wrong between a program and Maestro, told by who can mend it.

    MaestroError
     ├── ConfigError        the client was told something wrong or too little; the text names the variable
     ├── NotFound           there is no such work, bundle or consumer
     │    └── ConsumerNotFound   the cluster a work is for is not registered
     ├── AlreadyExists      a create met one that is there
     ├── Conflict           somebody else was first: an old version, or a work that is being deleted
     ├── Invalid            the request breaks a rule; it will break it again
     ├── Unauthorized       the server does not know who we are
     ├── Forbidden          it knows, and says no
     ├── Unavailable        nobody answers, or not now
     ├── Timeout            no answer, or no such state, in time
     └── ServerError        the server failed in a way it does not explain

An error knows the server's own words, the operation id that logs carry, and what to do.
"""

from collections.abc import Callable
from typing import TypeVar


class MaestroError(Exception):
    """The root of everything this client raises."""

    is_retryable: bool = False
    """Whether the same request may succeed later; the client has already tried as often as its policy says."""

    default_advice: str = ""

    def __init__(self, reason: str, *, doing: str = "", advice: str = "", operation_id: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """What the server (or the check that failed) says."""
        self.doing = doing
        """What was attempted, as it reads after "cannot"."""
        self.advice = advice or self.default_advice
        """What to do about it."""
        self.operation_id = operation_id
        """Under which id the logs of server and agent tell of this request; empty if it was never sent."""
        self.retry_after: float | None = None
        """After how many seconds the server wants to be asked again, if it said so."""
        self.was_sent = True
        """Whether the request may have reached a server: what was never sent can be repeated without harm."""

    def __str__(self) -> str:
        told = f"cannot {self.doing}: {self.reason}" if self.doing else self.reason
        advice = f"; {self.advice}" if self.advice else ""
        operation = f" (operation id {self.operation_id})" if self.operation_id else ""
        return f"{told}{advice}{operation}"


class ConfigError(MaestroError):
    """The client was told something wrong or too little."""


class NotFound(MaestroError):
    """There is no such work, bundle or consumer."""

    default_advice = "check the name"


class ConsumerNotFound(NotFound):
    """The cluster is not registered."""

    default_advice = "create the consumer first, or correct its name"


class AlreadyExists(MaestroError):
    """There is one of that name already."""

    default_advice = "use apply() to create or update, or check whose it is"


class Conflict(MaestroError):
    """Somebody else was first."""

    default_advice = "read it again and repeat the change"


class Invalid(MaestroError):
    """The request breaks a rule."""

    default_advice = "correct the request; sending it again cannot help"


class Unauthorized(MaestroError):
    """The server does not know who we are."""

    default_advice = (
        "check the token file or the client certificate (MAESTRO_GRPC_TOKEN_FILE, MAESTRO_GRPC_CLIENT_CERT_FILE)"
    )


class Forbidden(MaestroError):
    """The server knows who we are and says no."""

    default_advice = "ask for the right to publish and subscribe as this source"


class Unavailable(MaestroError):
    """Nobody answers, or not now."""

    is_retryable = True
    default_advice = "check that the server runs and that the address is right"


class Timeout(MaestroError):
    """No answer, or not the wanted state, in time."""

    is_retryable = True
    default_advice = "try again, or allow more time"


class ServerError(MaestroError):
    """The server failed and does not say how."""

    default_advice = "the server's log has the details"


Kind = TypeVar("Kind", bound=MaestroError)


def find(error: BaseException | None, kind: type[Kind]) -> Kind | None:
    """Return the first error of `kind` in the chain of causes that ends in `error`."""
    while error is not None:
        if isinstance(error, kind):
            return error
        error = error.__cause__
    return None


def _predicate(kind: type[MaestroError]) -> Callable[[BaseException], bool]:
    def is_kind(error: BaseException) -> bool:
        return find(error, kind) is not None

    is_kind.__doc__ = f"Say whether a {kind.__name__} stands in the chain of `error`."
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
    """Say whether a retryable error of Maestro stands in the chain of `error`."""
    found = find(error, MaestroError)
    return found is not None and found.is_retryable
