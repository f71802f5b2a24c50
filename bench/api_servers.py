"""The Kubernetes API servers of a measure, real or of the sandbox: what they were asked for and what they used.

`slow_namespace` makes the real one slow for one namespace, as a webhook of a user does. The sandbox has no webhooks.
"""

import base64
import contextlib
import json
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench import usage
from tests.peers import kube_build, kube_cluster
from tests.peers.peer_processes import end, mortal

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_LABELS = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What an API server was asked for since it started."""

    calls: float
    """Requests that an agent sends for works, without lists and watches."""
    lists: float
    watches: float
    writes: float
    cpu_seconds: float

    def __sub__(self, before: "Counts") -> "Counts":
        return Counts(
            calls=self.calls - before.calls,
            lists=self.lists - before.lists,
            watches=self.watches - before.watches,
            writes=self.writes - before.writes,
            cpu_seconds=self.cpu_seconds - before.cpu_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """One API server."""

    kubeconfig: Path
    counts: Callable[[], Counts]
    real: kube_cluster.KubeCluster | None = None


@contextlib.contextmanager
def real(folder: Path) -> Iterator[ApiServer]:
    """Run etcd, kube-apiserver and its controllers."""
    with kube_cluster.kube_cluster(kube_build.control_plane(print), folder=folder, durable=True) as cluster:
        yield ApiServer(kubeconfig=cluster.kubeconfig, counts=lambda: _metrics(cluster), real=cluster)


def _metrics(cluster: kube_cluster.KubeCluster) -> Counts:
    """Return the counts of ConfigMaps and AppliedManifestWorks; other clients do not use these namespaces."""
    counted: dict[str, float] = {}
    cpu = 0.0
    with cluster.client() as api:
        for line in api.get("/metrics").text.splitlines():
            if line.startswith("process_cpu_seconds_total "):
                cpu = float(line.split()[1])
            elif line.startswith("apiserver_request_total{"):
                labels = dict(_LABELS.findall(line))
                if labels.get("resource") in ("configmaps", "appliedmanifestworks"):
                    verb = labels["verb"].lower()
                    counted[verb] = counted.get(verb, 0.0) + float(line.split()[-1])
    return _counts(counted, cpu_seconds=cpu)


def _counts(by_verb: dict[str, float], *, cpu_seconds: float) -> Counts:
    reads = {"list": by_verb.pop("list", 0.0), "watch": by_verb.pop("watch", 0.0)}
    calls = sum(by_verb.values())
    return Counts(
        calls=calls,
        lists=reads["list"],
        watches=reads["watch"],
        writes=calls - by_verb.get("get", 0.0),
        cpu_seconds=cpu_seconds,
    )


@contextlib.contextmanager
def sandbox(folder: Path) -> Iterator[ApiServer]:
    """Run the API server of the sandbox."""
    command = [*mortal(), sys.executable, "-m", "bench.sandbox_api", folder]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    stdin, stdout = process.stdin, process.stdout

    def counts() -> Counts:
        stdin.write("counts\n")
        stdin.flush()
        by_verb: dict[str, float] = {}
        for name, count in json.loads(stdout.readline()).items():
            verb, _, resource = name.partition(" ")
            if resource.startswith(("configmaps", "appliedmanifestworks")):
                by_verb[verb] = by_verb.get(verb, 0.0) + count
        return _counts(by_verb, cpu_seconds=usage.cpu_seconds(process.pid))

    try:
        yield ApiServer(kubeconfig=Path(stdout.readline().strip()), counts=counts)
    finally:
        end(process)


@contextlib.contextmanager
def slow_namespace(cluster: kube_cluster.KubeCluster, namespace: str, *, seconds: float) -> Iterator[None]:
    """Delay every write of a ConfigMap in a namespace by a webhook."""
    certificate = cluster.authority.issue(cn="webhook", san=["127.0.0.1"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _webhook(seconds))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.cert, certificate.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    webhook = {
        "name": "slow.bench.example.com",
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_port}/",
            "caBundle": base64.b64encode(cluster.authority.cert.read_bytes()).decode(),
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }
    body = {"metadata": {"name": "slow"}, "webhooks": [webhook]}
    try:
        with cluster.client() as api:
            kube_cluster.answer(api.post(WEBHOOKS, json=body))
        # The API server reads new webhooks after a moment.
        time.sleep(2)
        yield
    finally:
        with cluster.client() as api:
            api.delete(f"{WEBHOOKS}/slow")
        server.shutdown()


def _webhook(seconds: float) -> type[BaseHTTPRequestHandler]:
    class Webhook(BaseHTTPRequestHandler):
        """Allows everything, late."""

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(seconds)
            answer = {"uid": review["request"]["uid"], "allowed": True}
            body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing."""

    return Webhook
