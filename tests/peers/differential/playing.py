"""Plays cases on both servers, round by round, and says where they differ."""

import json
from itertools import zip_longest
from typing import Any

from tests.peers.differential.comparing import Mismatch, compare, readable
from tests.peers.differential.event_cases import PUBLISH, Case
from tests.peers.differential.twins import Twin

ROW = "SELECT name, source, consumer_name, version, type, payload, status, deleted_at FROM resources WHERE id = $1"
EVENTS = "SELECT event_type FROM events WHERE source_id = $1 ORDER BY created_at"
STATUS_EVENTS = """
    SELECT status_event_type, resource_source, resource_type, payload, status
    FROM status_events WHERE resource_id = $1 ORDER BY created_at
"""


def play(pair: tuple[Twin, Twin], cases: list[Case]) -> list[Mismatch]:
    """Return where the servers answered, stored or sent something else."""
    go, ours = ([observed(each, case, answers[case.name]) for case in cases] for each, answers in played(pair, cases))
    found = []
    for case, left, right in zip(cases, go, ours, strict=True):
        found += compare(case.name, left, right)
    return found


def played(pair: tuple[Twin, Twin], cases: list[Case]) -> list[tuple[Twin, dict[str, list[Any]]]]:
    """Take every case one step further before any takes its next; what was said is sent before the next round."""
    told = []
    for each in pair:
        answers: dict[str, list[Any]] = {case.name: [] for case in cases}
        for round_ in zip_longest(*(case.steps for case in cases)):
            for case, step in zip(cases, round_, strict=True):
                if step is not None:
                    answer = each.publish(step.request) if step.to == PUBLISH else each.report(step.request)
                    answers[case.name].append({"to": step.to, "code": answer.code, "text": answer.body})
            each.settle_events()
        each.settle()
        told.append((each, answers))
    return told


def observed(each: Twin, case: Case, answers: list[Any]) -> dict[str, Any]:
    rows = each.database.rows(ROW, case.resource)
    return {
        "answers": answers,
        "to agent": sent(each.to_agent, case.resource),
        "to source": sent(each.to_source, case.resource),
        "row": row(rows[0]) if rows else None,
        "events": [found["event_type"] for found in each.database.rows(EVENTS, case.resource)],
        "status events": [row(found) for found in each.database.rows(STATUS_EVENTS, case.resource)],
        "rest": each.ask("GET", f"/api/maestro/v1/resource-bundles/{case.resource}").body,
    }


def sent(stream: list[Any], resource: str) -> list[Any]:
    return [readable(each) for each in list(stream) if each.attributes["ce-resourceid"].ce_string == resource]


def row(found: dict[str, Any]) -> dict[str, Any]:
    opened = {key: json.loads(found[key]) for key in ("payload", "status") if isinstance(found.get(key), str)}
    return {**found, **opened, "deleted_at": found.get("deleted_at") is not None}
