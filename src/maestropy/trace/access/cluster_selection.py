"""Select clusters from the command line: contexts of one kubeconfig, several files, a consumer's context, or this pod.

| given | service cluster | management clusters |
|---|---|---|
| contexts | `--svc-context svc` | `--mgmt-context mgmt`, or `consumer=context` once per cluster |
| files | `--svc-kubeconfig F` | `--mgmt-kubeconfig F`, or `consumer=F` |
| a file and contexts | the context of that name in the file | likewise, all contexts from that one file |
| nothing | the current context, or the cluster of this pod | likewise, with a warning: both are then one cluster |
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from maestropy.kube import errors
from maestropy.kube.config import load as config
from maestropy.kube.config.address import ClusterAddress
from maestropy.trace.access.cluster import ClusterTarget, no_access
from maestropy.trace.access.options import kubectl_flags
from maestropy.trace.errors import InvalidArguments
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of the command line that select clusters."""

    svc_context: str = ""
    svc_kubeconfig: str = ""
    mgmt_contexts: Sequence[str] = ()
    mgmt_kubeconfigs: Sequence[str] = ()
    agent_namespace: str = "maestro-agent"
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigLocation:
    """Where kubeconfigs are searched."""

    environ: Mapping[str, str]
    home: Path
    service_account: Path = config.SERVICE_ACCOUNT
    """What Kubernetes mounts into a pod."""


def service_cluster(options: ClusterOptions, location: KubeconfigLocation) -> ClusterTarget:
    """Return the cluster that runs the server and its database."""
    return _target(options, location, file=options.svc_kubeconfig, context=options.svc_context)


def management_clusters(options: ClusterOptions, location: KubeconfigLocation) -> Sequence[ClusterTarget]:
    """Return the clusters that run agents."""
    contexts = [_pair(text) for text in options.mgmt_contexts]
    kubeconfigs = [_pair(text) for text in options.mgmt_kubeconfigs]
    if contexts and len(kubeconfigs) > 1:
        raise InvalidArguments(
            "--mgmt-context and several --mgmt-kubeconfig do not go together; give one file, or no context"
        )
    if contexts:
        file = kubeconfigs[0][1] if kubeconfigs else ""
        return [_target(options, location, file=file, context=name, consumer=consumer) for consumer, name in contexts]
    if kubeconfigs:
        return [_target(options, location, file=name, context="", consumer=consumer) for consumer, name in kubeconfigs]
    return [_target(options, location, file="", context="")]


def _pair(written: str) -> tuple[str, str]:
    """Read `consumer=context`, or a bare context."""
    consumer, separator, name = written.partition("=")
    if not (name if separator else consumer):
        raise InvalidArguments(f"{written!r} cannot be read; write CONTEXT or CONSUMER=CONTEXT")
    return (consumer, name) if separator else ("", written)


def _target(
    options: ClusterOptions, location: KubeconfigLocation, *, file: str, context: str, consumer: str = ""
) -> ClusterTarget:
    label = context or consumer or (Path(file).name if file else "current context")
    try:
        address = _address(location, file=file, context=context)
    except errors.KubeError as error:
        raise no_access(error, label=label, action="find its address") from error
    # Printed commands name the context even where it is the current one, which may be another when they are pasted.
    shown_context = context or ("" if file else _current_context(location))
    return ClusterTarget(
        label=label,
        address=address,
        kubectl=kubectl_flags(kubeconfig=file, context=shown_context),
        consumer=consumer,
        agent_namespace=options.agent_namespace,
        timeout_seconds=options.timeout_seconds,
    )


def _current_context(location: KubeconfigLocation) -> str:
    """Return the current context of the usual kubeconfig; empty in a pod, and where it cannot be read."""
    if config.is_in_pod(location.environ):
        return ""
    named = [Path(path) for path in location.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    for path in named or [location.home / ".kube" / "config"]:
        try:
            content = yaml_documents.load(files.read(path, most=files.CONFIG_BYTES))
        except (InputRejected, OSError, yaml.YAMLError):
            continue
        current = content.get("current-context") if isinstance(content, Mapping) else None
        if isinstance(current, str) and current:
            return current
    return ""


def _address(location: KubeconfigLocation, *, file: str, context: str) -> ClusterAddress:
    if context and not file:
        # A context belongs to a kubeconfig: also inside a pod it selects that file and not the service account.
        outside = {
            name: value for name, value in location.environ.items() if not name.startswith("KUBERNETES_SERVICE_")
        }
        return config.locate("", context=context, environ=outside, home=location.home)
    return config.locate(
        file, context=context, environ=location.environ, home=location.home, service_account=location.service_account
    )
