"""The two sides of an adapter: what it wants on a cluster, and what it reads from what came back. Pure.

def control_plane(event: Event, cluster: Resource) -> Wish:
    return Wish(Work(...).add(manifest, feedback={"status": ".status"}), read=endpoint)

def endpoint(seen: Seen) -> Reading:
    return Reading(available=seen.status("HostedCluster"))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.errors import NotYet, Unreadable
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.reading import Manifest
from maestropy.sdk.work import Work
from maestropy.wire import status
from maestropy.wire.status import Condition

Available = bool | Condition | Mapping[str, Any] | None
"""True or False; a condition; an object's status, of which the condition Available is taken; None for unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an adapter makes of what it sees."""

    available: Available = None
    reason: str = ""
    """One word for machines; without it, the condition's own."""
    message: str = ""
    """A sentence for people."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Values for other adapters and for users, such as an endpoint."""
    health: Condition | None = None
    """What the adapter thinks of itself; None means well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing is to be done now: something else must come first."""

    reason: str
    message: str = ""


class Seen:
    """What came back from the cluster for the works an adapter wants."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.works = tuple(works)
        """The works as they are stored, with what the agent says about them."""

    def work(self, name: str = "") -> Work:
        """Return the work of this name, or the only one there is."""
        found = [each for each in self.works if name in ("", each.name)]
        if len(found) != 1:
            known = ", ".join(each.name for each in self.works) or "none"
            raise Unreadable(f"{len(found)} works fit {name or 'any name'!r}; there are: {known}")
        return found[0]

    def manifest(self, kind: str = "", name: str = "") -> Manifest:
        """Return the one object of this kind and name, in whichever work it is."""
        everything = [each for work in self.works for each in work.manifests]
        found = [each for each in everything if kind in ("", each.kind) and name in ("", each.name)]
        if len(found) != 1:
            known = ", ".join(f"{each.kind}/{each.name}" for each in everything) or "none"
            raise Unreadable(f"{len(found)} objects fit {kind or 'any kind'}/{name or 'any name'}; there are: {known}")
        return found[0]

    def feedback(self, rule: str, kind: str = "", name: str = "") -> Any:
        """Return the value of a feedback rule; raises NotYet, which the kit reports as Unknown.

        >>> seen.feedback("replicas", "NodePool")
        """
        manifest = self.manifest(kind, name)
        values = manifest.feedback
        if rule not in values:
            raise NotYet(_why_missing(manifest, rule))
        return values[rule]

    def status(self, kind: str = "", name: str = "", *, rule: str = "status") -> Mapping[str, Any]:
        """Return an object's status, from a feedback rule such as {"status": ".status"}; raises NotYet, Unreadable."""
        found = self.feedback(rule, kind, name)
        if not isinstance(found, Mapping):
            cut = " (an agent cuts values above its limit)" if isinstance(found, str) else ""
            raise Unreadable(f"feedback {rule!r} of {kind or 'the object'} is no JSON object{cut}: {str(found)[:80]!r}")
        return found


Read = Callable[[Seen], Reading]


@dataclass(frozen=True, slots=True)
class Wish:
    """What an adapter wants for one resource."""

    works: Work | Sequence[Work]
    """Everything it wants: a work of an earlier wish that is not among them is removed."""
    read: Read | None = field(default=None, kw_only=True)
    """What it reads from what came back; without it, available is what all works say of themselves."""
    consumer: str = field(default="", kw_only=True)
    """The cluster for works that do not exist yet; empty for the adapter's target."""

    @property
    def all_works(self) -> tuple[Work, ...]:
        """The works, be it one."""
        return (self.works,) if isinstance(self.works, Work) else tuple(self.works)


Answer = Wish | Work | Sequence[Work] | Reading | Hold
"""What an adapter's function returns: a wish; bare works; a reading, if it wants nothing on any cluster; a hold."""

Handler = Callable[[Event, Resource], Answer]


def available_by_itself(seen: Seen) -> Reading:
    """Return what the works say of themselves: available when all of their objects exist."""
    for work in seen.works:
        found = work.condition(status.AVAILABLE)
        if found is None:
            raise NotYet(f"the agent has not said yet whether work {work.name} is available")
        if found.status != status.TRUE:
            return Reading(available=found)
    last = seen.works[-1].condition(status.AVAILABLE) if seen.works else None
    return Reading(available=last if last is not None else True)


def _why_missing(manifest: Manifest, rule: str) -> str:
    who = f"{manifest.kind} {manifest.name}"
    if manifest.reported is None:
        return f"the agent has not reported on {who} yet"
    synced = manifest.condition(status.STATUS_FEEDBACK_SYNCED)
    if synced is not None and synced.status != status.TRUE:
        return f"feedback {rule!r} of {who} cannot be read: {synced.message or synced.reason}"
    return f"{who} has no feedback {rule!r} yet"
