"""Judge servers, agents, broker and database from the documents of an archive. Pure: documents in, findings out.

The checks of `/readyz` and the thresholds of the alerts decide; nothing here judges works or requests.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from maestropy.trace import connections
from maestropy.trace.connections import Connections
from maestropy.trace.findings import placeholders
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work import parse

Documents = Callable[[str], Sequence[tuple[int, Mapping[str, Any]]]]
"""Returns the documents of a file of the archive, with their line numbers; none for a file that is not there."""
_ALIVE_SECONDS: Final = 60.0
_UNDELIVERED_SECONDS: Final = 900.0
_OFF_SECONDS: Final = 30.0
_SOON_SECONDS: Final = 14 * 86400.0
_BUSY: Final = 0.9
_SHOWN: Final = 5
_NAMED: Final = 3
_READYZ: Final = re.compile(
    r"\[(?P<mark>[-+!])\](?P<name>.+?) (?P<outcome>ok|warning|failed|not seen)(?:: (?P<detail>.*))?"
)
_METRIC: Final = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the rules read of an archive."""

    documents: Documents
    texts: Mapping[str, str]
    """Answers of `/readyz` and `/metrics`, by path."""
    files: Sequence[str]
    now: datetime


def judge(content: Content) -> Iterator[tuple[str, Finding]]:
    """Yield the engine and the finding, for everything that is wrong."""
    engines: Mapping[str, Callable[[Content], Iterator[Finding]]] = {
        "server": _servers,
        "agent": _agents,
        "broker": _broker,
        "database": _database,
        "data safety": _data_safety,
        "clocks": _clocks,
        "certificates": _certificates,
    }
    for name, rules in engines.items():
        for finding in rules(content):
            yield name, finding


def finding(
    code: str, *, evidence: Sequence[Evidence], title: str = "", names: Mapping[str, str] | None = None
) -> Finding:
    """Return a finding of the catalogue; `names` are those of the placeholders in its advice."""
    entry = CODES[code]
    return Finding(
        code=code,
        severity=entry.severity,
        title=title or entry.title,
        detail=entry.cause,
        evidence=tuple(evidence[:_SHOWN]),
        advice=placeholders.filled(entry.advice, names or {}),
    )


def _servers(content: Content) -> Iterator[Finding]:
    for path, text in content.texts.items():
        if not path.endswith(".health.txt"):
            continue
        failed = [line for line in map(_READYZ.fullmatch, text.splitlines()) if line and line["outcome"] == "failed"]
        if failed:
            evidence = [Evidence(where=path, says=f"{line['name']} failed: {line['detail'] or ''}") for line in failed]
            names = ", ".join(line["name"] for line in failed)
            yield finding("MD-101", evidence=evidence, title=f"A server is not ready, because of {names}.")
    instances = content.documents("database/instances.jsonl")
    silent = [item for item in instances if _number(item[1].get("heartbeat_age_seconds")) > _ALIVE_SECONDS]
    if instances and len(silent) == len(instances):
        yield finding("MD-102", evidence=[_evidence("database/instances.jsonl", item, _instance) for item in silent])
    elif silent:
        yield finding("MD-103", evidence=[_evidence("database/instances.jsonl", item, _instance) for item in silent])


def _instance(document: Mapping[str, Any]) -> str:
    age = _number(document.get("heartbeat_age_seconds"))
    return f"instance {document.get('id')} wrote its last heartbeat {age:.0f} s before"


def _agents(content: Content) -> Iterator[Finding]:
    yield from _disconnected(content)
    for path in _named(content, "agent.jsonl"):
        pods = [item for item in content.documents(path) if item[1].get("kind") == "Pod" and not _is_ready(item[1])]
        if pods:
            yield finding("MD-202", evidence=[_evidence(path, pod, _pod) for pod in pods])
    for path in _named(content, "rights.jsonl"):
        denied = [item for item in content.documents(path) if item[1].get("allowed") is False]
        if denied:
            yield finding(
                "MD-203", evidence=[_evidence(path, item, _right) for item in denied], names=_can_i(denied[0][1])
            )
    works, connected = (
        _metric(content, "maestropy_consumers_with_works"),
        _metric(content, "maestropy_consumers_with_works_connected"),
    )
    if works and connected:
        away = max(value for _, _, value in works) - sum(value for _, _, value in connected)
        if away > 0:
            says = (
                f"{away:.0f} of {max(value for _, _, value in works):.0f} consumers with works have no connected agent"
            )
            yield finding("MD-204", evidence=[Evidence(where=works[0][0], says=says)])


