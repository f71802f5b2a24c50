"""What goes when its owner goes? Owner references, foreground and orphan deletion, and the content of namespaces.

Works through a queue of things to look at, filled by every change; each look reads the present state, so looking twice
does no harm.
"""

import asyncio
from typing import Any

from maestropy.sandbox.kubeapi.deleting import Deletion
from maestropy.sandbox.kubeapi.objects import NAMESPACES, Objects
from maestropy.sandbox.kubeapi.store import Event, Stored

Json = dict[str, Any]
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class Collector:
    """Keeps the store free of what has lost its owners or its namespace."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._store = objects.store
        self._queue: dict[str, None] = {}
        self._news = asyncio.Event()
        self._store.listen(self._note)

    def _note(self, event: Event) -> None:
        self._look_at(event.last.uid)
        metadata = event.last.obj["metadata"]
        for owner in metadata.get("ownerReferences") or []:
            self._look_at(owner["uid"])
        if event.after is None:
            for dependent in self._store.dependents(event.last.uid):
                self._look_at(dependent.uid)
            namespace = self._store.get(NAMESPACES, "", event.last.namespace)
            if namespace is not None and namespace.obj["metadata"].get("deletionTimestamp"):
                self._look_at(namespace.uid)

    def _look_at(self, uid: str) -> None:
        self._queue[uid] = None
        self._news.set()

    async def run(self) -> None:
        """Look at what changed, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._queue:
                uid = next(iter(self._queue))
                del self._queue[uid]
                self.attend(uid)
            # Let requests in between two rounds.
            await asyncio.sleep(0)

    def attend(self, uid: str) -> None:
        """Do what is due for one object."""
        stored = self._store.by_uid(uid)
        if stored is None:
            return
        if not stored.obj["metadata"].get("deletionTimestamp"):
            self._mind_owners(stored)
            return
        finalizers = stored.obj["metadata"].get("finalizers") or []
        if _ORPHAN in finalizers:
            self._orphan_dependents(stored)
        elif _FOREGROUND in finalizers:
            self._delete_dependents(stored)
        if stored.resource == NAMESPACES:
            self._empty(stored)

    def _mind_owners(self, stored: Stored) -> None:
        owners = stored.obj["metadata"].get("ownerReferences") or []
        lost = [owner["uid"] for owner in owners if not self._is_there(owner, stored)]
        if lost and len(lost) == len(owners):
            self._delete(stored, "Background")
        elif lost:
            self._objects.amend(stored, lambda obj: _without_owners(obj, lost))

    def _is_there(self, owner: Json, dependent: Stored) -> bool:
        found = self._store.by_uid(owner["uid"])
        if found is None:
            return False
        # An owner in another namespace cannot be looked up from here, so it counts as absent.
        return found.namespace in ("", dependent.namespace) and found.obj["kind"] == owner.get("kind")

    def _orphan_dependents(self, owner: Stored) -> None:
        for dependent in self._store.dependents(owner.uid):
            self._objects.amend(dependent, lambda obj: _without_owners(obj, [owner.uid]))
        self._release(owner, _ORPHAN)

    def _delete_dependents(self, owner: Stored) -> None:
        for dependent in self._store.dependents(owner.uid):
            others = [
                each
                for each in dependent.obj["metadata"]["ownerReferences"]
                if each["uid"] != owner.uid and self._is_there(each, dependent)
            ]
            if others:
                self._objects.amend(dependent, lambda obj: _without_owners(obj, [owner.uid]))
            elif not dependent.obj["metadata"].get("deletionTimestamp"):
                self._delete(dependent, "Foreground" if self._store.dependents(dependent.uid) else "Background")
        if not any(_blocks(dependent, owner.uid) for dependent in self._store.dependents(owner.uid)):
            self._release(owner, _FOREGROUND)

    def _release(self, stored: Stored, finalizer: str) -> None:
        def change(obj: Json) -> Json:
            left = [each for each in obj["metadata"].get("finalizers") or [] if each != finalizer]
            metadata = {**obj["metadata"], "finalizers": left}
            if not left:
                del metadata["finalizers"]
            return {**obj, "metadata": metadata}

        self._objects.amend(stored, change)

    def _empty(self, namespace: Stored) -> None:
        content = [
            stored
            for kind in self._objects.registry.stored()
            if kind.namespaced
            for stored in self._store.select(kind.resource, namespace.name)
        ]
        for stored in content:
            if not stored.obj["metadata"].get("deletionTimestamp"):
                self._delete(stored, "Background")
        left = any(
            self._store.select(kind.resource, namespace.name)
            for kind in self._objects.registry.stored()
            if kind.namespaced
        )
        if not left:
            self._objects.amend(namespace, lambda obj: {**obj, "spec": {**(obj.get("spec") or {}), "finalizers": []}})

    def _delete(self, stored: Stored, policy: str) -> None:
        kind = self._objects.registry.of_resource(*stored.resource)
        if kind is not None:
            self._objects.delete(kind, stored.namespace, stored.name, Deletion(propagation=policy, uid=stored.uid))


def _blocks(dependent: Stored, uid: str) -> bool:
    owners = dependent.obj["metadata"].get("ownerReferences") or []
    return any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in owners)


def _without_owners(obj: Json, uids: list[str]) -> Json:
    left = [each for each in obj["metadata"].get("ownerReferences") or [] if each["uid"] not in uids]
    metadata = {**obj["metadata"], "ownerReferences": left}
    if not left:
        del metadata["ownerReferences"]
    return {**obj, "metadata": metadata}
