"""Lay a work out as hops from its source to its subscribers, and mark the first one that is broken. Pure.

The verdict comes from `trace work`; this module only knows at which hop each code stops. What nothing has told is
unknown, never broken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from maestropy.console.picture import AgentState
from maestropy.console.rows import moment_of
from maestropy.trace.work.judge.deletion import DeletionStep

HOPS: Final = ("source", "server", "database", "broker", "agent", "cluster", "status", "subscribers")
_STOPS_AT: Final = {
    "MW-002": "agent",
    "MW-003": "agent",
    "MW-004": "agent",
    "MW-005": "cluster",
    "MW-006": "cluster",
    "MW-007": "cluster",
    "MW-008": "status",
    "MW-009": "database",
    "MW-010": "database",
    "MW-012": "cluster",
    "MW-013": "cluster",
    "MW-101": "status",
    "MW-103": "cluster",
    "MW-104": "cluster",
    "MW-105": "status",
    "MW-106": "cluster",
    "MW-107": "cluster",
    "MW-108": "agent",
    "MW-109": "cluster",
    "MW-110": "cluster",
    "MW-111": "cluster",
    "MW-112": "cluster",
    "MW-113": "cluster",
    "MW-114": "cluster",
    "MW-122": "agent",
    "MW-123": "broker",
}
"""The first hop that does not do its part, by the code of the verdict."""
_Facts = tuple[str, float, str]
"""State, time and what is known."""
_WAITING: Final = frozenset({"MW-002", "MW-007", "MW-101"})
_OF_AGENT: Final = frozenset({"MW-002", "MW-003", "MW-004", "MW-007", "MW-008", "MW-101"})
"""Verdicts on works that wait for an agent that is not connected, whatever else they wait for."""
_CONNECTIONS: Final[Mapping[AgentState, str]] = {
    "connected": "connected",
    "away": "not connected",
    "never": "no agent has ever connected",
    "unknown": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of each hop besides the verdict; times are seconds since 1970, 0 if unknown."""

    code: str
    summary: str
    source: str = ""
    operation_id: str = ""
    requested: float = 0.0
    stored: float = 0.0
    version: int = 0
    published: float = 0.0
    """When the spec event was published, if the database could be read."""
    is_unpublished: bool = False
    """Whether a spec event waits to be published."""
    agent: AgentState = "unknown"
    agent_since: float = 0.0
    observed: int = 0
    objects_applied: int = 0
    objects: int = 0
    sent: float = 0.0
    """When the agent sent its last status, by its own clock."""
    status_stored: float = 0.0
    delivered: float = 0.0
    """When the server sent the status to subscribers, if logs are followed."""
    deletion: Sequence[DeletionStep] = ()
    """How far the deletion has come; empty if none is requested."""

    def step(self, name: str) -> DeletionStep | None:
        """Return one step of the deletion; None if none is requested."""
        return next((step for step in self.deletion if step.name == name), None)


def strip(known: Known) -> list[dict[str, Any]]:
    """Return the hops in order, each with its state, its time and what is known."""
    hops = [_hop(name, known) for name in HOPS]
    stop = _stop(known)
    if stop is None:
        return hops
    index = HOPS.index(stop)
    is_waiting = known.code in _WAITING and known.agent != "away"
    for number, hop in enumerate(hops):
        if number == index:
            facts = f" ({hop['says']})" if hop["says"] else ""
            hop["state"] = "waiting" if is_waiting else "broken"
            hop["says"] = f"{known.code} {known.summary}{facts}"
            hop["isStop"] = True
        elif number > index and hop["state"] == "ok" and 0 < known.observed < known.version:
            # What was reported before belongs to an older version.
            hop["state"] = "old"
    return hops


def _stop(known: Known) -> str | None:
    if known.agent in ("away", "never") and known.code in _OF_AGENT:
        # Also where its events wait: the gRPC broker publishes nothing to an agent that is not connected.
        return "agent"
    if known.deletion and known.code in ("MW-007", "MW-008", "MW-101"):
        return _deletion_stop(known)
    if known.is_unpublished and known.code in ("MW-002", "MW-003", "MW-004"):
        return "broker"
    return _STOPS_AT.get(known.code)


