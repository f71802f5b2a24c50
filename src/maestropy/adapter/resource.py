"""Parse a resource of the HyperFleet API: a cluster, a node pool or another kind with a spec. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.event import DELETION_TIMES, LARGEST_GENERATION, Event, description_problems
from maestropy.sdk.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A cluster, node pool or other resource of the HyperFleet API, with its spec."""

    id: str
    kind: str
    generation: int
    """Increases with every change of the spec; a status names the generation it describes."""
    name: str = ""
    href: str = ""
    owner_id: str = ""
    """The cluster a node pool belongs to."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_deleting: bool = False
    """Whether its deletion was requested: adapters then delete their works and report Finalized."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The complete API object, with conditions and the data of other adapters."""

    @property
    def cluster_id(self) -> str:
        """The ID of this cluster, or of the cluster this resource belongs to."""
        return self.owner_id or self.id


def parse(raw: Mapping[str, Any], event: Event) -> Resource:
    """Parse the API object of the resource of `event`; raises Invalid, which names the field."""
    problems = description_problems(raw)
    if "spec" not in raw:
        problems.insert(0, "spec is missing; an empty one is {}")
    if raw.get("id", event.resource_id) != event.resource_id:
        problems.insert(0, f"its id is {raw['id']!r}, and the event is of {event.resource_id!r}")
    kind = raw.get("kind") or event.kind
    # The kind of an event may come from its type, which is in lower case.
    if str(kind).lower() != event.kind.lower():
        problems.insert(0, f"its kind is {kind!r}, and the event is of a {event.kind!r}")
    if problems:
        raise Invalid(
            f"the resource cannot be used: {', '.join(problems)}", doing=f"read {event.kind} {event.resource_id}"
        )
    generation = raw.get("generation", event.generation)
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 < generation <= LARGEST_GENERATION:
        raise Invalid(
            f"generation is {repr(generation)[:64]}, and must be a whole number from 1 to {LARGEST_GENERATION}",
            doing=f"read {event.kind} {event.resource_id}",
        )
    owner = raw.get("owner_references")
    first = owner[0] if isinstance(owner, list) and owner else owner
    return Resource(
        id=event.resource_id,
        kind=event.kind,
        generation=generation,
        name=str(raw.get("name") or event.resource_id),
        href=str(raw.get("href") or event.href),
        owner_id=str(first.get("id") or "") if isinstance(first, Mapping) else event.owner_id,
        spec=raw["spec"],
        labels={str(key): str(value) for key, value in (raw.get("labels") or {}).items()},
        is_deleting=any(raw.get(name) is not None for name in DELETION_TIMES),
        raw=raw,
    )


def from_event(event: Event) -> Resource:
    """Return the resource as far as the event describes it, for adapters without a HyperFleet API.

    An event without a spec describes a resource with an empty one: for a dry run and lint, never for a fleet.
    """
    return parse({"spec": {}, **event.data}, event)
