"""A cluster without machines: joins the parts and serves them on a port of this machine.

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
from maestropy.aio.tasks import Crew
from maestropy.sandbox.kubeapi import certificate, kinds, persistence, rbac, seeds
from maestropy.sandbox.kubeapi.access import Access
from maestropy.sandbox.kubeapi.app import Api
from maestropy.sandbox.kubeapi.controllers import manager
from maestropy.sandbox.kubeapi.definitions import Definitions
from maestropy.sandbox.kubeapi.faults import Faults
from maestropy.sandbox.kubeapi.gc import Collector
from maestropy.sandbox.kubeapi.listener import Listener
from maestropy.sandbox.kubeapi.lists import Lists
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.rbac import User
from maestropy.sandbox.kubeapi.store import Store
from maestropy.sandbox.kubeapi.verbs import Verbs

# Events remembered per resource: enough for a client that was away for a moment, small enough to meet 410 in practice.
_HISTORY = 5000
# For answers under way when the cluster ends.
_GRACE_SECONDS = 0.3


class SandboxCluster:
    """A Kubernetes API on loopback while entered.

    With a `directory` the objects are kept there between two runs, and the kubeconfig lies beside them: started again
    on the same `port`, it is the same cluster to its clients. Without
    `controllers` workloads stay as they are written, as on a bare API server; owners, namespaces and custom kinds are
    looked after in any case. Plain HTTP (`tls=False`) is lighter, but kubectl sends no token over it.
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
        self.token = self._known_token() or new_id()
        self.store = Store(history=_HISTORY)
        self.registry = kinds.Registry(kinds.builtin())
        self.objects = Objects(store=self.store, registry=self.registry, now=now, new_id=new_id)
        self.access = Access(self.store, admin_token=self.token)
        self._lists = Lists(self.store)
        self.faults = Faults(self._forget)
        verbs = Verbs(objects=self.objects, access=self.access, pages=self._lists, now=now)
        self._api = Api(verbs=verbs, registry=self.registry, access=self.access, faults=self.faults)
        # Before anything else is taken: the port may be in use.
        self._listener = Listener(self._api, host="127.0.0.1", port=self._port)
        self._temporary = None if self._directory else tempfile.TemporaryDirectory(prefix="kubeapi-")
        self._home = self._directory or Path(self._temporary.name if self._temporary else "")
        self._home.mkdir(parents=True, exist_ok=True)
        self._crew = Crew()
        self._start_parts()
        issued = certificate.issue(self._home, now=now()) if self._tls else None
        self.ca_file = issued.authority if issued else None
        serving = self._listener.serve(tls=issued.context if issued else None)
        self._serving = self._crew.start("kubeapi-http", serving)
        self.kubeconfig = self._home / "kubeconfig"
        self.write_kubeconfig(self.kubeconfig)
        return self

    def _start_parts(self) -> None:
        definitions, collector = Definitions(self.objects), Collector(self.objects)
        if self._directory:
            persistence.load(self._directory, self.store, self.registry)
        self._parts = [
            self._crew.start("kubeapi-definitions", definitions.run()),
            self._crew.start("kubeapi-collector", collector.run()),
        ]
        if self._with_controllers:
            acting = manager.Manager(self.objects, delay=self._delay)
            self._parts.append(self._crew.start("kubeapi-controllers", acting.run()))
        seeds.plant(self.objects, with_node=self._with_controllers)

    def _known_token(self) -> str | None:
        """Return the token of an earlier run, so that clients survive a restart."""
        path = self._directory / "kubeconfig" if self._directory else None
        if path is None or not path.exists():
            return None
        users = yaml.safe_load(path.read_text())["users"]
        return str(users[0]["user"]["token"])

    async def __aexit__(self, *_: object) -> None:
        self.store.close()
        self._listener.stop()
        await asyncio.wait([self._serving], timeout=_GRACE_SECONDS)
        self._listener.cut()
        await self._serving
        failed = [part for part in self._parts if part.done()]
        await self._crew.stop()
        if self._directory:
            persistence.save(self._directory, self.store)
        if self._temporary:
            self._temporary.cleanup()
        for part in failed:
            # These run for ever: one that ended has failed, and whoever used the cluster must know.
            part.result()

    @property
    def url(self) -> str:
        """Where the API is."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.port}"

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """Calls so far by verb and resource, such as `("patch", "deployments/status.apps")`."""
        return self._api.counts

    def write_kubeconfig(self, path: Path, *, token: str | None = None) -> None:
        """Write a file that leads kubectl and agents here, as the administrator or as whoever has `token`."""
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
        """Let `token` speak for a user, in requests and in TokenReviews."""
        self.access.add(token, User(name=user, groups=(*groups, "system:authenticated")))

    def add_service_account_token(self, token: str, namespace: str, name: str) -> None:
        """Let `token` speak for a service account."""
        account = self.store.get(("", "serviceaccounts"), namespace, name)
        user = rbac.service_account(namespace, name)
        self.access.add(token, replace(user, uid=account.uid if account else ""))

    def _forget(self) -> None:
        for kind in self.registry.stored():
            log = self.store.log(kind.resource)
            log.forget_all()
            log.forgotten = self.store.version + 1
            log.wake()
        # The next event must not be older than what is forgotten.
        self.store.version += 1
        self._lists.forget()
