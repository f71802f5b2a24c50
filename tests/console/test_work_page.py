"""The page of one work: what it says of works that are gone, wait for an agent, or could only be read in part."""

from tests.console.fake_api import FakeApi, bundle
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


async def test_work_that_was_created_again_and_has_no_row_is_not_called_deleted() -> None:
    api = FakeApi([bundle(2)])
    api.history("work.deleted", "id-1", seconds_ago=20)
    api.history("work.created", "id-1", seconds_ago=10)
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-1")).json()
    assert page["work"]["code"] == "MW-010"
