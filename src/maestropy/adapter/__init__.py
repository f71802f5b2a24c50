"""Write a HyperFleet adapter: a function from an event and a resource to the desired state on a cluster.

    from maestropy import Work
    from maestropy.adapter import Adapter, DesiredState, Event, ObservedState, Resource, StatusReport

    adapter = Adapter("controlplane")

    @adapter.reconciles("Cluster")
    def control_plane(event: Event, cluster: Resource) -> DesiredState:
        work = Work(f"hostedcluster-{cluster.id}").add(hosted_cluster(cluster), feedback={"status": ".status"})
        return DesiredState(work, read=endpoint)

    def endpoint(observed: ObservedState) -> StatusReport:
        return StatusReport(available=observed.status("HostedCluster"))

The package does the rest: it chooses the cluster, creates, skips or patches works, deletes works that are no longer
desired, reads status feedback, reports four conditions and retries. `maestro adapter run` handles one event, `maestro
adapter serve` handles every event, `--dry-run` only shows the effects.
"""

import warnings
from typing import TYPE_CHECKING, Any

from maestropy.adapter.definition import Adapter as Adapter
from maestropy.adapter.desired_state import DesiredState as DesiredState
from maestropy.adapter.desired_state import NotReady as NotReady
from maestropy.adapter.desired_state import ObservedState as ObservedState
from maestropy.adapter.desired_state import StatusReport as StatusReport
from maestropy.adapter.errors import AdapterError as AdapterError
from maestropy.adapter.errors import NotYet as NotYet
from maestropy.adapter.event import Event as Event
from maestropy.adapter.resource import Resource as Resource

if not TYPE_CHECKING:  # a type checker must not accept the old names
    _DEPRECATED = {"Hold": NotReady, "Reading": StatusReport, "Seen": ObservedState}
    """Names of release 0.1; they are removed after release 0.2."""

    def __getattr__(name: str) -> Any:
        if name not in _DEPRECATED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        current = _DEPRECATED[name]
        message = f"maestropy.adapter.{name} is deprecated; use maestropy.adapter.{current.__name__}"
        # Python hides DeprecationWarning outside of `__main__`, and adapters are loaded as modules.
        warnings.warn(message, FutureWarning, stacklevel=2)
        return current
