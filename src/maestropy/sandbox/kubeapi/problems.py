"""How does the API say no? Refusals as exceptions that carry the `Status` object a client receives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.sandbox.kubeapi.kinds import Kind

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that is wrong, and where."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def to_json(self) -> Json:
        """Return the cause as `status.details.causes` has it."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class Problem(Exception):
    """A request that is refused."""

    def __init__(self, code: int, reason: str, message: str, *, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def to_status(self) -> Json:
        """Return the answer's body."""
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


def _about(kind: Kind, name: str) -> Json:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> Problem:
    """Return the answer for an object that does not exist."""
    return Problem(404, "NotFound", f'{kind.qualified} "{name}" not found', details=_about(kind, name))


def no_such_path() -> Problem:
    """Return the answer for a kind or path nobody serves."""
    return Problem(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str) -> Problem:
    """Return the answer to creating what is there."""
    return Problem(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Problem:
    """Return the answer to a write based on an older version or another object."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return Problem(409, "Conflict", message, details=_about(kind, name))


def modified(kind: Kind, name: str) -> Problem:
    """Return the answer to a write that names an old resourceVersion."""
    return conflict(
        kind, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def apply_conflict(message: str, causes: Sequence[Cause]) -> Problem:
    """Return the answer to an apply that would take fields from other managers."""
    return Problem(409, "Conflict", message, details={"causes": [cause.to_json() for cause in causes]})


def bad_request(message: str) -> Problem:
    """Return the answer to a request that cannot be understood."""
    return Problem(400, "BadRequest", message)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> Problem:
    """Return the answer to an object that breaks the rules of its kind."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    body = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": [cause.to_json() for cause in causes]}
    return Problem(
        422,
        "Invalid",
        f'{kind.qualified_kind} "{name}" is invalid: {body}',
        details={key: value for key, value in details.items() if value},
    )


def forbidden(kind: Kind, name: str, why: str, *, causes: Sequence[Cause] = ()) -> Problem:
    """Return the answer to something that must not happen, for this user or in this state."""
    named = f' "{name}"' if name else ""
    details = _about(kind, name) | ({"causes": [cause.to_json() for cause in causes]} if causes else {})
    return Problem(403, "Forbidden", f"{kind.qualified}{named} is forbidden: {why}", details=details)


def gone(message: str) -> Problem:
    """Return the answer to a version or token older than what is remembered."""
    return Problem(410, "Expired", message)
