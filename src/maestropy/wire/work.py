"""ManifestWork: what a source wants on a cluster, and what became of it.

A work wraps the JSON object of Kubernetes' ManifestWork and gives typed, read-only access to it. The object is the
truth: what this version does not know is kept and sent on. Nothing here changes an object in place; every `with_…`
returns a new work that shares the untouched parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.wire import errors, jsontypes, options
from maestropy.wire.jsontypes import Object
from maestropy.wire.status import WorkStatus

API_VERSION = "work.open-cluster-management.io/v1"
KIND = "ManifestWork"

FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
ORIGINAL_SOURCE_LABEL = "cloudevents.open-cluster-management.io/originalsource"
DATA_TYPE_ANNOTATION = "cloudevents.open-cluster-management.io/datatype"
VERSION_ANNOTATION = "cloudevents.open-cluster-management.io/resourceversion"
SEQUENCE_ID_ANNOTATION = "cloudevents.open-cluster-management.io/sequenceid"
TRACING_PREFIX = "logging.open-cluster-management.io/"
"""Annotations with this prefix follow a work through all processes and their logs."""


@dataclass(frozen=True, slots=True)
class ManifestWork:
    """One work."""

    body: Object
    """The ManifestWork as JSON; do not change it in place."""

    def to_json(self) -> bytes:
        """Return the work as JSON."""
        return jsontypes.encode(self.body)

    @property
    def metadata(self) -> Object:
        """The ObjectMeta."""
        return jsontypes.object_at(self.body, "metadata")

    @property
    def spec(self) -> Object:
        """What is wanted."""
        return jsontypes.object_at(self.body, "spec")

    @property
    def name(self) -> str:
        """The name its source gave it; on an agent the id."""
        return jsontypes.text_at(self.body, "metadata", "name")

    @property
    def namespace(self) -> str:
        """The consumer it is for."""
        return jsontypes.text_at(self.body, "metadata", "namespace")

    @property
    def uid(self) -> str:
        """The id that events carry."""
        return jsontypes.text_at(self.body, "metadata", "uid")

    @property
    def generation(self) -> int:
        """The version of the spec; 0 if not known."""
        return jsontypes.integer_at(self.body, "metadata", "generation")

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return jsontypes.text_map_at(self.body, "metadata", "labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return jsontypes.text_map_at(self.body, "metadata", "annotations")

    @property
    def finalizers(self) -> Sequence[str]:
        """Its finalizers."""
        return jsontypes.texts_at(self.body, "metadata", "finalizers")

    @property
    def creation_timestamp(self) -> str:
        """When the server took it in, or nothing; tells a work from an earlier one of the same id."""
        return jsontypes.text_at(self.body, "metadata", "creationTimestamp")

    @property
    def deletion_timestamp(self) -> str:
        """When its deletion was asked for (RFC 3339), or empty."""
        return jsontypes.text_at(self.body, "metadata", "deletionTimestamp")

    @property
    def tracing(self) -> dict[str, str]:
        """The annotations that logs and events carry along."""
        return {name: value for name, value in self.annotations.items() if name.startswith(TRACING_PREFIX)}

    @property
    def manifests(self) -> Sequence[Object]:
        """The objects wanted on the cluster."""
        return jsontypes.objects_at(self.body, "spec", "workload", "manifests")

    @property
    def manifest_configs(self) -> tuple[options.ManifestConfig, ...]:
        """How they are to be treated."""
        return tuple(map(options.read_manifest_config, jsontypes.objects_at(self.body, "spec", "manifestConfigs")))

    @property
    def delete_option(self) -> options.DeleteOption | None:
        """What happens to them when the work goes; absent means Foreground."""
        found = jsontypes.object_at(self.body, "spec", "deleteOption")
        return options.read_delete_option(found) if found else None

    @property
    def executor(self) -> options.Executor | None:
        """As whom they are applied; absent means as the agent, empty does not."""
        found = jsontypes.object_at(self.body, "spec", "executor")
        return options.read_executor(found) if self.spec.get("executor") is not None else None

    @property
    def status(self) -> WorkStatus:
        """What became of them."""
        return WorkStatus(jsontypes.object_at(self.body, "status"))

    def with_metadata(self, **changes: Any) -> "ManifestWork":
        """Return the work with members of its ObjectMeta set (by their JSON names); None removes one."""
        return ManifestWork({**self.body, "metadata": jsontypes.merged(self.metadata, changes)})

    def with_labels(self, changes: Mapping[str, str | None]) -> "ManifestWork":
        """Return the work with some labels set or, by None, removed."""
        return self.with_metadata(labels=jsontypes.merged(self.labels, changes) or None)

    def with_annotations(self, changes: Mapping[str, str | None]) -> "ManifestWork":
        """Return the work with some annotations set or, by None, removed."""
        return self.with_metadata(annotations=jsontypes.merged(self.annotations, changes) or None)

    def with_spec(self, **changes: Any) -> "ManifestWork":
        """Return the work with members of its spec set (by their JSON names); None removes one."""
        return ManifestWork({**self.body, "spec": jsontypes.merged(self.spec, changes)})

    def with_manifests(self, manifests: Sequence[Object]) -> "ManifestWork":
        """Return the work with other manifests."""
        return self.with_spec(workload={**jsontypes.object_at(self.spec, "workload"), "manifests": [*manifests]})

    def with_status(self, found: WorkStatus) -> "ManifestWork":
        """Return the work with another status."""
        return ManifestWork({**self.body, "status": found.body})


def new(name: str, *, namespace: str = "", manifests: Sequence[Object] = ()) -> ManifestWork:
    """Build a work."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    spec = {"workload": {"manifests": [*manifests]}}
    return ManifestWork({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})


def from_json(document: bytes | str) -> ManifestWork:
    """Read a ManifestWork."""
    return from_object(jsontypes.decode_object(document, what="ManifestWork"))


def from_object(body: Object) -> ManifestWork:
    """Wrap a ManifestWork that was parsed already (from YAML, say); its kind, if given, must be right."""
    for member, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if body.get(member) not in (None, "", expected):
            raise errors.Malformed(f"{member} is {str(body[member])[:64]!r}, not a ManifestWork: set it to {expected}")
    return ManifestWork(body)
