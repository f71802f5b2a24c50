"""Say a wish about objects as an HTTP request of the Kubernetes API.

Pure: it builds the request to the last byte and sends nothing. It refuses what could address something else
than meant: a name with a slash, a namespaced object without its namespace. A namespace given for a
cluster-scoped resource is left out, because manifests carry one often enough and it means nothing there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import quote

import orjson

from maestropy.kube import objects
from maestropy.kube.errors import Malformed
from maestropy.kube.objects import Json

Propagation = Literal["Background", "Foreground", "Orphan"]
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA_ITEM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class PatchType(StrEnum):
    """How the body of a patch is to be read; the values are the content types."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ResourceType:
    """One resource of the API, as discovery names it."""

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
class Selector:
    """Which objects of a resource, in kubectl's syntax, and how much of each; empty means all."""

    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    """Spare spec, status and data where only names, labels or owners matter."""


EVERYTHING = Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """On whose behalf the API server shall check the request."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What besides the object a write may say."""

    field_manager: str = ""
    """Who owns the fields written; empty leaves it to the API server, which takes our user agent."""
    force: bool = False
    """Take fields over from other managers; only for apply."""
    dry_run: bool = False
    """Check everything, keep nothing."""
    subresource: str = ""
    """`status`, `scale` …; empty means the object itself."""
    impersonate: Impersonation | None = None


PLAIN = Write()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, relative to the API server's address."""

    method: str
    path: str
    """Percent-encoded, beginning with a slash."""
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = field(default=None, repr=False)

    @property
    def target(self) -> str:
        """Path and query as they go over the wire."""
        encoded = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query)
        return f"{self.path}?{encoded}" if encoded else self.path

    @property
    def is_idempotent(self) -> bool:
        """Whether sending it twice does what sending it once does."""
        if self.method == "PATCH":
            return ("Content-Type", PatchType.JSON.value) not in self.headers
        return self.method != "POST"


def get(resource: ResourceType, name: str, *, namespace: str = "", subresource: str = "") -> Request:
    """Read one object."""
    return Request(method="GET", path=_item(resource, name, namespace=namespace, subresource=subresource))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list: as many items as the API server likes, or up to `limit` of them from `token` on."""

    limit: int = 0
    token: str = ""


WHOLE = Page()


def list_objects(
    resource: ResourceType, *, namespace: str = "", selector: Selector = EVERYTHING, page: Page = WHOLE
) -> Request:
    """Read one page of a list; without a namespace over all of them."""
    paging = _given(limit=str(page.limit or ""), **{"continue": page.token})
    return Request(
        method="GET",
        path=_collection(resource, namespace),
        query=(*_selection(selector), *paging),
        headers=(("Accept", _METADATA_LIST),) if selector.metadata_only else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFrom:
    """Where a watch starts and how long the API server keeps it open."""

    resource_version: str
    seconds: int


def watch(resource: ResourceType, *, namespace: str = "", selector: Selector = EVERYTHING, start: WatchFrom) -> Request:
    """Follow changes from a resource version on."""
    return Request(
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


def create(resource: ResourceType, manifest: Mapping[str, Any], *, write: Write = PLAIN) -> Request:
    """Make the object; a subresource such as `eviction` is made on the object it names."""
    namespace = _text(manifest, "namespace")
    if write.subresource:
        path = _item(resource, _text(manifest, "name"), namespace=namespace, subresource=write.subresource)
    else:
        if resource.namespaced and not namespace:
            raise Malformed(f"metadata.namespace is missing: {resource.plural} live in namespaces")
        path = _collection(resource, namespace)
    return _write("POST", path, write=write, content_type="application/json", body=encode(manifest))


def update(resource: ResourceType, manifest: Mapping[str, Any], *, write: Write = PLAIN) -> Request:
    """Replace the object; with a resourceVersion only if nobody changed it meanwhile."""
    path = _item_of(resource, manifest, subresource=write.subresource)
    return _write("PUT", path, write=write, content_type="application/json", body=encode(manifest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change to one object."""

    body: object
    type: PatchType = PatchType.MERGE


def patch(resource: ResourceType, name: str, *, change: Patch, namespace: str = "", write: Write = PLAIN) -> Request:
    """Change parts of the object."""
    path = _item(resource, name, namespace=namespace, subresource=write.subresource)
    body = encode_as_yaml(change.body) if change.type is PatchType.APPLY else encode(change.body)
    return _write("PATCH", path, write=write, content_type=change.type.value, body=body)


