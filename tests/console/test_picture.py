"""The collector and its picture: load, follow, repair, and say what is wrong."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from maestropy.aio.tasks import TaskOwner
from maestropy.console.collector import Collector
from maestropy.console.pages import filters, fleet, stuck
from maestropy.console.picture import Picture, count_by_consumer
from maestropy.console.rows import moment_of, row
from maestropy.sdk.errors import MaestroError
from maestropy.sdk.history import HistoryEntry
from tests import waiting
from tests.console.fake_api import NOW, FakeApi, bundle, condition, stamp, status


def now() -> float:
    return datetime.now(UTC).timestamp()


class Watched:
    """A picture of an API."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.picture = Picture("test")
        self.collector = Collector(api.client(), self.picture)

    async def refresh(self, times: int = 1) -> None:
        for _ in range(times):
            await self.collector.refresh()

    async def compare(self) -> None:
        await self.collector._compare()

    def codes(self) -> list[str]:
        return [problem["code"] for problem in fleet.problems(self.picture)]


async def test_everything_is_loaded_page_by_page() -> None:
    watched = Watched(FakeApi(bundle(number) for number in range(450)))
    await watched.refresh()
    source = watched.picture.source
    assert (len(watched.picture.works), source.loaded, source.total, source.is_complete) == (450, 450, 450, True)
    assert len(watched.picture.consumers) == 10


async def test_history_names_what_is_read_again() -> None:
    api = FakeApi(bundle(number) for number in range(300))
    watched = Watched(api)
    await watched.refresh(2)
    api.bundles["id-0000007"]["version"] = 2
    api.bundles["id-0000008"]["version"] = 2
    api.history("work.updated", "id-0000007", version=2, source="adapter")
    api.requests.clear()
    await watched.refresh()
    assert watched.picture.works["id-0000007"].code == "MW-004"
    assert watched.picture.works["id-0000008"].version == 1, "nothing told of it yet"
    assert watched.picture.origins == {"id-0000007": "adapter"}
    assert len(api.requests) == 2, api.requests
    await watched.compare()
    assert watched.picture.works["id-0000008"].version == 2


async def test_deleted_works_disappear() -> None:
    api = FakeApi([bundle(1), bundle(2), bundle(3)])
    watched = Watched(api)
    await watched.refresh()
    del api.bundles["id-0000001"], api.bundles["id-0000002"]
    api.history("work.deleted", "id-0000001")
    await watched.refresh()
    assert set(watched.picture.works) == {"id-0000002", "id-0000003"}
    await watched.compare()
    assert set(watched.picture.works) == {"id-0000003"}


async def test_go_server_without_history_is_followed_by_update_time() -> None:
    api = FakeApi([bundle(1), bundle(2)], has_history=False)
    watched = Watched(api)
    await watched.refresh()
    assert watched.picture.source.history == "unsupported"
    api.bundles["id-0000001"] |= {"version": 2, "updated_at": stamp(datetime.now(UTC))}
    await watched.refresh()
    assert watched.picture.works["id-0000001"].code == "MW-004"
    assert not fleet.model(watched.picture, [], now=now())["rates"]["isKnown"]


@pytest.mark.parametrize("is_loaded_before", [True, False], ids=["followed", "loaded"])
async def test_agent_whose_old_connection_ends_after_the_new_one_began_is_connected(is_loaded_before: bool) -> None:
    api = FakeApi([bundle(1)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=600)
    watched = Watched(api)
    if is_loaded_before:
        await watched.refresh(2)
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=9)
    api.history("agent.disconnected", "", consumer_name="cluster1", seconds_ago=5)
    await watched.refresh(2)
    assert watched.picture.agents["cluster1"].is_connected
    assert watched.codes() == []


