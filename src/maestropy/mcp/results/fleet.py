"""Results about many works: the fleet, stuck works, and a search. Pure: pages of the console, without a browser."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from maestropy.console.pages import filters, fleet, stuck
from maestropy.console.picture import Picture
from maestropy.console.rows import WorkRow, moment_of
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.evidence import EvidenceStore
from maestropy.mcp.texts import Ours, known
from maestropy.trace.findings.codes import CODES

_EXAMPLES: Final = 3
_MOST_WORKS: Final = 10
_MOST_CONSUMERS: Final = 10


def of_fleet(picture: Picture, store: EvidenceStore, *, text: str, now: float) -> Result:
    """Return the totals, what is wrong, worst first, and the consumers, worst first."""
    page = fleet.model(picture, (), now=now)
    items = [] if text else [_problem(picture, problem, store) for problem in page["problems"]]
    consumers = fleet.consumers(picture, text=text, sort="worst", now=now)
    items += [_consumer(consumer, picture, store) for consumer in consumers]
    if text and not consumers:
        raise ToolError(f"no consumer has {text} in its name or labels", remedy="Call fleet without text.")
    rates = page["rates"]
    head: dict[str, Any] = {"totals": page["totals"], "readAt": page["source"]["readAt"] or page["now"]}
    if rates["isKnown"]:
        head["lastMinutes"] = {name: value for name, value in rates.items() if name != "isKnown"}
    return Result(head=head, items=items, unknown=_unknown(picture))


def of_stuck(picture: Picture, *, consumer: str, now: float) -> Result:
    """Return the groups of works that do not go on."""
    if (
        consumer
        and consumer not in picture.consumers
        and all(row.consumer != consumer for row in picture.works.values())
    ):
        raise ToolError(f"there is no consumer {consumer}", remedy="Call fleet for the names of consumers.")
    page = stuck.model(_of_consumer(picture, consumer) if consumer else picture, now=now)
    groups = page["groups"]
    head: dict[str, Any] = {
        "groups": len(groups),
        "works": sum(group["count"] for group in groups),
        "heldWorks": page["heldWorks"],
        "kinds": [Ours(kind) for kind in page["kinds"]],
    }
    if not groups:
        head["summary"] = Ours("No work waits for longer than usual.")
    return Result(head=head, items=[_group(group) for group in groups], unknown=_unknown(picture))


def _of_consumer(picture: Picture, consumer: str) -> Picture:
    """Return the picture with the works of one consumer only."""
    part = Picture(picture.source.description)
    part.source = picture.source
    part.works = {key: row for key, row in picture.works.items() if row.consumer == consumer}
    part.consumers, part.agents, part.reporting = picture.consumers, picture.agents, picture.reporting
    part.holds = {name: hold for name, hold in picture.holds.items() if name == consumer}
    part.pauses = picture.pauses
    return part


def of_search(picture: Picture, *, text: str, now: float) -> Result:
    """Return the works that match a filter, the worst first."""
    try:
        terms = filters.parse(text)
    except filters.InvalidFilter as error:
        raise ToolError(str(error), remedy="Correct the filter, or search for plain words.") from error
    if filters.sources(terms):
        raise ToolError("source: is not known to this search", remedy="Search by consumer:, label: or plain words.")
    context = filters.Context(now=now, of_sources={}, away=frozenset(picture.away_consumers()))
    chosen = filters.choose(picture.works.values(), terms, context)
    rows = filters.ordered(chosen, "severity")
    head: dict[str, Any] = {"matches": len(rows), "works": len(picture.works)}
    if not rows:
        head["summary"] = Ours("No work matches. Names are exact words or parts of them; try a part of the name.")
    return Result(head=head, items=[_row(row) for row in rows], unknown=_unknown(picture))


def _row(row: WorkRow) -> dict[str, Any]:
    item: dict[str, Any] = {
        "work": row.name,
        "id": row.id,
        "consumer": row.consumer,
        "code": Ours(row.code),
        "verdict": known(CODES[row.code].title),
        "version": row.version,
        "reported": row.observed,
        "conditions": list(row.conditions),
        "updated": Ours(moment_of(row.updated) or ""),
        "evidence": f"row:{row.id}",
    }
    if row.deleted:
        item["deletionRequested"] = Ours(moment_of(row.deleted) or "")
    if row.problem:
        item["problem"] = row.problem
    return item


def _problem(picture: Picture, problem: dict[str, Any], store: EvidenceStore) -> dict[str, Any]:
    examples: list[str] = [f"row:{work_id}" for work_id in problem["examples"][:_EXAMPLES]]
    if problem["unit"] == "agents":
        examples = [_contact(picture, name, store) for name in problem["consumers"][:_EXAMPLES]]
    return {
        "problem": Ours(problem["code"]),
        "severity": Ours(problem["severity"]),
        "title": known(problem["title"]),
        "count": problem["count"],
        "unit": Ours(problem["unit"]),
        "since": Ours(problem["since"] or "unknown"),
        "consumers": problem["consumers"][:_MOST_CONSUMERS],
        "consumerCount": problem["consumerCount"],
        "says": problem["evidence"],
        "evidence": examples or [f"consumer:{name}" for name in problem["consumers"][:_EXAMPLES]],
    }


def _contact(picture: Picture, name: str, store: EvidenceStore) -> str:
    agent = picture.agents[name]
    state = "connected" if agent.is_connected else "disconnected"
    instance = f" of instance {agent.instance}" if agent.instance else ""
    return store.seen(f"history of consumer {name}", f"agent.{state} at {moment_of(agent.since)}{instance}")


def _consumer(consumer: dict[str, Any], picture: Picture, store: EvidenceStore) -> dict[str, Any]:
    name = consumer["name"]
    names = ("works", "errors", "warnings", "deleting", "behind", "lagSeconds", "isHeld", "isPaused")
    evidence = [f"consumer:{name}"] if consumer["isKnown"] else []
    if name in picture.agents:
        evidence.append(_contact(picture, name, store))
    return {
        "consumer": name,
        "agent": Ours(consumer["agent"]),
        "agentSince": Ours(consumer["agentSince"] or "unknown"),
        **{key: consumer[key] for key in names if consumer[key]},
        "evidence": evidence,
    }


def _group(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": Ours(group["kind"]),
        "code": Ours(group["code"]),
        "severity": Ours(group["severity"]),
        "title": known(group["title"]),
        "cause": group["cause"],
        "explanation": known(group["explanation"]),
        "count": group["count"],
        "since": Ours(group["since"] or "unknown"),
        "consumers": group["consumers"][:_MOST_CONSUMERS],
        "do": [known(command) for command in group["advice"]],
        "works": [
            {"work": work["name"], "consumer": work["consumer"], "evidence": f"row:{work['id']}"}
            for work in group["works"][:_MOST_WORKS]
        ],
    }


def _unknown(picture: Picture) -> Sequence[str]:
    return list(_sentences(picture))


def _sentences(picture: Picture) -> Iterable[str]:
    source = picture.source
    if source.problem:
        yield f"what is true now: {source.problem}; this is what was read before"
    if not source.is_complete:
        yield f"all works but the first {len(picture.works)} of {source.total}: they are still being read; ask again"
    if source.left_out:
        yield f"{source.left_out} works beyond the limit of this program"
    if source.history == "unsupported":
        yield "whether agents are connected: the server keeps no history, as a Go server"
    elif source.history == "denied":
        yield "whether agents are connected: the history is denied to this user"
    elif source.history != "yes":
        yield "whether agents are connected: there is no history"
