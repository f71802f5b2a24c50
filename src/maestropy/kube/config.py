"""Find out which Kubernetes API server to talk to, and as whom.

| given | used | otherwise |
|---|---|---|
| a kubeconfig path | its current context, or the one named | refused: file missing, no such context … (`kubeconfig`) |
| nothing, inside a pod | the pod's service account, its token read anew | refused: a file is missing |
| nothing, KUBECONFIG set | the files it names, merged | refused: none of them exists |
| nothing, ~/.kube/config exists | that | |
| nothing at all | | refused: name a kubeconfig |

A pod comes before KUBECONFIG: an agent serves the cluster it runs in, whatever its image's environment says.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from maestropy.kube import kubeconfig
from maestropy.kube.address import ClusterAddress, Credentials, Pem
from maestropy.kube.errors import BadConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def locate(
    path: str, *, context: str = "", environ: Mapping[str, str], home: Path, service_account: Path = SERVICE_ACCOUNT
) -> ClusterAddress:
    """Return the address to use, by the table above."""
    if path:
        return from_kubeconfig([Path(path)], context=context)
    if is_in_pod(environ):
        return from_service_account(environ, service_account=service_account)
    named = [Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if named:
        return from_kubeconfig(named, context=context)
    default = home / ".kube" / "config"
    if default.exists():
        return from_kubeconfig([default], context=context)
    raise BadConfig("no kubeconfig is given and there is no service account of a pod to use; name a kubeconfig file")


def from_kubeconfig(paths: Sequence[Path], *, context: str = "") -> ClusterAddress:
    """Return the address that kubeconfig files give."""
    return kubeconfig.read(paths, context=context)


def is_in_pod(environ: Mapping[str, str]) -> bool:
    """Whether Kubernetes started this process."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def from_service_account(environ: Mapping[str, str], *, service_account: Path = SERVICE_ACCOUNT) -> ClusterAddress:
    """Return the address that a pod is given."""
    if not is_in_pod(environ):
        raise BadConfig("there is no service account of a pod to use; name a kubeconfig file")
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    token, ca = service_account / "token", service_account / "ca.crt"
    for each in (token, ca):
        if not each.is_file():
            raise BadConfig(f"{each} is missing: the pod has no service account token; allow it to mount one")
    namespace = service_account / "namespace"
    return ClusterAddress(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=Pem(file=ca),
        credentials=Credentials(token_file=token),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
        origin=str(service_account),
    )
