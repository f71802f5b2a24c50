"""Write a HyperFleet adapter: a function from an event and a resource to what is wanted on a cluster.

    from maestropy import Work
    from maestropy.adapter import Adapter, Event, Reading, Resource, Seen, Wish

    adapter = Adapter("controlplane")

    @adapter.reconciles("Cluster")
    def control_plane(event: Event, cluster: Resource) -> Wish:
        work = Work(f"hostedcluster-{cluster.id}").add(hosted_cluster(cluster), feedback={"status": ".status"})
        return Wish(work, read=endpoint)

    def endpoint(seen: Seen) -> Reading:
        return Reading(available=seen.status("HostedCluster"))

The kit does the rest: finds the cluster, creates, skips or patches, removes what is no longer wanted, reads what comes
back, reports four conditions, deletes, tries again. `maestro adapter run` runs it once, `maestro adapter serve` for
every event, `--dry-run` for show.
"""

from maestropy.adapter.definition import Adapter as Adapter
from maestropy.adapter.errors import AdapterError as AdapterError
from maestropy.adapter.errors import NotYet as NotYet
from maestropy.adapter.event import Event as Event
from maestropy.adapter.resource import Resource as Resource
from maestropy.adapter.wish import Hold as Hold
from maestropy.adapter.wish import Reading as Reading
from maestropy.adapter.wish import Seen as Seen
from maestropy.adapter.wish import Wish as Wish
