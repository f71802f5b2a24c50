"""Which object of the cluster does a manifest mean?

A manifest names a kind; the cluster's discovery tells the resource and whether it lives in namespaces. Asking discovery
is the caller's half: here it is an argument, and `None` means that the cluster does not know the kind.
"""

from dataclasses import dataclass
from typing import NamedTuple

from maestropy.wire import jsontypes, status
from maestropy.wire.jsontypes import Object


class Kind(NamedTuple):
    """What an object says it is."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        """Return it as Kubernetes' messages do; the core group is empty."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """How the cluster serves a kind."""

    group: str
    version: str
    resource: str
    """The plural of its URLs."""
    is_namespaced: bool


class ObjectKey(NamedTuple):
    """One object of a cluster; the version is left out, because all versions show the same object."""

    group: str
    resource: str
    namespace: str
    name: str


def kind_of(found: Object) -> Kind:
    """Return the kind of a manifest or object."""
    group, _, version = jsontypes.text_at(found, "apiVersion").rpartition("/")
    return Kind(group, version, jsontypes.text_at(found, "kind"))


def meta_of(manifest: Object, *, ordinal: int, served: ResourceType | None) -> status.ResourceMeta:
    """Return what the status says about the object this manifest means."""
    kind = kind_of(manifest)
    namespace = jsontypes.text_at(manifest, "metadata", "namespace")
    return status.ResourceMeta(
        ordinal=ordinal,
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        resource=served.resource if served else "",
        name=jsontypes.text_at(manifest, "metadata", "name"),
        namespace=namespace if served is None or served.is_namespaced else "",
    )


def key_of(meta: status.ResourceMeta) -> ObjectKey:
    """Return the object that a manifest's status speaks of."""
    return ObjectKey(meta.group, meta.resource, meta.namespace, meta.name)
