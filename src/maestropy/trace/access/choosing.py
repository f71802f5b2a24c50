"""Find the clusters that somebody means: contexts of one kubeconfig, several files, a consumer's context, or this pod.

| given | service cluster | management clusters |
|---|---|---|
| contexts | `--svc-context svc` | `--mgmt-context mgmt`, or `consumer=context` as often as there are clusters |
| files | `--svc-kubeconfig F` | `--mgmt-kubeconfig F`, or `consumer=F` |
| a file and contexts | its context of that name | likewise, all contexts from that one file |
| nothing | the current context, or the pod's own cluster | likewise, with a warning: both sides are then one cluster |
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maestropy.kube import config, errors
from maestropy.kube.address import ClusterAddress
from maestropy.trace.access.cluster import Choice, trouble
from maestropy.trace.errors import BadQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line says about clusters."""

    svc_context: str = ""
    svc_kubeconfig: str = ""
    mgmt_contexts: Sequence[str] = ()
    mgmt_kubeconfigs: Sequence[str] = ()
    agent_namespace: str = "maestro-agent"
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kubeconfigs are looked for."""

    environ: Mapping[str, str]
    home: Path
    service_account: Path = config.SERVICE_ACCOUNT
    """What Kubernetes mounts into a pod."""


def service_cluster(wanted: Wanted, place: Place) -> Choice:
    """Return the cluster that runs the server and its database."""
    return _choice(wanted, place, file=wanted.svc_kubeconfig, context=wanted.svc_context)


def management_clusters(wanted: Wanted, place: Place) -> Sequence[Choice]:
    """Return the clusters that run agents."""
    contexts = [_pair(each) for each in wanted.mgmt_contexts]
    files = [_pair(each) for each in wanted.mgmt_kubeconfigs]
    if contexts and len(files) > 1:
        raise BadQuestion(
            "--mgmt-context and several --mgmt-kubeconfig do not go together; give one file, or no context"
        )
    if contexts:
        file = files[0][1] if files else ""
        return [_choice(wanted, place, file=file, context=name, consumer=who) for who, name in contexts]
    if files:
        return [_choice(wanted, place, file=name, context="", consumer=who) for who, name in files]
    return [_choice(wanted, place, file="", context="")]


def _pair(written: str) -> tuple[str, str]:
    """Read `consumer=context`, or a bare context."""
    consumer, separator, name = written.partition("=")
    if not (name if separator else consumer):
        raise BadQuestion(f"{written!r} cannot be read; write CONTEXT or CONSUMER=CONTEXT")
    return (consumer, name) if separator else ("", written)


def _choice(wanted: Wanted, place: Place, *, file: str, context: str, consumer: str = "") -> Choice:
    label = context or consumer or (Path(file).name if file else "current context")
    try:
        address = _address(place, file=file, context=context)
    except errors.KubeError as error:
        raise trouble(error, label=label, doing="find its address") from error
    flags = [f"--kubeconfig {shlex.quote(file)}"] if file else []
    flags += [f"--context {shlex.quote(context)}"] if context else []
    return Choice(
        label=label,
        address=address,
        kubectl=" ".join(flags),
        consumer=consumer,
        agent_namespace=wanted.agent_namespace,
        timeout_seconds=wanted.timeout_seconds,
    )


def _address(place: Place, *, file: str, context: str) -> ClusterAddress:
    if context and not file:
        # A context is a kubeconfig's: inside a pod too, naming one means that file and not the pod's own account.
        outside = {name: value for name, value in place.environ.items() if not name.startswith("KUBERNETES_SERVICE_")}
        return config.locate("", context=context, environ=outside, home=place.home)
    return config.locate(
        file, context=context, environ=place.environ, home=place.home, service_account=place.service_account
    )
