"""Negotiate the representation of objects: whole, PartialObjectMetadata, or Table. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.http import tables
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
_META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """The representation of objects of one kind for one request."""

    kind: ServedKind
    shape: str
    """object, metadata or table."""
    now: datetime

    def one(self, stored: StoredObject) -> bytes:
        """Return one object."""
        if self.shape == "table":
            return orjson.dumps(tables.table(self.kind, [stored.obj], version=stored.version, now=self.now))
        if self.shape == "metadata":
            return orjson.dumps(_metadata_only(stored.obj))
        if not stored.raw or stored.obj["apiVersion"] != self.kind.api_version:
            return orjson.dumps({**stored.obj, "apiVersion": self.kind.api_version})
        return stored.raw

    def many(self, items: Iterable[StoredObject], *, metadata: Json, version: int) -> bytes:
        """Return a list."""
        if self.shape == "table":
            objects = [stored.obj for stored in items]
            return orjson.dumps(tables.table(self.kind, objects, version=version, now=self.now, metadata=metadata))
        if self.shape == "metadata":
            head: Json = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata}
        else:
            name = self.kind.list_kind or f"{self.kind.kind}List"
            if self.kind.is_custom:
                metadata = {"continue": "", **metadata}
            head = {"kind": name, "apiVersion": self.kind.api_version, "metadata": metadata}
        body = b",".join(self._item(stored) for stored in items)
        return orjson.dumps(head)[:-1] + b',"items":[' + body + b"]}"

    def _item(self, stored: StoredObject) -> bytes:
        raw = self.one(stored)
        if self.kind.is_custom or self.shape != "object":
            return raw
        # Items of built-in lists have no apiVersion and kind.
        head = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        prefix = orjson.dumps(head)[:-1] + b","
        return b"{" + raw[len(prefix) :] if raw.startswith(prefix) else raw


def _metadata_only(obj: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def negotiate(kind: ServedKind, accept: str, now: datetime) -> Representation:
    """Return the first representation of the Accept header that is supported."""
    media_ranges = [media_range.strip() for media_range in (accept or "*/*").split(",")]
    for media_range in media_ranges:
        media, *options = [part.strip() for part in media_range.split(";")]
        if media not in ("application/json", "*/*", "application/*", "application/yaml"):
            continue
        shape = next((option.removeprefix("as=") for option in options if option.startswith("as=")), "")
        if shape == "Table":
            return Representation(kind=kind, shape="table", now=now)
        if shape.startswith("PartialObjectMetadata"):
            return Representation(kind=kind, shape="metadata", now=now)
        if not shape:
            return Representation(kind=kind, shape="object", now=now)
    only = "application/json,application/yaml"
    raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {only}")
