"""Long and slow lists of the REST API: continuation, totals that are not counted, and searches that must end."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import httpx
import pytest

from maestropy.store import dsn
from maestropy.store.lists import outline
from maestropy.store.postgres import pool
from tests import waiting
from tests.stack import rest_live
from tests.stack.rest_live import BASE, Live

BUNDLES = f"{BASE}/resource-bundles"
SLOW = "status->'data'->>'x' = 'y'"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dsn.Dsn]:
    with rest_live.postgres(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture
def server(address: dsn.Dsn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    # The tests hold lists up with a lock; it must not be the lock timeout that ends them.
    monkeypatch.setitem(pool._SETTINGS, "lock_timeout", "60000")
    with rest_live.live(address) as running:
        running.clear()
        yield running


@contextlib.contextmanager
def locked_table(server: Live) -> Iterator[None]:
    """Keep every list waiting until the block ends."""
    is_locked, release = threading.Event(), threading.Event()

    async def hold() -> None:
        connection = await asyncpg.connect(**server.address.connect_kwargs())
        async with connection.transaction():
            await connection.execute("LOCK TABLE resources IN ACCESS EXCLUSIVE MODE")
            is_locked.set()
            await asyncio.to_thread(release.wait, 60)
        await connection.close()

    holder = threading.Thread(target=lambda: asyncio.run(hold()))
    holder.start()
    try:
        assert is_locked.wait(20)
        yield
    finally:
        release.set()
        holder.join(20)


def waiting_lists(server: Live) -> int:
    found = server.sql(
        "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'maestropy' AND wait_event_type = 'Lock'"
    )
    return int(found[0]["n"])


def test_token_leads_through_the_list(server: Live) -> None:
    ids = server.add_bundles(7)
    with server.client() as api:
        collected, token, pages = [], "", []
        while token is not None:
            response = api.get(BUNDLES, params={"size": 3, **({"continue": token} if token else {})})
            body = response.json()
            assert sorted(body) == ["items", "kind", "page", "size", "total"], "Go clients reject other keys"
            assert body["total"] == 7
            pages.append(body["page"])
            collected += [item["id"] for item in body["items"]]
            token = response.headers.get("X-Maestro-Continue")

    assert collected == ids
    assert pages == [1, 2, 3]


def test_total_of_a_continued_page_is_marked_as_an_estimate(server: Live) -> None:
    server.add_bundles(4)
    with server.client() as api:
        first = api.get(BUNDLES, params={"size": 2})
        server.add_bundles(5, prefix="later")
        second = api.get(BUNDLES, params={"size": 2, "continue": first.headers["X-Maestro-Continue"]})
        counted = api.get(BUNDLES, params={"size": 0, "continue": first.headers["X-Maestro-Continue"]})
        last = api.get(BUNDLES, params={"size": 9, "continue": second.headers["X-Maestro-Continue"]})

    assert [response.json()["total"] for response in (first, second, counted, last)] == [4, 5, 4, 9]
    marks = [response.headers.get("X-Maestro-Total") for response in (first, second, counted, last)]
    assert marks == [None, "estimate", "estimate", None]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"continue": "abc"}, "continue is not a token of this server"),
        ({"continue": "ü" * 10}, "continue is not a token of this server"),
        ({"search": "version > 0"}, "another search or orderBy"),
        ({"orderBy": "name"}, "another search or orderBy"),
    ],
)
def test_token_of_another_list_is_rejected(server: Live, params: dict[str, str], reason: str) -> None:
    server.add_bundles(3)
    with server.client() as api:
        token = api.get(BUNDLES, params={"size": 1}).headers["X-Maestro-Continue"]
        response = api.get(BUNDLES, params={"size": 1, "continue": token, **params})

    assert response.status_code == 400
    assert reason in response.json()["reason"]
    assert "leave the parameter out" in response.json()["reason"]


def test_long_list_is_streamed_with_its_token(server: Live) -> None:
    server.add_bundles(40, filler="x" * 100_000)
    with server.client() as api:
        first = api.get(BUNDLES, params={"size": 30})
        assert "transfer-encoding" in first.headers, "the list was not streamed"
        rest = api.get(BUNDLES, params={"size": -1, "continue": first.headers["X-Maestro-Continue"]})

    assert (first.json()["size"], rest.json()["size"]) == (30, 10)
    assert "X-Maestro-Continue" not in rest.headers


def test_total_above_the_limit_is_an_estimate_that_is_never_too_small(
    server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "EXACT_TOTAL", 5)
    server.add_bundles(20)
    with server.client() as api:
        first = api.get(BUNDLES, params={"size": 6})
        last = api.get(BUNDLES, params={"size": 6, "page": 4})

    assert first.headers["X-Maestro-Total"] == "estimate"
    assert first.json()["total"] > 6
    assert "X-Maestro-Total" not in last.headers
    assert last.json()["total"] == 20


def test_search_that_no_index_serves_ends_with_what_to_use_instead(
    server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "READER_STATEMENT_MS", 100)
    with locked_table(server), server.client() as api:
        slow = api.get(BUNDLES, params={"search": SLOW})
        indexed = api.get(BUNDLES, params={"search": "name = 'a'"})

    assert slow.status_code == 400
    assert "no index serves status->'data'->>'x' =" in slow.json()["reason"]
    assert "payload->'metadata'->'labels'" in slow.json()["reason"]
    assert indexed.status_code == 503
    assert "the database is busy" in indexed.json()["reason"]
    with server.client() as api:
        assert api.get(BUNDLES).status_code == 200, "a slow search says nothing about the database"


def test_list_is_cancelled_when_its_client_leaves(server: Live) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with locked_table(server):
        plug = socket.create_connection((host, int(port)), timeout=20)
        plug.sendall(f"GET {BUNDLES} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waiting.wait_for(lambda: waiting_lists(server) == 1)

        plug.close()

        waiting.wait_for(lambda: waiting_lists(server) == 0)
    waiting.wait_for(lambda: any(line.get("reason") == "the client left" for line in server.lines()))


def test_slow_searches_of_one_client_leave_connections_to_others(server: Live) -> None:
    with locked_table(server), ThreadPoolExecutor(4) as threads:
        with httpx.Client(base_url=server.url, timeout=60) as api:
            asked = [threads.submit(api.get, BUNDLES, params={"search": SLOW}) for _ in range(4)]
            # Two of the eight slots are the share of one client; the others wait without a connection.
            waiting.wait_for(lambda: waiting_lists(server) == 2)
            assert api.get(f"{BASE}/consumers").status_code == 200
            assert waiting_lists(server) == 2
            server.sql(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'maestropy' AND wait_event_type = 'Lock'"
            )
            waiting.wait_for(lambda: sum(one.done() for one in asked) == 2 and waiting_lists(server) == 2)
            server.sql(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'maestropy' AND wait_event_type = 'Lock'"
            )
            assert {one.result().status_code for one in asked} == {400}
