"""Group the works that do not go on by their cause, each group with the remedy of the catalogue. Pure."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from maestropy.console.pages import links, remedies
from maestropy.console.picture import Picture
from maestropy.console.rows import WorkRow, moment_of, shortened
from maestropy.trace.findings.codes import CODES
from maestropy.trace.work.judge.facts import STUCK_AFTER
from maestropy.trace.work.judge.findings import bare_finding
from maestropy.trace.work.model import WorkHold

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
_KIND_OF: Final = {code: kind for kind, codes in _KINDS.items() for code in codes}
_HELD: Final = "MW-122"
_NEEDS_AGENT: Final = ("undelivered", "unapplied", "deleting", "stale")
"""Groups whose works only an agent that is connected can bring on."""


def model(picture: Picture, *, now: float) -> dict[str, Any]:
    """Return the groups, the one with most works first within each kind."""
    groups: dict[tuple[str, str, str], list[WorkRow]] = defaultdict(list)
    held: dict[str, list[WorkRow]] = {name: [] for name in picture.holds}
    for row in picture.works.values():
        kind = kind_of(row, now=now)
        if kind == "held" and row.consumer in held:
            held[row.consumer].append(row)
        elif kind is not None:
            groups[kind, row.code, _common(picture, row, kind)].append(row)
    order = list(_KINDS)
    found = sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
    # Thousands of agents that are away are thousands of causes: nobody reads them one by one, and no page holds them.
    places = Counter[str]()
    shown = [_group(picture, *key[:2], rows, now=now) for key, rows in found if _takes_place(places, key[0])]
    holds = sorted(picture.holds.values(), key=lambda hold: (-hold.work_count, hold.consumer))
    shown += [_held(picture, hold, held[hold.consumer], now=now) for hold in holds if _takes_place(places, "held")]
    left_out = {kind: count - _MOST_GROUPS for kind, count in places.items() if count > _MOST_GROUPS}
    absent = sum(hold.work_count for hold in picture.holds.values())
    return {"generation": picture.generation, "kinds": order, "groups": shown, "leftOut": left_out, "heldWorks": absent}


def _takes_place(places: Counter[str], kind: str) -> bool:
    places[kind] += 1
    return places[kind] <= _MOST_GROUPS


def kind_of(row: WorkRow, *, now: float) -> str | None:
    """Return the kind of group of a work that waits for longer than usual; None if it does not.

    A deletion under way is not stuck before an hour.
    """
    kind = _KIND_OF.get(row.code)
    return None if kind == "deleting" and row.deleted > now - STUCK_AFTER.total_seconds() else kind


def _common(picture: Picture, row: WorkRow, kind: str) -> str:
    """Return what the works of one group have in common; rejections by the rule of `maestro diagnose`."""
    return row.cause if row.cause and not _waits_for_agent(picture, row, kind) else _cause(picture, row, kind)


def _waits_for_agent(picture: Picture, row: WorkRow, kind: str) -> bool:
    agent = picture.agents.get(row.consumer)
    return agent is not None and not agent.is_connected and kind not in ("held", "paused")


def _cause(picture: Picture, row: WorkRow, kind: str) -> str:
    """Return the cause of a group in words: the absent agent, the error of the cluster, or the consumer."""
    if _waits_for_agent(picture, row, kind):
        return f"agent of {row.consumer} is not connected"
    if kind in ("unapplied", "unavailable"):
        # The same error on many clusters is one cause; the object before it differs.
        return row.problem.partition(": ")[2] or row.problem
    if kind == "deleting" and row.is_blocked:
        return f"{row.consumer}: {row.problem}"
    return row.consumer


def _group(picture: Picture, kind: str, code: str, rows: Sequence[WorkRow], *, now: float) -> dict[str, Any]:
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
        "cause": _cause(picture, oldest[0], kind),
        "count": len(rows),
        "link": links.works_of_group(rows, code=code),
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
        "works": _listed(oldest),
    }


def _held(picture: Picture, hold: WorkHold, rows: Sequence[WorkRow], *, now: float) -> dict[str, Any]:
    """Return the group of a hold, also of one whose works or whose consumer the database does not have."""
    entry = CODES[_HELD]
    count = max(hold.work_count, len(rows))
    absent = count - len(rows)
    note = f" {absent} of these works are not in the database: the agent keeps their objects." if absent else ""
    message = f"{shortened(hold.message)} " if hold.message else ""
    return {
        "kind": "held",
        "code": _HELD,
        "name": entry.name,
        "severity": entry.severity,
        "title": entry.title,
        "explanation": f"{message}{entry.cause}{note}",
        "cause": f"{hold.consumer}: {hold.reason}",
        "count": count,
        "link": links.works_of_group(rows, code=_HELD) if rows else "",
        "since": hold.since or None,
        "consumers": [hold.consumer],
        "consumerCount": 1,
        "advice": _hold_advice(picture, hold, rows),
        "offers": remedies.of_group(picture, _offered("held", [hold.consumer], rows), now=now),
        "works": _listed(sorted(rows, key=lambda row: row.updated)),
    }


def _hold_advice(picture: Picture, hold: WorkHold, rows: Sequence[WorkRow]) -> list[str]:
    """Return the remedy of a hold; without its consumer nothing can be adopted, and it says what to do then."""
    consumer = shlex.quote(hold.consumer)
    read = [f"maestro trace work --resource-id {shlex.quote(row.id)}" for row in rows[:1]]
    read.append(f"maestro history {consumer} --kind agent,consumer")
    if hold.consumer in picture.consumers:
        return [*(text.replace("{consumer}", consumer) for text in CODES[_HELD].advice[:2]), *read]
    return [
        f"The server has no consumer {hold.consumer}: nothing can be adopted. Its agent changes and deletes nothing.",
        "If the server uses a wrong database, or the agent a wrong name, correct that: the hold ends by itself.",
        f"maestro consumer create {consumer}   # if the cluster shall be managed again; apply its works, or adopt",
        "maestro consumer sweep --dry-run   # if the cluster is given up and its agent is stopped: removes the hold",
        *read,
    ]


def _listed(rows: Sequence[WorkRow]) -> list[dict[str, Any]]:
    return [
        {"id": row.id, "name": row.name, "consumer": row.consumer, "since": moment_of(row.deleted or row.updated)}
        for row in rows[:_MOST_SHOWN]
    ]


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