def _disconnected(content: Content) -> Iterator[Finding]:
    """Yield the consumers whose connections have all ended; entries are the newest first."""
    existing = {
        str(document.get("name"))
        for path in ("database/consumers.jsonl", "server/consumers.jsonl")
        for _, document in content.documents(path)
    }
    for path in ("database/history.jsonl", "server/history.jsonl"):
        last: dict[str, tuple[int, Mapping[str, Any]]] = {}
        known: dict[str, Connections] = {}
        for item in reversed(content.documents(path)):
            kind, consumer = str(item[1].get("kind", "")), str(item[1].get("consumer_name", ""))
            if kind in connections.KINDS:
                at = parse.moment(item[1].get("time"))
                known[consumer] = known.get(consumer, Connections()).after(
                    kind, at.timestamp() if at else 0.0, seen=connections.last_seen(item[1].get("detail"))
                )
            if kind == connections.DISCONNECTED:
                last[consumer] = item
        for consumer, item in last.items():
            if not known[consumer].is_connected and (not existing or consumer in existing):
                title = f"The agent of {consumer} is not connected."
                names = {"CONSUMER": consumer}
                yield finding("MD-201", evidence=[_evidence(path, item, _entry)], title=title, names=names)


def _entry(document: Mapping[str, Any]) -> str:
    return f"{document.get('kind')} at {document.get('time')}"


def _pod(document: Mapping[str, Any]) -> str:
    status = _mapping(document.get("status"))
    waiting = [
        f"{container.get('name')} {state.get('reason', name)} after {container.get('restartCount', 0)} restarts"
        for container in _mappings(status.get("containerStatuses"))
        if container.get("ready") is not True
        for name, state in _mapping(container.get("state")).items()
        if isinstance(state, Mapping)
    ]
    name = _mapping(document.get("metadata")).get("name")
    return f"pod {name} is {status.get('phase', 'unknown')}{': ' if waiting else ''}{', '.join(waiting)}"


def _is_ready(pod: Mapping[str, Any]) -> bool:
    status = _mapping(pod.get("status"))
    is_done = status.get("phase") == "Succeeded"
    return is_done or any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in _mappings(status.get("conditions"))
    )


def _right(document: Mapping[str, Any]) -> str:
    group = f".{document['group']}" if document.get("group") else ""
    where = f" in namespace {document['namespace']}" if document.get("namespace") else ""
    return f"{document.get('user')} may not {document.get('verb')} {document.get('resource')}{group}{where}"


