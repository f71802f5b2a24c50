"""What an adapter tells the world: four conditions for one generation, in the three forms that somebody reads.

    status()    the body of `PUT …/statuses` of the HyperFleet API
    result()    adapter-result.json, which the status reporter beside a Job reads
    document()  adapter-report.json, the conditions and data as the integration guide writes them

Limits of the readers are kept here, because a report that is refused is a report nobody sees. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from maestropy.wire import instant
from maestropy.wire.status import FALSE, TRUE, UNKNOWN, Condition

APPLIED, AVAILABLE, HEALTH, FINALIZED = "Applied", "Available", "Health", "Finalized"

_REASON_BYTES = 128
_MESSAGE_BYTES = 1024
_NO_REASON = "NoReasonProvided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of one resource, as one adapter sees it."""

    adapter: str
    generation: int
    """The generation of the resource that all of this is about."""
    applied: Condition
    available: Condition
    health: Condition
    finalized: Condition
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All four."""
        return (self.applied, self.available, self.health, self.finalized)

    @property
    def is_success(self) -> bool:
        """Whether everything is as it should be: available, or finalized if that was asked for."""
        is_reached = TRUE in (self.available.status, self.finalized.status)
        return is_reached and self.health.status == TRUE

    def status(self, now: datetime) -> dict[str, Any]:
        """Return the body for the HyperFleet API."""
        return {
            "adapter": self.adapter,
            "observed_generation": self.generation,
            "observed_time": instant.from_datetime(now).rfc3339(),
            "conditions": [_shown(each) for each in self.conditions],
            **({"data": dict(self.data)} if self.data else {}),
        }

    def result(self) -> dict[str, Any]:
        """Return what the status reporter of a Job reads."""
        told = self.decisive
        return {
            "status": "success" if self.is_success else "failure",
            "reason": _cut(told.reason or _NO_REASON, _REASON_BYTES),
            "message": _cut(told.message or f"{told.type} is {told.status}", _MESSAGE_BYTES),
            "details": {
                "adapter": self.adapter,
                "observed_generation": self.generation,
                "conditions": [_shown(each) for each in self.conditions],
                **({"data": dict(self.data)} if self.data else {}),
            },
        }

    def document(self) -> dict[str, Any]:
        """Return conditions and data as the integration guide writes them."""
        return {"conditions": [_shown(each) for each in self.conditions], "data": dict(self.data)}

    @property
    def decisive(self) -> Condition:
        """The condition that says most: what is wrong first, otherwise what was reached."""
        if self.health.status != TRUE:
            return self.health
        if self.finalized.status == TRUE:
            return self.finalized
        return self.applied if self.applied.status == FALSE else self.available


def condition(kind: str, status: str, reason: str, message: str = "") -> Condition:
    """Return a condition within the limits of its readers."""
    return Condition(
        type=kind, status=status, reason=_cut(reason, _REASON_BYTES), message=_cut(message, _MESSAGE_BYTES)
    )


def healthy() -> Condition:
    """Return what an adapter says that did its work."""
    return condition(HEALTH, TRUE, "Healthy", "Adapter execution completed successfully")


def not_deleting() -> Condition:
    """Return what is said of a resource that is to stay."""
    return condition(FINALIZED, FALSE, "NotDeleting")


def failed(adapter: str, generation: int, *, reason: str, message: str) -> Report:
    """Return the report of an adapter that could not do its work; what was applied before is not known."""
    return Report(
        adapter=adapter,
        generation=generation,
        applied=condition(APPLIED, FALSE, reason, message),
        # Unknown, so that the API keeps what it last knew instead of calling a running cluster unavailable.
        available=condition(AVAILABLE, UNKNOWN, reason, message),
        health=condition(HEALTH, FALSE, reason, message),
        finalized=not_deleting(),
    )


def _shown(found: Condition) -> dict[str, str]:
    return {"type": found.type, "status": found.status, "reason": found.reason, "message": found.message}


def _cut(text: str, most: int) -> str:
    """Return at most `most` bytes of a text, without half a character at the end."""
    raw = text.encode("utf-8", errors="replace")
    return raw.decode() if len(raw) <= most else raw[: most - 3].decode(errors="ignore") + "…"
