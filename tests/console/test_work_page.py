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
    async with opened(api) as (browser, _):
        fleet = (await browser.get("/api/fleet")).json()
        page = (await browser.get("/api/works/id-0000001")).json()
    problems = [(one["code"], one["severity"], one["count"]) for one in fleet["problems"]]
    assert problems == [("MW-002", "warn", 1)]
    assert fleet["totals"]["warnings"] == sum(one["count"] for one in fleet["problems"])
    assert "no connection of an agent of cluster1" in fleet["problems"][0]["evidence"]
    assert page["work"]["findings"][0]["advice"][0].startswith("Start an agent for cluster1")


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
