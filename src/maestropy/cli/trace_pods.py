"""The flags that lead to the pods whose logs are wanted, and what the variables of older scripts say about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

if TYPE_CHECKING:
    from maestropy.trace.access.podlogs import Place


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


NO_PODS = Pods()


def places(pods: Pods, *, environ: Mapping[str, str], home: Path) -> "list[Place]":
    """Return where to look for pods; clusters that cannot be named raise NoAccess."""
    from maestropy.trace.access import choosing
    from maestropy.trace.access.podlogs import Place

    wanted = choosing.Wanted(
        svc_context=pods.server_context,
        svc_kubeconfig=pods.server_kubeconfig,
        mgmt_contexts=pods.agent_context,
        mgmt_kubeconfigs=pods.agent_kubeconfig,
    )
    where = choosing.Place(environ=environ, home=home)
    found: list[Place] = []
    if pods.only in ("both", "server"):
        found.append(
            Place(
                name="server",
                choice=choosing.service_cluster(wanted, where),
                namespaces=(pods.server_namespace,),
                label=pods.server_label,
                container=pods.server_container,
                options="--server-namespace and --server-label",
            )
        )
    if pods.only in ("both", "agent"):
        choices = choosing.management_clusters(wanted, where)
        found += [
            Place(
                name="agent" if len(choices) == 1 else f"agent-{number}",
                choice=choice,
                namespaces=(pods.agent_namespace,) if pods.agent_namespace else ("maestro-agent", "maestro"),
                label=pods.agent_label,
                container=pods.agent_container,
                options="--agent-namespace and --agent-label",
            )
            for number, choice in enumerate(choices, 1)
        ]
    return found


def with_variables(pods: Pods, environ: Mapping[str, str]) -> Pods:
    """Take `namespace`, `label` and `container` of the older dump script: they mean one component, by its label."""
    from dataclasses import replace

    namespace, label, container = (environ.get(name, "") for name in ("namespace", "label", "container"))
    if pods.is_given or not label:
        return pods
    if "agent" in label:
        return replace(pods, only="agent", agent_label=label, agent_container=container, agent_namespace=namespace)
    return replace(
        pods,
        only="server",
        server_label=label,
        server_container=container,
        server_namespace=namespace or pods.server_namespace,
    )
