"""An adapter reconciles works on a real Maestro, and on a Kubernetes API without one."""

import asyncio
import json
import os
from typing import Any

from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, Event, ObservedState, Resource, StatusReport, event
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.runner import EventTimeouts, handle
from maestropy.adapter.transports import kubernetes
from maestropy.adapter.transports.performer import LivePerformer
from maestropy.adapter.transports.resource_api import ConfiguredResourceApi
from maestropy.sdk import targeting
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests.adapter.runs import handled


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def adapter_of(name: str, *, works: str = "", value: str = "data") -> Adapter:
    """An adapter with one work and one ConfigMap for every name in the spec."""
    adapter = Adapter(name)

    @adapter.reconciles("Cluster")
    def desired(_: Event, cluster: Resource) -> DesiredState:
        names = cluster.spec["names"]
        prefix = works or f"{name}-{cluster.id}"
        return DesiredState(
            [
                Work(f"{prefix}-{key}").add(config_map(f"{prefix}-{key}", word=key), feedback={"data": ".data"})
                for key in names
            ],
            read=lambda observed: read(observed, names),
        )

    def read(observed: ObservedState, names: list[str]) -> StatusReport:
        words = [observed.feedback(value, "ConfigMap", work.manifests[0].name)["word"] for work in observed.works]
        return StatusReport(available=words == names, data={"words": words})

    return adapter


def works_of(fleet: RunningFleet, source: str) -> dict[str, int]:
    with fleet.maestro(source) as maestro:
        return {work.name: work.version for work in maestro.works(None).list()}


def test_works_are_created_skipped_patched_and_pruned(
    fleet: RunningFleet, cluster: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    adapter = adapter_of("many")
    event_document = hyperfleet.put("Cluster", "m1", spec={"names": ["a", "b"]})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "many") == {"many-m1-a": 1, "many-m1-b": 1}
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "many") == {"many-m1-a": 1, "many-m1-b": 1}
    event_document = hyperfleet.put("Cluster", "m1", spec={"names": ["a"]})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    cluster.wait_until_gone("v1", "ConfigMap", "many-m1-b", namespace="default")
    assert works_of(fleet, "many")["many-m1-a"] == 2
    assert hyperfleet.statuses["m1"]["many"]["data"]["words"] == ["a"]
    assert hyperfleet.statuses["m1"]["many"]["observed_generation"] == 2


