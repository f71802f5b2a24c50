"""Lay a work out as hops from its source to its subscribers, and mark the first one that is broken. Pure.

The verdict comes from `trace work`; this module only knows at which hop each code stops. What nothing has told is
unknown, never broken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from maestropy.console.rows import moment_of

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
    agent: str = "unknown"
    """`connected`, `away` or `unknown`."""
    agent_since: float = 0.0
    observed: int = 0
    objects_applied: int = 0
    objects: int = 0
    sent: float = 0.0
    """When the agent sent its last status, by its own clock."""
    status_stored: float = 0.0
    delivered: float = 0.0
    """When the server sent the status to subscribers, if logs are followed."""


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
    if known.agent == "away" and known.code in ("MW-002", "MW-003", "MW-004", "MW-007", "MW-008"):
        # Also where its events wait: the gRPC broker publishes nothing to an agent that is not connected.
        return "agent"
    if known.is_unpublished and known.code in ("MW-002", "MW-003", "MW-004"):
        return "broker"
    return _STOPS_AT.get(known.code)


def _hop(name: str, known: Known) -> dict[str, Any]:
    state, at, says = _FACTS[name](known)
    return {"hop": name, "state": state, "at": moment_of(at), "says": says, "isStop": False}


def _source(known: Known) -> _Facts:
    operation = f"operation {known.operation_id}" if known.operation_id else ""
    return _stored(known), 0.0, " ".join(filter(None, (known.source, operation)))


def _server(known: Known) -> _Facts:
    return _stored(known), known.requested, ""


def _database(known: Known) -> _Facts:
    return _stored(known), known.stored, f"version {known.version}" if known.version else ""


def _stored(known: Known) -> str:
    return "ok" if known.stored else "unknown"


def _broker(known: Known) -> _Facts:
    if known.published or _is_reported(known):
        return "ok", known.published, "published" if known.published else "the agent has it"
    return "unknown", 0.0, ""


def _agent(known: Known) -> _Facts:
    says = {"connected": "connected", "away": "not connected"}.get(known.agent, "")
    return ("ok" if _is_reported(known) else "unknown"), known.agent_since, says


def _cluster(known: Known) -> _Facts:
    if not (known.objects and known.observed):
        return "unknown", 0.0, ""
    state = "ok" if known.objects_applied >= known.objects else "unknown"
    return state, 0.0, f"{known.objects_applied} of {known.objects} applied"


def _status(known: Known) -> _Facts:
    if not known.observed:
        return "unknown", 0.0, "never reported"
    return "ok", known.status_stored or known.sent, f"version {known.observed} is reported"


def _subscribers(known: Known) -> _Facts:
    return ("ok" if known.delivered else "unknown"), known.delivered, ""


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
