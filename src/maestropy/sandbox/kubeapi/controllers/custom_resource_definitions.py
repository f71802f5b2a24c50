"""Serve custom resources: register the kinds of CustomResourceDefinitions, set Established, finalize deleted ones.

A kind is registered within the write that changes its definition, so that the next request finds it.
"""

import asyncio
from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.schemas import crd_kinds
from maestropy.sandbox.kubeapi.storage.deletion import CRD_FINALIZER, DEFINITIONS, DeletionRequest
from maestropy.sandbox.kubeapi.storage.store import StoredObject, StoreEvent

Json = dict[str, Any]


class CrdController:
    """Registers, establishes and finalizes CustomResourceDefinitions."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pending: list[str] = []
        self._wake_up = asyncio.Event()
        objects.store.add_event_handler(self._on_event)

    def _on_event(self, event: StoreEvent) -> None:
        stored = event.last
        if stored.resource != DEFINITIONS:
            definition_uid = self._deleting_definition_of(stored) if event.after is None else None
            if definition_uid:
                self._enqueue(definition_uid)
            return
        spec = stored.obj["spec"]
        kinds = crd_kinds.kinds_of(stored.obj) if event.after is not None else []
        self._objects.registry.replace_custom(spec["group"], spec["names"]["plural"], kinds)
        if event.after is not None:
            self._enqueue(stored.uid)

    def _deleting_definition_of(self, stored: StoredObject) -> str | None:
        group, plural = stored.resource
        definition = self._objects.store.get(DEFINITIONS, "", f"{plural}.{group}")
        deleting = definition is not None and definition.obj["metadata"].get("deletionTimestamp")
        return definition.uid if definition is not None and deleting else None

    def _enqueue(self, uid: str) -> None:
        self._pending.append(uid)
        self._wake_up.set()

    async def run(self) -> None:
        """Process changed definitions until cancelled."""
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            self.process_pending()

    def process_pending(self) -> None:
        """Write the status of changed definitions, and delete the custom resources of deleted ones."""
        while self._pending:
            stored = self._objects.store.by_uid(self._pending.pop(0))
            if stored is None:
                continue
            if stored.obj["metadata"].get("deletionTimestamp"):
                self._clean(stored)
            else:
                self._establish(stored)

    def _establish(self, stored: StoredObject) -> None:
        status = crd_kinds.established(stored.obj, self._objects.timestamp())
        self._objects.write_status(stored, status, manager="kube-apiserver")

    def _clean(self, definition: StoredObject) -> None:
        spec = definition.obj["spec"]
        resource = (spec["group"], spec["names"]["plural"])
        kind = self._objects.registry.of_resource(*resource)
        for stored in self._objects.store.select(resource):
            if kind is not None and not stored.obj["metadata"].get("deletionTimestamp"):
                self._objects.delete(kind, stored.namespace, stored.name, DeletionRequest(uid=stored.uid))
        if not self._objects.store.select(resource):
            self._objects.guaranteed_update(definition, _without_finalizer)
            return
        status = crd_kinds.terminating(definition.obj, self._objects.timestamp())
        if status != definition.obj.get("status"):
            self._objects.write_status(definition, status, manager="kube-apiserver")


def _without_finalizer(obj: Json) -> Json:
    finalizers = [finalizer for finalizer in obj["metadata"].get("finalizers") or [] if finalizer != CRD_FINALIZER]
    metadata = {**obj["metadata"], "finalizers": finalizers}
    if not finalizers:
        del metadata["finalizers"]
    return {**obj, "metadata": metadata}
