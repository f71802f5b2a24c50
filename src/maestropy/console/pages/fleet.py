"""Build the fleet page: what is wrong, worst first, the consumers, and the rates of the last minutes. Pure."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from maestropy.console.pages import links, remedies
from maestropy.console.picture import (
    WINDOW_SECONDS,
    ConsumerCounts,
    Picture,
    count_by_consumer,
    recent,
)
from maestropy.console.rows import HEALTHY, PENDING, WorkRow, moment_of
from maestropy.diagnose.analysis import causes, ranking
from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs.model import Trace
from maestropy.trace.report.json_model import statistics_model
from maestropy.trace.report.statistics import statistics

_MOST_PROBLEMS: Final = 50
_MOST_CONSUMERS: Final = 20
_MOST_NAMED: Final = 5
_RANKS: Final = {"error": 0, "warn": 1, "info": 2}
_DISCONNECTED: Final = "MT-301"
_HELD: Final = "MW-122"
SORTS: Final = ("worst", "name", "works", "lag", "contact")


def model(picture: Picture, traces: Sequence[Trace], *, now: float) -> dict[str, Any]:
    """Return the fleet page."""
    severities: dict[str, int] = {"error": 0, "warn": 0, "info": 0}
    for row in picture.works.values():
        severities[row.severity] += 1
    connected = sum(agent.is_connected for agent in picture.agents.values())
    never = sorted(name for name in picture.consumers if picture.agent_state(name) == "never")
    return {
        "generation": picture.generation,
        "now": moment_of(now),
        "source": source_model(picture),
        "totals": {
            "works": len(picture.works),
            "consumers": len(picture.consumers),
            "healthy": severities["info"],
            "warnings": severities["warn"],
            "errors": severities["error"],
            "agentsConnected": connected,
            "agentsAway": len(picture.agents) - connected,
            "agentsNever": len(never),
            "agentsUnknown": len(picture.consumers) - len(picture.agents) - len(never),
        },
        "neverConnected": never[:_MOST_NAMED],
        "rates": _rates(picture, now=now),
        "hops": statistics_model(statistics(traces))["hops"] if traces else {},
        "problems": problems(picture),
        "offers": remedies.of_fleet(),
    }


def source_model(picture: Picture) -> dict[str, Any]:
    """Return where the picture comes from, and how old it is."""
    source = picture.source
    return {
        "description": source.description,
        "problem": source.problem,
        "problemSince": moment_of(source.problem_since),
        "readAt": moment_of(source.read_at),
        "history": source.history,
        "isComplete": source.is_complete,
        "loaded": source.loaded,
        "total": source.total,
        "leftOut": source.left_out,
        "logProblem": source.log_problem,
        "archive": archive_model(picture),
    }


def archive_model(picture: Picture) -> dict[str, Any] | None:
    """Return which archive the picture comes from, and what is not in it; None for a Maestro that runs."""
    origin = picture.source.archive
    if origin is None:
        return None
    return {
        "name": origin.name,
        "collectedAt": moment_of(origin.collected),
        "missing": list(origin.missing),
        "isAnonymised": origin.is_anonymised,
    }


def problems(picture: Picture) -> list[dict[str, Any]]:
    """Return what is wrong now, worst first: errors before warnings, and of those what concerns most works."""
    found = [_group(picture, code, several) for code, several in _groups(picture)]
    away = picture.away_consumers()
    if away:
        since = min(picture.agents[name].since for name in away)
        problem = _problem(_DISCONNECTED, count=len(away), unit="agents", since=since, consumers=away)
        gone = set(away)
        have_works = any(row.consumer in gone for row in picture.works.values())
        found.append({**problem, "link": links.agents_away(away, have_works=have_works)})
    named = {row.consumer for row in picture.works.values() if row.code == _HELD}
    absent = [hold for name, hold in picture.holds.items() if name not in named]
    for hold in absent:
        evidence = f"{hold.reason} since {hold.since}, {hold.work_count} works: {hold.message}"
        consumers = [hold.consumer]
        problem = _problem(
            _HELD, count=hold.work_count, unit="works", since=0.0, consumers=consumers, evidence=evidence
        )
        # The database does not have its works: no list of works shows them.
        found.append({**problem, "link": links.STUCK})
    return sorted(found, key=lambda item: (_RANKS[item["severity"]], -item["count"], item["code"]))[:_MOST_PROBLEMS]


def _groups(picture: Picture) -> Iterator[tuple[str, Sequence[WorkRow]]]:
    """Yield the works that are not well by code and cause, as `maestro diagnose` does, and with its limit of causes."""
    groups: dict[str, dict[str, list[WorkRow]]] = defaultdict(lambda: defaultdict(list))
    for row in picture.works.values():
        if row.code != HEALTHY:
            cause = row.cause or (row.consumer if row.code in causes.OF_AGENT else "")
            groups[row.code][cause].append(row)
    for code, several in groups.items():
        if len(several) <= ranking.MOST_CAUSES:
            yield from ((code, rows) for rows in several.values())
        else:
            yield code, [row for rows in several.values() for row in rows]


def _group(picture: Picture, code: str, several: Sequence[WorkRow]) -> dict[str, Any]:
    consumers = sorted({row.consumer for row in several})
    examples = heapq.nsmallest(_MOST_NAMED, several, key=_since)
    first, oldest = examples[0], _since(examples[0])
    evidence = first.problem
    if code == PENDING and picture.source.history == "yes":
        # It may wait for ever: such a work is not only young.
        lonely = [name for name in consumers if picture.agent_state(name) == "never"]
        if lonely:
            evidence = f"{evidence}; the history has no connection of an agent of {', '.join(lonely[:_MOST_NAMED])}"
    kinds = len({row.cause for row in several})
    if kinds > 1:
        evidence = f"{kinds} different causes; one of them: {evidence}"
    group = _problem(code, count=len(several), unit="works", since=oldest, consumers=consumers, evidence=evidence)
    # One work needs no list.
    group["work"] = first.id if len(several) == 1 else None
    group["examples"] = [row.id for row in examples]
    return {**group, "link": links.works_of_group(several, code=code)}


def _since(row: WorkRow) -> float:
    return row.deleted or row.updated or row.created


def _problem(
    code: str, *, count: int, unit: str, since: float, consumers: Sequence[str], evidence: str = ""
) -> dict[str, Any]:
    entry = CODES[code]
    return {
        "code": code,
        "name": entry.name,
        "severity": entry.severity,
        "title": entry.title,
        "cause": entry.cause,
        "count": count,
        "unit": unit,
        "since": moment_of(since),
        "consumers": list(consumers[:_MOST_CONSUMERS]),
        "consumerCount": len(consumers),
        "evidence": evidence,
        "work": None,
        "examples": [],
    }


def _rates(picture: Picture, *, now: float) -> dict[str, Any]:
    """Return requests and statuses of the last five minutes, and how long a version took until it was reported."""
    if picture.source.history != "yes":
        return {"isKnown": False, "seconds": WINDOW_SECONDS}
    changes = recent(picture.changes, now=now)
    stored: dict[tuple[str, int], float] = {}
    took = []
    requests = statuses = 0
    for change in changes:
        key = (change.resource_id, change.version)
        if change.kind == "work.status":
            statuses += 1
            began = stored.pop(key, None)
            if began is not None:
                took.append(max(0.0, change.at - began))
        else:
            requests += change.kind != "work.deleted"
            if change.kind in ("work.created", "work.updated"):
                stored[key] = change.at
    took.sort()
    return {
        "isKnown": True,
        "seconds": WINDOW_SECONDS,
        "requests": requests,
        "statuses": statuses,
        "reported": len(took),
        "p50Ms": _quantile(took, 0.5),
        "p90Ms": _quantile(took, 0.9),
        "waiting": len(stored),
    }


def _quantile(seconds: Sequence[float], share: float) -> float | None:
    return round(seconds[min(len(seconds) - 1, int(share * len(seconds)))] * 1000, 1) if seconds else None


def consumers(
    picture: Picture, *, text: str, sort: str, now: float, counts: Mapping[str, ConsumerCounts] | None = None
) -> list[dict[str, Any]]:
    """Return the consumers whose name or labels contain a text, in an order of `SORTS`; a minus reverses it."""
    wanted = text.lower()
    counts = count_by_consumer(picture) if counts is None else counts
    found = [
        _consumer(picture, name, counted, now=now)
        for name, counted in counts.items()
        if not wanted or wanted in _searched(picture, name)
    ]
    keys: dict[str, Any] = {
        "worst": lambda item: (
            item["agent"] not in ("away", "never"), -item["errors"], -item["warnings"], -(item["lagSeconds"] or 0),
            item["name"],
        ),
        "name": lambda item: item["name"],
        "works": lambda item: (-item["works"], item["name"]),
        "lag": lambda item: (-(item["lagSeconds"] or 0), item["name"]),
        "contact": lambda item: (item["contact"] or "", item["name"]),
    }  # fmt: skip
    return sorted(found, key=keys[sort.removeprefix("-")], reverse=sort.startswith("-"))


def _searched(picture: Picture, name: str) -> str:
    consumer = picture.consumers.get(name)
    labels: Iterable[str] = (f"{key}={value}" for key, value in consumer.labels.items()) if consumer else ()
    return "\n".join((name, *labels)).lower()


def _consumer(picture: Picture, name: str, counted: ConsumerCounts, *, now: float) -> dict[str, Any]:
    agent = picture.agents.get(name)
    consumer = picture.consumers.get(name)
    state = picture.agent_state(name)
    # A connected agent is in contact now; of one that is away, its last status may be newer than what is recorded.
    contact = now if state == "connected" else max(counted.last_status, agent.since if agent else 0.0)
    return {
        "name": name,
        "isKnown": consumer is not None,
        "labels": dict(consumer.labels) if consumer else {},
        "agent": state,
        "agentSince": moment_of(agent.since) if agent else None,
        "instance": agent.instance if agent else "",
        "contact": moment_of(contact),
        "lastStatus": moment_of(counted.last_status),
        "works": counted.works,
        "errors": counted.severities["error"],
        "warnings": counted.severities["warn"],
        "healthy": counted.severities["info"],
        "deleting": counted.deleting,
        "behind": counted.behind,
        "lagSeconds": round(max(0.0, now - counted.oldest_behind), 1) if counted.oldest_behind else None,
        "isHeld": name in picture.holds,
        "isPaused": name in picture.pauses,
        "offers": remedies.of_consumer(picture, name, contact=contact, now=now),
    }
