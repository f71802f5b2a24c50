"""Parse a resource of the HyperFleet API: a cluster, a node pool or another kind with a spec. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.event import LARGEST_GENERATION, Event
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
    """Parse the API object of the resource of `event`."""
    generation = raw.get("generation", event.generation)
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 < generation <= LARGEST_GENERATION:
        raise Invalid(
            f"generation is {generation!r}, and must be a whole number above 0",
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
        spec=_object(raw.get("spec")),
        labels={str(key): str(value) for key, value in _object(raw.get("labels")).items()},
        is_deleting=bool(raw.get("deleted_time") or raw.get("deleted_at")),
        raw=raw,
    )


def from_event(event: Event) -> Resource:
    """Return the resource as far as the event describes it, for adapters without a HyperFleet API."""
    return parse(event.data, event)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
