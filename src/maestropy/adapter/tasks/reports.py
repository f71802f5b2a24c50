"""Read the status that a task built, and check it as the HyperFleet API does before it is sent. Pure."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from maestropy.adapter.decide.adapter_status import (
    APPLIED,
    AVAILABLE,
    FINALIZED,
    HEALTH,
    AdapterStatus,
    condition,
    not_finalized,
)
from maestropy.wire.works.status import FALSE, TRUE, UNKNOWN, Condition

_MANDATORY = (AVAILABLE, APPLIED, HEALTH)


class BadReport(Exception):
    """The API would reject this status."""


def json_of(text: str) -> Any:
    """Return the JSON of a rendered body; raises BadReport."""
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise BadReport(f"the body is not JSON: {error}") from error


def uses(template: str, name: str) -> bool:
    """Whether a template reads a variable."""
    return re.search(rf"\{{\{{[^}}]*\.{re.escape(name)}\b", template) is not None


def status_of(body: str, *, adapter: str, is_deleting: bool | None) -> AdapterStatus:
    """Return the status of a rendered body; raises BadReport for what the API would answer with 400.

    `is_deleting` says whether the deletion of the resource was requested; None if that is not known.
    """
    document = json_of(body)
    if not isinstance(document, Mapping) or not isinstance(document.get("conditions"), list):
        raise BadReport("a status is a JSON object with a list of conditions")
    generation = document.get("observed_generation")
    if isinstance(generation, float) and generation.is_integer():
        generation = int(generation)
    if isinstance(generation, bool) or not isinstance(generation, int) or generation < 1:
        raise BadReport(f"observed_generation must be >= 1, and is {generation!r}; use {{expression: generation}}")
    conditions = _conditions(document["conditions"])
    for kind in _MANDATORY:
        if kind not in conditions:
            raise BadReport(
                f"missing mandatory condition '{kind}': all adapters must report Available, Applied, and Health"
            )
    data = document.get("data")
    return AdapterStatus(
        adapter=str(document.get("adapter") or adapter),
        generation=generation,
        applied=conditions.pop(APPLIED),
        available=conditions.pop(AVAILABLE),
        health=conditions.pop(HEALTH),
        finalized=conditions.pop(FINALIZED, _unreported(is_deleting=is_deleting)),
        data=data if isinstance(data, Mapping) else {},
        others=tuple(conditions.values()),
    )


def _unreported(*, is_deleting: bool | None) -> Condition:
    return not_finalized("NotReported", "the task reports no Finalized", is_deleting=is_deleting)


def _conditions(entries: list[Any]) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for index, entry in enumerate(entries):
        kind = str(entry.get("type") or "") if isinstance(entry, Mapping) else ""
        if not kind:
            raise BadReport(f"condition type cannot be empty at index {index}")
        if kind in conditions:
            raise BadReport(f"duplicate condition type '{kind}' at index {index}")
        value = entry.get("status")
        if value not in (TRUE, FALSE, UNKNOWN):
            raise BadReport(
                f"invalid status value '{value}' for condition at index {index} (type: {kind}): "
                "must be 'True', 'False', or 'Unknown'"
            )
        conditions[kind] = condition(kind, value, str(entry.get("reason") or ""), str(entry.get("message") or ""))
    return conditions
