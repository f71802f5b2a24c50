"""Data-safety holds over REST: list, show, and adopt once."""

from collections.abc import Iterator

import pytest

from maestropy.cli import main
from maestropy.trace.exit_codes import Exit
from tests.stack import rest_live
from tests.stack.trace_fleet import url

HOLD = """INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works, since)
          VALUES ('c1', 'h1', 'OtherDatabase', 'why', 'd0', 2, ARRAY['absent', 'present'], now())"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rest_live.Live]:
    with rest_live.postgres(tmp_path_factory.mktemp("postgres")) as address, rest_live.live(address) as running:
        yield running


@pytest.mark.parametrize("by", ["rest", "dsn"])
def test_trace_of_a_held_work_explains_the_hold(
    server: rest_live.Live, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.sql("INSERT INTO consumers (id, name) VALUES ('held-id', 'held-1')")
    server.sql(HOLD.replace("'c1'", "'held-1'").replace("'h1'", "'h2'").replace("'absent'", "'held-work'"))
    try:
        access = ["--rest-url", server.url] if by == "rest" else ["--db-dsn", url(server.address)]
        code = main.call(["trace", "work", "--resource-id", "held-work", "--no-cluster", *access])
        out = capsys.readouterr().out
        assert code == Exit.PROBLEM
        assert "MW-122" in out
        assert "OtherDatabase" in out
        assert "maestro consumer adopt held-1 --dry-run" in out
        main.call(["trace", "work", "--resource-id", "another", "--no-cluster", *access])
        out = capsys.readouterr().out
        assert "MW-010" in out
        assert "MW-122" not in out
    finally:
        server.sql("DELETE FROM maestropy_holds")
        server.sql("DELETE FROM consumers WHERE name = 'held-1'")


@pytest.mark.parametrize("by", ["rest", "dsn"])
def test_trace_of_a_waiting_work_explains_the_pause(
    server: rest_live.Live, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.sql("INSERT INTO consumers (id, name) VALUES ('p1', 'p1')")
    server.sql(
        "INSERT INTO resources (id, name, consumer_name, version, created_at, payload) "
        "VALUES ('waits', 'waits', 'p1', 1, now(), '{}')"
    )
    access = ["--rest-url", server.url] if by == "rest" else ["--db-dsn", url(server.address)]
    command = ["trace", "work", "--resource-id", "waits", "--no-cluster", *access]
    try:
        main.call(command)
        assert "MW-123" not in capsys.readouterr().out
        server.sql("INSERT INTO maestropy_pauses VALUES ('p1', '2026-11-17T10:00:00Z', 'ann', 'node upgrade')")
        assert main.call(command) == Exit.PROBLEM
        out = capsys.readouterr().out
        assert "MW-123" in out
        assert "delivery to this consumer is paused by ann since 2026-11-17T10:00:00" in out
        assert "node upgrade; maestro consumer resume p1" in out
    finally:
        server.sql("DELETE FROM maestropy_pauses")
        server.sql("DELETE FROM resources")
        server.sql("DELETE FROM consumers")


def test_adoption_is_shown_by_a_dry_run(server: rest_live.Live) -> None:
    with server.client() as api:
        consumer = api.post(f"{rest_live.BASE}/consumers", json={"name": "c1"}).json()["id"]
        server.sql(HOLD)
        path = f"{rest_live.BASE}/consumers/{consumer}/data-safety-hold"
        hold = api.get(path).json()["id"]
        shown = api.post(f"{path}/adoption", params={"dryRun": "All"}, json={"hold_id": hold})
        assert shown.status_code == 200
        assert (shown.json()["action"], shown.json()["dry_run"], shown.json()["plan"]) == ("adopt", True, hold)
        assert server.sql("SELECT count(*) FROM maestropy_adoptions")[0][0] == 0
    server.sql("DELETE FROM maestropy_holds")
    server.sql("DELETE FROM consumers")


def test_agent_of_a_new_consumer_learns_of_it_at_once(server: rest_live.Live) -> None:
    asked: list[str] = []
    with rest_live.live(server.address, request_resync=asked.append) as running, running.client() as api:
        # The stream of an agent that holds nothing is not ended.
        assert api.post(f"{rest_live.BASE}/consumers", json={"name": "other"}).status_code == 201
        server.sql(HOLD.replace("'c1'", "'new'"))
        assert api.post(f"{rest_live.BASE}/consumers", json={"name": "new"}).status_code == 201
        assert api.post(f"{rest_live.BASE}/consumers", json={"name": "new"}).status_code == 409
    assert asked == ["new"]
    server.sql("DELETE FROM maestropy_holds")
    server.sql("DELETE FROM consumers")


def test_hold_is_listed_shown_and_adopted_once(server: rest_live.Live) -> None:
    base = rest_live.BASE
    with server.client() as api:
        consumer = api.post(f"{base}/consumers", json={"name": "c1"}).json()["id"]
        path = f"{base}/consumers/{consumer}/data-safety-hold"
        assert api.get(f"{base}/data-safety-holds").json()["items"] == []
        assert api.get(path).status_code == 404
        assert api.post(f"{path}/adoption", json={"hold_id": "h1"}).status_code == 404
        server.sql(HOLD)
        server.sql(
            "INSERT INTO resources (id, name, consumer_name, version, created_at) "
            "VALUES ('present', 'present', 'c1', 1, now())"
        )
        (item,) = api.get(f"{base}/data-safety-holds").json()["items"]
        assert (item["consumer_name"], item["reason"], item["work_count"]) == ("c1", "OtherDatabase", 2)
        shown = api.get(path).json()
        assert item["id"] == shown["id"]
        assert (shown["works"], shown["absent_works"]) == (["absent", "present"], ["absent"])
        assert "pending_evictions" not in shown
        server.sql(
            "UPDATE maestropy_holds SET pending_count = 1, pending_works = ARRAY['w9'], "
            "pending_since = '2026-01-01T00:00:00Z', pending_deadline = '2026-01-01T01:00:00Z'"
        )
        pending = {"deadline": "2026-01-01T01:00:00Z", "since": "2026-01-01T00:00:00Z", "work_count": 1}
        assert api.get(path).json()["pending_evictions"] == {**pending, "works": ["w9"]}
        (item,) = api.get(f"{base}/data-safety-holds").json()["items"]
        assert item["pending_evictions"] == pending
        # A hold that the operator has not seen is not adopted.
        assert api.post(f"{path}/adoption", json={"hold_id": "another"}).status_code == 409
        for body in ({}, {"hold_id": ""}, {"hold_id": 1}, {"hold_id": shown["id"], "requested_by": "x" * 300}):
            assert api.post(f"{path}/adoption", json=body).status_code == 400
        # Nor one that has changed since, although its agent has kept its ID.
        for change in (
            "reason = 'UnknownConsumer'",
            "database_id = 'd9'",
            "works = '{absent,present,new}'",
            "work_count = 9",
        ):
            server.sql(f"UPDATE maestropy_holds SET {change}")
            outdated = api.post(f"{path}/adoption", json={"hold_id": shown["id"]})
            assert outdated.status_code == 409, change
            assert "maestro consumer adopt c1 --dry-run" in outdated.json()["reason"]
            server.sql("DELETE FROM maestropy_holds")
            server.sql(HOLD)
        assert api.get(path).json()["id"] == shown["id"]
        adopted = api.post(f"{path}/adoption", json={"hold_id": shown["id"], "requested_by": "me@here"})
        assert adopted.status_code == 201
        assert adopted.json()["adopted_by"] == "unauthenticated from 127.0.0.1 (me@here)"
        assert api.post(f"{path}/adoption", json={"hold_id": shown["id"]}).status_code == 409
        # Go clients see no new key.
        (listed,) = api.get(f"{base}/consumers").json()["items"]
        assert sorted(listed) == ["created_at", "href", "id", "kind", "name", "updated_at"]
    (row,) = server.sql("SELECT hold_id, from_database_id, works, adopted_by FROM maestropy_adoptions")
    assert (row["hold_id"], row["from_database_id"], row["works"]) == ("h1", "d0", ["absent", "present"])
    assert "data-safety hold adopted" in server.log.getvalue().decode()
