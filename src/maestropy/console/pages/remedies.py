"""Say which operator actions a page offers, and which of them a viewer may use. Pure; `actions` carries them out.

What an action does, and whether it is refused, says the server in its dry run. Here is only what is worth a button: the
remedy of a verdict, or what the state of a consumer allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from maestropy.console.picture import Picture
from maestropy.console.rows import moment_of

Name = Literal["resend", "resync", "pause", "resume", "adopt", "retire-release", "retire-delete", "sweep"]

_ROLES: Final = ("none", "read", "write", "admin")
_RESENT: Final = frozenset({"MW-002", "MW-003", "MW-004", "MW-007", "MW-008", "MW-101", "MW-105"})
"""Verdicts on works whose spec, deletion or status may have been lost on its way."""
_RETIRED_AFTER: Final = 660.0
"""So long an agent has to be away before a server retires its consumer: ten minutes, and servers note agents once a
minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One operator action."""

    role: str
    """The role of REST that it needs."""
    needs_name: bool = False
    """Whether the name of what it is about has to be typed: it cannot be taken back."""


ACTIONS: Final[dict[str, Action]] = {
    "resend": Action(role="write"),
    "resync": Action(role="write"),
    "pause": Action(role="admin"),
    "resume": Action(role="admin"),
    "adopt": Action(role="admin", needs_name=True),
    "retire-release": Action(role="admin", needs_name=True),
    "retire-delete": Action(role="admin", needs_name=True),
    "sweep": Action(role="admin", needs_name=True),
}


def availability(picture: Picture, *, is_allowed: bool, role: str) -> dict[str, Any]:
    """Return why there are no buttons at all, or for each action whether a viewer with a role may use it.

    An empty role is that of a token which only the server knows: what it may do, the server says.
    """
    note = ""
    if picture.source.archive is not None:
        note = "archive"
    elif picture.source.history == "unsupported":
        note = "unsupported"
    elif not is_allowed:
        note = "readonly"
    if note:
        return {"note": note, "role": role, "can": {}}
    can = {
        name: {"needs": action.role, "isAllowed": _has(role, action.role, picture)} for name, action in ACTIONS.items()
    }
    return {"note": note, "role": role, "can": can}


def _has(role: str, needed: str, picture: Picture) -> bool:
    if not role:
        # The history of everything needs the role admin, too.
        return needed != "admin" or picture.source.history != "denied"
    return role in _ROLES and _ROLES.index(role) >= _ROLES.index(needed)


def of_work(
    picture: Picture, *, work_id: str, name: str, consumer: str, code: str, is_blocked: bool = False
) -> list[dict[str, str]]:
    """Return what helps a work with a verdict; nothing for one that is well, or whose manifests are wrong.

    A deletion that waits for objects on the cluster is blocked there: to send it again changes nothing.
    """
    offers = []
    if consumer in picture.pauses:
        offers.append(_offer("resume", consumer))
    if consumer in picture.holds and consumer in picture.consumers:
        offers.append(_offer("adopt", consumer))
    if code in _RESENT and not is_blocked and not has_no_agent(picture, consumer):
        offers.append(_offer("resend", work_id, label=name or work_id))
        offers.append(_offer("resync", consumer))
    return offers


def has_no_agent(picture: Picture, consumer: str) -> bool:
    """Return whether the agent of a consumer is known not to be connected: nothing can be sent to it."""
    return picture.agent_state(consumer) in ("away", "never")


def start_agent(picture: Picture, consumer: str) -> list[str]:
    """Return the first remedy where no agent can take a work, with what is known of the agent; empty if one can."""
    if picture.agent_state(consumer) == "never":
        never = "the history has no connection of one. If it uses MQTT or Pub/Sub, look into its log instead"
        return [f"Start an agent for {consumer}: {never}."]
    agent = picture.agents.get(consumer)
    if agent is None or agent.is_connected:
        # Behind a message broker, and without a history, nothing is known of connections.
        return []
    where = f" from {agent.address}" if agent.address else ""
    server = f" to the server {agent.instance}" if agent.instance else ""
    since = f"it is not connected since {moment_of(agent.since)}. It was connected{where}{server}"
    return [f"Start the agent of {consumer}: {since}. It gets what waits for it by itself when it is back."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Works that do not go on for one reason."""

    kind: str
    consumers: Sequence[str]
    works: Sequence[tuple[str, str]]
    """IDs and names."""
    is_blocked: bool = False
    """Whether all of them wait for objects on the cluster: to send the deletion again changes nothing."""


def of_group(picture: Picture, group: Stuck, *, now: float) -> list[dict[str, str]]:
    """Return what helps all works of a group of one consumer."""
    kind, consumers, works = group.kind, group.consumers, group.works
    if len(consumers) != 1 or consumers[0] not in picture.consumers:
        return []
    consumer = consumers[0]
    if kind == "paused":
        return [_offer("resume", consumer)] if consumer in picture.pauses else []
    if kind == "held":
        return [_offer("adopt", consumer)] if consumer in picture.holds else []
    if kind not in ("undelivered", "stale", "deleting"):
        return []
    agent = picture.agents.get(consumer)
    if agent is not None and not agent.is_connected:
        if now - agent.since < _RETIRED_AFTER:
            return []
        return [_offer("retire-release", consumer), _offer("retire-delete", consumer)]
    if group.is_blocked or has_no_agent(picture, consumer):
        return []
    resent = [_offer("resend", work_id, label=name or work_id) for work_id, name in works if len(works) == 1]
    return [*resent, _offer("resync", consumer)]


def of_consumer(picture: Picture, name: str, *, contact: float, now: float) -> list[dict[str, str]]:
    """Return what can be done with a consumer; `contact` is when its agent was last heard of, 0 if never."""
    if name not in picture.consumers:
        return []
    agent = picture.agents.get(name)
    offers = [_offer("resume" if name in picture.pauses else "pause", name)]
    if not has_no_agent(picture, name):
        offers.append(_offer("resync", name))
    if name in picture.holds:
        offers.append(_offer("adopt", name))
    if (agent is None or not agent.is_connected) and now - contact >= _RETIRED_AFTER:
        offers += [_offer("retire-release", name), _offer("retire-delete", name)]
    return offers


def of_fleet() -> list[dict[str, str]]:
    """Return what can be done with the database of the fleet."""
    return [_offer("sweep", "sweep")]


def _offer(action: Name, target: str, *, label: str = "") -> dict[str, str]:
    return {"action": action, "target": target, "label": label or target}