async def test_agent_that_disconnected_is_a_problem_until_it_returns() -> None:
    api = FakeApi([bundle(1)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    watched = Watched(api)
    await watched.refresh()
    assert watched.codes() == []
    api.history("agent.disconnected", "", consumer_name="cluster1", seconds_ago=5)
    await watched.refresh()
    assert watched.codes() == ["MT-301"]
    assert fleet.consumers(watched.picture, text="", sort="worst", now=now())[0]["agent"] == "away"
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=1)
    await watched.refresh()
    assert watched.codes() == []


async def test_agent_of_a_killed_server_is_away_since_it_was_last_seen() -> None:
    api = FakeApi([bundle(1)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=900)
    watched = Watched(api)
    await watched.refresh()
    seen = datetime.now(UTC) - timedelta(seconds=700)
    api.history("agent.disconnected", "", consumer_name="cluster1", detail={"last_seen": stamp(seen)})
    await watched.refresh()
    assert watched.codes() == ["MT-301"]
    (consumer,) = fleet.consumers(watched.picture, text="", sort="worst", now=now())
    assert (consumer["agent"], consumer["agentSince"]) == ("away", moment_of(seen.timestamp()))
    assert "resync" not in {offer["action"] for offer in consumer["offers"]}


async def test_clusters_are_sorted_both_ways_and_found_by_name() -> None:
    watched = Watched(FakeApi(bundle(number) for number in range(10)))
    await watched.refresh()

    def names(sort: str, text: str = "") -> list[str]:
        return [one["name"] for one in fleet.consumers(watched.picture, text=text, sort=sort, now=now())]

    assert names("name") == sorted(names("worst"))
    assert names("-name") == names("name")[::-1]
    assert names("works", "CLUSTER3") == ["cluster3"]


async def test_problems_are_worst_first_and_one_work_is_linked() -> None:
    failed = status(1, [condition("Applied", ok=False, message="quota")])
    api = FakeApi(
        [bundle(1, version=2), bundle(2, status=failed), bundle(12, status=failed), bundle(3, deleted_at=OLD)]
    )
    watched = Watched(api)
    await watched.refresh()
    problems = fleet.problems(watched.picture)
    assert [(problem["code"], problem["count"]) for problem in problems] == [
        ("MW-005", 2),
        ("MW-004", 1),
        ("MW-007", 1),
    ]
    assert problems[0]["work"] is None
    assert problems[1]["work"] == "id-0000001"
    assert "quota" in problems[0]["evidence"]


OLD = "2026-11-01T00:00:00Z"


async def test_stuck_works_are_grouped_by_cause() -> None:
    quota = status(1, [condition("Applied", ok=False, message="quota")])
    kind = status(1, [condition("Applied", ok=False, message="no kind")])
    api = FakeApi(
        [
            bundle(1, status=quota),
            bundle(2, status=quota),
            bundle(3, status=kind),
            bundle(4, deleted_at=OLD),
            bundle(5, deleted_at=stamp(datetime.now(UTC))),
        ]
    )
    watched = Watched(api)
    await watched.refresh()
    groups = stuck.model(watched.picture, now=now())["groups"]
    assert [(group["kind"], group["count"]) for group in groups] == [
        ("unapplied", 2),
        ("unapplied", 1),
        ("deleting", 1),
    ]
    assert all(group["advice"] for group in groups)


async def test_filter_for_stuck_works_finds_those_of_the_page() -> None:
    failed = status(1, [condition("Applied", ok=False, message="quota")])
    api = FakeApi([bundle(1, status=failed), bundle(2, version=2), bundle(3, deleted_at=OLD), bundle(4)])
    watched = Watched(api)
    await watched.refresh()
    page = stuck.model(watched.picture, now=now())
    found = filters.choose(
        watched.picture.works.values(), filters.parse("is:stuck"), filters.Context(now=now(), of_sources={})
    )
    assert {row.id for row in found} == {work["id"] for group in page["groups"] for work in group["works"]}
    assert len(found) == 3


def chosen(picture: Picture, link: str) -> set[str]:
    """Return the works of a link to a list."""
    text = unquote(link.removeprefix("#/works?q="))
    assert text != link, link
    context = filters.Context(now=now(), of_sources={}, away=frozenset(picture.away_consumers()))
    return {row.name for row in filters.choose(picture.works.values(), filters.parse(text), context)}


async def test_rejections_with_different_causes_are_different_problems_with_their_own_works() -> None:
    def failed(message: str) -> Any:
        return status(1, [condition("Applied", ok=False, message=message)])

    quota, kind = failed("exceeded quota: pods"), failed('the server doesn\'t have a resource type "Widget"')
    api = FakeApi([bundle(1, status=quota), bundle(2, status=quota), bundle(3, status=kind)])
    watched = Watched(api)
    await watched.refresh()
    two, one = fleet.problems(watched.picture)
    assert (two["code"], two["count"], one["code"], one["count"]) == ("MW-005", 2, "MW-005", 1)
    assert "quota" in two["evidence"]
    assert "Widget" in one["evidence"]
    assert chosen(watched.picture, two["link"]) == {"work-1", "work-2"}
    assert one["link"] == "#/work/id-0000003"
    groups = stuck.model(watched.picture, now=now())["groups"]
    assert [chosen(watched.picture, group["link"]) for group in groups[:1]] == [{"work-1", "work-2"}]


async def test_many_causes_are_one_problem_that_says_how_many() -> None:
    api = FakeApi(
        bundle(number, status=status(1, [condition("Applied", ok=False, message=f"error {chr(97 + number)}")]))
        for number in range(12)
    )
    watched = Watched(api)
    await watched.refresh()
    (problem,) = fleet.problems(watched.picture)
    assert (problem["count"], problem["evidence"].partition(";")[0]) == (12, "12 different causes")


async def test_agents_that_are_away_lead_to_the_works_of_their_consumers() -> None:
    api = FakeApi([bundle(1), bundle(2, deleted_at=stamp(datetime.now(UTC))), bundle(3, version=2)])
    for name in ("cluster1", "cluster2"):
        api.history("agent.disconnected", "", consumer_name=name, seconds_ago=60)
    watched = Watched(api)
    await watched.refresh()
    (away,) = [item for item in fleet.problems(watched.picture) if item["code"] == "MT-301"]
    assert chosen(watched.picture, away["link"]) == {"work-1", "work-2"}


@pytest.mark.parametrize("exists", [False, True], ids=["retired", "exists"])
async def test_hold_of_works_that_the_database_lacks_is_on_stuck_with_its_remedy(exists: bool) -> None:
    api = FakeApi([bundle(1)])
    api.consumers += ["gone"] if exists else []
    hold = {"id": "h", "consumer_name": "gone", "reason": "UnknownConsumer", "work_count": 2, "works": ["x", "y"]}
    api.holds = [{**hold, "message": "2 works are kept", "since": "2026-11-17T10:00:00Z"}]
    watched = Watched(api)
    await watched.refresh()
    (problem,) = fleet.problems(watched.picture)
    assert (problem["code"], problem["link"]) == ("MW-122", "#/stuck")
    (group,) = stuck.model(watched.picture, now=now())["groups"]
    assert (group["kind"], group["count"], group["since"]) == ("held", 2, "2026-11-17T10:00:00Z")
    assert group["cause"] == "gone: UnknownConsumer"
    assert "2 works are kept" in group["explanation"]
    assert "not in the database" in group["explanation"]
    assert (group["works"], group["link"]) == ([], "")
    assert [offer["action"] for offer in group["offers"]] == (["adopt"] if exists else [])
    first = "maestro consumer adopt gone --dry-run" if exists else "The server has no consumer gone"
    assert group["advice"][0].startswith(first)


async def test_commands_quote_hostile_names() -> None:
    api = FakeApi([bundle(1, id="x; rm -rf ~", version=2)])
    watched = Watched(api)
    await watched.refresh()
    advice = stuck.model(watched.picture, now=now())["groups"][0]["advice"]
    assert advice[0] == "maestro trace work --resource-id 'x; rm -rf ~'"


async def test_hold_marks_its_works_and_their_release() -> None:
    api = FakeApi([bundle(1), bundle(11)])
    watched = Watched(api)
    await watched.refresh()
    api.holds = [{"id": "h", "consumer_name": "cluster1", "reason": "R", "work_count": 1, "works": ["id-0000001"]}]
    watched.collector._next_fleet = 0.0
    await watched.refresh()
    assert (watched.picture.works["id-0000001"].code, watched.picture.works["id-0000011"].code) == ("MW-122", "MW-001")
    api.holds = []
    watched.collector._next_fleet = 0.0
    await watched.refresh()
    assert watched.picture.works["id-0000001"].code == "MW-001"


async def test_pause_of_delivery_is_the_cause_of_a_waiting_work() -> None:
    api = FakeApi([bundle(1, version=2), bundle(11), bundle(2, version=2)])
    watched = Watched(api)
    await watched.refresh()
    api.pauses = [{"consumer_name": "cluster1", "paused_at": "2026-11-17T10:00:00Z", "paused_by": "ann"}]
    watched.collector._next_fleet = 0.0
    await watched.refresh()
    codes = {number: watched.picture.works[f"id-{number:07d}"].code for number in (1, 11, 2)}
    assert codes == {1: "MW-123", 11: "MW-001", 2: "MW-004"}
    groups = stuck.model(watched.picture, now=now())["groups"]
    assert [group["kind"] for group in groups] == ["stale", "paused"]
    assert "maestro consumer resume cluster1 --dry-run" in groups[1]["advice"]
    assert fleet.consumers(watched.picture, text="cluster1", sort="name", now=now())[0]["isPaused"]
    api.pauses = []
    watched.collector._next_fleet = 0.0
    await watched.refresh()
    assert watched.picture.works["id-0000001"].code == "MW-004"


async def test_api_that_is_away_keeps_the_picture_and_says_so() -> None:
    api = FakeApi([bundle(1)])
    watched = Watched(api)
    await watched.refresh()
    api.is_down = True
    with pytest.raises(MaestroError) as raised:
        await watched.refresh()
    watched.picture.fail(str(raised.value), now=now())
    model = fleet.model(watched.picture, [], now=now())
    assert "connection refused" in model["source"]["problem"]
    assert model["totals"]["works"] == 1
    api.is_down = False
    await watched.refresh()
    watched.picture.succeed(now=now())
    assert fleet.model(watched.picture, [], now=now())["source"]["problem"] == ""


async def test_rates_and_latency_come_from_the_history() -> None:
    api = FakeApi([bundle(1)])
    api.history("work.created", "id-0000001", version=1, seconds_ago=10)
    api.history("work.status", "id-0000001", version=1, seconds_ago=9, detail={"observed_version": 1})
    watched = Watched(api)
    await watched.refresh(2)
    rates = fleet.model(watched.picture, [], now=now())["rates"]
    assert (rates["requests"], rates["statuses"], rates["reported"]) == (1, 1, 1)
    assert 900 <= rates["p50Ms"] <= 1100


def test_causes_of_thousands_of_consumers_are_summed_up() -> None:
    picture = Picture("test")
    behind = row(bundle(1, version=2), now=NOW, hold=None, pause=None)
    picture.put(replace(behind, id=f"id-{number}", consumer=f"cluster{number % 70}") for number in range(140))
    page = stuck.model(picture, now=NOW.timestamp())
    assert len(page["groups"]) == 50
    assert page["leftOut"] == {"stale": 20}
    counts = count_by_consumer(picture)
    assert {counted.works for counted in counts.values()} == {2}


async def test_silent_server_is_named_within_seconds_with_the_time_of_the_last_read() -> None:
    api = FakeApi([bundle(1)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    picture = Picture("test")
    collector = Collector(api.client(), picture, silent_seconds=0.3)
    collector.want()
    owner = TaskOwner()
    owner.start("collector", collector.run())
    try:
        await waiting.until(lambda: picture.source.read_at > 0, what="the first read")
        api.answers = asyncio.Event()
        await waiting.until(lambda: bool(picture.source.problem), what="the problem")
        read_at = picture.source.read_at
        assert (picture.source.problem, picture.source.problem_since) == ("the server does not answer.", read_at)
        api.history("agent.disconnected", "", consumer_name="cluster1", seconds_ago=0.2)
        api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=0.1)
        assert fleet.consumers(picture, text="", sort="worst", now=now())[0]["agent"] == "connected"
        api.answers.set()
        await waiting.until(lambda: not picture.source.problem, what="the next good read")
        assert picture.source.read_at > read_at
        assert fleet.consumers(picture, text="", sort="worst", now=now())[0]["agent"] == "connected"
    finally:
        await owner.stop()


@pytest.mark.long
async def test_read_that_is_cancelled_is_a_problem_and_does_not_end_the_collector() -> None:
    api = FakeApi([bundle(1)])
    picture = Picture("test")
    collector = Collector(api.client(), picture)
    history = collector._client.history

    async def cancelled(**_: object) -> AsyncIterator[HistoryEntry]:
        raise asyncio.CancelledError
        yield

    collector.want()
    owner = TaskOwner()
    task = owner.start("collector", collector.run())
    try:
        await waiting.until(lambda: picture.source.read_at > 0, what="the first read")
        collector._client.history = cancelled  # type: ignore[assignment,method-assign]  # as a library that leaks one
        await waiting.until(lambda: bool(picture.source.problem) or task.done(), what="the problem")
        assert "a read was interrupted" in picture.source.problem
        collector._client.history = history  # type: ignore[method-assign]
        await waiting.until(lambda: not picture.source.problem, what="the next good read")
    finally:
        await owner.stop()


async def test_agents_of_a_history_that_was_read_in_part_are_not_away() -> None:
    api = FakeApi([bundle(1)])
    api.history("agent.connected", "", consumer_name="cluster1", seconds_ago=60)
    watched = Watched(api)
    await watched.refresh()
    states = []

    async def entries(**_: object) -> AsyncIterator[HistoryEntry]:
        for number, kind in enumerate(("agent.disconnected", "agent.connected")):
            yield HistoryEntry(id=f"x{number}", time=stamp(datetime.now(UTC)), kind=kind, consumer="cluster1")
            states.append(watched.picture.agents["cluster1"].is_connected)

    watched.collector._client.history = entries  # type: ignore[assignment,method-assign]  # pages of a slow server
    await watched.refresh()
    assert states == [True, True]
    assert watched.picture.agents["cluster1"].is_connected


@pytest.mark.parametrize(
    ("consumer", "history", "state"),
    [
        ("here", "yes", "connected"),
        ("gone", "yes", "away"),
        ("new", "yes", "never"),
        ("reports", "yes", "unknown"),
        ("new", "denied", "unknown"),
        ("", "yes", "unknown"),
    ],
    ids=["connected", "left", "not-listed-yet", "reports-without-a-connection", "no-history", "no-consumer"],
)
def test_state_of_an_agent(consumer: str, history: str, state: str) -> None:
    picture = Picture("test")
    picture.source.history = history
    picture.reporting = {"reports"}
    for name, kind in (("here", "agent.connected"), ("gone", "agent.disconnected")):
        picture.take(HistoryEntry(id=name, time="", kind=kind, consumer=name), at=1.0)
    assert picture.agent_state(consumer) == state


@pytest.mark.parametrize(
    ("reporting", "state"), [(set(), "never"), ({"other"}, "unknown")], ids=["new-fleet", "message-broker"]
)
def test_state_of_an_agent_where_no_connection_is_recorded(reporting: set[str], state: str) -> None:
    picture = Picture("test")
    picture.source.history = "yes"
    picture.reporting = reporting
    assert picture.agent_state("new") == state
