"""Group the works that do not go on by their cause, each group with the remedy of the catalogue. Pure."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from maestropy.console.pages import remedies
from maestropy.console.picture import Picture
from maestropy.console.rows import WorkRow, moment_of
from maestropy.trace.findings.codes import CODES
from maestropy.trace.work.judge.facts import STUCK_AFTER
from maestropy.trace.work.judge.findings import bare_finding

_MOST_SHOWN: Final = 20
_MOST_GROUPS: Final = 50
_KINDS: Final = {
    "undelivered": ("MW-003", "MW-105"),
    "unapplied": ("MW-005", "MW-006", "MW-104", "MW-113"),
    "deleting": ("MW-007", "MW-008", "MW-101", "MW-107"),
    "stale": ("MW-004",),
    "unavailable": ("MW-111",),
    "paused": ("MW-123",),
    "held": ("MW-122",),
}
"""The groups of the page by the codes of the catalogue."""
_NEEDS_AGENT: Final = ("undelivered", "unapplied", "deleting", "stale")
"""Groups whose works only an agent that is connected can bring on."""


def model(picture: Picture, *, now: float) -> dict[str, Any]:
    """Return the groups, the one with most works first within each kind."""
    groups: dict[tuple[str, str, str], list[WorkRow]] = defaultdict(list)
    kinds = {code: kind for kind, codes in _KINDS.items() for code in codes}
    for row in picture.works.values():
        kind = kinds.get(row.code)
        if kind is not None and _is_stuck(row, kind, now=now):
            groups[kind, row.code, _cause(picture, row, kind)].append(row)
    order = list(_KINDS)
    found = sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
    # Thousands of agents that are away are thousands of causes: nobody reads them one by one, and no page holds them.
    places = Counter[str]()
    shown = [_group(picture, *key, rows, now=now) for key, rows in found if _takes_place(places, key[0])]
    left_out = {kind: count - _MOST_GROUPS for kind, count in places.items() if count > _MOST_GROUPS}
    absent = sum(hold.work_count for hold in picture.holds.values())
    return {"generation": picture.generation, "kinds": order, "groups": shown, "leftOut": left_out, "heldWorks": absent}


def _takes_place(places: Counter[str], kind: str) -> bool:
    places[kind] += 1
    return places[kind] <= _MOST_GROUPS


def _is_stuck(row: WorkRow, kind: str, *, now: float) -> bool:
    """Return whether a work waits for longer than it usually takes; a deletion under way is not stuck."""
    return kind != "deleting" or row.deleted <= now - STUCK_AFTER.total_seconds()


def _cause(picture: Picture, row: WorkRow, kind: str) -> str:
    """Return what works of one group have in common: the absent agent, the error of the cluster, or the consumer."""
    agent = picture.agents.get(row.consumer)
    if agent is not None and not agent.is_connected and kind not in ("held", "paused"):
        return f"agent of {row.consumer} is not connected"
    if kind in ("unapplied", "unavailable"):
        # The same error on many clusters is one cause; the object before it differs.
        return row.problem.partition(": ")[2] or row.problem
    if kind == "deleting" and row.is_blocked:
        return f"{row.consumer}: {row.problem}"
    if kind == "held" and row.consumer in picture.holds:
        hold = picture.holds[row.consumer]
        return f"{row.consumer}: {hold.reason}"
    return row.consumer


def _group(
    picture: Picture, kind: str, code: str, cause: str, rows: Sequence[WorkRow], *, now: float
) -> dict[str, Any]:
    entry = CODES[code]
    oldest = sorted(rows, key=lambda row: row.deleted or row.updated)
    consumers = sorted({row.consumer for row in rows})
    needs_agent = len(consumers) == 1 and kind in _NEEDS_AGENT
    start = remedies.start_agent(picture, consumers[0]) if needs_agent else []
    return {
        "kind": kind,
        "code": code,
        "name": entry.name,
        "severity": entry.severity,
        "title": entry.title,
        "explanation": entry.cause,
        "cause": cause,
        "count": len(rows),
        "since": moment_of(oldest[0].deleted or oldest[0].updated),
        "consumers": consumers[:_MOST_SHOWN],
        "consumerCount": len(consumers),
        "advice": [
            *start,
            *oldest[0].advice,
            *_commands(picture, kind, oldest[0]),
            *bare_finding(code).advice,
        ],
        "offers": remedies.of_group(picture, _offered(kind, consumers, rows), now=now),
        "works": [
            {"id": row.id, "name": row.name, "consumer": row.consumer, "since": moment_of(row.deleted or row.updated)}
            for row in oldest[:_MOST_SHOWN]
        ],
    }


def _offered(kind: str, consumers: Sequence[str], rows: Sequence[WorkRow]) -> remedies.Stuck:
    return remedies.Stuck(
        kind=kind,
        consumers=consumers,
        works=[(row.id, row.name) for row in rows[:2]],
        is_blocked=all(row.is_blocked for row in rows),
    )


def _commands(picture: Picture, kind: str, row: WorkRow) -> list[str]:
    """Return commands that anybody with access to the API can run for the oldest work of a group."""
    work_id, consumer = shlex.quote(row.id), shlex.quote(row.consumer)
    commands = [f"maestro trace work --resource-id {work_id}"]
    if kind == "held" and row.consumer in picture.consumers:
        commands.append(f"maestro consumer adopt {consumer} --dry-run")
    if kind == "paused":
        commands.append(f"maestro consumer resume {consumer} --dry-run")
    if kind in ("undelivered", "stale") and not remedies.has_no_agent(picture, row.consumer):
        commands.append(f"maestro resourcebundle resend {work_id} --dry-run")
    if picture.source.history == "yes":
        commands.append(f"maestro history {work_id}")
    return commands
