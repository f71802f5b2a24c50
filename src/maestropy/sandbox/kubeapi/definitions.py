"""Keeps the served kinds in step with the CustomResourceDefinitions, within the very write that changes one."""

import asyncio
from typing import Any

from maestropy.sandbox.kubeapi import crds
from maestropy.sandbox.kubeapi.deleting import CRD_FINALIZER, DEFINITIONS, Deletion
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.store import Event, Stored

Json = dict[str, Any]


class Definitions:
    """Follows definitions: served at once, established, and their objects gone before they are."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pending: list[str] = []
        self._news = asyncio.Event()
        objects.store.listen(self._note)

    def _note(self, event: Event) -> None:
        stored = event.last
        if stored.resource != DEFINITIONS:
            uid_of_kind = self._definition_of(stored) if event.after is None else None
            if uid_of_kind:
                self._look_at(uid_of_kind)
            return
        spec = stored.obj["spec"]
        kinds = crds.kinds_of(stored.obj) if event.after is not None else []
        self._objects.registry.replace_custom(spec["group"], spec["names"]["plural"], kinds)
        if event.after is not None:
            self._look_at(stored.uid)

    def _definition_of(self, stored: Stored) -> str | None:
        group, plural = stored.resource
        definition = self._objects.store.get(DEFINITIONS, "", f"{plural}.{group}")
        deleting = definition is not None and definition.obj["metadata"].get("deletionTimestamp")
        return definition.uid if definition is not None and deleting else None

    def _look_at(self, uid: str) -> None:
        self._pending.append(uid)
        self._news.set()

    async def run(self) -> None:
        """Attend to definitions, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            self.settle()

    def settle(self) -> None:
        """Do what changed definitions need: their status, or the end of their objects."""
        while self._pending:
            stored = self._objects.store.by_uid(self._pending.pop(0))
            if stored is None:
                continue
            if stored.obj["metadata"].get("deletionTimestamp"):
                self._clean(stored)
            else:
                self._establish(stored)

    def _establish(self, stored: Stored) -> None:
        status = crds.established(stored.obj, self._objects.timestamp())
        self._objects.write_status(stored, status, manager="kube-apiserver")

    def _clean(self, definition: Stored) -> None:
        spec = definition.obj["spec"]
        resource = (spec["group"], spec["names"]["plural"])
        kind = self._objects.registry.of_resource(*resource)
        for stored in self._objects.store.select(resource):
            if kind is not None and not stored.obj["metadata"].get("deletionTimestamp"):
                self._objects.delete(kind, stored.namespace, stored.name, Deletion(uid=stored.uid))
        if not self._objects.store.select(resource):
            self._objects.amend(definition, _without_finalizer)


def _without_finalizer(obj: Json) -> Json:
    left = [each for each in obj["metadata"].get("finalizers") or [] if each != CRD_FINALIZER]
    metadata = {**obj["metadata"], "finalizers": left}
    if not left:
        del metadata["finalizers"]
    return {**obj, "metadata": metadata}
