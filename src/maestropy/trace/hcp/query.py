"""Queries of the walk and their results, as values. Hops do not know who runs a query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from maestropy.trace.hcp.lookup import Json


class System(StrEnum):
    """A system that can be queried."""

    FRONTEND = "RP frontend"
    BACKEND = "RP backend"
    CLUSTERS_SERVICE = "Clusters Service"
    MAESTRO = "Maestro"
    MANAGEMENT = "management cluster"


class Topic(StrEnum):
    """The topic of a query and of a document."""

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
    def system(self) -> System:
        return _PLACES.get(self, System.MANAGEMENT)


_PLACES: Mapping[Topic, System] = {
    Topic.ARM_CLUSTER: System.FRONTEND,
    Topic.OPERATION: System.FRONTEND,
    Topic.COSMOS: System.BACKEND,
    Topic.CS_CLUSTER: System.CLUSTERS_SERVICE,
    Topic.CS_STATUS: System.CLUSTERS_SERVICE,
    Topic.CS_CHECKS: System.CLUSTERS_SERVICE,
    Topic.CS_NODE_POOLS: System.CLUSTERS_SERVICE,
    Topic.SHARD: System.CLUSTERS_SERVICE,
    Topic.CONSUMER: System.MAESTRO,
    Topic.BUNDLE: System.MAESTRO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HopQuery:
    """One query. The topic decides which fields are used; empty fields do not narrow it."""

    topic: Topic
    name: str = ""
    """Of the object, or its ID where the system has IDs."""
    namespace: str = ""
    """Of the object; of an operation, its Azure region."""
    cid: str = ""
    """The Clusters Service id everything of this HCP is labelled with."""
    arm: str = ""
    """The ARM resource ID."""


class QueryOutcome(StrEnum):
    """The outcome of a query."""

    FOUND = "found"
    ABSENT = "absent"
    """The system has no such object."""
    UNKNOWN = "unknown"
    """The system could not be queried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a result."""

    value: Json = field(repr=False)
    where: str
    """The file, or the address it was read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopQueryResult:
    """The result of a query."""

    outcome: QueryOutcome
    documents: tuple[Document, ...] = ()
    why: str = ""
    """Why the outcome is unknown or absent, in one sentence."""
    notes: tuple[str, ...] = ()
    """Worth telling: a list that was cut."""
    disagreements: tuple[str, ...] = ()
    """Documents that contradict each other about the same object."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFlags:
    """Flags with which printed commands reach the systems that the walk read, quoted for a shell."""

    management: str = ""
    """Of kubectl, for the management cluster."""
    service: str = ""
    """Of kubectl, for the service cluster."""
    work: str = ""
    """Of `maestro trace work`, for the same Maestro and management cluster; empty if Maestro was not reached."""
    logs: str = ""
    """Of `maestro trace logs collect`; empty if not both clusters are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """When the facts are from."""

    now: datetime
    source: str = ""
    """The directory or the addresses."""
    is_offline: bool = False
    """Whether no live system was queried."""
    problems: tuple[str, ...] = ()
    """Files of the directory that could not be read, with the reason."""


def found_result(
    *documents: Document, notes: tuple[str, ...] = (), disagreements: tuple[str, ...] = ()
) -> HopQueryResult:
    """Return what was found."""
    return HopQueryResult(outcome=QueryOutcome.FOUND, documents=documents, notes=notes, disagreements=disagreements)


def absent_result(why: str) -> HopQueryResult:
    """Return an absent result."""
    return HopQueryResult(outcome=QueryOutcome.ABSENT, why=why)


def unknown_result(why: str) -> HopQueryResult:
    """Return an unknown result."""
    return HopQueryResult(outcome=QueryOutcome.UNKNOWN, why=why)
