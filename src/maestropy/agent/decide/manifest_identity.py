"""Identify the object of a manifest: kind, API resource, namespace and name.

Discovery tells the resource of a kind and whether it is namespaced. The caller asks discovery; here the result is an
argument, and None means that the cluster does not serve the kind.
"""

from dataclasses import dataclass
from typing import NamedTuple

from maestropy.wire import json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import status


class GroupVersionKind(NamedTuple):
    """The group, version and kind of an object."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        """Return it as in Kubernetes' messages; the core group is empty."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResource:
    """How the cluster serves a kind."""

    group: str
    version: str
    resource: str
    """The plural, as in URLs."""
    is_namespaced: bool


class ResourceKey(NamedTuple):
    """One object of a cluster; without the version, because all versions show the same object."""

    group: str
    resource: str
    namespace: str
    name: str


def gvk_of(body: Object) -> GroupVersionKind:
    """Return the group, version and kind of a manifest or object."""
    group, _, version = json_types.text_at(body, "apiVersion").rpartition("/")
    return GroupVersionKind(group, version, json_types.text_at(body, "kind"))


def resource_meta_of(manifest: Object, *, ordinal: int, served: ApiResource | None) -> status.ResourceMeta:
    """Return the resourceMeta of a manifest."""
    kind = gvk_of(manifest)
    namespace = json_types.text_at(manifest, "metadata", "namespace")
    return status.ResourceMeta(
        ordinal=ordinal,
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        resource=served.resource if served else "",
        name=json_types.text_at(manifest, "metadata", "name"),
        namespace=namespace if served is None or served.is_namespaced else "",
    )


def key_of(meta: status.ResourceMeta) -> ResourceKey:
    """Return the object of a resourceMeta."""
    return ResourceKey(meta.group, meta.resource, meta.namespace, meta.name)
