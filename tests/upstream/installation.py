"""Installs Maestro on a cluster of the tests as upstream's test set-up does: its charts, its values, TLS everywhere.

The charts come from the checkout and are rendered by Helm; the flags in them are not touched.
"""

import base64
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests import certificates
from tests.peers.kube_build import ControlPlane
from tests.peers.kube_cluster import KubeCluster, answer
from tests.waiting import wait_for

SERVER, AGENT, CLIENTS = "maestro", "maestro-agent", "clusters-service"
REGISTRY, REPOSITORY = "image-registry.testing", "maestro/maestro"
REST, GRPC = "127.0.0.1:30080", "127.0.0.1:30090"
START_SECONDS = 180
AS_OWNER = ("--server-side", "--force-conflicts")
PROJECT = "maestro-test"


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Tools and places for an installation over one broker."""

    cluster: KubeCluster
    programs: ControlPlane
    helm: Path
    charts: Path
    folder: Path
    broker: str
    tls: bool = True
    """Upstream tests upgrades without TLS, and everything else with it."""

    def prepare(self) -> None:
        """Make namespaces and certificates."""
        for namespace in (SERVER, AGENT, CLIENTS):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        https, grpc = self._authority("https"), self._authority("grpc")
        server = https.issue(cn="maestro-server", san=["maestro", "maestro.maestro", "localhost", "127.0.0.1"])
        self.secret(SERVER, "maestro-https-certs", {"tls.crt": server.cert, "tls.key": server.key})
        server = grpc.issue(cn="maestro-grpc-server", san=["maestro-grpc.maestro", "localhost", "127.0.0.1"])
        client = grpc.issue(cn="grpc-client", o=["open-cluster-management"])
        files = {"ca.crt": grpc.cert, "server.crt": server.cert, "server.key": server.key}
        self.secret(SERVER, "maestro-grpc-cert", {**files, "client.crt": client.cert, "client.key": client.key})
        if self.broker == "grpc":
            self._prepare_grpc_broker()
        elif self.broker == "mqtt":
            self._prepare_mqtt()

    def _prepare_grpc_broker(self) -> None:
        ca = self._authority("grpc-broker")
        names = ["maestro-grpc-broker", "maestro-grpc-broker.maestro", "localhost", "127.0.0.1"]
        server = ca.issue(cn="maestro-grpc-broker-server", san=names)
        client = ca.issue(cn="grpc-client", o=["open-cluster-management"])
        name = "maestro-grpc-broker-cert"
        self.secret(SERVER, name, {"ca.crt": ca.cert, "server.crt": server.cert, "server.key": server.key})
        self.secret(AGENT, name, {"ca.crt": ca.cert, "client.crt": client.cert, "client.key": client.key})
        self.secret(AGENT, "maestro-grpc-broker-ca", {"ca.crt": ca.cert, "ca.key": ca.key_file()})

    def _prepare_mqtt(self) -> None:
        ca = self._authority("mqtt")
        broker = ca.issue(cn="maestro-mqtt-broker", san=["maestro-mqtt", "maestro-mqtt.maestro"])
        self.secret(
            SERVER, "maestro-mqtt-certs", {"ca.crt": ca.cert, "server.crt": broker.cert, "server.key": broker.key}
        )
        for namespace, name in ((SERVER, "maestro-server-certs"), (AGENT, "maestro-agent-certs")):
            client = ca.issue(cn=f"{namespace}-client")
            self.secret(namespace, name, {"ca.crt": ca.cert, "client.crt": client.cert, "client.key": client.key})
        self.secret(AGENT, "maestro-mqtt-ca", {"ca.crt": ca.cert, "ca.key": ca.key_file()})

    def _authority(self, name: str) -> certificates.Authority:
        folder = self.folder / f"certificates-{name}"
        folder.mkdir()
        # The suite signs with this key when it rotates certificates, and reads RSA only.
        return certificates.make_ca(folder, cn=f"maestro-{name}-ca", key=certificates.rsa_key())

    def server(self, *, tag: str) -> None:
        """Install or upgrade the server and wait until it is available."""
        self._release("maestro-server", SERVER, {**server_values(self.broker, tls=self.tls), "image": image(tag)})
        self.wait_available(SERVER, "maestro")

    def client_token(self, setup: Path) -> None:
        """Apply upstream's ServiceAccount for sources, with its token."""
        self.kubectl("apply", "-f", str(setup), namespace=SERVER)

    def agent(self, *, tag: str, consumer: str) -> None:
        """Install or upgrade the agent of a consumer and wait until it is available."""
        self._release(
            "maestro-agent", AGENT, {**agent_values(self.broker, consumer, tls=self.tls), "image": image(tag)}
        )
        self.wait_available(AGENT, "maestro-agent")

    def _release(self, chart: str, namespace: str, values: Mapping[str, Any]) -> None:
        path = self.folder / f"{chart}-values.json"
        path.write_text(json.dumps(values))
        # Hooks only prepare Google's emulator, which is ours here and has its topics already.
        words = ["template", chart, str(self.charts / chart), "--namespace", namespace, "--no-hooks"]
        rendered = ran([str(self.helm), *words, "--values", str(path)])
        (self.folder / f"{chart}.yaml").write_text(rendered)
        self.kubectl("apply", *AS_OWNER, "-f", "-", given=rendered, namespace=namespace)

    def wait_available(self, namespace: str, name: str) -> None:
        """Wait until a Deployment has rolled out."""
        with self.cluster.client() as api:

            def is_available() -> bool:
                found = answer(api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"))
                status, wanted = found.get("status", {}), found["spec"]["replicas"]
                return bool(
                    status.get("observedGeneration") == found["metadata"]["generation"]
                    and status.get("updatedReplicas") == wanted
                    and status.get("availableReplicas") == wanted
                    and status.get("replicas") == wanted
                )

            wait_for(is_available, what=f"deployment {namespace}/{name}", seconds=START_SECONDS)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("apply", *AS_OWNER, "-f", "-", given=json.dumps(document))

    def secret(self, namespace: str, name: str, files: Mapping[str, Path]) -> None:
        data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in files.items()}
        metadata = {"name": name, "namespace": namespace}
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def kubectl(self, *words: str, given: str = "", namespace: str = "default") -> str:
        """Run kubectl as the administrator, who is in that namespace; it must succeed."""
        # The flag -n would refuse the objects of a chart that name another namespace.
        config = json.loads(self.cluster.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        path = self.folder / f"kubeconfig-{namespace}"
        path.write_text(json.dumps(config))
        return ran([str(self.programs.kubectl), f"--kubeconfig={path}", *words], given=given)


def ran(command: list[str], *, given: str = "") -> str:
    outcome = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, f"{' '.join(command)}: {outcome.stderr}"
    return outcome.stdout


def create_consumer(*, tls: bool) -> str:
    """Create a consumer without a name, which gets its id as its name."""
    url = f"{'https' if tls else 'http'}://{REST}/api/maestro/v1/consumers"
    return str(answer(httpx.post(url, json={}, verify=False, trust_env=False, timeout=20))["id"])


def image(tag: str) -> dict[str, str]:
    return {"registry": REGISTRY, "repository": REPOSITORY, "tag": tag, "pullPolicy": "IfNotPresent"}


def server_values(broker: str, *, tls: bool) -> dict[str, Any]:
    """Return what upstream's test set-up gives its server chart."""
    return {
        "environment": "development",
        "serviceAccount": {"name": "maestro"},
        "logging": {"klogV": "4"},
        "replicas": 1,
        "database": {"maxOpenConnections": 50, "sslMode": "disable", "debug": True, "secretName": "maestro-rds"},
        "messageBroker": {
            "type": broker,
            "secretName": f"maestro-{broker}",
            "mqtt": {
                "host": "maestro-mqtt",
                "port": 1883,
                "tls": {
                    "enabled": tls,
                    "caFile": "/secrets/mqtt-certs/ca.crt",
                    "clientCertFile": "/secrets/mqtt-certs/client.crt",
                    "clientKeyFile": "/secrets/mqtt-certs/client.key",
                },
            },
            "grpc": {
                "url": "maestro-grpc-broker.maestro:8091",
                "tls": {
                    "enabled": tls,
                    "certFile": "/secrets/grpc-broker-cert/server.crt",
                    "keyFile": "/secrets/grpc-broker-cert/server.key",
                    "clientCAFile": "/secrets/grpc-broker-cert/ca.crt",
                },
            },
            "pubsub": pubsub_values("maestro-pubsub:8085", own="source", other="agent", owner="maestro"),
        },
        "server": {
            "https": {"enabled": tls},
            "hostname": "",
            "http": {"bindPort": 8000},
            "grpc": {
                "bindPort": 8090,
                "tls": {
                    "enabled": tls,
                    "certFile": "/secrets/maestro-grpc-cert/server.crt",
                    "keyFile": "/secrets/maestro-grpc-cert/server.key",
                    "clientCAFile": "/secrets/maestro-grpc-cert/ca.crt",
                },
            },
            "metrics": {"bindPort": 8080, "https": {"enabled": False}},
            "healthCheck": {"bindPort": 8083},
            "httpReadTimeout": "5s",
            "httpWriteTimeout": "30s",
        },
        "service": {
            "api": {"type": "NodePort", "port": 8000, "nodePort": 30080},
            "grpc": {"type": "NodePort", "port": 8090, "nodePort": 30090},
            "metrics": {"port": 8080},
            "healthcheck": {"port": 8083},
        },
        "route": {"enabled": False},
        "postgresql": {"enabled": True, "persistence": {"enabled": False}},
        "mosquitto": {
            "enabled": broker == "mqtt",
            "service": {"name": "maestro-mqtt", "port": 1883},
            "tls": {"enabled": tls},
        },
        "pubsubEmulator": {
            "enabled": broker == "pubsub",
            "projectID": PROJECT,
            "service": {"name": "maestro-pubsub", "port": 8085},
        },
    }


def agent_values(broker: str, consumer: str, *, tls: bool) -> dict[str, Any]:
    """Return what upstream's test set-up gives its agent chart."""
    files = {name: f"/secrets/mqtt-certs/{file}" if tls else "" for name, file in CLIENT_FILES.items()}
    grpc = {name: f"/secrets/grpc-broker-cert/{file}" for name, file in GRPC_CLIENT_FILES.items()}
    return {
        "environment": "development",
        "clientCertRefreshDuration": "5s",
        "consumerName": consumer,
        "serviceAccount": {"name": "maestro-agent-sa"},
        "logging": {"klogV": "4"},
        "messageBroker": {
            "type": broker,
            "mqtt": {"host": "maestro-mqtt.maestro", "port": "1883", "user": "", "password": "", **files},
            "grpc": {
                "url": "maestro-grpc-broker.maestro:8091",
                **({"tls": grpc} if tls else {}),
            },
            "pubsub": pubsub_values("maestro-pubsub.maestro:8085", own="agent", other="source", owner=consumer),
        },
    }


CLIENT_FILES = {"rootCert": "ca.crt", "clientCert": "client.crt", "clientKey": "client.key"}
GRPC_CLIENT_FILES = {"caCert": "ca.crt", "clientCert": "client.crt", "clientKey": "client.key"}


def pubsub_values(endpoint: str, *, own: str, other: str, owner: str) -> dict[str, Any]:
    kinds = ("Events", "Broadcast")
    return {
        "projectID": PROJECT,
        "endpoint": endpoint,
        "disableTLS": True,
        "topics": {f"{own}{kind}": f"projects/{PROJECT}/topics/{own}{kind.lower()}" for kind in kinds},
        "subscriptions": {
            f"{other}{kind}": f"projects/{PROJECT}/subscriptions/{other}{kind.lower()}-{owner}" for kind in kinds
        },
    }
