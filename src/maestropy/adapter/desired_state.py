"""Define what a handler returns and reads: the desired state, the observed state and the status report. Pure.

def control_plane(event: Event, cluster: Resource) -> DesiredState:
    return DesiredState(Work(...).add(manifest, feedback={"status": ".status"}), read=endpoint)

def endpoint(observed: ObservedState) -> StatusReport:
    return StatusReport(available=observed.status("HostedCluster"))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from maestropy.adapter.errors import NotYet, UnreadableFeedback
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk._manifests import typed
from maestropy.sdk._manifests.status import Manifest
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire.works import status
from maestropy.wire.works.status import Condition

Value = TypeVar("Value")

Available = bool | Condition | Mapping[str, Any] | None
"""True or False; a condition; an object's status, of which the condition Available is taken; None for unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """What an adapter concludes from the observed state."""

    available: Available = None
    reason: str = ""
    """A CamelCase word for programs; empty for the condition's own reason."""
    message: str = ""
    """A sentence for people."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Values for other adapters and for users, such as an endpoint."""
    health: Condition | None = None
    """The adapter's own health; None means healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReady:
    """Nothing can be applied yet: a precondition is missing."""

    reason: str
    message: str = ""


class ObservedState:
    """The works of an adapter with the status and the feedback values that the agent reported."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.works = tuple(works)
        """The works as they are stored, with their status."""

    def work(self, name: str = "") -> Work:
        """Return the work of this name, or the only one there is."""
        matches = [work for work in self.works if name in ("", work.name)]
        if len(matches) != 1:
            names = ", ".join(work.name for work in self.works) or "none"
            raise UnreadableFeedback(f"{len(matches)} works match {name or 'any name'!r}; there are: {names}")
        return matches[0]

    def manifest(self, kind: str = "", name: str = "") -> Manifest:
        """Return the only manifest of this kind and name among all works."""
        manifests = [manifest for work in self.works for manifest in work.manifests]
        matches = [manifest for manifest in manifests if kind in ("", manifest.kind) and name in ("", manifest.name)]
        if len(matches) != 1:
            names = ", ".join(f"{manifest.kind}/{manifest.name}" for manifest in manifests) or "none"
            raise UnreadableFeedback(
                f"{len(matches)} objects match {kind or 'any kind'}/{name or 'any name'}; there are: {names}"
            )
        return matches[0]

    @overload
    def feedback(self, rule: str, kind: str = "", name: str = "") -> Any: ...
    @overload
    def feedback(self, rule: str, kind: str = "", name: str = "", *, into: type[Value]) -> Value: ...
    def feedback(self, rule: str, kind: str = "", name: str = "", *, into: type[Any] | None = None) -> Any:
        """Return the value of a feedback rule; raises NotYet, which is reported as Available=Unknown.

        `into` is a class for the value: a msgspec Struct, a dataclass, a TypedDict or a pydantic model. A value that
        does not match it raises UnreadableFeedback, which is reported as Unknown with the reason.

        >>> observed.feedback("replicas", "NodePool")
        >>> observed.feedback("status", "HostedCluster", into=HostedClusterStatus)
        """
        manifest = self.manifest(kind, name)
        values = manifest.feedback
        if rule not in values:
            raise NotYet(_why_missing(manifest, rule))
        if into is None:
            return values[rule]
        try:
            return typed.convert(values[rule], into, name=rule)
        except Invalid as error:
            raise UnreadableFeedback(error.reason) from error

    def status(self, kind: str = "", name: str = "", *, rule: str = "status") -> Mapping[str, Any]:
        """Return an object's status, from a rule such as {"status": ".status"}; raises NotYet, UnreadableFeedback."""
        value = self.feedback(rule, kind, name)
        if not isinstance(value, Mapping):
            cut = " (an agent truncates values above its limit)" if isinstance(value, str) else ""
            raise UnreadableFeedback(
                f"feedback {rule!r} of {kind or 'the object'} is not a JSON object{cut}: {str(value)[:80]!r}"
            )
        return value


Read = Callable[[ObservedState], StatusReport]


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The works that should exist for one resource."""

    works: Work | Sequence[Work]
    """All of them: a work of an earlier desired state that is not among them is deleted."""
    read: Read | None = field(default=None, kw_only=True)
    """Turns the observed state into a status report; without it, the works' own Available conditions decide."""
    consumer: str = field(default="", kw_only=True)
    """The consumer of works that do not exist yet; empty for the adapter's target."""

    @property
    def all_works(self) -> tuple[Work, ...]:
        """The works as a tuple, also when there is only one."""
        return (self.works,) if isinstance(self.works, Work) else tuple(self.works)


HandlerResult = DesiredState | Work | Sequence[Work] | StatusReport | NotReady
"""What a handler returns: a desired state; bare works; a status report, if it needs no work; or NotReady."""

Handler = Callable[[Event, Resource], HandlerResult]


def availability_of_works(observed: ObservedState) -> StatusReport:
    """Return the status report that follows from the works' own Available conditions."""
    for work in observed.works:
        available = work.condition(status.AVAILABLE)
        if available is None:
            raise NotYet(f"the agent has not reported yet whether work {work.name} is available")
        if available.status != status.TRUE:
            return StatusReport(available=available)
    last = observed.works[-1].condition(status.AVAILABLE) if observed.works else None
    return StatusReport(available=last if last is not None else True)


def _why_missing(manifest: Manifest, rule: str) -> str:
    identity = f"{manifest.kind} {manifest.name}"
    if manifest.reported is None:
        return f"the agent has not reported on {identity} yet"
    synced = manifest.condition(status.STATUS_FEEDBACK_SYNCED)
    if synced is not None and synced.status != status.TRUE:
        return f"feedback {rule!r} of {identity} cannot be read: {synced.message or synced.reason}"
    return f"{identity} has no feedback {rule!r} yet"
