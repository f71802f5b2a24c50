"""Build the HTTP requests of the Kubernetes API.

Pure: it builds a complete request and sends nothing. It rejects names that would address another object: a name with a
slash, a namespaced object without its namespace. The namespace of a cluster-scoped object is ignored, because manifests
often have one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import quote

import orjson

from maestropy.kube import objects
from maestropy.kube.errors import MalformedObject
from maestropy.kube.objects import Json

Propagation = Literal["Background", "Foreground", "Orphan"]
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA_ITEM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class PatchType(StrEnum):
    """Kinds of patch; the values are the content types."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ResourceType:
    """One resource type of the API, as discovery reports it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Group and version as manifests write them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}/{self.version}" if self.group else f"{self.plural}/{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSelector:
    """Label and field selectors in the syntax of kubectl; empty means all objects."""

    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    """Request only the metadata of the objects."""


EVERYTHING = ObjectSelector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """The user and groups that a request impersonates."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of a write request."""

    field_manager: str = ""
    """Owner of the written fields; empty: the API server uses the user agent."""
    force: bool = False
    """Take fields over from other managers; only for apply."""
    dry_run: bool = False
    """Validate the request without storing the object."""
    subresource: str = ""
    """`status`, `scale` …; empty means the object itself."""
    impersonate: Impersonation | None = None


DEFAULT_WRITE = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One HTTP request, relative to the API server's address."""

    method: str
    path: str
    """Percent-encoded, beginning with a slash."""
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = field(default=None, repr=False)

    @property
    def target(self) -> str:
        """Path and query, encoded."""
        encoded = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query)
        return f"{self.path}?{encoded}" if encoded else self.path

    @property
    def is_idempotent(self) -> bool:
        """Whether the request may be sent twice."""
        if self.method == "PATCH":
            return ("Content-Type", PatchType.JSON.value) not in self.headers
        return self.method != "POST"


def get(resource: ResourceType, name: str, *, namespace: str = "", subresource: str = "") -> ApiRequest:
    """Read one object."""
    return ApiRequest(method="GET", path=_item(resource, name, namespace=namespace, subresource=subresource))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One page of a list: up to `limit` items (0: all) from the continue token on."""

    limit: int = 0
    token: str = ""


WHOLE = ListPage()


def list_objects(
    resource: ResourceType, *, namespace: str = "", selector: ObjectSelector = EVERYTHING, page: ListPage = WHOLE
) -> ApiRequest:
    """List one page of objects; without a namespace in all namespaces."""
    paging = _non_empty(limit=str(page.limit or ""), **{"continue": page.token})
    return ApiRequest(
        method="GET",
        path=_collection(resource, namespace),
        query=(*_selection(selector), *paging),
        headers=(("Accept", _METADATA_LIST),) if selector.metadata_only else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStart:
    """Where a watch starts and how long the API server keeps it open."""

    resource_version: str
    seconds: int


def watch(
    resource: ResourceType, *, namespace: str = "", selector: ObjectSelector = EVERYTHING, start: WatchStart
) -> ApiRequest:
    """Watch changes from a resource version on."""
    return ApiRequest(
        method="GET",
        path=_collection(resource, namespace),
        query=(
            *_selection(selector),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", start.resource_version),
            ("timeoutSeconds", str(start.seconds)),
        ),
        headers=(("Accept", _METADATA_ITEM),) if selector.metadata_only else (),
    )


def create(resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions = DEFAULT_WRITE) -> ApiRequest:
    """Create the object; a subresource such as `eviction` is created on the object it names."""
    namespace = _text(manifest, "namespace")
    if write.subresource:
        path = _item(resource, _text(manifest, "name"), namespace=namespace, subresource=write.subresource)
    else:
        if resource.namespaced and not namespace:
            raise MalformedObject(f"metadata.namespace is missing: {resource.plural} live in namespaces")
        path = _collection(resource, namespace)
    return _write("POST", path, write=write, content_type="application/json", body=encode(manifest))


def update(resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions = DEFAULT_WRITE) -> ApiRequest:
    """Replace the object; with a resourceVersion only if it is current."""
    path = _item_of(resource, manifest, subresource=write.subresource)
    return _write("PUT", path, write=write, content_type="application/json", body=encode(manifest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change to one object."""

    body: object
    type: PatchType = PatchType.MERGE


def patch(
    resource: ResourceType, name: str, *, change: Patch, namespace: str = "", write: WriteOptions = DEFAULT_WRITE
) -> ApiRequest:
    """Patch the object."""
    path = _item(resource, name, namespace=namespace, subresource=write.subresource)
    body = encode_as_yaml(change.body) if change.type is PatchType.APPLY else encode(change.body)
    return _write("PATCH", path, write=write, content_type=change.type.value, body=body)


