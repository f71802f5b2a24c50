"""The flags that select the pods whose logs are read, and the environment variables of older scripts."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

if TYPE_CHECKING:
    from maestropy.trace.access.pod_logs import ComponentPods
    from maestropy.trace.follow import FollowedLogs


_POD_FLAGS = Group("Pods", sort_key=10)


@Parameter(group=_POD_FLAGS)
@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Where servers and agents run."""

    server_context: Annotated[str, Parameter(name=("--server-context", "--svc-context"), show_default=False)] = ""
    """The service cluster: a context."""
    server_kubeconfig: Annotated[
        str, Parameter(name=("--server-kubeconfig", "--svc-kubeconfig"), show_default=False)
    ] = ""
    """The service cluster: a kubeconfig file."""
    server_namespace: Annotated[str, Parameter(name="--server-namespace")] = "maestro"
    """The servers' namespace."""
    server_label: Annotated[str, Parameter(name="--server-label")] = "app=maestro"
    """The label of the servers' pods."""
    server_container: Annotated[str, Parameter(name="--server-container", show_default=False)] = ""
    """One container; without it all."""
    agent_context: Annotated[
        list[str], Parameter(name=("--agent-context", "--mgmt-context"), negative=(), show_default=False)
    ] = field(default_factory=list)
    """A management cluster: a context; repeat it for several."""
    agent_kubeconfig: Annotated[
        list[str], Parameter(name=("--agent-kubeconfig", "--mgmt-kubeconfig"), negative=(), show_default=False)
    ] = field(default_factory=list)
    """A management cluster: a kubeconfig file; repeat it for several."""
    agent_namespace: Annotated[str, Parameter(name="--agent-namespace", show_default=False)] = ""
    """The agents' namespace. [maestro-agent, or maestro where that has no agent]"""
    agent_label: Annotated[str, Parameter(name="--agent-label")] = "app=maestro-agent"
    """The label of the agents' pods."""
    agent_container: Annotated[str, Parameter(name="--agent-container", show_default=False)] = ""
    """One container; without it all."""
    only: Annotated[Literal["both", "server", "agent"], Parameter(name="--only")] = "both"
    """One of the two components."""

    @property
    def is_given(self) -> bool:
        """Whether any cluster is named."""
        return bool(self.server_context or self.server_kubeconfig or self.agent_context or self.agent_kubeconfig)

    def with_files(self, files: Sequence[Path]) -> "FollowedLogs":
        """Return what to follow: files, and the pods if these are named or no files are given."""
        from maestropy.trace.follow import FollowedLogs

        needs_pods = self.is_given or not files
        pods = components(self, environ=os.environ, home=Path.home()) if needs_pods else ()
        return FollowedLogs(paths=files, components=pods)


NO_PODS = Pods()


def components(pods: Pods, *, environ: Mapping[str, str], home: Path) -> "list[ComponentPods]":
    """Return the pods to read; raise NoAccess if a cluster cannot be selected."""
    from maestropy.trace.access import cluster_selection
    from maestropy.trace.access.pod_logs import ComponentPods

    options = cluster_selection.ClusterOptions(
        svc_context=pods.server_context,
        svc_kubeconfig=pods.server_kubeconfig,
        mgmt_contexts=pods.agent_context,
        mgmt_kubeconfigs=pods.agent_kubeconfig,
    )
    location = cluster_selection.KubeconfigLocation(environ=environ, home=home)
    selected: list[ComponentPods] = []
    if pods.only in ("both", "server"):
        selected.append(
            ComponentPods(
                name="server",
                target=cluster_selection.service_cluster(options, location),
                namespaces=(pods.server_namespace,),
                label=pods.server_label,
                container=pods.server_container,
                options="--server-namespace and --server-label",
            )
        )
    if pods.only in ("both", "agent"):
        targets = cluster_selection.management_clusters(options, location)
        selected += [
            ComponentPods(
                name="agent" if len(targets) == 1 else f"agent-{number}",
                target=target,
                namespaces=(pods.agent_namespace,) if pods.agent_namespace else ("maestro-agent", "maestro"),
                label=pods.agent_label,
                container=pods.agent_container,
                options="--agent-namespace and --agent-label",
            )
            for number, target in enumerate(targets, 1)
        ]
    return selected


def with_variables(pods: Pods, environ: Mapping[str, str]) -> Pods:
    """Apply `namespace`, `label` and `container` of the older dump script, each by itself; flags override them.

    The script dumps one component: the agent if a variable names it, else the server. Flags that name clusters keep
    both components.
    """
    from dataclasses import replace

    values = {name: environ[name] for name in ("namespace", "label", "container") if environ.get(name)}
    if not values:
        return pods
    # The label tells it best; the others may have the name of the server in the agent's environment.
    deciding = values.get("label") or values.get("container") or values["namespace"]
    component = "agent" if "agent" in deciding else "server"
    changes = {
        f"{component}_{name}": value
        for name, value in values.items()
        if getattr(pods, f"{component}_{name}") == getattr(NO_PODS, f"{component}_{name}")
    }
    if not pods.is_given and pods.only == NO_PODS.only:
        changes["only"] = component
    return replace(pods, **changes)  # type: ignore[arg-type]  # names of fields, checked by the tests