def _deletion_stop(known: Known) -> str | None:
    """Return the hop whose turn it is: the cluster only when the agent is known to have begun to delete."""
    published = known.step("published")
    if is_blocked(known.deletion):
        return "cluster"
    if _has_deletion(known):
        return _STOPS_AT[known.code]
    return "broker" if published is not None and published.state == "waiting" else "agent"


def is_blocked(steps: Sequence[DeletionStep]) -> bool:
    """Return whether objects on the cluster keep the work from being deleted."""
    return any(step.name == "objects gone" and step.state == "waiting" for step in steps)


def _hop(name: str, known: Known) -> dict[str, Any]:
    state, at, says = _FACTS[name](known)
    return {"hop": name, "state": state, "at": moment_of(at), "says": says, "isStop": False}


def _source(known: Known) -> _Facts:
    operation = f"operation {known.operation_id}" if known.operation_id else ""
    return _stored(known), 0.0, " ".join(filter(None, (known.source, operation)))


def _server(known: Known) -> _Facts:
    return _stored(known), known.requested, ""


def _database(known: Known) -> _Facts:
    if known.deletion and known.version:
        return _stored(known), known.stored, f"deletion of version {known.version} is requested"
    return _stored(known), known.stored, f"version {known.version}" if known.version else ""


def _stored(known: Known) -> str:
    return "ok" if known.stored else "unknown"


def _broker(known: Known) -> _Facts:
    if known.deletion:
        published = known.step("published")
        if published is not None and published.state == "waiting" and known.agent in ("away", "never"):
            return "unknown", 0.0, "the deletion waits for the agent"
        return _deletion_facts(known, "published", is_done=_has_deletion(known))
    if known.published or _is_reported(known):
        return "ok", known.published, "published" if known.published else "the agent has it"
    return "unknown", 0.0, ""


def _agent(known: Known) -> _Facts:
    says = _CONNECTIONS[known.agent]
    has_it = _has_deletion(known) if known.deletion else _is_reported(known)
    return ("ok" if has_it else "unknown"), known.agent_since, says


def _cluster(known: Known) -> _Facts:
    if known.deletion:
        return _deletion_facts(known, "objects gone") if known.observed else ("unknown", 0.0, "")
    if not (known.objects and known.observed):
        return "unknown", 0.0, ""
    state = "ok" if known.objects_applied >= known.objects else "unknown"
    return state, 0.0, f"{known.objects_applied} of {known.objects} applied"


def _status(known: Known) -> _Facts:
    if known.deletion:
        return "unknown", 0.0, "the deletion is not confirmed"
    if not known.observed:
        return "unknown", 0.0, "never reported"
    return "ok", known.status_stored or known.sent, f"version {known.observed} is reported"


def _subscribers(known: Known) -> _Facts:
    if known.deletion:
        # What they have got is the status of the version before.
        return "unknown", 0.0, ""
    return ("ok" if known.delivered else "unknown"), known.delivered, ""


def _deletion_facts(known: Known, name: str, *, is_done: bool = False) -> _Facts:
    """Return what a step of the deletion says; one that is not done is not known, never broken."""
    step = known.step(name)
    if step is None or (step.state == "unknown" and not is_done):
        return "unknown", 0.0, ""
    if step.state != "done" and is_done:
        return "ok", 0.0, "the agent has it"
    return ("ok" if step.state == "done" else "unknown"), 0.0, step.says


def _has_deletion(known: Known) -> bool:
    """Return whether the agent has received the deletion; of a work that it never had, nothing on the cluster tells."""
    deleting = known.step("deleting")
    return bool(known.observed) and deleting is not None and deleting.state == "done"


def _is_reported(known: Known) -> bool:
    return known.observed >= known.version > 0


_FACTS: Final[Mapping[str, Callable[[Known], _Facts]]] = {
    "source": _source,
    "server": _server,
    "database": _database,
    "broker": _broker,
    "agent": _agent,
    "cluster": _cluster,
    "status": _status,
    "subscribers": _subscribers,
}
