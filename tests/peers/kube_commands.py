"""How the programs of a control plane are told what to do: command lines and kubeconfigs, and nothing else."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from tests.certificates import CertFiles
from tests.peers.kube_build import ControlPlane


def etcd(programs: ControlPlane, *, data: Path, url: str, peer_url: str, durable: bool) -> list[str]:
    """Return the command for one etcd that trusts every loopback client."""
    return [
        str(programs.etcd),
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--log-level=warn",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def apiserver(
    programs: ControlPlane, *, port: int, etcd_url: str, ca: Path, serving: CertFiles, accounts: CertFiles
) -> list[str]:
    """Return the command for an API server; `accounts` holds the key that signs ServiceAccount tokens."""
    return [
        str(programs.apiserver),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={ca}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={accounts.cert}",
        f"--service-account-signing-key-file={accounts.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # Nobody reaches this server through a Service, and a loopback address is refused as an endpoint.
        "--endpoint-reconciler-type=none",
    ]


def controllers(programs: ControlPlane, *, kubeconfig: Path, ca: Path, accounts: CertFiles) -> list[str]:
    """Return the command for all controllers that need no cloud."""
    return [
        str(programs.controllers),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={accounts.key}",
        f"--root-ca-file={ca}",
        # The defaults, 20 and 30, would make a test of hundreds of objects a test of this limiter.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def by_certificate(files: CertFiles) -> dict[str, str]:
    """Return a kubeconfig's user entry that carries a client certificate."""
    return {"client-certificate-data": encoded(files.cert), "client-key-data": encoded(files.key)}


def write_kubeconfig(path: Path, *, url: str, ca: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig that needs no other file; JSON is YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": encoded(ca)}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": dict(user)}],
    }
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