def apply(resource: ResourceType, manifest: Mapping[str, Any], *, write: WriteOptions) -> ApiRequest:
    """Apply the manifest with server-side apply as `write.field_manager`."""
    if not write.field_manager:
        raise MalformedObject("a server-side apply needs a fieldManager")
    path = _item_of(resource, manifest, subresource=write.subresource)
    return _write("PATCH", path, write=write, content_type=PatchType.APPLY.value, body=encode_as_yaml(manifest))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """Options of a delete request; empty preconditions match any incarnation of the object."""

    propagation: Propagation = "Background"
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


IN_BACKGROUND = DeleteOptions()


def delete(
    resource: ResourceType, name: str, *, namespace: str = "", deletion: DeleteOptions = IN_BACKGROUND
) -> ApiRequest:
    """Delete one object."""
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": deletion.propagation}
    preconditions = dict(_non_empty(uid=deletion.uid, resourceVersion=deletion.resource_version))
    if preconditions:
        options["preconditions"] = preconditions
    if deletion.grace_seconds is not None:
        options["gracePeriodSeconds"] = deletion.grace_seconds
    if deletion.dry_run:
        options["dryRun"] = ["All"]
    return ApiRequest(
        method="DELETE",
        path=_item(resource, name, namespace=namespace),
        headers=(("Content-Type", "application/json"),),
        body=encode(options),
    )


def encode(value: object) -> bytes:
    """Encode JSON; raises `MalformedObject` for values that JSON cannot represent."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise MalformedObject(f"the object cannot be written as JSON: {error}") from error


# The API server parses an applied object as YAML 1.1, where these are forbidden or end a line inside a string.
_UNSAFE_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def encode_as_yaml(value: object) -> bytes:
    """Encode JSON that is the same value when parsed as YAML."""
    text = encode(value).decode()
    return _UNSAFE_IN_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def _write(method: str, path: str, *, write: WriteOptions, content_type: str, body: bytes) -> ApiRequest:
    # The API server accepts `force` only for an apply, where false must be explicit.
    force = ("true" if write.force else "false") if content_type == PatchType.APPLY else ""
    return ApiRequest(
        method=method,
        path=path,
        query=_non_empty(fieldManager=write.field_manager, dryRun="All" if write.dry_run else "", force=force),
        headers=(("Content-Type", content_type), *_impersonation(write.impersonate)),
        body=body,
    )


def _impersonation(identity: Impersonation | None) -> tuple[tuple[str, str], ...]:
    if identity is None:
        return ()
    if not all(name.isprintable() and name for name in (identity.user, *identity.groups)):
        raise MalformedObject("the user and groups to impersonate must be printable and not empty")
    return (("Impersonate-User", identity.user), *(("Impersonate-Group", name) for name in identity.groups))


def _collection(resource: ResourceType, namespace: str) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    namespace_path = (
        f"/namespaces/{_segment(namespace, 'metadata.namespace')}" if resource.namespaced and namespace else ""
    )
    return f"{root}/{resource.version}{namespace_path}/{resource.plural}"


def _item(resource: ResourceType, name: str, *, namespace: str, subresource: str = "") -> str:
    if resource.namespaced and not namespace:
        raise MalformedObject(f"metadata.namespace is missing: {resource.plural} live in namespaces")
    path = f"{_collection(resource, namespace)}/{_segment(name, 'metadata.name')}"
    return f"{path}/{subresource}" if subresource else path


def _item_of(resource: ResourceType, manifest: Mapping[str, Any], *, subresource: str) -> str:
    namespace = _text(manifest, "namespace")
    return _item(resource, _text(manifest, "name"), namespace=namespace, subresource=subresource)


def _segment(text: str, field_name: str) -> str:
    if not text:
        raise MalformedObject(f"{field_name} is missing")
    if text in {".", ".."} or "/" in text or "%" in text:
        raise MalformedObject(f"{field_name} must be one segment of a path: neither . nor .. and without / and %")
    return quote(text, safe=":")


def _text(manifest: Mapping[str, Any], name: str) -> str:
    value = objects.metadata(manifest).get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedObject(f"metadata.{name} must be a string")
    return value or ""


def _selection(selector: ObjectSelector) -> tuple[tuple[str, str], ...]:
    return _non_empty(labelSelector=selector.labels, fieldSelector=selector.fields)


def _non_empty(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in values.items() if value)
