"""Exceptions that carry the `Status` object which a client receives when its request is rejected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One entry of `status.details.causes`: a field and what is wrong with it."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def to_json(self) -> Json:
        """Return the cause as `status.details.causes` has it."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """A rejected request, as apimachinery's `StatusError`."""

    def __init__(self, code: int, reason: str, message: str, *, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def to_status(self) -> Json:
        """Return the body of the response."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


def _details(kind: ServedKind, name: str) -> Json:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: ServedKind, name: str) -> StatusError:
    """Return the error for an object that does not exist."""
    return StatusError(404, "NotFound", f'{kind.qualified} "{name}" not found', details=_details(kind, name))


def no_such_path() -> StatusError:
    """Return the error for a kind or path that is not served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: ServedKind, name: str) -> StatusError:
    """Return the error for creating an object that exists."""
    return StatusError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details=_details(kind, name))


def conflict(kind: ServedKind, name: str, why: str) -> StatusError:
    """Return the error for a write that is based on an older version or on another object."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(kind, name))


def modified(kind: ServedKind, name: str) -> StatusError:
    """Return the conflict for a write with an outdated resourceVersion."""
    return conflict(
        kind, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def apply_conflict(message: str, causes: Sequence[Cause]) -> StatusError:
    """Return the conflict for an apply that would take fields from other field managers."""
    return StatusError(409, "Conflict", message, details={"causes": [cause.to_json() for cause in causes]})


def bad_request(message: str) -> StatusError:
    """Return the error for a malformed request."""
    return StatusError(400, "BadRequest", message)


def invalid(kind: ServedKind, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return the error for an object that fails validation."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    body = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": [cause.to_json() for cause in causes]}
    return StatusError(
        422,
        "Invalid",
        f'{kind.qualified_kind} "{name}" is invalid: {body}',
        details={key: value for key, value in details.items() if value},
    )


def forbidden(kind: ServedKind, name: str, why: str, *, causes: Sequence[Cause] = ()) -> StatusError:
    """Return the error for a request that this user, or the state of the object, does not permit."""
    named = f' "{name}"' if name else ""
    details = _details(kind, name) | ({"causes": [cause.to_json() for cause in causes]} if causes else {})
    return StatusError(403, "Forbidden", f"{kind.qualified}{named} is forbidden: {why}", details=details)


def expired(message: str) -> StatusError:
    """Return the error for a resourceVersion or continue token that has expired."""
    return StatusError(410, "Expired", message)
