"""Run the controllers: a change enqueues its object and its owners; changes within the delay cause one reconcile."""

import asyncio
import logging
from collections.abc import Callable

from maestropy.sandbox.kubeapi.controllers import infrastructure, jobs, pods, workloads
from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.storage.store import Resource, StoredObject, StoreEvent

_log = logging.getLogger(__name__)

Controller = Callable[[Objects, StoredObject], None]
_CONTROLLERS: dict[Resource, Controller] = {
    ("apps", "deployments"): workloads.deployment,
    ("apps", "replicasets"): workloads.replica_set,
    ("apps", "statefulsets"): workloads.stateful_set,
    ("apps", "daemonsets"): workloads.daemon_set,
    ("batch", "jobs"): jobs.job,
    ("", "pods"): pods.pod,
    ("", "namespaces"): infrastructure.namespace,
    ("", "nodes"): infrastructure.node,
    ("", "persistentvolumeclaims"): infrastructure.claim,
    ("rbac.authorization.k8s.io", "clusterroles"): infrastructure.cluster_role,
    ("policy", "poddisruptionbudgets"): infrastructure.budget,
}


class ControllerManager:
    """The controllers of one cluster."""

    def __init__(self, objects: Objects, *, delay: float) -> None:
        self._objects = objects
        self._delay = delay
        self._due: dict[str, float] = {}
        self._wake_up = asyncio.Event()
        objects.store.add_event_handler(self._on_event)

    def _on_event(self, event: StoreEvent) -> None:
        self._enqueue(event.last)
        for owner in event.last.obj["metadata"].get("ownerReferences") or []:
            stored = self._objects.store.by_uid(owner["uid"])
            if stored is not None:
                self._enqueue(stored)

    def _enqueue(self, stored: StoredObject) -> None:
        if stored.resource in _CONTROLLERS and stored.uid not in self._due:
            self._due[stored.uid] = asyncio.get_running_loop().time() + self._delay
            self._wake_up.set()

    async def run(self) -> None:
        """Reconcile what is due until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            if not self._due:
                self._wake_up.clear()
                await self._wake_up.wait()
            uid, moment = next(iter(self._due.items()))
            await asyncio.sleep(max(0.0, moment - clock()))
            del self._due[uid]
            self.reconcile(uid)

    def reconcile(self, uid: str) -> None:
        """Run the controller of one object."""
        stored = self._objects.store.by_uid(uid)
        if stored is None:
            return
        try:
            _CONTROLLERS[stored.resource](self._objects, stored)
        except StatusError as error:
            # For example, the namespace is being deleted. The next change of the object enqueues it again.
            _log.debug("the API rejected a request of a controller: %s", error)
