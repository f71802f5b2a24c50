"""Apply the rules of HyperFleet to statuses: what the API stores, when a resource is reconciled, when Sentinel sends.

    answer(status, …)        201 stored, 204 discarded without a reason, or 400 with the API's sentence
    reconciled(resource, …)  the condition Reconciled that the API aggregates from required adapters
    due(resource, …)         why the Sentinel, which looks every five seconds, would send an event now

The order of the checks is the API's: a status that is discarded is not checked for its mandatory conditions. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from maestropy.wire import timestamps

MANDATORY = ("Available", "Applied", "Health")
POLL_SECONDS = 5.0
"""How often the Sentinel looks at all resources."""
STALE = timedelta(minutes=30)
"""After this time a reconciled resource is checked again."""
DEBOUNCE = timedelta(seconds=10)
"""After this time a resource that is not reconciled is sent again."""
_FUTURE = timedelta(minutes=5)
_PAST = timedelta(minutes=30)
_STATUSES = ("True", "False", "Unknown")


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """What the API answers to a status."""

    code: int
    detail: str = ""
    """Why it was rejected; a discarded status gets no reason."""


def answer(
    status: Mapping[str, Any],
    *,
    resource: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
    now: datetime | None = None,
) -> StatusAnswer:
    """Return the answer of the API; without `now` the age of the status is not checked."""
    problem = _invalid(status) or _wrong_time(status, now)
    if problem:
        return StatusAnswer(400, problem)
    if _is_discarded(status, resource=resource, stored=stored):
        return StatusAnswer(204)
    by_type = {condition["type"]: condition["status"] for condition in status["conditions"]}
    missing = next((kind for kind in MANDATORY if kind not in by_type), None)
    if missing:
        sentence = f"missing mandatory condition '{missing}': all adapters must report Available, Applied, and Health"
        return StatusAnswer(400, sentence)
    return StatusAnswer(204 if stored is not None and by_type["Available"] == "Unknown" else 201)


def reconciled(
    resource: Mapping[str, Any], *, required: Sequence[str], statuses: Mapping[str, Mapping[str, Any]], now: datetime
) -> dict[str, Any]:
    """Return the condition Reconciled: every required adapter is available, or finalized, at this generation."""
    kind = "Finalized" if resource.get("deleted_time") else "Available"
    current = {
        name: statuses[name]
        for name in required
        if name in statuses and statuses[name]["observed_generation"] == resource["generation"]
    }
    is_met = bool(required) and all(name in current and _condition(current[name], kind) == "True" for name in required)
    oldest = min((status["observed_time"] for status in current.values()), default="", key=timestamps.parse)
    return {
        "type": "Reconciled",
        "status": "True" if is_met else "False",
        "reason": "ReconciledAll" if is_met else "ReconciledMissingAdapters",
        "observed_generation": resource["generation"],
        "last_updated_time": oldest or timestamps.from_datetime(now).rfc3339(),
    }


def due(resource: Mapping[str, Any], condition: Mapping[str, Any] | None, *, now: datetime) -> str:
    """Return why the Sentinel would send an event for a resource now; empty if it would not."""
    if condition is None:
        return "new resource" if resource["generation"] == 1 else "generation mismatch"
    if resource["generation"] > condition["observed_generation"]:
        return "generation mismatch"
    age = now - timestamps.parse(condition["last_updated_time"]).to_datetime()
    if condition["status"] == "True":
        return "reconciled and stale" if age > STALE else ""
    return "not reconciled" if age > DEBOUNCE else ""


def _condition(status: Mapping[str, Any], kind: str) -> str:
    entries = (entry for entry in status["conditions"] if entry["type"] == kind)
    return next((str(entry["status"]) for entry in entries), "Unknown")


def _invalid(status: Mapping[str, Any]) -> str:
    generation = status.get("observed_generation")
    if not status.get("adapter"):
        return "adapter is required"
    if isinstance(generation, bool) or not isinstance(generation, int) or generation < 1:
        return "observed_generation must be >= 1"
    seen: set[str] = set()
    for index, condition in enumerate(status.get("conditions") or ()):
        kind, value = condition.get("type"), condition.get("status")
        if not kind:
            return f"condition type cannot be empty at index {index}"
        if kind in seen:
            return f"duplicate condition type '{kind}' at index {index}"
        if value not in _STATUSES:
            return (
                f"invalid status value '{value}' for condition at index {index} (type: {kind}): "
                "must be 'True', 'False', or 'Unknown'"
            )
        seen.add(kind)
    return ""


def _wrong_time(status: Mapping[str, Any], now: datetime | None) -> str:
    if now is None or not status.get("observed_time"):
        return ""
    observed = timestamps.parse(status["observed_time"]).to_datetime()
    if observed - now > _FUTURE:
        return "observed_time must not be more than 5m0s in the future"
    return "observed_time must not be more than 30m0s in the past" if now - observed > _PAST else ""


def _is_discarded(status: Mapping[str, Any], *, resource: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bool:
    generation = status["observed_generation"]
    if generation > resource["generation"] or not status.get("observed_time"):
        return True
    if stored is None:
        return False
    moment, before = timestamps.parse(status["observed_time"]), timestamps.parse(stored["observed_time"])
    return bool((generation, moment) < (stored["observed_generation"], before))
