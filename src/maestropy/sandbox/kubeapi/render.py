"""In which form does a client get objects? Whole, as metadata only, or as a table for people. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import tables
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.store import Stored

Json = dict[str, Any]
_META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How objects of one kind are written for one client."""

    kind: Kind
    shape: str
    """object, metadata or table."""
    now: datetime

    def one(self, stored: Stored) -> bytes:
        """Return one object."""
        if self.shape == "table":
            return orjson.dumps(tables.table(self.kind, [stored.obj], version=stored.version, now=self.now))
        if self.shape == "metadata":
            return orjson.dumps(_metadata_only(stored.obj))
        if not stored.raw or stored.obj["apiVersion"] != self.kind.api_version:
            return orjson.dumps({**stored.obj, "apiVersion": self.kind.api_version})
        return stored.raw

    def many(self, items: Iterable[Stored], *, metadata: Json, version: int) -> bytes:
        """Return a list."""
        if self.shape == "table":
            objects = [stored.obj for stored in items]
            return orjson.dumps(tables.table(self.kind, objects, version=version, now=self.now, metadata=metadata))
        if self.shape == "metadata":
            head: Json = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata}
        else:
            name = self.kind.list_kind or f"{self.kind.kind}List"
            if self.kind.custom:
                metadata = {"continue": "", **metadata}
            head = {"kind": name, "apiVersion": self.kind.api_version, "metadata": metadata}
        body = b",".join(self._item(stored) for stored in items)
        return orjson.dumps(head)[:-1] + b',"items":[' + body + b"]}"

    def _item(self, stored: Stored) -> bytes:
        raw = self.one(stored)
        if self.kind.custom or self.shape != "object":
            return raw
        # Items of built-in lists carry no type: the list says it once.
        head = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        prefix = orjson.dumps(head)[:-1] + b","
        return b"{" + raw[len(prefix) :] if raw.startswith(prefix) else raw


def _metadata_only(obj: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def form_for(kind: Kind, accept: str, now: datetime) -> Form:
    """Return the first form a client accepts that can be made here."""
    wishes = [wish.strip() for wish in (accept or "*/*").split(",")]
    for wish in wishes:
        media, *options = [part.strip() for part in wish.split(";")]
        if media not in ("application/json", "*/*", "application/*", "application/yaml"):
            continue
        shape = next((option.removeprefix("as=") for option in options if option.startswith("as=")), "")
        if shape == "Table":
            return Form(kind=kind, shape="table", now=now)
        if shape.startswith("PartialObjectMetadata"):
            return Form(kind=kind, shape="metadata", now=now)
        if not shape:
            return Form(kind=kind, shape="object", now=now)
    only = "application/json,application/yaml"
    raise Problem(406, "NotAcceptable", f"only the following media types are accepted: {only}")
