"""A node for the control plane of the tests: takes every pod, runs it as processes, and tells how it is.

    with node(cluster, images=images, folder=folder, outside={("maestro", "maestro-db"): ("127.0.0.1", port)}):
        ...  # Deployments of the cluster now run

Pods whose image nothing stands for count as running and do nothing. Services are real addresses that lead to ready
pods, or to a process of the test where `outside` says so.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.peers.kube_cluster import KubeCluster, answer
from tests.upstream import pod_files, pod_network
from tests.upstream.pod import Pod, stamp
from tests.upstream.pod_files import Image
from tests.upstream.pod_network import Endpoint, Forwarder

NAME = "this-machine"
LOOK_SECONDS = 0.5
HEARTBEAT_LOOKS = 20
API = ("kubernetes.default.svc", 6443)
MERGE = {"Content-Type": "application/merge-patch+json"}
Objects = dict[tuple[str, str], dict[str, Any]]


@dataclass(kw_only=True)
class Node:
    """What runs here, by uid."""

    cluster: KubeCluster
    api: httpx.Client
    images: Mapping[str, Image]
    folder: Path
    outside: Mapping[tuple[str, str], Endpoint]
    forwarder: Forwarder
    say: Callable[[str], None]
    pods: dict[str, Pod] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    written: dict[Path, str] = field(default_factory=dict)
    """Volume → what it was written from."""
    services: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    looks: int = 0

    def look(self) -> None:
        """Bring pods, volumes and Services to what the API server says now."""
        if self.looks % HEARTBEAT_LOOKS == 0:
            self._beat()
        self.looks += 1
        # Services first: a pod learns their names when it starts.
        self._serve(self._list("services"))
        manifests = self._list("pods").values()
        for manifest in manifests:
            self._place(manifest)
        known = {manifest["metadata"]["uid"] for manifest in manifests}
        for uid in set(self.pods) - known:
            # Deleted without grace.
            self.pods[uid].stop()
            if self.pods[uid].has_ended:
                del self.pods[uid]
        self._refresh_volumes()
        for uid in known & set(self.pods):
            self._tell(self.pods[uid], uid)

    def _list(self, kind: str) -> Objects:
        items = answer(self.api.get(f"/api/v1/{kind}"))["items"]
        return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}

    def _beat(self) -> None:
        """Be a node that is there; pods of one that is not are taken away."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
        self.api.post("/api/v1/nodes", json=node)
        ready = {"type": "Ready", "status": "True", "reason": "Here", "lastHeartbeatTime": stamp()}
        answer(self.api.patch(f"/api/v1/nodes/{NAME}/status", json={"status": {"conditions": [ready]}}, headers=MERGE))

    def _place(self, manifest: Mapping[str, Any]) -> None:
        metadata, uid = manifest["metadata"], manifest["metadata"]["uid"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "nodeName" not in manifest["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": target}
            self.api.post(f"{path}/binding", json=body)
        elif "deletionTimestamp" in metadata:
            pod = self.pods.get(uid)
            if pod is not None:
                pod.stop()
            if pod is None or pod.has_ended:
                options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
                self.api.request("DELETE", path, json=options)
                self.pods.pop(uid, None)
        elif uid not in self.pods and manifest["status"]["phase"] in ("Pending", "Running"):
            self._start(manifest, uid)

    def _start(self, manifest: Mapping[str, Any], uid: str) -> None:
        pod = Pod(
            manifest=manifest,
            folder=self.folder / manifest["metadata"]["name"],
            images=self.images,
            variables={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/tmp",
                "KUBERNETES_SERVICE_HOST": API[0],
                "KUBERNETES_SERVICE_PORT": str(API[1]),
            },
            volumes=self._volumes,
            services=self._names,
            say=self.say,
        )
        self.pods[uid] = pod
        pod.start()
        if not pod.is_idle:
            self.say(f"pod {pod.name} started")

    def _tell(self, pod: Pod, uid: str) -> None:
        state = pod.state()
        known = json.dumps(state, sort_keys=True)
        if self.told.get(uid) != known:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
            if self.api.patch(path, json={"status": state}, headers=MERGE).is_success:
                self.told[uid] = known

    def _names(self) -> Sequence[Mapping[str, str]]:
        api = {"name": "kubernetes", "namespace": "default", "address": pod_network.GATEWAY}
        found = [
            {"name": name, "namespace": namespace, "address": service["spec"]["clusterIP"]}
            for (namespace, name), service in list(self.services.items())
            if (namespace, name) != ("default", "kubernetes")
        ]
        return [api, *found]

    def _serve(self, services: Objects) -> None:
        for key, service in services.items():
            if key in self.services or key == ("default", "kubernetes") or not service["spec"].get("selector"):
                continue
            if service["spec"]["clusterIP"] == "None":
                # Has no address; nobody here looks for its pods by name.
                continue
            pod_network.run("ip", "addr", "add", f"{service['spec']['clusterIP']}/32", "dev", "lo")
            for port in service["spec"]["ports"]:
                backends = self._backends(key, service["spec"]["selector"], port)
                self.forwarder.listen((service["spec"]["clusterIP"], port["port"]), backends)
                if "nodePort" in port:
                    self.forwarder.listen(("127.0.0.1", port["nodePort"]), backends)
            self.services[key] = service

    def _backends(
        self, key: tuple[str, str], selector: Mapping[str, str], port: Mapping[str, Any]
    ) -> Callable[[], Sequence[Endpoint]]:
        def now() -> Sequence[Endpoint]:
            if key in self.outside:
                return [self.outside[key]]
            return [
                (pod.address, port.get("targetPort", port["port"]))
                for pod in list(self.pods.values())
                if pod.is_ready
                and not pod.is_idle
                and pod.namespace == key[0]
                and selector.items() <= pod.manifest["metadata"].get("labels", {}).items()
            ]

        return now

    def _volumes(self, pod: Pod) -> Mapping[str, Path]:
        """Write a pod's volumes; called in its thread, before its first container."""
        found = {}
        for volume in pod.manifest["spec"].get("volumes", ()):
            folder = pod.folder / "volumes" / volume["name"]
            folder.mkdir(parents=True)
            found[volume["name"]] = folder
            if "projected" in volume:
                account = pod.manifest["spec"].get("serviceAccountName", "default")
                token = self.cluster.service_account_token(namespace=pod.namespace, name=account)
                ca = self.cluster.authority.cert.read_bytes()
                content = {"token": token.encode(), "ca.crt": ca, "namespace": pod.namespace.encode()}
                pod_files.write_volume(folder, content)
        self._fill(pod, secrets=self._list("secrets"), settings=self._list("configmaps"))
        return found

    def _refresh_volumes(self) -> None:
        secrets = self._list("secrets")
        for pod in list(self.pods.values()):
            if pod.process is not None and pod.process.poll() is None:
                self._fill(pod, secrets=secrets, settings={})

    def _fill(self, pod: Pod, *, secrets: Objects, settings: Objects) -> None:
        for volume in pod.manifest["spec"].get("volumes", ()):
            folder = pod.folder / "volumes" / volume["name"]
            if "secret" in volume:
                found = secrets.get((pod.namespace, volume["secret"]["secretName"]))
                content = pod_files.decoded(found) if found else {}
            elif "configMap" in volume and settings:
                found = settings.get((pod.namespace, volume["configMap"]["name"]))
                content = {name: text.encode() for name, text in (found or {}).get("data", {}).items()}
            else:
                continue
            version = found["metadata"]["resourceVersion"] if found else "absent"
            if self.written.get(folder) != version:
                pod_files.write_volume(folder, content)
                self.written[folder] = version


@contextlib.contextmanager
def node(
    cluster: KubeCluster,
    *,
    images: Mapping[str, Image],
    folder: Path,
    outside: Mapping[tuple[str, str], Endpoint],
    say: Callable[[str], None],
) -> Iterator[Node]:
    """Run the pods of a cluster until the block ends."""
    done = threading.Event()
    with cluster.client() as api, pod_network.forwarder() as forwarder:
        here = Node(
            cluster=cluster, api=api, images=images, folder=folder, outside=outside, forwarder=forwarder, say=say
        )
        server = httpx.URL(cluster.url)
        forwarder.listen((pod_network.GATEWAY, API[1]), lambda: [(server.host, server.port or 443)])

        def work() -> None:
            while not done.wait(LOOK_SECONDS):
                try:
                    here.look()
                except (httpx.HTTPError, AssertionError) as error:
                    say(f"node: {error}")

        thread = threading.Thread(target=work, name="node", daemon=True)
        thread.start()
        try:
            yield here
        finally:
            done.set()
            thread.join(10)
            for pod in here.pods.values():
                pod.stop()
