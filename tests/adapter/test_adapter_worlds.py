"""What the kit does on a real Maestro, and on a Kubernetes API without one."""

import asyncio
import json
import os
from typing import Any

from adapter_runs import dealt_with

from maestropy import Work
from maestropy.adapter import Adapter, Event, Reading, Resource, Seen, Wish, event, perform_kube
from maestropy.adapter.books import Books
from maestropy.adapter.perform import World
from maestropy.adapter.pipeline import Outcome
from maestropy.adapter.running import Patience, deal
from maestropy.sdk import targeting
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def adapter_of(name: str, *, works: str = "", value: str = "data") -> Adapter:
    """An adapter that wants one work with a ConfigMap for every word of the spec."""
    found = Adapter(name)

    @found.reconciles("Cluster")
    def wanted(_: Event, cluster: Resource) -> Wish:
        parts = cluster.spec["parts"]
        prefix = works or f"{name}-{cluster.id}"
        return Wish(
            [
                Work(f"{prefix}-{part}").add(config_map(f"{prefix}-{part}", word=part), feedback={"data": ".data"})
                for part in parts
            ],
            read=lambda seen: read(seen, parts),
        )

    def read(seen: Seen, parts: list[str]) -> Reading:
        words = [seen.feedback(value, "ConfigMap", each.manifests[0].name)["word"] for each in seen.works]
        return Reading(available=words == parts, data={"words": words})

    return found


def works_of(fleet: RunningFleet, source: str) -> dict[str, int]:
    with fleet.maestro(source) as maestro:
        return {each.name: each.version for each in maestro.works(None).list()}


def test_create_skip_patch_and_remove_what_is_no_longer_wanted(
    fleet: RunningFleet, cluster: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    adapter = adapter_of("many")
    told = hyperfleet.put("Cluster", "m1", spec={"parts": ["a", "b"]})
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "many") == {"many-m1-a": 1, "many-m1-b": 1}
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "many") == {"many-m1-a": 1, "many-m1-b": 1}
    told = hyperfleet.put("Cluster", "m1", spec={"parts": ["a"]})
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    cluster.wait_until_gone("v1", "ConfigMap", "many-m1-b", namespace="default")
    assert works_of(fleet, "many")["many-m1-a"] == 2
    assert hyperfleet.statuses["m1"]["many"]["data"]["words"] == ["a"]
    assert hyperfleet.statuses["m1"]["many"]["observed_generation"] == 2


def test_an_event_that_names_its_kind_in_lower_case_finds_the_same_works(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet
) -> None:
    adapter = adapter_of("lower")
    told = hyperfleet.put("Cluster", "l1", spec={"parts": ["a"]})
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    data = {**told["data"], "kind": "cluster"}
    dealt_with(adapter, {**told, "data": data}, fleet=fleet, api=hyperfleet)
    assert works_of(fleet, "lower") == {"lower-l1-a": 1}


def test_a_cluster_once_chosen_is_kept(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    adapter = adapter_of("steady")
    told = hyperfleet.put("Cluster", "s1", spec={"parts": ["a"]})
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    told = hyperfleet.put("Cluster", "s1", spec={"parts": ["a", "b"]})
    outcome = dealt_with(adapter, told, fleet=fleet, api=hyperfleet, consumer="never-registered")
    assert outcome.failure is None
    assert hyperfleet.statuses["s1"]["steady"]["data"]["manifestworks"] == [
        {"name": "steady-s1-a", "consumer": "cluster1"},
        {"name": "steady-s1-b", "consumer": "cluster1"},
    ]


def test_a_work_of_another_adapter_is_left_alone_and_told(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> None:
    told = hyperfleet.put("Cluster", "o1", spec={"parts": ["a"]})
    with fleet.maestro("second") as maestro:
        theirs = Work("taken-a", labels={"hyperfleet.io/adapter": "first"}).add(config_map("taken-a", word="theirs"))
        maestro.works("cluster1").create(theirs)
    dealt_with(adapter_of("second", works="taken"), told, fleet=fleet, api=hyperfleet)
    found = hyperfleet.condition("o1", "second", "Applied")
    assert (found["status"], found["reason"]) == ("False", "OwnedByAnother")
    assert "belongs to adapter 'first'" in found["message"]
    assert works_of(fleet, "second") == {"taken-a": 1}


def test_feedback_that_is_not_what_was_asked_for_is_unknown_and_not_a_crash(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet
) -> None:
    adapter = Adapter("odd")

    @adapter.reconciles("Cluster")
    def wanted(_: Event, cluster: Resource) -> Wish:
        work = Work(f"odd-{cluster.id}").add(
            config_map(f"odd-{cluster.id}", word="x"), feedback={"status": ".data.word"}
        )
        return Wish(work, read=lambda seen: Reading(available=seen.status("ConfigMap")))

    told = hyperfleet.put("Cluster", "f1", spec={})
    dealt_with(adapter, told, fleet=fleet, api=hyperfleet)
    found = hyperfleet.condition("f1", "odd", "Available")
    assert (found["status"], found["reason"]) == ("Unknown", "FeedbackUnreadable")
    assert "'x'" in found["message"]


def test_an_adapter_that_fails_says_so_and_is_not_asked_again_at_once(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet
) -> None:
    outcome = dealt_with(adapter_of("broken"), hyperfleet.put("Cluster", "b1", spec={}), fleet=fleet, api=hyperfleet)
    assert not outcome.comes_again
    found = hyperfleet.condition("b1", "broken", "Health")
    assert (found["status"], found["reason"], found["message"]) == ("False", "ExecutionFailed", "KeyError: 'parts'")


def on_kubernetes(adapter: Adapter, told: dict[str, Any], cluster: Cluster) -> Outcome:
    async def scenario() -> Outcome:
        async with perform_kube.opened(str(cluster.kubeconfig), environ=os.environ) as transport:
            world = World(transport=transport, catalogue=Books(), target=targeting.static("kubernetes"))
            found = event.parse(json.dumps(told))
            return await deal(adapter, found, world=world, patience=Patience(wait_seconds=5))

    return asyncio.run(scenario())


def test_the_same_adapter_on_a_kubernetes_api(cluster: Cluster) -> None:
    adapter = adapter_of("direct")
    told = {"id": "k1", "kind": "Cluster", "generation": 1, "spec": {"parts": ["a", "b"]}}
    first = on_kubernetes(adapter, told, cluster)
    assert first.report
    assert first.report.available.status == "True", first
    assert first.report.data["words"] == ["a", "b"]
    made = cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default")
    assert made
    on_kubernetes(adapter, told, cluster)
    assert cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default") == made

    on_kubernetes(adapter, told | {"generation": 2, "spec": {"parts": ["a"]}}, cluster)
    changed = cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default")
    assert changed
    assert changed["metadata"]["annotations"]["hyperfleet.io/generation"] == "2"
    assert cluster.get("v1", "ConfigMap", "direct-k1-b", namespace="default") is None

    last = on_kubernetes(adapter, told | {"generation": 3, "deleted_time": "2026-01-01T00:00:00Z"}, cluster)
    assert last.report
    assert last.report.finalized.status == "True"
    assert cluster.get("v1", "ConfigMap", "direct-k1-a", namespace="default") is None
    assert cluster.get("v1", "ConfigMap", "maestro-work-direct-k1-a", namespace="default") is None
