"""Choose the kubeconfig or the service account of the pod.

| given | used | otherwise |
|---|---|---|
| a kubeconfig path | its current context, or the one named | rejected: file missing, no such context … (`kubeconfig`) |
| nothing, inside a pod | the pod's service account, its token read again | rejected: a file is missing |
| nothing, KUBECONFIG set | the files it names, merged | rejected: none of them exists |
| nothing, ~/.kube/config exists | that | |
| nothing at all | | rejected: name a kubeconfig |

The pod comes before KUBECONFIG: an agent serves the cluster it runs in, whatever the environment of its image says.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from maestropy.kube.config import kubeconfig
from maestropy.kube.config.address import ClusterAddress, Credentials, Pem
from maestropy.kube.errors import BadConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def locate(
    path: str, *, context: str = "", environ: Mapping[str, str], home: Path, service_account: Path = SERVICE_ACCOUNT
) -> ClusterAddress:
    """Return the address by the table above."""
    if path:
        return from_kubeconfig([Path(path)], context=context)
    if is_in_pod(environ):
        return from_service_account(environ, service_account=service_account)
    named = [Path(path_text) for path_text in environ.get("KUBECONFIG", "").split(os.pathsep) if path_text]
    if named:
        return from_kubeconfig(named, context=context)
    default = home / ".kube" / "config"
    if default.exists():
        return from_kubeconfig([default], context=context)
    raise BadConfig("no kubeconfig is given and there is no service account of a pod to use; name a kubeconfig file")


def from_kubeconfig(paths: Sequence[Path], *, context: str = "") -> ClusterAddress:
    """Return the address from kubeconfig files."""
    return kubeconfig.read(paths, context=context)


def is_in_pod(environ: Mapping[str, str]) -> bool:
    """Return whether this process runs in a pod."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def from_service_account(environ: Mapping[str, str], *, service_account: Path = SERVICE_ACCOUNT) -> ClusterAddress:
    """Return the address from the service account of the pod."""
    if not is_in_pod(environ):
        raise BadConfig("there is no service account of a pod to use; name a kubeconfig file")
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    token, ca = service_account / "token", service_account / "ca.crt"
    for file in (token, ca):
        if not file.is_file():
            raise BadConfig(f"{file} is missing: the pod has no service account token; allow it to mount one")
    namespace = service_account / "namespace"
    return ClusterAddress(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=Pem(file=ca),
        credentials=Credentials(token_file=token),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
        origin=str(service_account),
    )