def apply(resource: ResourceType, manifest: Mapping[str, Any], *, write: Write) -> Request:
    """Apply the manifest on the server's side, as `write.field_manager`."""
    if not write.field_manager:
        raise Malformed("a server-side apply needs a fieldManager")
    path = _item_of(resource, manifest, subresource=write.subresource)
    return _write("PATCH", path, write=write, content_type=PatchType.APPLY.value, body=encode_as_yaml(manifest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How to delete, and which life of the object is meant; empty preconditions mean whatever is there."""

    propagation: Propagation = "Background"
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


IN_BACKGROUND = Deletion()


def delete(resource: ResourceType, name: str, *, namespace: str = "", deletion: Deletion = IN_BACKGROUND) -> Request:
    """Delete one object."""
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": deletion.propagation}
    preconditions = dict(_given(uid=deletion.uid, resourceVersion=deletion.resource_version))
    if preconditions:
        options["preconditions"] = preconditions
    if deletion.grace_seconds is not None:
        options["gracePeriodSeconds"] = deletion.grace_seconds
    if deletion.dry_run:
        options["dryRun"] = ["All"]
    return Request(
        method="DELETE",
        path=_item(resource, name, namespace=namespace),
        headers=(("Content-Type", "application/json"),),
        body=encode(options),
    )


def encode(value: object) -> bytes:
    """Write JSON, or refuse what JSON or the API server cannot hold."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise Malformed(f"the object cannot be written as JSON: {error}") from error


# The API server reads an applied object as YAML 1.1, where these are forbidden or end a line even inside a string.
_UNSAFE_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def encode_as_yaml(value: object) -> bytes:
    """Write JSON that is the same value when read as YAML."""
    text = encode(value).decode()
    return _UNSAFE_IN_YAML.sub(lambda found: f"\\u{ord(found.group()):04x}", text).encode()


def _write(method: str, path: str, *, write: Write, content_type: str, body: bytes) -> Request:
    # The API server takes `force` with an apply only, and wants to be told even that it shall not.
    force = ("true" if write.force else "false") if content_type == PatchType.APPLY else ""
    return Request(
        method=method,
        path=path,
        query=_given(fieldManager=write.field_manager, dryRun="All" if write.dry_run else "", force=force),
        headers=(("Content-Type", content_type), *_impersonation(write.impersonate)),
        body=body,
    )


def _impersonation(who: Impersonation | None) -> tuple[tuple[str, str], ...]:
    if who is None:
        return ()
    if not all(each.isprintable() and each for each in (who.user, *who.groups)):
        raise Malformed("the user and groups to impersonate must be printable and not empty")
    return (("Impersonate-User", who.user), *(("Impersonate-Group", each) for each in who.groups))


def _collection(resource: ResourceType, namespace: str) -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    within = f"/namespaces/{_segment(namespace, 'metadata.namespace')}" if resource.namespaced and namespace else ""
    return f"{root}/{resource.version}{within}/{resource.plural}"


def _item(resource: ResourceType, name: str, *, namespace: str, subresource: str = "") -> str:
    if resource.namespaced and not namespace:
        raise Malformed(f"metadata.namespace is missing: {resource.plural} live in namespaces")
    path = f"{_collection(resource, namespace)}/{_segment(name, 'metadata.name')}"
    return f"{path}/{subresource}" if subresource else path


def _item_of(resource: ResourceType, manifest: Mapping[str, Any], *, subresource: str) -> str:
    namespace = _text(manifest, "namespace")
    return _item(resource, _text(manifest, "name"), namespace=namespace, subresource=subresource)


def _segment(text: str, field_name: str) -> str:
    if not text:
        raise Malformed(f"{field_name} is missing")
    if text in {".", ".."} or "/" in text or "%" in text:
        raise Malformed(f"{field_name} must be one segment of a path: neither . nor .. and without / and %")
    return quote(text, safe=":")


def _text(manifest: Mapping[str, Any], name: str) -> str:
    found = objects.metadata(manifest).get(name)
    if found is not None and not isinstance(found, str):
        raise Malformed(f"metadata.{name} must be a string")
    return found or ""


def _selection(selector: Selector) -> tuple[tuple[str, str], ...]:
    return _given(labelSelector=selector.labels, fieldSelector=selector.fields)


def _given(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in values.items() if value)