def _can_i(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a review was asked, as `kubectl auth can-i` takes it."""
    group = f".{document['group']}" if document.get("group") else ""
    resource, user = f"{document.get('resource') or ''}{group}", str(document.get("user") or "")
    return {"VERB": str(document.get("verb") or ""), "KIND": resource, "SERVICE_ACCOUNT": user}


def _broker(content: Content) -> Iterator[Finding]:
    path = "server/broker.jsonl"
    found: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for item in content.documents(path):
        code = _broker_code(str(item[1].get("name")), str(item[1].get("outcome")))
        if code:
            found.setdefault(code, []).append(item)
    for code, items in sorted(found.items()):
        first = str(items[0][1].get("name")).partition(" ")
        names = {"SUBSCRIPTION": first[2]} if first[0] == "subscription" else {}
        yield finding(code, evidence=[_evidence(path, item, _check) for item in items], names=names)
    yield from _unsubscribed(content)
    lost = [item for item in _metric(content, "maestropy_broker_connected") if item[2] == 0]
    if lost:
        yield finding("MD-301", evidence=[Evidence(where=path, says=f"broker {labels}: 0") for path, labels, _ in lost])


def _broker_code(name: str, outcome: str) -> str:
    """Return what a check of the broker found; empty if nothing is wrong."""
    if outcome == "failed":
        by_name = {"broker-topics": "MD-303", "subscriptions of agents": "MD-308"}
        default = "MD-306" if name.startswith(("topic ", "subscription ")) else "MD-302"
        return by_name.get(name, default)
    if outcome == "warning":
        by_name = {"broker-dropped": "MD-304", "broker-clients": "MD-305"}
        return by_name.get(name, "MD-307" if name.startswith("subscription ") else "")
    return ""


def _unsubscribed(content: Content) -> Iterator[Finding]:
    """Yield the consumers of works that no subscription of Pub/Sub is for, where all subscriptions are known."""
    path = "server/broker-state.jsonl"
    agents = [item for item in content.documents(path) if item[1].get("role") == "agent"]
    if not agents or any(item[1].get("problem") for item in agents):
        return
    texts = [(str(item[1].get("filter") or ""), str(item[1].get("name") or "")) for item in agents]
    consumers = {
        str(document.get("consumer_name"))
        for rows in ("database/rows.jsonl", "server/resource-bundles.jsonl")
        for _, document in content.documents(rows)
        if document.get("consumer_name")
    }
    missing = [
        name
        for name in sorted(consumers)
        if not any(f'"{name}"' in chosen if chosen else full.endswith(f"-{name}") for chosen, full in texts)
    ]
    if missing:
        names = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
        says = f"{len(agents)} subscriptions on the topic of specs, none for {names}"
        title = f"Consumers with works have no subscription: {names}."
        known = {"CONSUMER": missing[0]}
        yield finding("MD-308", evidence=[Evidence(where=path, says=says)], title=title, names=known)


def _check(document: Mapping[str, Any]) -> str:
    return f"{document.get('name')} {document.get('outcome')}: {document.get('detail')}"


def _database(content: Content) -> Iterator[Finding]:
    path = "database/pending_events.jsonl"
    paused = {
        str(document.get("consumer_name"))
        for pauses in ("database/pauses.jsonl", "server/pauses.jsonl")
        for _, document in content.documents(pauses)
    }
    old = [
        item
        for item in content.documents(path)
        if _number(item[1].get("age_seconds")) > _UNDELIVERED_SECONDS and item[1].get("consumer_name") not in paused
    ]
    if old:
        consumers = sorted({str(item[1].get("consumer_name")) for item in old})
        names = ", ".join(consumers[:_NAMED]) + (", …" if len(consumers) > _NAMED else "")
        title = f"{len(old)} spec events are not delivered, of {names}."
        yield finding("MD-401", evidence=[_evidence(path, item, _pending) for item in old], title=title)
    for name, bad in (("maestropy_database_up", 0.0), ("maestropy_database_read_only", 1.0)):
        rejecting = [item for item in _metric(content, name) if item[2] == bad]
        if rejecting:
            says = f"{name} is {bad:.0f}"
            yield finding("MD-402", evidence=[Evidence(where=file, says=says) for file, _, _ in rejecting])
    yield from _facts(content)


def _facts(content: Content) -> Iterator[Finding]:
    path = "database/facts.jsonl"
    for number, facts in content.documents(path):
        where = f"{path}:{number}"
        used, most = _number(facts.get("connections")), _number(facts.get("max_connections"))
        if most and used / most > _BUSY:
            yield finding("MD-403", evidence=[Evidence(where=where, says=f"{used:.0f} of {most:.0f} are used")])
        if facts.get("is_in_recovery") is True:
            yield finding("MD-402", evidence=[Evidence(where=where, says="the database is in recovery")])
        if indexes := facts.get("invalid_indexes"):
            yield finding("MD-404", evidence=[Evidence(where=where, says=f"invalid: {indexes}")])


def _pending(document: Mapping[str, Any]) -> str:
    age = _number(document.get("age_seconds"))
    return f"{document.get('event_type')} of {document.get('resource_id')} has waited for {age / 60:.0f} minutes"


def _data_safety(content: Content) -> Iterator[Finding]:
    seen: set[str] = set()
    for path in ("database/holds.jsonl", "server/holds.jsonl"):
        for item in content.documents(path):
            consumer = str(item[1].get("consumer_name"))
            if consumer not in seen:
                seen.add(consumer)
                title = f"The agent of {consumer} holds {item[1].get('work_count')} works for data safety."
                names = {"CONSUMER": consumer}
                yield finding("MD-501", evidence=[_evidence(path, item, _hold)], title=title, names=names)


def _hold(document: Mapping[str, Any]) -> str:
    return f"since {document.get('since')}: {document.get('reason')}: {document.get('message')}"


def _clocks(content: Content) -> Iterator[Finding]:
    off: list[Evidence] = []
    endpoints = [name for name in content.files if name.endswith((".health.jsonl", ".metrics.jsonl"))]
    for path in (*_named(content, "cluster.jsonl"), *endpoints):
        for number, facts in content.documents(path):
            ahead = facts.get("ahead_seconds")
            if abs(_number(ahead)) > _OFF_SECONDS:
                name = facts.get("label") or facts.get("url")
                off.append(
                    Evidence(where=f"{path}:{number}", says=f"{name} is {_number(ahead):+.0f} s off the collector")
                )
    for number, facts in content.documents("database/facts.jsonl"):
        ahead = _number(facts.get("time")) - _number(facts.get("collector_time"))
        if facts.get("collector_time") and abs(ahead) > _OFF_SECONDS:
            says = f"the database is {ahead:+.0f} s off the collector"
            off.append(Evidence(where=f"database/facts.jsonl:{number}", says=says))
    off += [
        Evidence(where=path, says=f"skew to {labels}: {value:+.0f} s")
        for path, labels, value in _metric(content, "maestropy_clock_skew_seconds")
        if abs(value) > _OFF_SECONDS
    ]
    if off:
        yield finding("MD-601", evidence=off)


def _certificates(content: Content) -> Iterator[Finding]:
    ends: list[tuple[float, Evidence]] = []
    for path in content.files:
        for number, document in content.documents(path) if path.endswith(".certificate.jsonl") else ():
            try:
                end = datetime.fromisoformat(str(document.get("not_after")))
            except ValueError:
                continue
            end = end if end.tzinfo else end.replace(tzinfo=UTC)
            says = f"{document.get('name')} ends at {document.get('not_after')}"
            ends.append((end.timestamp(), Evidence(where=f"{path}:{number}", says=says)))
    ends += [
        (value, Evidence(where=path, says=f"certificate {labels}"))
        for path, labels, value in _metric(content, "maestropy_certificate_expiry_timestamp_seconds")
    ]
    now = content.now.timestamp()
    expired = [evidence for end, evidence in ends if end <= now]
    soon = [evidence for end, evidence in ends if now < end < now + _SOON_SECONDS]
    if expired:
        yield finding("MD-602", evidence=expired)
    if soon:
        yield finding("MD-603", evidence=soon)


def _metric(content: Content, name: str) -> list[tuple[str, str, float]]:
    """Return the samples of a metric: path, labels and value."""
    found: list[tuple[str, str, float]] = []
    for path, text in content.texts.items():
        if not path.endswith(".metrics.txt") or name not in text:
            continue
        for line, sample in enumerate(text.splitlines(), 1):
            match = _METRIC.match(sample)
            if match is not None and match["name"] == name:
                try:
                    found.append((f"{path}:{line}", match["labels"] or "", float(match["value"])))
                except ValueError:
                    continue
    return found


def _named(content: Content, ending: str) -> list[str]:
    return [path for path in content.files if path.startswith("clusters/") and path.endswith(f"/{ending}")]


def _evidence(path: str, item: tuple[int, Mapping[str, Any]], describe: Callable[[Mapping[str, Any]], str]) -> Evidence:
    return Evidence(where=f"{path}:{item[0]}", says=describe(item[1]))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
