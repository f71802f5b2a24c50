"""Run a sandbox cluster: object store, API server and controllers in this process, served on loopback.

async with SandboxCluster() as cluster:
    subprocess(["kubectl", "--kubeconfig", cluster.kubeconfig, "get", "pods"])
"""

import asyncio
import base64
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Self

import yaml

from maestropy.aio.clock import Clock, new_id
from maestropy.aio.tasks import TaskOwner
from maestropy.sandbox.kubeapi import initial_objects
from maestropy.sandbox.kubeapi.access import rbac
from maestropy.sandbox.kubeapi.access.authorizer import AccessControl
from maestropy.sandbox.kubeapi.access.rbac import User
from maestropy.sandbox.kubeapi.controllers import manager
from maestropy.sandbox.kubeapi.controllers.custom_resource_definitions import CrdController
from maestropy.sandbox.kubeapi.controllers.garbage_collector import GarbageCollector
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.http import certificate
from maestropy.sandbox.kubeapi.http.app import ApiServer
from maestropy.sandbox.kubeapi.http.handlers import RequestHandlers
from maestropy.sandbox.kubeapi.http.listener import AbortableListener
from maestropy.sandbox.kubeapi.http.upgrades import WebSocketUpgrades
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.schemas import kinds
from maestropy.sandbox.kubeapi.storage import persistence
from maestropy.sandbox.kubeapi.storage.lists import ListReader
from maestropy.sandbox.kubeapi.storage.store import ObjectStore

# Watch events kept per resource: enough for a short disconnection, few enough that tests meet 410 Expired.
_HISTORY = 5000
# Time for open responses to finish when the cluster stops.
_GRACE_SECONDS = 0.3


class SandboxCluster:
    """A Kubernetes API on loopback while entered.

    With a `directory`, objects and kubeconfig are kept there: a cluster started again on the same `port` is the same
    cluster to its clients. Without `controllers`, workloads stay as they are written, as on a bare API server; garbage
    collection, namespace deletion and custom resource definitions work in any case. Plain HTTP (`tls=False`) is
    cheaper, but kubectl sends no token over it.
    """

    def __init__(
        self,
        *,
        directory: Path | None = None,
        port: int = 0,
        controllers: bool = True,
        delay: float = 0.05,
        tls: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._directory = directory
        self._port = port
        self._with_controllers = controllers
        self._delay = delay
        self._tls = tls
        self._clock = clock or Clock()

    async def __aenter__(self) -> Self:
        now = self._clock.now
        self.token = self._saved_token() or new_id()
        self.store = ObjectStore(history=_HISTORY)
        self.registry = kinds.Registry(kinds.builtin())
        self.objects = Objects(store=self.store, registry=self.registry, now=now, new_id=new_id)
        self.access = AccessControl(self.store, admin_token=self.token)
        self._lists = ListReader(self.store)
        self.faults = Faults(self._expire_history)
        handlers = RequestHandlers(objects=self.objects, access=self.access, list_reader=self._lists, now=now)
        self._api = ApiServer(handlers=handlers, registry=self.registry, access=self.access, faults=self.faults)
        # First of all, because the port may be in use.
        self._upgrades = WebSocketUpgrades(self._api.forwarded_pod)
        self._listener = AbortableListener(
            self._api, host="127.0.0.1", port=self._port, websockets=self._upgrades.protocol
        )
        self._temporary = None if self._directory else tempfile.TemporaryDirectory(prefix="kubeapi-")
        self._home = self._directory or Path(self._temporary.name if self._temporary else "")
        self._home.mkdir(parents=True, exist_ok=True)
        self._task_owner = TaskOwner()
        self._start_controllers()
        issued = certificate.issue(self._home, now=now()) if self._tls else None
        self.ca_file = issued.authority if issued else None
        serving = self._listener.serve(tls=issued.context if issued else None)
        self._serving = self._task_owner.start("kubeapi-http", serving)
        self.kubeconfig = self._home / "kubeconfig"
        self.write_kubeconfig(self.kubeconfig)
        return self

    def _start_controllers(self) -> None:
        definitions, collector = CrdController(self.objects), GarbageCollector(self.objects)
        if self._directory:
            persistence.load(self._directory, self.store, self.registry)
        self._controllers = [
            self._task_owner.start("kubeapi-definitions", definitions.run()),
            self._task_owner.start("kubeapi-collector", collector.run()),
        ]
        if self._with_controllers:
            controllers = manager.ControllerManager(self.objects, delay=self._delay)
            self._controllers.append(self._task_owner.start("kubeapi-controllers", controllers.run()))
        initial_objects.create_missing(self.objects, with_node=self._with_controllers)

    def _saved_token(self) -> str | None:
        """Return the token of an earlier run, so that existing kubeconfigs stay valid after a restart."""
        path = self._directory / "kubeconfig" if self._directory else None
        if path is None or not path.exists():
            return None
        users = yaml.safe_load(path.read_text())["users"]
        return str(users[0]["user"]["token"])

    async def __aexit__(self, *_: object) -> None:
        self.store.close()
        self._listener.stop()
        await asyncio.wait([self._serving], timeout=_GRACE_SECONDS)
        self._listener.abort_connections()
        await self._upgrades.shutdown()
        await self._serving
        failed = [task for task in self._controllers if task.done()]
        await self._task_owner.stop()
        if self._directory:
            persistence.save(self._directory, self.store)
        if self._temporary:
            self._temporary.cleanup()
        for task in failed:
            # Controllers never return, so one that ended has failed: raise its exception to the caller.
            task.result()

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.port}"

    @property
    def request_counts(self) -> Counter[tuple[str, str]]:
        """Requests so far by verb and resource, such as `("patch", "deployments/status.apps")`."""
        return self._api.request_counts

    def write_kubeconfig(self, path: Path, *, token: str | None = None) -> None:
        """Write a kubeconfig for this cluster, with `token` or else the administrator's token."""
        cluster = {"server": self.url}
        if self.ca_file:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_file.read_bytes()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
            "users": [{"name": "sandbox", "user": {"token": token or self.token}}],
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))

    def add_token(self, token: str, user: str, *, groups: tuple[str, ...] = ()) -> None:
        """Authenticate `token` as a user, in requests and in TokenReviews."""
        self.access.add(token, User(name=user, groups=(*groups, "system:authenticated")))

    def add_service_account_token(self, token: str, namespace: str, name: str) -> None:
        """Authenticate `token` as a service account."""
        account = self.store.get(("", "serviceaccounts"), namespace, name)
        user = rbac.service_account(namespace, name)
        self.access.add(token, replace(user, uid=account.uid if account else ""))

    def _expire_history(self) -> None:
        for kind in self.registry.stored():
            cache = self.store.watch_cache(kind.resource)
            cache.compact()
            cache.compacted_version = self.store.version + 1
            cache.wake()
        # The next event must be newer than the compacted version.
        self.store.version += 1
        self._lists.expire_continue_tokens()
