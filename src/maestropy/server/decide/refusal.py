"""Why a request is refused: one number of Maestro's error catalogue, and a reason that says what to do."""

from dataclasses import dataclass
from typing import Literal

Verb = Literal["create", "get", "update", "delete"]

FORBIDDEN = 4
CONFLICT = 6
NOT_FOUND = 7
INVALID = 8
GENERAL = 9


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request. `code` is the error's number in the catalogue that REST publishes."""

    code: int
    reason: str
    verb: Verb

    def __str__(self) -> str:
        return f"failed to {self.verb} resource: maestro-{self.code}: {self.reason}"


def conflict(reason: str, *, verb: Verb) -> Refusal:
    """Somebody else was first, or the caller's view is old."""
    return Refusal(CONFLICT, reason, verb)


def invalid(reason: str, *, verb: Verb) -> Refusal:
    """The content breaks a rule."""
    return Refusal(INVALID, reason, verb)


def forbidden(reason: str, *, verb: Verb) -> Refusal:
    """The caller may not do this."""
    return Refusal(FORBIDDEN, reason, verb)


def not_found(resource_id: str) -> Refusal:
    """There is no such bundle."""
    return Refusal(NOT_FOUND, f"Resource with id='{resource_id}' not found", "get")


def unknown_consumer(name: str) -> Refusal:
    """The consumer must be created first. Clients and runbooks know the first half of the text."""
    return Refusal(
        GENERAL,
        'Unable to create Resource: ERROR: insert or update on table "resources" violates foreign key constraint '
        f'"fk_resources_consumers" (SQLSTATE 23503): there is no consumer {name!r}; create it first',
        "create",
    )