def test_kind_in_lower_case_selects_the_same_works(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    adapter = adapter_of("lower")
    event_document = hyperfleet.put("Cluster", "l1", spec={"names": ["a"]})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    data = {**event_document["data"], "kind": "cluster"}
    handled(adapter, {**event_document, "data": data}, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "lower") == {"lower-l1-a": 1}


def test_new_work_stays_on_the_chosen_cluster(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    adapter = adapter_of("steady")
    event_document = hyperfleet.put("Cluster", "s1", spec={"names": ["a"]})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    event_document = hyperfleet.put("Cluster", "s1", spec={"names": ["a", "b"]})
    outcome = handled(adapter, event_document, fleet=fleet, api=hyperfleet, consumer="never-registered")
    assert outcome.failure is None
    assert hyperfleet.statuses["s1"]["steady"]["data"]["manifestworks"] == [
        {"name": "steady-s1-a", "consumer": "cluster1"},
        {"name": "steady-s1-b", "consumer": "cluster1"},
    ]


def test_work_of_another_adapter_is_kept_and_reported(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    event_document = hyperfleet.put("Cluster", "o1", spec={"names": ["a"]})
    with fleet.maestro("second") as maestro:
        foreign = Work("taken-a", labels={"hyperfleet.io/adapter": "first"}).add(config_map("taken-a", word="foreign"))
        maestro.works("cluster1").create(foreign)
    handled(adapter_of("second", works="taken"), event_document, fleet=fleet, api=hyperfleet)
    condition = hyperfleet.condition("o1", "second", "Applied")
    assert (condition["status"], condition["reason"]) == ("False", "OwnedByAnother")
    assert "belongs to adapter 'first'" in condition["message"]
    assert works_of(fleet, "second") == {"taken-a": 1}


def test_feedback_of_unexpected_form_is_reported_as_unknown(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    adapter = Adapter("odd")

    @adapter.reconciles("Cluster")
    def desired(_: Event, cluster: Resource) -> DesiredState:
        work = Work(f"odd-{cluster.id}").add(
            config_map(f"odd-{cluster.id}", word="x"), feedback={"status": ".data.word"}
        )
        return DesiredState(work, read=lambda observed: StatusReport(available=observed.status("ConfigMap")))

    event_document = hyperfleet.put("Cluster", "f1", spec={})
    handled(adapter, event_document, fleet=fleet, api=hyperfleet)
    condition = hyperfleet.condition("f1", "odd", "Available")
    assert (condition["status"], condition["reason"]) == ("Unknown", "FeedbackUnreadable")
    assert "'x'" in condition["message"]


def test_failing_handler_is_reported_and_not_retried(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    outcome = handled(adapter_of("broken"), hyperfleet.put("Cluster", "b1", spec={}), fleet=fleet, api=hyperfleet)
    assert not outcome.is_retryable
    condition = hyperfleet.condition("b1", "broken", "Health")
    assert (condition["status"], condition["reason"]) == ("False", "ExecutionFailed")
    assert condition["message"].startswith(f"KeyError: 'names' ({__file__}, line ")


def on_kubernetes(adapter: Adapter, event_document: dict[str, Any], cluster: Cluster) -> EventOutcome:
    async def scenario() -> EventOutcome:
        async with kubernetes.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            performer = LivePerformer(
                transport=transport, resource_api=ConfiguredResourceApi(), target=targeting.static("kubernetes")
            )
            parsed = event.parse(json.dumps(event_document))
            return await handle(adapter, parsed, performer=performer, timeouts=EventTimeouts(wait_seconds=5))

    return asyncio.run(scenario())


def test_adapter_reconciles_on_a_kubernetes_api(cluster: Cluster) -> None:
    adapter = adapter_of("direct")
    event_document = {"id": "k1", "kind": "Cluster", "generation": 1, "spec": {"names": ["a", "b"]}}
    first = on_kubernetes(adapter, event_document, cluster)
    assert first.status
    assert first.status.available.status == "True", first
    assert first.status.data["words"] == ["a", "b"]
    created = cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default")
    assert created
    on_kubernetes(adapter, event_document, cluster)
    assert cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default") == created

    on_kubernetes(adapter, event_document | {"generation": 2, "spec": {"names": ["a"]}}, cluster)
    changed = cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default")
    assert changed
    assert changed["metadata"]["annotations"]["hyperfleet.io/generation"] == "2"
    assert cluster.get("v1", "ConfigMap", "direct-k1-b", namespace="default") is None

    last = on_kubernetes(adapter, event_document | {"generation": 3, "deleted_time": "2026-01-01T00:00:00Z"}, cluster)
    assert last.status
    assert last.status.finalized.status == "True"
    assert cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default") is None
    assert cluster.get("v1", "ConfigMap", "maestro-work-direct-k1-a", namespace="default") is None


def test_status_of_the_old_spec_does_not_make_a_new_generation_available(
    fleet: RunningFleet, cluster: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    group, kind, name = "example.com/v1", "Scaled", "scaled-1"
    cluster.add_kind(group, kind)
    adapter = Adapter("scaled")

    @adapter.reconciles("Cluster")
    def desired(_: Event, resource: Resource) -> DesiredState:
        metadata = {"name": name, "namespace": "default"}
        manifest = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": dict(resource.spec)}
        return DesiredState(
            Work(name).add(manifest, feedback={"status": ".status"}),
            read=lambda observed: StatusReport(available=observed.status(kind)),
        )

    def reconciled(replicas: int, *, wait: float = 0) -> str:
        event_document = hyperfleet.put("Cluster", "scaled", spec={"replicas": replicas})
        timeouts = EventTimeouts(wait_seconds=wait, settle_seconds=20)
        outcome = handled(adapter, event_document, fleet=fleet, api=hyperfleet, timeouts=timeouts)
        assert outcome.status
        return f"{outcome.status.available.status} {outcome.status.available.reason}"

    def set_status(generation: int) -> None:
        ready = [{"type": "Available", "status": "True", "reason": "Ready"}]
        status = {"observedGeneration": generation, "conditions": ready}
        cluster.set_status(group, kind, name, namespace="default", status=status)

    reconciled(3)
    set_status(1)
    assert reconciled(3, wait=20) == "True Ready"
    assert reconciled(5) == "Unknown StatusOutdated"
    set_status(2)
    assert reconciled(5, wait=20) == "True Ready"
