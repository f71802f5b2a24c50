"""The ManifestWork: the desired state of a source for one cluster, and its status.

A work wraps the JSON object of a ManifestWork and gives typed, read-only access to it. Unknown members are kept and
forwarded. Objects are never changed in place; every `with_…` returns a new work that shares the unchanged parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.wire import errors, json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import options
from maestropy.wire.works.status import WorkStatus

API_VERSION = "work.open-cluster-management.io/v1"
KIND = "ManifestWork"

FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
ORIGINAL_SOURCE_LABEL = "cloudevents.open-cluster-management.io/originalsource"
DATA_TYPE_ANNOTATION = "cloudevents.open-cluster-management.io/datatype"
VERSION_ANNOTATION = "cloudevents.open-cluster-management.io/resourceversion"
SEQUENCE_ID_ANNOTATION = "cloudevents.open-cluster-management.io/sequenceid"
TRACING_PREFIX = "logging.open-cluster-management.io/"
"""Annotations with this prefix are forwarded in the extension `logtracing` and logged by every process."""


@dataclass(frozen=True, slots=True)
class ManifestWork:
    """A ManifestWork."""

    body: Object
    """The ManifestWork as JSON; do not change it in place."""

    def to_json(self) -> bytes:
        """Return the work as JSON."""
        return json_types.encode(self.body)

    @property
    def metadata(self) -> Object:
        """The ObjectMeta."""
        return json_types.object_at(self.body, "metadata")

    @property
    def spec(self) -> Object:
        """The spec, the desired state."""
        return json_types.object_at(self.body, "spec")

    @property
    def name(self) -> str:
        """The name given by the source; on an agent the resource ID."""
        return json_types.text_at(self.body, "metadata", "name")

    @property
    def namespace(self) -> str:
        """The name of the consumer."""
        return json_types.text_at(self.body, "metadata", "namespace")

    @property
    def uid(self) -> str:
        """The resource ID."""
        return json_types.text_at(self.body, "metadata", "uid")

    @property
    def generation(self) -> int:
        """The resource version; 0 if it is not known."""
        return json_types.integer_at(self.body, "metadata", "generation")

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels."""
        return json_types.text_map_at(self.body, "metadata", "labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations."""
        return json_types.text_map_at(self.body, "metadata", "annotations")

    @property
    def finalizers(self) -> Sequence[str]:
        """The finalizers."""
        return json_types.texts_at(self.body, "metadata", "finalizers")

    @property
    def creation_timestamp(self) -> str:
        """When the server created the resource (RFC 3339), or empty; differs between incarnations of a resource ID."""
        return json_types.text_at(self.body, "metadata", "creationTimestamp")

    @property
    def deletion_timestamp(self) -> str:
        """When the deletion was requested (RFC 3339), or empty."""
        return json_types.text_at(self.body, "metadata", "deletionTimestamp")

    @property
    def tracing(self) -> dict[str, str]:
        """The annotations that are forwarded for log tracing."""
        return {name: value for name, value in self.annotations.items() if name.startswith(TRACING_PREFIX)}

    @property
    def manifests(self) -> Sequence[Object]:
        """The manifests of the spec."""
        return json_types.objects_at(self.body, "spec", "workload", "manifests")

    @property
    def manifest_configs(self) -> tuple[options.ManifestConfig, ...]:
        """The options of individual manifests."""
        return tuple(map(options.read_manifest_config, json_types.objects_at(self.body, "spec", "manifestConfigs")))

    @property
    def delete_option(self) -> options.DeleteOption | None:
        """What happens to the objects when the work is deleted; absent means Foreground."""
        option = json_types.object_at(self.body, "spec", "deleteOption")
        return options.read_delete_option(option) if option else None

    @property
    def executor(self) -> options.Executor | None:
        """The service account that applies the manifests; absent means the agent's own, an empty object does not."""
        executor = json_types.object_at(self.body, "spec", "executor")
        return options.read_executor(executor) if self.spec.get("executor") is not None else None

    @property
    def status(self) -> WorkStatus:
        """The status."""
        return WorkStatus(json_types.object_at(self.body, "status"))

    def with_metadata(self, **changes: Any) -> "ManifestWork":
        """Return the work with members of its ObjectMeta set, by JSON name; None removes a member."""
        return ManifestWork({**self.body, "metadata": json_types.merged(self.metadata, changes)})

    def with_labels(self, changes: Mapping[str, str | None]) -> "ManifestWork":
        """Return the work with some labels set; None removes a label."""
        return self.with_metadata(labels=json_types.merged(self.labels, changes) or None)

    def with_annotations(self, changes: Mapping[str, str | None]) -> "ManifestWork":
        """Return the work with some annotations set; None removes an annotation."""
        return self.with_metadata(annotations=json_types.merged(self.annotations, changes) or None)

    def with_spec(self, **changes: Any) -> "ManifestWork":
        """Return the work with members of its spec set, by JSON name; None removes a member."""
        return ManifestWork({**self.body, "spec": json_types.merged(self.spec, changes)})

    def with_manifests(self, manifests: Sequence[Object]) -> "ManifestWork":
        """Return the work with other manifests."""
        return self.with_spec(workload={**json_types.object_at(self.spec, "workload"), "manifests": [*manifests]})

    def with_status(self, status: WorkStatus) -> "ManifestWork":
        """Return the work with another status."""
        return ManifestWork({**self.body, "status": status.body})


def new(name: str, *, namespace: str = "", manifests: Sequence[Object] = ()) -> ManifestWork:
    """Build a work."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    spec = {"workload": {"manifests": [*manifests]}}
    return ManifestWork({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})


def from_json(document: bytes | str) -> ManifestWork:
    """Parse a ManifestWork."""
    return from_object(json_types.decode_object(document, label="ManifestWork"))


def from_object(body: Object) -> ManifestWork:
    """Wrap a parsed ManifestWork; its apiVersion and kind must be correct if they are set."""
    for member, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if body.get(member) not in (None, "", expected):
            raise errors.MalformedMessage(
                f"{member} is {str(body[member])[:64]!r}, not a ManifestWork: set it to {expected}"
            )
    return ManifestWork(body)
