"""What several hops want to know about each other, read from the scene once. Pure."""

from dataclasses import dataclass
from datetime import datetime

from maestropy.trace.hcp import decode, reading
from maestropy.trace.hcp.decode import Bundle, Condition, Observed
from maestropy.trace.hcp.model import Scene
from maestropy.trace.hcp.question import Document, Outcome, Topic

HEALED = "Available"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """The HostedCluster: as it is, or as Maestro was last told."""

    name: str
    namespace: str
    conditions: tuple[Condition, ...]
    where: str
    is_live: bool
    document: Document | None = None
    told_at: datetime | None = None
    """When Maestro was told, if it is not live."""

    @property
    def is_available(self) -> bool:
        """Whether its control plane serves."""
        return decode.is_true(self.conditions, HEALED)


def bundles(scene: Scene) -> tuple[Bundle, ...]:
    """Return the bundles of this HCP."""
    return tuple(decode.bundle(each.value, where=each.where) for each in scene.documents(Topic.BUNDLE))


def reported(scene: Scene, kind: str) -> tuple[tuple[Bundle, Observed], ...]:
    """Return every object of a kind that a bundle tells about, with the bundle; the wrapped before the read-only."""
    ordered = sorted(bundles(scene), key=lambda each: each.read_only)
    return tuple((each, seen) for each in ordered for seen in decode.every(each.observed) if seen.kind == kind)


def hosted(scene: Scene) -> Hosted | None:
    """Return the HostedCluster, live if it could be seen."""
    for each in scene.documents(Topic.HOSTED_CLUSTER):
        return Hosted(
            name=reading.name(each.value),
            namespace=reading.namespace(each.value),
            conditions=decode.conditions(reading.objects(each.value, "status", "conditions")),
            where=each.where,
            is_live=True,
            document=each,
        )
    return None if scene.outcome(Topic.HOSTED_CLUSTER) is Outcome.ABSENT else told_hosted(scene)


def told_hosted(scene: Scene) -> Hosted | None:
    """Return the HostedCluster as Maestro was last told about it."""
    for bundle, seen in reported(scene, "HostedCluster"):
        if seen.own:
            return Hosted(
                name=seen.name,
                namespace=seen.namespace,
                conditions=seen.own,
                where=f"feedback in bundle {bundle.id}",
                is_live=False,
                told_at=bundle.updated,
            )
    return None


def is_available(scene: Scene) -> bool:
    """Whether the control plane is known to serve."""
    found = hosted(scene)
    return found is not None and found.is_available


def cluster(scene: Scene) -> Document | None:
    """Return the cluster of Clusters Service."""
    return next(iter(scene.documents(Topic.CS_CLUSTER)), None)


def cluster_state(scene: Scene) -> str:
    """Return the state in Clusters Service, empty if unknown."""
    status = next(iter(scene.documents(Topic.CS_STATUS)), None)
    found = cluster(scene)
    told = reading.text(status.value, "state") if status else ""
    own = (reading.text(found.value, "status", "state") or reading.text(found.value, "state")) if found else ""
    return told or own


def arm_state(scene: Scene) -> str:
    """Return the provisioning state that ARM sees, empty if unknown."""
    found = next(iter(scene.documents(Topic.ARM_CLUSTER)), None)
    return reading.text(found.value, "properties", "provisioningState") if found else ""


def deletion_signs(scene: Scene) -> tuple[str, ...]:
    """Return what tells that the HCP is being deleted, or was."""
    held = [each for each in bundles(scene) if each.deleted]
    objects = [*scene.documents(Topic.HOSTED_CLUSTER), *scene.documents(Topic.WORK)]
    going = [each for each in objects if reading.is_going(each.value)]
    remains = bool(bundles(scene) or objects)
    signs = [
        ("ARM says Deleting", arm_state(scene) == "Deleting"),
        ("Clusters Service is uninstalling", cluster_state(scene) == "uninstalling"),
        (
            "Clusters Service has forgotten it, and something is left below",
            scene.outcome(Topic.CS_CLUSTER) is Outcome.ABSENT and remains,
        ),
        (f"{len(held)} of {len(bundles(scene))} bundles are deleted and not gone", bool(held)),
        (
            f"{', '.join(reading.text(each.value, 'kind') for each in going[:3])} have a deletion time",
            bool(going),
        ),
    ]
    return tuple(text for text, holds in signs if holds)


def is_deleting(scene: Scene) -> bool:
    """Whether the HCP is on its way out."""
    return bool(deletion_signs(scene))
