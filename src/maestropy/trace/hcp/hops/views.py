"""Views of the walk context that several hops share. Pure."""

from dataclasses import dataclass
from datetime import datetime

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.decode import Bundle, ObjectCondition, Observed
from maestropy.trace.hcp.model import WalkContext
from maestropy.trace.hcp.query import Document, QueryOutcome, Topic

AVAILABLE = "Available"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedClusterView:
    """The HostedCluster: live, or as last reported to Maestro."""

    name: str
    namespace: str
    conditions: tuple[ObjectCondition, ...]
    where: str
    is_live: bool
    document: Document | None = None
    reported_at: datetime | None = None
    """When it was reported to Maestro, if it is not live."""

    @property
    def is_available(self) -> bool:
        return decode.is_true(self.conditions, AVAILABLE)


def bundles(context: WalkContext) -> tuple[Bundle, ...]:
    """Return the bundles of this HCP."""
    return tuple(decode.bundle(bundle.value, where=bundle.where) for bundle in context.documents(Topic.BUNDLE))


def reported(context: WalkContext, kind: str) -> tuple[tuple[Bundle, Observed], ...]:
    """Return every object of a kind in the feedback of bundles, with its bundle; read-only bundles last."""
    ordered = sorted(bundles(context), key=lambda bundle: bundle.read_only)
    return tuple((bundle, item) for bundle in ordered for item in decode.every(bundle.observed) if item.kind == kind)


def hosted(context: WalkContext) -> HostedClusterView | None:
    """Return the HostedCluster, live if it could be read."""
    for hosted_cluster in context.documents(Topic.HOSTED_CLUSTER):
        return HostedClusterView(
            name=lookup.name(hosted_cluster.value),
            namespace=lookup.namespace(hosted_cluster.value),
            conditions=decode.conditions(lookup.objects(hosted_cluster.value, "status", "conditions")),
            where=hosted_cluster.where,
            is_live=True,
            document=hosted_cluster,
        )
    return None if context.outcome(Topic.HOSTED_CLUSTER) is QueryOutcome.ABSENT else reported_hosted(context)


def reported_hosted(context: WalkContext) -> HostedClusterView | None:
    """Return the HostedCluster as last reported to Maestro."""
    for bundle, item in reported(context, "HostedCluster"):
        if item.own:
            return HostedClusterView(
                name=item.name,
                namespace=item.namespace,
                conditions=item.own,
                where=f"feedback in bundle {bundle.id}",
                is_live=False,
                reported_at=bundle.updated,
            )
    return None


def is_available(context: WalkContext) -> bool:
    """Whether the control plane is known to serve."""
    view = hosted(context)
    return view is not None and view.is_available


def cluster(context: WalkContext) -> Document | None:
    """Return the cluster of Clusters Service."""
    return next(iter(context.documents(Topic.CS_CLUSTER)), None)


def cluster_state(context: WalkContext) -> str:
    """Return the state in Clusters Service, empty if unknown."""
    status = next(iter(context.documents(Topic.CS_STATUS)), None)
    document = cluster(context)
    reported_state = lookup.text(status.value, "state") if status else ""
    own = (lookup.text(document.value, "status", "state") or lookup.text(document.value, "state")) if document else ""
    return reported_state or own


def arm_state(context: WalkContext) -> str:
    """Return the provisioning state that ARM sees, empty if unknown."""
    document = next(iter(context.documents(Topic.ARM_CLUSTER)), None)
    return lookup.text(document.value, "properties", "provisioningState") if document else ""


def deletion_signs(context: WalkContext) -> tuple[str, ...]:
    """Return the signs that the HCP is being deleted or was deleted."""
    deleted_bundles = [bundle for bundle in bundles(context) if bundle.deleted]
    objects = [*context.documents(Topic.HOSTED_CLUSTER), *context.documents(Topic.WORK)]
    going = [object_ for object_ in objects if lookup.is_deleting(object_.value)]
    remains = bool(bundles(context) or objects)
    signs = [
        ("ARM says Deleting", arm_state(context) == "Deleting"),
        ("Clusters Service is uninstalling", cluster_state(context) == "uninstalling"),
        (
            "Clusters Service has no cluster for it, and objects remain below",
            context.outcome(Topic.CS_CLUSTER) is QueryOutcome.ABSENT and remains,
        ),
        (f"{len(deleted_bundles)} of {len(bundles(context))} bundles are deleted and not gone", bool(deleted_bundles)),
        (
            f"{', '.join(lookup.text(document.value, 'kind') for document in going[:3])} have a deletion time",
            bool(going),
        ),
    ]
    return tuple(text for text, holds in signs if holds)


def is_deleting(context: WalkContext) -> bool:
    """Whether the HCP is being deleted."""
    return bool(deletion_signs(context))
