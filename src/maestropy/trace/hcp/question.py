"""What the walk wants to know, and what it is told. Both are values: whoever answers is no concern of the hops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from maestropy.trace.hcp.reading import Json


class Place(StrEnum):
    """Who can answer."""

    FRONTEND = "RP frontend"
    BACKEND = "RP backend"
    CLUSTERS_SERVICE = "Clusters Service"
    MAESTRO = "Maestro"
    MANAGEMENT = "management cluster"


class Topic(StrEnum):
    """What a question is about, and what a document tells."""

    ARM_CLUSTER = "HCP as ARM sees it"
    OPERATION = "operation status"
    COSMOS = "documents of the RP backend"
    CS_CLUSTER = "Clusters Service cluster"
    CS_STATUS = "Clusters Service status"
    CS_CHECKS = "inflight checks"
    CS_NODE_POOLS = "Clusters Service node pools"
    SHARD = "provision shard"
    CONSUMER = "Maestro consumer"
    BUNDLE = "Maestro resource bundle"
    APPLIED_WORK = "AppliedManifestWork"
    WORK = "ManifestWork"
    MANAGED_CLUSTER = "ManagedCluster"
    HOSTED_CLUSTER = "HostedCluster"
    NODE_POOL = "NodePool"
    NAMESPACE = "Namespace"
    POD = "Pod"

    @property
    def place(self) -> Place:
        """Who can answer."""
        return _PLACES.get(self, Place.MANAGEMENT)


_PLACES: Mapping[Topic, Place] = {
    Topic.ARM_CLUSTER: Place.FRONTEND,
    Topic.OPERATION: Place.FRONTEND,
    Topic.COSMOS: Place.BACKEND,
    Topic.CS_CLUSTER: Place.CLUSTERS_SERVICE,
    Topic.CS_STATUS: Place.CLUSTERS_SERVICE,
    Topic.CS_CHECKS: Place.CLUSTERS_SERVICE,
    Topic.CS_NODE_POOLS: Place.CLUSTERS_SERVICE,
    Topic.SHARD: Place.CLUSTERS_SERVICE,
    Topic.CONSUMER: Place.MAESTRO,
    Topic.BUNDLE: Place.MAESTRO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to find out. Which of the fields count depends on the topic; empty ones do not narrow."""

    topic: Topic
    name: str = ""
    """Of the object, or the id where the place has ids."""
    namespace: str = ""
    """Of the object; of an operation, its Azure region."""
    cid: str = ""
    """The Clusters Service id everything of this HCP is labelled with."""
    arm: str = ""
    """The ARM resource ID."""


class Outcome(StrEnum):
    """How a question ended."""

    FOUND = "found"
    ABSENT = "absent"
    """Whoever knows says there is none."""
    UNKNOWN = "unknown"
    """Nobody who knows could be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What somebody said."""

    value: Json = field(repr=False)
    where: str
    """The file, or the address it was read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a question."""

    outcome: Outcome
    documents: tuple[Document, ...] = ()
    why: str = ""
    """Why nothing is known, or who says there is none; one sentence."""
    notes: tuple[str, ...] = ()
    """Worth telling: a list that was cut."""
    disagreements: tuple[str, ...] = ()
    """Documents that tell the same thing differently."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """When the facts are from."""

    now: datetime
    source: str = ""
    """The directory or the addresses."""
    is_offline: bool = False
    """Whether there was nobody to ask."""


def found(*documents: Document, notes: tuple[str, ...] = (), disagreements: tuple[str, ...] = ()) -> Answer:
    """Return what was found."""
    return Answer(outcome=Outcome.FOUND, documents=documents, notes=notes, disagreements=disagreements)


def absent(why: str) -> Answer:
    """Return that there is none."""
    return Answer(outcome=Outcome.ABSENT, why=why)


def unknown(why: str) -> Answer:
    """Return that nobody could be asked."""
    return Answer(outcome=Outcome.UNKNOWN, why=why)
