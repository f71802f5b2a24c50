"""Plan the removal of rows that belong to nothing, and to no agent that may be there. Pure.

Only rows of the database are removed. Works that agents keep are named, and only an adoption ends them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from maestropy.server.decide.actions import plans, retirement
from maestropy.server.decide.actions.plans import Plan
from maestropy.store import rows

LEFT_BEHIND: Final = timedelta(hours=2)
"""Maintenance removes events without a resource before; what is older was left behind."""

CLASSES: Final[Mapping[str, str]] = {
    "hold": "data-safety hold of a consumer that does not exist",
    "pause": "pause of a consumer that does not exist",
    "agent": "record of an agent whose consumer does not exist",
    "event": "event of a work that does not exist",
    "status-event": "status event of a work that does not exist",
}
_OF_AGENTS: Final = frozenset(("hold", "agent"))
_SHOWN: Final = 20


def of_present_agents(
    orphans: Sequence[rows.Orphan], *, connected: Collection[str], now: datetime
) -> list[rows.Orphan]:
    """Return those that belong to an agent that may be there: it would report its hold again.

    The rule is that of a retirement: connected, or seen within ten minutes. A hold is seen when it begins, too.
    """

    def is_present(orphan: rows.Orphan) -> bool:
        times = (orphan.seen_at, orphan.since)
        return orphan.subject in connected or any(
            time is not None and now - time < retirement.SILENCE for time in times
        )

    return [orphan for orphan in orphans if orphan.kind in _OF_AGENTS and is_present(orphan)]


def plan(
    orphans: Sequence[rows.Orphan],
    agents: Sequence[rows.AgentSide],
    *,
    classes: Collection[str],
    present: Sequence[rows.Orphan] = (),
) -> Plan:
    """Plan to remove the orphans of some classes; those of agents that may be there (`present`) stay."""
    orphans = [orphan for orphan in orphans if orphan not in present]
    chosen = [orphan for orphan in orphans if orphan.kind in classes]
    counts = Counter(orphan.kind for orphan in chosen)
    effects = []
    for kind, count in sorted(counts.items()):
        subjects = [f"{orphan.subject} ({plans.moment(orphan.since)})" for orphan in chosen if orphan.kind == kind]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        effects.append(f"Remove {count} x {CLASSES[kind]}: {', '.join(subjects[:_SHOWN])}{more}.")
    left = sum(1 for orphan in orphans if orphan.kind not in classes)
    warnings = [
        f"The agent of consumer {agent.consumer} keeps {plans.counted(agent.held)} that the database does not ask for, "
        f"and evicts {agent.pending}{f' ({agent.reason})' if agent.reason else ''}. A sweep does not touch them: "
        f"maestro consumer adopt {agent.consumer} --dry-run"
        for agent in agents
    ]
    warnings += [
        f"The hold of consumer {orphan.subject} stays: the consumer does not exist, and its agent is connected or was "
        f"seen within {retirement.SILENCE.total_seconds() / 60:.0f} minutes. Stop the agent, or let it have its "
        f"consumer: maestro consumer create {orphan.subject}"
        for orphan in present
        if orphan.kind == "hold" and "hold" in classes
    ][:_SHOWN]
    if left:
        warnings.append(f"{left} rows of other classes stay")
    return Plan(
        action="sweep",
        effects=tuple(effects) or ("Nothing: every row belongs to a consumer or a work.",),
        warnings=tuple(warnings),
        is_change=bool(chosen),
        work_count=0,
        pin=plans.pin("sweep", sorted((orphan.kind, orphan.subject) for orphan in chosen)),
    )


def subjects(orphans: Sequence[rows.Orphan], *, classes: Collection[str]) -> dict[str, list[str]]:
    """Return what is removed, by class."""
    chosen: dict[str, list[str]] = {}
    for orphan in orphans:
        if orphan.kind in classes:
            chosen.setdefault(orphan.kind, []).append(orphan.subject)
    return chosen
