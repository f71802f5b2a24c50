"""Operator actions of the console: what is offered, who may, the dry run, the confirmation, and errors in words."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

import httpx
import pytest

from maestropy.console import sessions
from maestropy.console.actions import ActionAccess, Actor
from maestropy.console.pages import remedies
from maestropy.console.picture import AgentContact, Picture
from maestropy.console.serve import ConsoleOptions, console
from maestropy.console.sessions import CSRF_HEADER, Gate, Viewer, loopback_host
from maestropy.sdk.consumers import Consumer
from maestropy.trace.work.model import ConsumerPause, WorkHold
from tests import waiting
from tests.console.fake_api import FakeApi, bundle

OWN = {"Origin": "http://localhost:8088", CSRF_HEADER: "1"}
PAUSE = {"action": "pause", "target": "cluster1"}
RETIRE = {"action": "retire-release", "target": "cluster1"}


@asynccontextmanager
async def opened(
    api: FakeApi, *, role: str = "", allows: bool = True, gate: Gate | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, list[Actor]]]:
    """Open a console whose viewer has a role; without one there is no login."""
    actors: list[Actor] = []
    client = api.client()

    async def authenticate(_: str | None) -> Viewer:
        return Viewer(user="ada", role=role)

    def act(actor: Actor) -> Any:
        actors.append(actor)
        return nullcontext(client)

    options = ConsoleOptions(
        client=client,
        description="test",
        gate=gate or Gate(allows_host=loopback_host, authenticate=authenticate if role else None),
        actions=ActionAccess(client=act, requested_by="console") if allows else None,
    )
    async with client, console(options) as running:
        running.collector.want()
        await waiting.until(lambda: running.picture.source.is_complete, what="the picture")
        transport = httpx.ASGITransport(running.app(), client=("192.0.2.7", 1))
        headers = {"Authorization": "Bearer of-ada"} if role else {}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8088", headers=headers) as browser:
            yield browser, actors


async def ask(browser: httpx.AsyncClient, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    response = await browser.post(f"/api/{path}", json=body, headers={**OWN, **headers})
    return response.status_code, response.json()


async def test_dry_run_is_shown_and_what_it_showed_is_carried_out() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api, role="admin") as (browser, actors):
        status, planned = await ask(browser, "actions/plan", PAUSE)
        assert (status, planned["effects"], planned["warnings"]) == (200, ["pause cluster1."], ["be careful"])
        assert [work["id"] for work in planned["works"]] == ["id-0000001"]
        assert planned["needsName"] is False
        status, done = await ask(browser, "actions", {**PAUSE, "reason": "node upgrade"})
        assert status == 200, done
        assert done["entry"]["kind"] == "consumer.paused"
        dry, real = api.actions
        assert (dry["dryRun"], real["dryRun"]) == ("All", None)
        assert real["reason"] == "node upgrade"
        # The action is the viewer's, not the console's.
        assert {(actor.viewer.user, actor.token, actor.address) for actor in actors} == {("ada", "of-ada", "192.0.2.7")}


async def test_action_that_cannot_be_taken_back_needs_its_name_and_its_plan() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api) as (browser, _):
        _, planned = await ask(browser, "actions/plan", RETIRE)
        assert planned["needsName"] is True
        for name in ("", "cluster2", "CLUSTER1"):
            status, refused = await ask(browser, "actions", {**RETIRE, "plan": planned["plan"], "name": name})
            assert (status, "cluster1" in refused["error"]) == (400, True)
        assert len(api.actions) == 1
        api.plan = "another"
        status, refused = await ask(browser, "actions", {**RETIRE, "plan": planned["plan"], "name": "cluster1"})
        assert (status, "not the one that was shown" in refused["error"]) == (409, True)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param({"action": "explode", "target": "x"}, 400, "action", id="unknown-action"),
        pytest.param({"action": "pause"}, 400, "target", id="no-target"),
        pytest.param({**PAUSE, "reason": "x" * 501}, 400, "reason", id="long-reason"),
        pytest.param({**PAUSE, "more": 1}, 400, "more", id="unknown-field"),
        pytest.param({**PAUSE, "reason": "x" * 9000}, 413, "bytes", id="too-large"),
        pytest.param({**PAUSE, "target": "absent"}, 404, "no consumer", id="absent-consumer"),
    ],
)
async def test_bad_request_is_refused_in_words(body: dict[str, Any], status: int, says: str) -> None:
    async with opened(FakeApi([bundle(1)])) as (browser, _):
        for path in ("actions/plan", "actions"):
            answered, refused = await ask(browser, path, body)
            assert (answered, says in refused["error"]) == (status, True), refused


@pytest.mark.parametrize("target", [".", "..", "a/b", "../c1", "a\\b", "a\x00b", "a\nb", "a\u202eb"])
async def test_target_that_is_no_name_never_becomes_part_of_a_path(target: str) -> None:
    api = FakeApi([bundle(1)])
    async with opened(api) as (browser, _):
        for path in ("actions/plan", "actions"):
            for action in ("pause", "resend", "adopt", "retire-delete"):
                status, refused = await ask(browser, path, {"action": action, "target": target, "name": target})
                assert (status, "no such consumer or work" in refused["error"]) == (400, True), refused
        assert api.actions == []
        assert not [url for url in api.requests if "pause" in url.rpartition("/")[2] and "delivery" not in url]


async def test_server_that_is_gone_leaves_the_result_open() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api) as (browser, _):
        api.breaks_actions = True
        status, refused = await ask(browser, "actions", PAUSE)
        assert (status, "not known whether it was done" in refused["error"]) == (502, True)
        api.is_down = True
        status, refused = await ask(browser, "actions", PAUSE)
        assert (status, "connection refused" in refused["error"]) == (502, True)
        assert "not known" not in refused["error"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({CSRF_HEADER: "0"}, id="no-header"),
        pytest.param({"Origin": "https://evil.example"}, id="other-origin"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="cross-site"),
    ],
)
async def test_other_site_cannot_act(headers: dict[str, str]) -> None:
    api = FakeApi([bundle(1)])
    async with opened(api) as (browser, _):
        for path in ("actions/plan", "actions"):
            status, _ = await ask(browser, path, PAUSE, **headers)
            assert status == 403
    assert api.actions == []


async def test_role_decides_and_says_why() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api, role="write") as (browser, _):
        page = (await browser.get("/api/fleet")).json()["actions"]
        assert (page["note"], page["role"]) == ("", "write")
        assert {name for name, one in page["can"].items() if one["isAllowed"]} == {"resend", "resync"}
        api.forbids_actions = True
        asked = (PAUSE, RETIRE, {"action": "adopt", "target": "cluster1"}, {"action": "sweep", "target": "sweep"})
        for path in ("actions/plan", "actions"):
            for body in asked:
                status, refused = await ask(browser, path, body)
                says = f"The action {body['action']} needs the role admin, and you have write."
                assert (status, refused["error"]) == (403, says)
    # The API has refused each of them too, so that its history names who tried.
    assert api.refused == ["pause cluster1", "retirement cluster1", "adoption cluster1", "sweep"] * 2
    assert api.actions == []


async def test_console_without_the_flag_and_a_go_server_have_no_buttons() -> None:
    async with opened(FakeApi([bundle(1)]), allows=False) as (browser, _):
        for path in ("fleet", "consumers", "stuck", "works/id-0000001"):
            assert (await browser.get(f"/api/{path}")).json()["actions"]["note"] == "readonly", path
        status, refused = await ask(browser, "actions", PAUSE)
        assert (status, "--allow-actions" in refused["error"]) == (403, True)
    async with opened(FakeApi([bundle(1)], has_history=False)) as (browser, _):
        assert (await browser.get("/api/fleet")).json()["actions"] == {
            "note": "unsupported",
            "role": "",
            "can": {},
        }
        status, refused = await ask(browser, "actions/plan", PAUSE)
        assert (status, "Go Maestro" in refused["error"]) == (501, True)


async def test_adoption_names_the_works_of_the_hold() -> None:
    api = FakeApi([bundle(1)])
    api.holds.append(
        {"id": "h1.digest", "consumer_name": "cluster1", "reason": "DatabaseReplaced", "message": "another database",
         "work_count": 2, "works": ["id-0000001", "gone"], "absent_works": ["gone"]}
    )  # fmt: skip
    asked = {"action": "adopt", "target": "cluster1"}
    async with opened(api) as (browser, _):
        _, planned = await ask(browser, "actions/plan", asked)
        assert [(work["id"], work["isDeleting"]) for work in planned["works"]] == [
            ("id-0000001", False),
            ("gone", True),
        ]
        status, done = await ask(browser, "actions", {**asked, "plan": planned["plan"], "name": "cluster1"})
        assert (status, done["entry"]["kind"]) == (200, "consumer.adopted"), done
        api.holds.clear()
        status, refused = await ask(browser, "actions/plan", asked)
        assert (status, "no data-safety hold" in refused["error"]) == (409, True)


def fleet() -> Picture:
    picture = Picture("test")
    names = ("here", "away", "paused", "held", "never")
    picture.source.history = "yes"
    picture.put_consumers(
        {name: Consumer(id=name, name=name) for name in names},
        {"held": WorkHold(consumer="held", reason="DatabaseReplaced")},
        {"paused": ConsumerPause(consumer="paused", by="ann", since="")},
    )
    picture.agents = {name: AgentContact(is_connected=name != "away", since=1.0) for name in names[:-1]}
    return picture


@pytest.mark.parametrize(
    ("kind", "consumers", "works", "actions"),
    [
        pytest.param("undelivered", ["here"], 1, ["resend", "resync"], id="one-work"),
        pytest.param("undelivered", ["here"], 2, ["resync"], id="many-works"),
        pytest.param("stale", ["away"], 2, ["retire-release", "retire-delete"], id="agent-away"),
        pytest.param("undelivered", ["never"], 1, [], id="agent-never-connected"),
        pytest.param("paused", ["paused"], 1, ["resume"], id="paused"),
        pytest.param("held", ["held"], 1, ["adopt"], id="held"),
        pytest.param("unapplied", ["here"], 1, [], id="wrong-manifest"),
        pytest.param("undelivered", ["here", "away"], 2, [], id="several-consumers"),
        pytest.param("stale", ["unknown"], 1, [], id="unknown-consumer"),
    ],
)
def test_offers_of_a_group(kind: str, consumers: list[str], works: int, actions: list[str]) -> None:
    named = [(f"id{number}", f"work{number}") for number in range(works)]
    group = remedies.Stuck(kind=kind, consumers=consumers, works=named)
    offers = remedies.of_group(fleet(), group, now=1_000.0)
    assert [offer["action"] for offer in offers] == actions


def test_retirement_is_not_offered_before_a_server_would_accept_it() -> None:
    for kind in ("undelivered", "stale", "deleting"):
        group = remedies.Stuck(kind=kind, consumers=["away"], works=[("id1", "web")])
        assert remedies.of_group(fleet(), group, now=500.0) == []


def test_deletion_that_objects_block_is_not_sent_again() -> None:
    group = remedies.Stuck(kind="deleting", consumers=["here"], works=[("id1", "web")])
    assert [offer["action"] for offer in remedies.of_group(fleet(), group, now=1.0)] == ["resend", "resync"]
    assert remedies.of_group(fleet(), replace(group, is_blocked=True), now=1.0) == []
    assert not remedies.of_work(fleet(), work_id="i", name="w", consumer="here", code="MW-007", is_blocked=True)


@pytest.mark.parametrize(
    ("consumer", "code", "actions"),
    [
        pytest.param("here", "MW-001", [], id="healthy"),
        pytest.param("here", "MW-005", [], id="rejected"),
        pytest.param("here", "MW-004", ["resend", "resync"], id="stale"),
        pytest.param("away", "MW-004", [], id="agent-away"),
        pytest.param("never", "MW-003", [], id="agent-never-connected"),
        pytest.param("paused", "MW-123", ["resume"], id="paused"),
        pytest.param("held", "MW-122", ["adopt"], id="held"),
    ],
)
def test_offers_of_a_work(consumer: str, code: str, actions: list[str]) -> None:
    offers = remedies.of_work(fleet(), work_id="id1", name="web", consumer=consumer, code=code)
    assert [offer["action"] for offer in offers] == actions


@pytest.mark.parametrize(
    ("consumer", "silent_minutes", "actions"),
    [
        pytest.param("here", 0, ["pause", "resync"], id="connected"),
        pytest.param("away", 6, ["pause"], id="away-for-six-minutes"),
        pytest.param("away", 10.5, ["pause"], id="server-may-have-noted-it-a-minute-later"),
        pytest.param("away", 11, ["pause", "retire-release", "retire-delete"], id="away"),
        pytest.param("quiet", 6, ["pause", "resync"], id="status-through-a-message-broker-six-minutes-ago"),
        pytest.param("quiet", 11, ["pause", "resync", "retire-release", "retire-delete"], id="quiet"),
        pytest.param("never", 60, ["pause", "retire-release", "retire-delete"], id="never-connected"),
        pytest.param("unknown", 60, [], id="unknown-consumer"),
    ],
)
def test_offers_of_a_consumer(consumer: str, silent_minutes: float, actions: list[str]) -> None:
    picture, now = fleet(), 10_000.0
    picture.put_consumers({**picture.consumers, "quiet": Consumer(id="quiet", name="quiet")}, {}, {})
    picture.reporting.add("quiet")
    offers = remedies.of_consumer(picture, consumer, contact=now - 60 * silent_minutes, now=now)
    assert [offer["action"] for offer in offers] == actions


def test_role_that_only_the_server_knows_is_left_to_the_server() -> None:
    picture = fleet()
    picture.source.history = "denied"
    can = remedies.availability(picture, is_allowed=True, role="")["can"]
    assert (can["resend"]["isAllowed"], can["pause"]["isAllowed"]) == (True, False)


async def test_console_that_acts_on_loopback_shows_and_does_nothing_without_the_key_of_its_start() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api, gate=sessions.with_key("of-this-start")) as (browser, _):
        for headers in ({}, {"Authorization": "Bearer guessed"}, {"Cookie": "maestro-console=of-this-start"}):
            status, refused = await ask(browser, "actions/plan", PAUSE, **headers)
            assert (status, "printed" in refused["error"]) == (401, True)
            assert (await browser.get("/api/works", headers=headers)).status_code == 401
        assert "set-cookie" not in (await browser.get("/?key=guessed")).headers
        assert api.actions == []
        entered = await browser.get("/?key=of-this-start")
        assert (entered.status_code, entered.headers["location"]) == (303, "./")
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("maestro-console-")
        assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        # The client keeps the cookie, as a browser.
        assert (await browser.get("/api/works")).status_code == 200
        assert (await ask(browser, "actions/plan", PAUSE))[0] == 200


def test_two_starts_have_different_cookies_and_no_key_in_their_text() -> None:
    one, other = sessions.with_key("one-key"), sessions.with_key("other-key")
    assert one.cookie != other.cookie
    assert "one-key" not in repr(one)
