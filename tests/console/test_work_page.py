"""The page of one work: what it says of works that are gone, wait for an agent, or could only be read in part."""

from datetime import UTC, datetime

from tests.console.fake_api import FakeApi, bundle, condition, stamp, status
from tests.console.test_app import opened


async def test_deleted_work_is_shown_as_deleted_with_time_requester_and_name() -> None:
    api = FakeApi([bundle(2)])
    api.history(
        "work.created", "id-1", seconds_ago=30, consumer_name="cluster2", source="adapter", detail={"name": "w"}
    )
    api.history("work.deletion-requested", "id-1", seconds_ago=20, user="ada", source="adapter")
    api.history("work.deleted", "id-1", seconds_ago=10, consumer_name="cluster2")
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-1")).json()
    work = page["work"]
    assert (work["code"], work["severity"], work["workName"], work["resourceId"]) == ("MW-102", "info", "w", "id-1")
    assert work["consumer"] == "cluster2"
    assert api.entries[2]["time"] in work["summary"]
    assert "requested by ada" in work["summary"]
    assert not [hop for hop in page["hops"] if hop["isStop"] or hop["state"] == "broken"]
    assert page["offers"] == []
    assert page["commands"][0].startswith("maestro trace work --resource-id id-1")


async def test_released_work_is_not_called_deleted() -> None:
    api = FakeApi([bundle(2)])
    api.history("work.created", "id-1", seconds_ago=30, consumer_name="gone", detail={"name": "w"})
    api.history("work.released", "id-1", seconds_ago=10, consumer_name="gone", user="ada")
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-1")).json()
    work = page["work"]
    assert (work["code"], work["verdict"], work["severity"]) == ("MW-124", "RELEASED", "info")
    assert work["summary"] == f"Released at {api.entries[1]['time']} by ada; its objects stay on the cluster."
    assert [hop["says"] for hop in page["hops"] if hop["hop"] == "database"] == ["released"]


async def test_work_that_was_created_again_and_has_no_row_is_not_called_deleted() -> None:
    api = FakeApi([bundle(2)])
    api.history("work.deleted", "id-1", seconds_ago=20)
    api.history("work.created", "id-1", seconds_ago=10)
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-1")).json()
    assert page["work"]["code"] == "MW-010"


async def test_first_remedy_of_an_agent_that_is_away_is_to_start_it() -> None:
    api = FakeApi([bundle(1, version=2)])
    api.history("agent.disconnected", "", consumer_name="cluster1", address="10.1.2.3", seconds_ago=60)
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-0000001")).json()
        group = (await browser.get("/api/stuck")).json()["groups"][0]
    for advice in (page["work"]["findings"][0]["advice"], group["advice"]):
        assert advice[0].startswith("Start the agent of cluster1: it is not connected since ")
        assert "10.1.2.3" in advice[0]
        assert not [text for text in advice if "resend" in text or "again in a minute" in text]
    assert page["offers"] == []
    assert group["offers"] == []


async def test_work_of_a_consumer_without_any_agent_is_wrong_at_once() -> None:
    now = stamp(datetime.now(UTC))
    api = FakeApi([bundle(1, status={}, created_at=now, updated_at=now), bundle(2)])
    api.history("agent.connected", "", consumer_name="cluster2", seconds_ago=60)
    async with opened(api) as (browser, _):
        fleet = (await browser.get("/api/fleet")).json()
        page = (await browser.get("/api/works/id-0000001")).json()
    problems = [(one["code"], one["severity"], one["count"]) for one in fleet["problems"]]
    assert problems == [("MW-002", "warn", 1)]
    assert fleet["totals"]["warnings"] == sum(one["count"] for one in fleet["problems"])
    assert "no connection of an agent of cluster1" in fleet["problems"][0]["evidence"]
    assert page["work"]["findings"][0]["advice"][0].startswith("Start an agent for cluster1")
    (stopped,) = [hop for hop in page["hops"] if hop["isStop"]]
    assert (stopped["hop"], stopped["state"]) == ("agent", "waiting")
    assert "no agent has ever connected" in stopped["says"]
    assert page["offers"] == []


