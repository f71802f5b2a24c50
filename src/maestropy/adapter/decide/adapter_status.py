"""Hold the status that an adapter reports: four conditions for one generation, in the three forms that are read.

    to_api()     the body of `PUT …/statuses` of the HyperFleet API
    to_result()  adapter-result.json, which the status reporter beside a Job reads
    to_report()  adapter-report.json, the conditions and data as the integration guide describes them

The length limits of the readers are applied here: a status above them would be rejected. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from maestropy.wire import timestamps
from maestropy.wire.works.status import FALSE, TRUE, UNKNOWN, Condition

APPLIED, AVAILABLE, HEALTH, FINALIZED = "Applied", "Available", "Health", "Finalized"

_REASON_BYTES = 128
_MESSAGE_BYTES = 1024
_NO_REASON = "NoReasonProvided"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterStatus:
    """The status of one resource as one adapter reports it."""

    adapter: str
    generation: int
    """The generation of the resource that this status describes; 0 if the run failed before its event was read."""
    applied: Condition
    available: Condition
    health: Condition
    finalized: Condition
    data: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Condition, ...] = ()
    """Conditions of types of the adapter's own."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The four conditions of every adapter, and its own."""
        return (self.applied, self.available, self.health, self.finalized, *self.others)

    @property
    def is_success(self) -> bool:
        """Whether the resource is available, or finalized, and the adapter is healthy."""
        is_reached = TRUE in (self.available.status, self.finalized.status)
        return is_reached and self.health.status == TRUE

    def to_api(self, now: datetime) -> dict[str, Any]:
        """Return the body for the HyperFleet API."""
        return {
            "adapter": self.adapter,
            "observed_generation": self.generation,
            "observed_time": timestamps.from_datetime(now).rfc3339(),
            "conditions": [_shown(condition) for condition in self.conditions],
            **({"data": dict(self.data)} if self.data else {}),
        }

    def to_result(self) -> dict[str, Any]:
        """Return what the status reporter of a Job reads."""
        decisive = self.decisive
        return {
            "status": "success" if self.is_success else "failure",
            "reason": _cut(decisive.reason or _NO_REASON, _REASON_BYTES),
            "message": _cut(decisive.message or f"{decisive.type} is {decisive.status}", _MESSAGE_BYTES),
            "details": {
                **({"adapter": self.adapter} if self.adapter else {}),
                **({"observed_generation": self.generation} if self.generation else {}),
                "conditions": [_shown(condition) for condition in self.conditions],
                **({"data": dict(self.data)} if self.data else {}),
            },
        }

    def to_report(self) -> dict[str, Any]:
        """Return conditions and data as the integration guide describes them."""
        return {"conditions": [_shown(condition) for condition in self.conditions], "data": dict(self.data)}

    @property
    def decisive(self) -> Condition:
        """The most important condition: a failed one first, otherwise the one that was reached."""
        if self.health.status != TRUE:
            return self.health
        if self.finalized.status == TRUE:
            return self.finalized
        return self.applied if self.applied.status == FALSE else self.available


def condition(kind: str, status: str, reason: str, message: str = "") -> Condition:
    """Return a condition within the length limits of its readers."""
    return Condition(
        type=kind, status=status, reason=_cut(reason, _REASON_BYTES), message=_cut(message, _MESSAGE_BYTES)
    )


def healthy() -> Condition:
    """Return Health of an adapter that succeeded."""
    return condition(HEALTH, TRUE, "Healthy", "Adapter execution completed successfully")


def not_deleting() -> Condition:
    """Return Finalized of a resource that is not being deleted."""
    return condition(FINALIZED, FALSE, "NotDeleting")


def not_finalized(reason: str, message: str, *, is_deleting: bool | None) -> Condition:
    """Return Finalized of a resource that is not being deleted; otherwise the reason why it is not finalized.

    `is_deleting` is None if that is not known.
    """
    return not_deleting() if is_deleting is False else condition(FINALIZED, FALSE, reason, message)


def failed(
    adapter: str,
    generation: int,
    *,
    reason: str,
    message: str,
    is_deleting: bool | None,
    applied: str = UNKNOWN,
) -> AdapterStatus:
    """Return the status of an adapter that failed.

    `applied` is False if a work was rejected; otherwise Unknown, because works of an earlier event may be applied.
    """
    return AdapterStatus(
        adapter=adapter,
        generation=generation,
        applied=condition(APPLIED, applied, reason, message),
        # Unknown, so that the API keeps its last value instead of marking a running cluster as unavailable.
        available=condition(AVAILABLE, UNKNOWN, reason, message),
        health=condition(HEALTH, FALSE, reason, message),
        finalized=not_finalized(reason, message, is_deleting=is_deleting),
    )


def _shown(condition: Condition) -> dict[str, str]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }


def _cut(text: str, most: int) -> str:
    """Return at most `most` bytes of a text, without half a character at the end."""
    raw = text.encode("utf-8", errors="replace")
    return raw.decode() if len(raw) <= most else raw[: most - 3].decode(errors="ignore") + "…"
