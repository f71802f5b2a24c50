"""Runs the controllers: a change makes its object and its owners due after a short delay, once for many changes."""

import asyncio
import logging
from collections.abc import Callable

from maestropy.sandbox.kubeapi.controllers import jobs, pods, surroundings, workloads
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.store import Event, Resource, Stored

_log = logging.getLogger(__name__)

Controller = Callable[[Objects, Stored], None]
_CONTROLLERS: dict[Resource, Controller] = {
    ("apps", "deployments"): workloads.deployment,
    ("apps", "replicasets"): workloads.replica_set,
    ("apps", "statefulsets"): workloads.stateful_set,
    ("apps", "daemonsets"): workloads.daemon_set,
    ("batch", "jobs"): jobs.job,
    ("", "pods"): pods.pod,
    ("", "namespaces"): surroundings.namespace,
    ("", "nodes"): surroundings.node,
    ("", "persistentvolumeclaims"): surroundings.claim,
    ("rbac.authorization.k8s.io", "clusterroles"): surroundings.cluster_role,
    ("policy", "poddisruptionbudgets"): surroundings.budget,
}


class Manager:
    """The controllers of one cluster."""

    def __init__(self, objects: Objects, *, delay: float) -> None:
        self._objects = objects
        self._delay = delay
        self._due: dict[str, float] = {}
        self._news = asyncio.Event()
        objects.store.listen(self._note)

    def _note(self, event: Event) -> None:
        self._plan(event.last)
        for owner in event.last.obj["metadata"].get("ownerReferences") or []:
            stored = self._objects.store.by_uid(owner["uid"])
            if stored is not None:
                self._plan(stored)

    def _plan(self, stored: Stored) -> None:
        if stored.resource in _CONTROLLERS and stored.uid not in self._due:
            self._due[stored.uid] = asyncio.get_running_loop().time() + self._delay
            self._news.set()

    async def run(self) -> None:
        """Act on what is due, for ever."""
        clock = asyncio.get_running_loop().time
        while True:
            if not self._due:
                self._news.clear()
                await self._news.wait()
            uid, moment = next(iter(self._due.items()))
            await asyncio.sleep(max(0.0, moment - clock()))
            del self._due[uid]
            self.act(uid)

    def act(self, uid: str) -> None:
        """Let its controller look at one object."""
        stored = self._objects.store.by_uid(uid)
        if stored is None:
            return
        try:
            _CONTROLLERS[stored.resource](self._objects, stored)
        except Problem as problem:
            # Such as a namespace that ends meanwhile; the next change of the object brings it back here.
            _log.debug("a controller was refused: %s", problem)