async def test_consumer_without_agent_and_works_is_not_said_to_be_well() -> None:
    api = FakeApi([bundle(1)])
    api.consumers.append("empty")
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    async with opened(api) as (browser, _):
        fleet = (await browser.get("/api/fleet")).json()
        consumers = (await browser.get("/api/consumers?q=empty")).json()["items"]
    assert fleet["problems"] == []
    assert (fleet["neverConnected"], fleet["totals"]["agentsNever"]) == (["empty"], 1)
    assert (consumers[0]["agent"], consumers[0]["contact"]) == ("never", None)


async def test_agents_of_a_message_broker_are_not_said_to_have_never_connected() -> None:
    api = FakeApi([bundle(1), bundle(2, status={})])
    async with opened(api) as (browser, _):
        fleet = (await browser.get("/api/fleet")).json()
        page = (await browser.get("/api/works/id-0000002")).json()
    assert (fleet["neverConnected"], fleet["totals"]["agentsUnknown"]) == ([], 2)
    assert [offer["action"] for offer in page["offers"]] == ["resend", "resync"]


async def test_deletion_that_waits_for_a_finalizer_names_it_everywhere() -> None:
    message = "ManifestWork is being deleted, waiting for ConfigMap default/cm-1 (example.com/slow)"
    deleting = status(1, [condition("Applied"), condition("Deleting", message=message)])
    api = FakeApi([bundle(1, deleted_at="2026-11-01T00:00:00Z", status=deleting)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-0000001")).json()
        row = (await browser.get("/api/works")).json()["items"][0]
        group = (await browser.get("/api/stuck")).json()["groups"][0]
    (stopped,) = [hop for hop in page["hops"] if hop["isStop"]]
    assert (stopped["hop"], stopped["state"]) == ("cluster", "waiting")
    for text in (stopped["says"], row["problem"], group["cause"]):
        assert "example.com/slow" in text
    assert (page["offers"], group["offers"]) == ([], [])


async def test_deletion_that_a_dead_agent_has_not_received_waits_for_the_agent() -> None:
    api = FakeApi([bundle(1, deleted_at=stamp(datetime.now(UTC)))])
    api.history("agent.disconnected", "", consumer_name="cluster1", seconds_ago=60)
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-0000001")).json()
    states = {hop["hop"]: hop["state"] for hop in page["hops"]}
    assert (states["broker"], states["agent"], states["cluster"]) == ("unknown", "broken", "unknown")
    assert "or it was not read" in page["work"]["findings"][0]["detail"]


async def test_stuck_has_the_remedy_of_the_cause() -> None:
    message = 'namespaces "shop" not found'
    failed = {
        "resourceMeta": {"group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps"}
        | {"name": "cm-1", "namespace": "default"},
        "conditions": [condition("Applied", ok=False, message=message)],
    }
    api = FakeApi([bundle(1, status=status(1, [condition("Applied", ok=False, message="failed")], [failed]))])
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-0000001")).json()
        group = (await browser.get("/api/stuck")).json()["groups"][0]
    first = page["work"]["findings"][0]["advice"][0]
    assert first.startswith("The namespace shop does not exist")
    assert group["advice"][0] == first


async def test_healthy_work_of_an_unread_cluster_claims_no_verification() -> None:
    async with opened(FakeApi([bundle(1)])) as (browser, _):
        work = (await browser.get("/api/works/id-0000001")).json()["work"]
    assert work["code"] == "MW-001"
    assert "verified" not in work["summary"]
    assert [item for item in work["findings"] if item["code"] == "MW-100"] == []
    assert (work["clustersRead"], work["databaseRead"]) == (False, False)
