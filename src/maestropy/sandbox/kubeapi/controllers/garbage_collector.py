"""Delete dependents when their owner is deleted: background, foreground and orphan deletion; namespace content too.

Every change enqueues the affected objects. Processing reads the present state, so processing one twice does no harm.
"""

import asyncio
from typing import Any

from maestropy.sandbox.kubeapi.objects import NAMESPACES, Objects
from maestropy.sandbox.kubeapi.storage.deletion import DeletionRequest
from maestropy.sandbox.kubeapi.storage.store import StoredObject, StoreEvent

Json = dict[str, Any]
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class GarbageCollector:
    """Deletes objects whose owners or namespace are deleted."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._store = objects.store
        self._queue: dict[str, None] = {}
        self._wake_up = asyncio.Event()
        self._store.add_event_handler(self._on_event)

    def _on_event(self, event: StoreEvent) -> None:
        self._enqueue(event.last.uid)
        metadata = event.last.obj["metadata"]
        for owner in metadata.get("ownerReferences") or []:
            self._enqueue(owner["uid"])
        if event.after is None:
            for dependent in self._store.dependents(event.last.uid):
                self._enqueue(dependent.uid)
            namespace = self._store.get(NAMESPACES, "", event.last.namespace)
            if namespace is not None and namespace.obj["metadata"].get("deletionTimestamp"):
                self._enqueue(namespace.uid)

    def _enqueue(self, uid: str) -> None:
        self._queue[uid] = None
        self._wake_up.set()

    async def run(self) -> None:
        """Process the queue until cancelled."""
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            while self._queue:
                uid = next(iter(self._queue))
                del self._queue[uid]
                self.process(uid)
            # Let requests run between two rounds.
            await asyncio.sleep(0)

    def process(self, uid: str) -> None:
        """Process one object: delete it, its dependents or its finalizer as its owners and finalizers require."""
        stored = self._store.by_uid(uid)
        if stored is None:
            return
        if not stored.obj["metadata"].get("deletionTimestamp"):
            self._delete_if_owners_gone(stored)
            return
        finalizers = stored.obj["metadata"].get("finalizers") or []
        if _ORPHAN in finalizers:
            self._orphan_dependents(stored)
        elif _FOREGROUND in finalizers:
            self._delete_dependents(stored)
        if stored.resource == NAMESPACES:
            self._delete_namespace_content(stored)

    def _delete_if_owners_gone(self, stored: StoredObject) -> None:
        owners = stored.obj["metadata"].get("ownerReferences") or []
        lost = [owner["uid"] for owner in owners if not self._exists(owner, stored)]
        if lost and len(lost) == len(owners):
            self._delete(stored, "Background")
        elif lost:
            self._objects.guaranteed_update(stored, lambda obj: _without_owners(obj, lost))

    def _exists(self, owner: Json, dependent: StoredObject) -> bool:
        stored_owner = self._store.by_uid(owner["uid"])
        if stored_owner is None:
            return False
        # An owner reference cannot cross namespaces, so an owner in another namespace counts as absent.
        return stored_owner.namespace in ("", dependent.namespace) and stored_owner.obj["kind"] == owner.get("kind")

    def _orphan_dependents(self, owner: StoredObject) -> None:
        for dependent in self._store.dependents(owner.uid):
            self._objects.guaranteed_update(dependent, lambda obj: _without_owners(obj, [owner.uid]))
        self._remove_finalizer(owner, _ORPHAN)

    def _delete_dependents(self, owner: StoredObject) -> None:
        for dependent in self._store.dependents(owner.uid):
            other_owners = [
                reference
                for reference in dependent.obj["metadata"]["ownerReferences"]
                if reference["uid"] != owner.uid and self._exists(reference, dependent)
            ]
            if other_owners:
                self._objects.guaranteed_update(dependent, lambda obj: _without_owners(obj, [owner.uid]))
            elif not dependent.obj["metadata"].get("deletionTimestamp"):
                self._delete(dependent, "Foreground" if self._store.dependents(dependent.uid) else "Background")
        if not any(_blocks(dependent, owner.uid) for dependent in self._store.dependents(owner.uid)):
            self._remove_finalizer(owner, _FOREGROUND)

    def _remove_finalizer(self, stored: StoredObject, finalizer: str) -> None:
        def change(obj: Json) -> Json:
            finalizers = [name for name in obj["metadata"].get("finalizers") or [] if name != finalizer]
            metadata = {**obj["metadata"], "finalizers": finalizers}
            if not finalizers:
                del metadata["finalizers"]
            return {**obj, "metadata": metadata}

        self._objects.guaranteed_update(stored, change)

    def _delete_namespace_content(self, namespace: StoredObject) -> None:
        content = [
            stored
            for kind in self._objects.registry.stored()
            if kind.namespaced
            for stored in self._store.select(kind.resource, namespace.name)
        ]
        for stored in content:
            if not stored.obj["metadata"].get("deletionTimestamp"):
                self._delete(stored, "Background")
        has_content = any(
            self._store.select(kind.resource, namespace.name)
            for kind in self._objects.registry.stored()
            if kind.namespaced
        )
        if not has_content:
            self._objects.guaranteed_update(
                namespace, lambda obj: {**obj, "spec": {**(obj.get("spec") or {}), "finalizers": []}}
            )

    def _delete(self, stored: StoredObject, policy: str) -> None:
        kind = self._objects.registry.of_resource(*stored.resource)
        if kind is not None:
            self._objects.delete(
                kind, stored.namespace, stored.name, DeletionRequest(propagation=policy, uid=stored.uid)
            )


def _blocks(dependent: StoredObject, uid: str) -> bool:
    owners = dependent.obj["metadata"].get("ownerReferences") or []
    return any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in owners)


def _without_owners(obj: Json, uids: list[str]) -> Json:
    references = [
        reference for reference in obj["metadata"].get("ownerReferences") or [] if reference["uid"] not in uids
    ]
    metadata = {**obj["metadata"], "ownerReferences": references}
    if not references:
        del metadata["ownerReferences"]
    return {**obj, "metadata": metadata}
