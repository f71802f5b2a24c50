"""Rejections of requests: a number of Maestro's error catalogue and a reason with the remedy."""

from dataclasses import dataclass
from typing import Literal

Verb = Literal["create", "get", "update", "delete"]

FORBIDDEN = 4
CONFLICT = 6
NOT_FOUND = 7
INVALID = 8
GENERAL = 9


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected request. `code` is the number of the error in the catalogue that REST publishes."""

    code: int
    reason: str
    verb: Verb

    def __str__(self) -> str:
        return f"failed to {self.verb} resource: maestro-{self.code}: {self.reason}"


def conflict(reason: str, *, verb: Verb) -> Rejection:
    """Reject a request that another change has overtaken."""
    return Rejection(CONFLICT, reason, verb)


def invalid(reason: str, *, verb: Verb) -> Rejection:
    """Reject a request with invalid content."""
    return Rejection(INVALID, reason, verb)


def forbidden(reason: str, *, verb: Verb) -> Rejection:
    """Reject a request that the caller is not allowed to make."""
    return Rejection(FORBIDDEN, reason, verb)


def not_found(resource_id: str) -> Rejection:
    """Reject a request for a resource that does not exist."""
    return Rejection(NOT_FOUND, f"Resource with id='{resource_id}' not found", "get")


def unknown_consumer(name: str) -> Rejection:
    """Reject a request for an unknown consumer. Clients and runbooks match the first half of the text."""
    return Rejection(
        GENERAL,
        'Unable to create Resource: ERROR: insert or update on table "resources" violates foreign key constraint '
        f'"fk_resources_consumers" (SQLSTATE 23503): there is no consumer {name!r}; create it first',
        "create",
    )
