"""The REST API as its clients see it: over HTTP, on a real PostgreSQL."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from maestropy.server.api.rest import resource_bundle_list
from maestropy.server.auth.rest import Unverified
from maestropy.server.auth.roles import UNRESTRICTED, RestCaller
from tests import waiting
from tests.stack import rest_live
from tests.stack.rest_live import BASE, Live

CONSUMERS = f"{BASE}/consumers"
BUNDLES = f"{BASE}/resource-bundles"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with rest_live.postgres(tmp_path_factory.mktemp("postgres")) as address, rest_live.live(address) as running:
        yield running


@pytest.fixture
def api(server: Live) -> Iterator[httpx.Client]:
    server.clear()
    with server.client() as client:
        yield client


def pages(api: httpx.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages of a list, from the first to one that is not full."""
    page = 1
    while True:
        found = api.get(path, params={**params, "page": page}).json()
        yield found
        if found["size"] < params["size"]:
            return
        page += 1


# -- consumers ---------------------------------------------------------------------------------------------------------


def test_the_life_of_a_consumer(api: httpx.Client) -> None:
    created = api.post(CONSUMERS, json={"name": "cluster1", "labels": {"b": "2", "a": "1"}, "unknown": [1]})
    consumer = created.json()
    path = consumer["href"]

    assert created.status_code == 201
    assert list(consumer) == ["created_at", "href", "id", "kind", "labels", "name", "updated_at"]
    assert path == f"{CONSUMERS}/{consumer['id']}"
    assert api.get(path).json() == consumer
    assert api.get(f"{path}/").json() == consumer, "one slash at the end changes nothing"

    relabelled = api.patch(path, json={"labels": {"c": "3"}}).json()
    assert relabelled["labels"] == {"c": "3"}
    assert relabelled["updated_at"] > consumer["updated_at"]
    assert api.patch(path, json={}).json()["labels"] == {"c": "3"}, "absent leaves them"
    assert api.patch(path, json={"labels": None, "name": "other"}).json()["labels"] == {"c": "3"}
    assert "labels" not in api.patch(path, json={"labels": {}}).json()
    assert api.get(path).json()["name"] == "cluster1"

    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 204, "what is gone counts as removed"
    assert api.get(path).status_code == 404


def test_a_consumer_without_a_name_is_called_by_its_id(api: httpx.Client) -> None:
    for body in ({}, {"name": ""}, {"name": None, "id": ""}):
        consumer = api.post(CONSUMERS, json=body).json()
        assert consumer["name"] == consumer["id"]
        assert "labels" not in consumer


def test_an_empty_set_of_labels_is_stored_as_none(api: httpx.Client, server: Live) -> None:
    api.post(CONSUMERS, json={"name": "cluster1", "labels": {}})

    assert server.sql("SELECT labels IS NULL AS none FROM consumers")[0]["none"]


def test_names_are_unique(api: httpx.Client) -> None:
    api.post(CONSUMERS, json={"name": "cluster1"})
    again = api.post(CONSUMERS, json={"name": "cluster1"}, headers={"X-Operation-ID": "my-op"})

    assert again.status_code == 409
    assert again.json() == {
        "code": "maestro-6",
        "href": "/api/maestro/v1/errors/6",
        "id": "6",
        "kind": "Error",
        "operation_id": "my-op",
        "reason": "This Consumer already exists",
    }


def test_a_consumer_with_bundles_stays(api: httpx.Client, server: Live) -> None:
    server.add_bundles(1)
    server.sql("UPDATE resources SET deleted_at = now()")

    refused = api.delete(f"{CONSUMERS}/cluster1")

    assert refused.status_code == 403
    assert refused.json()["id"] == "4"
    assert 'violates foreign key constraint "fk_resources_consumers"' in refused.json()["reason"]


def test_two_who_delete_the_same_consumer_both_succeed(api: httpx.Client) -> None:
    for _ in range(10):
        path = api.post(CONSUMERS, json={"name": "cluster1"}).json()["href"]
        with ThreadPoolExecutor(4) as many:
            answers = list(many.map(lambda _, path=path: api.delete(path).status_code, range(4)))
        assert answers == [204] * 4


def test_patches_at_once_leave_one_of_them_whole(api: httpx.Client) -> None:
    path = api.post(CONSUMERS, json={"name": "cluster1"}).json()["href"]
    patches = [{f"k{n}": str(n), "same": str(n)} for n in range(8)]

    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(lambda labels: api.patch(path, json={"labels": labels}).json()["labels"], patches))

    assert answers == patches, "each sees what it wrote"
    assert api.get(path).json()["labels"] in patches


# -- bundles -----------------------------------------------------------------------------------------------------------


def test_a_bundle_that_a_go_server_wrote(api: httpx.Client, server: Live) -> None:
    (bundle_id,) = server.add_bundles(1, status=rest_live.status(), version=2)
    spec, status = rest_live.payload()["data"], rest_live.status()["data"]

    found = api.get(f"{BUNDLES}/{bundle_id}").json()

    assert found == {
        "consumer_name": "cluster1",
        "created_at": "2026-08-20T10:00:00Z",
        "delete_option": spec["deleteOption"],
        "href": f"{BUNDLES}/{bundle_id}",
        "id": bundle_id,
        "kind": "ResourceBundle",
        "manifest_configs": spec["manifestConfigs"],
        "manifests": spec["manifests"],
        "metadata": {**rest_live.payload()["metadata"], "creationTimestamp": "2026-08-20T10:00:00Z"},
        "name": bundle_id,
        "status": {
            "ObservedVersion": 1,
            "SequenceID": "2000808179729960960",
            "conditions": status["conditions"],
            "resourceStatus": status["resourceStatus"],
        },
        "updated_at": "2026-08-20T10:00:00Z",
        "version": 2,
    }
    assert list(found) == sorted(found)
    assert api.get(BUNDLES).json() == {
        "items": [found],
        "kind": "ResourceBundleList",
        "page": 1,
        "size": 1,
        "total": 1,
    }


def test_a_valid_rendition_is_sent_as_it_is_and_a_stale_one_is_not(api: httpx.Client, server: Live) -> None:
    fresh, stale = server.add_bundles(2, version=2)
    server.sql(
        """INSERT INTO renditions (id, version, envelope, metadata, data) VALUES
        ($1, 2, '{}', '{"name":"rendered"}', '{"manifests":[1.0]}'), ($2, 1, '{}', '{"name":"old"}', '{}')""",
        fresh,
        stale,
    )

    items = {item["id"]: item for item in api.get(BUNDLES).json()["items"]}

    assert '"manifests":[1.0]' in api.get(f"{BUNDLES}/{fresh}").text
    assert items[fresh]["metadata"]["name"] == "rendered"
    assert items[stale]["metadata"]["name"] == "nginx-work"


def test_lists_fill_the_renditions_they_missed(api: httpx.Client, server: Live) -> None:
    server.add_bundles(3, version=4)
    server.sql("INSERT INTO renditions (id, version, envelope, data) VALUES ('bundle-00001', 3, '{}', '{}')")
    server.sql("INSERT INTO renditions (id, version, envelope, data) VALUES ('bundle-00002', 5, '{}', 'newer')")
    before = api.get(BUNDLES).json()

    def rendered() -> dict[str, int]:
        return {row["id"]: row["version"] for row in server.sql("SELECT id, version FROM renditions")}

    waiting.wait_for(lambda: rendered() == {"bundle-00000": 4, "bundle-00001": 4, "bundle-00002": 5})
    assert server.sql("SELECT convert_from(data, 'UTF8') AS t FROM renditions WHERE version = 5")[0]["t"] == "newer"
    kept = server.sql("SELECT envelope, metadata, data FROM renditions WHERE id = 'bundle-00000'")[0]
    original = rest_live.payload()
    assert json.loads(kept["metadata"]) == original.pop("metadata")
    assert json.loads(kept["data"]) == original.pop("data")
    assert json.loads(kept["envelope"]) == original
    assert api.get(BUNDLES).json() == before


def test_deletion_is_asked_for_with_the_operation_id(api: httpx.Client, server: Live) -> None:
    (bundle_id,) = server.add_bundles(1)
    server.deleted.clear()

    for _ in range(2):
        answer = api.delete(f"{BUNDLES}/{bundle_id}", headers={"X-Operation-ID": "op-7"})
        assert (answer.status_code, answer.content) == (204, b"")

    assert server.deleted == [(bundle_id, "op-7")] * 2
    found = api.get(f"{BUNDLES}/{bundle_id}").json()
    assert found["deleted_at"][:19] + "Z" == found["metadata"]["deletionTimestamp"]
    assert api.get(BUNDLES).json()["total"] == 1, "still listed"
    assert api.delete(f"{BUNDLES}/none").status_code == 204


# -- lists -------------------------------------------------------------------------------------------------------------


def test_pages_stay_put_while_rows_move(api: httpx.Client, server: Live) -> None:
    ids = server.add_bundles(60)
    seen: list[str] = []

    for page in pages(api, BUNDLES, size=7):
        seen += [item["id"] for item in page["items"]]
        assert page["total"] == 60
        # Every row is written anew, so a list without an order would come out differently.
        server.sql("UPDATE resources SET status = '{\"resourceversion\": 1}', updated_at = now()")

    assert seen == ids


def test_count_only(api: httpx.Client, server: Live) -> None:
    server.add_bundles(3)

    for size in ("0", "abc"):
        assert api.get(BUNDLES, params={"size": size}).text == (
            '{"items":[],"kind":"ResourceBundleList","page":1,"size":0,"total":3}'
        )


def test_a_page_behind_the_end_is_empty_and_still_knows_the_total(api: httpx.Client, server: Live) -> None:
    server.add_bundles(3)

    for page in (3, 2**31 - 1, 10**30):
        found = api.get(BUNDLES, params={"page": page, "size": 2}).json()
        assert (found["items"], found["size"], found["total"]) == ([], 0, 3)


def test_fields_show_only_what_is_asked_for(api: httpx.Client, server: Live) -> None:
    server.add_bundles(2, status=rest_live.status())

    found = api.get(BUNDLES, params={"fields": "version,status"}).json()
    assert [list(item) for item in found["items"]] == [["id", "status", "version"]] * 2
    assert api.get(BUNDLES, params={"fields": "manifests", "size": 1}).json()["items"] == [
        {"id": "bundle-00000", "manifests": rest_live.payload()["data"]["manifests"]}
    ]
    assert api.get(CONSUMERS, params={"fields": "name"}).json()["items"] == [{"id": "cluster1", "name": "cluster1"}]

    refused = api.get(BUNDLES, params={"fields": "name,payload"})
    assert (refused.status_code, refused.json()["id"]) == (400, "8")
    reason = "The following field(s) doesn't exist in `ResourceBundle`: payload; fields: consumer_name, created_at, "
    assert refused.json()["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("source='s2'", ["two-00000"]),
        ("source='s1' and payload->'metadata'->'labels'@>'{\"tier\":\"gold\"}'", ["one-00000"]),
        (
            "source='s1' and consumer_name='cluster1' and payload->'metadata'->'labels'->>'tier'in('gold','tin')",
            ["one-00000"],
        ),
        ("version > 1 or name like 'one%'", ["one-00000", "two-00000"]),
        ("id = 'nobody'", []),
    ],
)
def test_search_through_the_whole_path(api: httpx.Client, server: Live, search: str, expected: list[str]) -> None:
    server.add_bundles(1, prefix="one", source="s1", labels={"tier": "gold"})
    server.add_bundles(1, prefix="two", source="s2", version=2)

    found = api.get(BUNDLES, params={"search": search, "orderBy": "name asc"}).json()

    assert [item["id"] for item in found["items"]] == expected
    assert found["total"] == len(expected)


def test_order(api: httpx.Client, server: Live) -> None:
    ids = server.add_bundles(5)

    found = api.get(BUNDLES, params={"orderBy": "created_at desc,id desc", "fields": "id"}).json()["items"]

    assert [item["id"] for item in found] == ids[::-1]


# -- long lists --------------------------------------------------------------------------------------------------------


def long_list(server: Live, count: int = 150) -> list[str]:
    """Insert bundles that weigh several batches together."""
    return server.add_bundles(count, filler="words that repeat and so compress well " * 1000)


def test_a_long_list_arrives_whole(api: httpx.Client, server: Live) -> None:
    ids = long_list(server)

    answer = api.get(BUNDLES, params={"size": 1000})

    assert answer.headers.get("transfer-encoding") == "chunked"
    assert len(answer.content) > 3 * resource_bundle_list.BATCH_BYTES
    assert [item["id"] for item in answer.json()["items"]] == ids
    assert (answer.json()["size"], answer.json()["total"]) == (150, 150)
    assert list(answer.json()) == ["items", "kind", "page", "size", "total"]


def test_gzip_is_for_those_who_ask(api: httpx.Client, server: Live) -> None:
    long_list(server)
    plain = api.get(BUNDLES, params={"size": 1000}, headers={"Accept-Encoding": "identity"})

    with api.stream("GET", BUNDLES, params={"size": 1000}, headers={"Accept-Encoding": "gzip"}) as squeezed:
        raw = b"".join(squeezed.iter_raw())

    assert "content-encoding" not in plain.headers
    assert squeezed.headers["content-encoding"] == "gzip"
    assert len(raw) < len(plain.content) / 5
    assert gzip.decompress(raw) == plain.content
    assert "content-encoding" not in api.get(f"{BASE}/errors/7", headers={"Accept-Encoding": "gzip"}).headers
    for answer in (plain, squeezed):
        assert "Authorization" in answer.headers["vary"]


def busy_connections(server: Live) -> int:
    found = server.sql(
        "SELECT count(*) AS busy FROM pg_stat_activity WHERE application_name = 'maestropy' AND xact_start IS NOT NULL"
    )
    return int(found[0]["busy"])


def ask_and_stop_reading(server: Live, *, address: str = "127.0.0.1") -> socket.socket:
    """Ask for a list that is longer than what the two ends of a connection hold between them."""
    host, port = server.url.removeprefix("http://").split(":")
    plug = socket.create_connection((host, int(port)), timeout=20, source_address=(address, 0))
    plug.sendall(f"GET {BUNDLES}?size=5000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert plug.recv(100).startswith(b"HTTP/1.1 200")
    return plug


def test_a_reader_that_leaves_gives_its_snapshot_back(api: httpx.Client, server: Live) -> None:
    long_list(server, 800)
    plug = ask_and_stop_reading(server)
    waiting.wait_for(lambda: busy_connections(server) == 1)

    plug.close()

    waiting.wait_for(lambda: busy_connections(server) == 0)
    waiting.wait_for(lambda: any(line.get("reason") == "the client left" for line in server.lines()))


def test_a_reader_that_takes_nothing_is_cut_off(
    api: httpx.Client, server: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_list(server, 800)
    monkeypatch.setattr(resource_bundle_list, "STALL_SECONDS", 0.3)
    with ask_and_stop_reading(server):
        waiting.wait_for(lambda: busy_connections(server) == 1)

        waiting.wait_for(lambda: busy_connections(server) == 0)

    waiting.wait_for(lambda: any("the client took less than" in line.get("err", "") for line in server.lines()))


def test_a_list_that_breaks_off_is_seen_to_be_incomplete(api: httpx.Client, server: Live) -> None:
    long_list(server, 800)
    with ask_and_stop_reading(server) as plug:
        waiting.wait_for(lambda: busy_connections(server) == 1)
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'maestropy' AND xact_start IS NOT NULL"
        )
        received = b"".join(iter(lambda: plug.recv(1 << 20), b""))

    assert len(received) > 0
    assert not received.endswith(b"0\r\n\r\n"), "the end of the list was never sent"
    assert api.get(BUNDLES, params={"size": 1}).json()["total"] == 800, "and the next one is whole"


@pytest.mark.long
def test_slow_readers_cannot_take_every_connection(server: Live) -> None:
    server.clear()
    long_list(server, 800)

    def read_all(small: Live) -> int:
        with small.client() as client:
            return int(client.get(BUNDLES, params={"size": 1000}).json()["size"])

    with rest_live.live(server.address, pool_size=3, max_streams=2) as small, small.client() as api:
        plugs = [ask_and_stop_reading(small, address=f"127.0.0.{number}") for number in (2, 3)]
        with ThreadPoolExecutor(3) as many:
            reads = [many.submit(read_all, small) for _ in range(3)]

            for _ in range(5):
                assert api.get(BUNDLES, params={"size": 2}).json()["total"] == 800, "short lists go on"
            assert not any(read.done() for read in reads)

            for plug in plugs:
                plug.close()
            assert [read.result() for read in reads] == [800] * 3


@pytest.mark.long
def test_slow_readers_of_one_client_leave_room_for_others(server: Live) -> None:
    server.clear()
    long_list(server, 800)

    with rest_live.live(server.address, pool_size=6, max_streams=4) as small:
        host, port = small.url.removeprefix("http://").split(":")
        plugs = [
            socket.create_connection((host, int(port)), timeout=20, source_address=("127.0.0.2", 0)) for _ in range(12)
        ]
        for plug in plugs:
            plug.sendall(f"GET {BUNDLES}?size=5000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waiting.wait_for(lambda: busy_connections(small) == 1)
        with small.client() as api:
            for _ in range(3):
                started = time.monotonic()
                assert api.get(BUNDLES, params={"size": 1000}).json()["size"] == 800
                assert time.monotonic() - started < 10
        waiting.wait_for(lambda: busy_connections(small) == 1)  # a client has a quarter of the slots
        for plug in plugs:
            plug.close()


# -- refusals ----------------------------------------------------------------------------------------------------------

NUL = "%00"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "number"),
    [
        pytest.param("GET", f"{BUNDLES}/none", None, 404, "7", id="no-such-bundle"),
        pytest.param("GET", f"{CONSUMERS}/none", None, 404, "7", id="no-such-consumer"),
        pytest.param("PATCH", f"{CONSUMERS}/none", b"{}", 404, "7", id="patch-of-no-consumer"),
        pytest.param("GET", f"{BUNDLES}/a{NUL}b", None, 404, "7", id="nul-in-bundle-id"),
        pytest.param("GET", f"{CONSUMERS}/{NUL}", None, 404, "7", id="nul-in-consumer-id"),
        pytest.param("PATCH", f"{CONSUMERS}/{NUL}", b"{}", 404, "7", id="nul-in-patched-id"),
        pytest.param("DELETE", f"{CONSUMERS}/{NUL}", None, 204, None, id="nul-in-deleted-consumer"),
        pytest.param("DELETE", f"{BUNDLES}/{NUL}", None, 204, None, id="nul-in-deleted-bundle"),
        pytest.param("GET", f"{BUNDLES}/{'x' * 20000}", None, 404, "7", id="endless-id"),
        pytest.param("GET", f"{BUNDLES}/%F0%9F%92%A9", None, 404, "7", id="emoji-id"),
        pytest.param("GET", f"{BUNDLES}/%FF%FE", None, 404, "7", id="bytes-that-are-no-text"),
        pytest.param("GET", f"{BUNDLES}/a%2Fb", None, 404, "404", id="encoded-slash"),
        pytest.param("GET", f"{BUNDLES}/%27%3B%20DROP%20TABLE", None, 404, "7", id="sql-in-id"),
        pytest.param("GET", f"{BUNDLES}//", None, 404, "404", id="two-slashes"),
        pytest.param("GET", f"{BASE}/nowhere", None, 404, "404", id="unknown-path"),
        pytest.param("GET", f"{BASE}/errors/x", None, 404, "7", id="no-such-error"),
        pytest.param("PUT", f"{CONSUMERS}/x", b"{}", 405, None, id="wrong-method"),
        pytest.param("HEAD", CONSUMERS, None, 405, None, id="head"),
        pytest.param("POST", CONSUMERS, b"", 400, "17", id="no-body"),
        pytest.param("POST", CONSUMERS, b"{nojson", 400, "17", id="no-json"),
        pytest.param("POST", CONSUMERS, b"[]", 400, "17", id="a-list"),
        pytest.param("POST", CONSUMERS, b"null", 400, "17", id="null"),
        pytest.param("POST", CONSUMERS, b'{"name":7}', 400, "17", id="name-a-number"),
        pytest.param("POST", CONSUMERS, b'{"labels":[]}', 400, "17", id="labels-a-list"),
        pytest.param("POST", CONSUMERS, b'{"labels":{"a":1}}', 400, "17", id="label-a-number"),
        pytest.param("POST", CONSUMERS, b'{"labels":{"a":"\\u0000"}}', 400, "8", id="nul-in-label"),
        pytest.param("PATCH", f"{CONSUMERS}/x", b'{"labels":{"\\u0000":""}}', 400, "8", id="nul-in-label-key"),
        pytest.param("POST", CONSUMERS, b'{"labels":{"a":"\\ud800"}}', 400, "17", id="half-a-character"),
        pytest.param("POST", CONSUMERS, b'{"name":"\xff"}', 400, "17", id="no-utf-8"),
        pytest.param("POST", CONSUMERS, b"[" * 200_000, 400, "17", id="bottomless"),
        pytest.param("POST", CONSUMERS, b'{"x":' + b"[" * 200_000, 400, "17", id="bottomless-unknown-key"),
        pytest.param("POST", CONSUMERS, b'{"name":"' + b"x" * 2**21 + b'"}', 400, "17", id="too-large"),
        pytest.param("POST", CONSUMERS, b'{"id":"x"}', 400, "8", id="own-id"),
        pytest.param("POST", CONSUMERS, b'{"name":"Bad_Name"}', 400, "8", id="bad-name"),
        pytest.param("POST", CONSUMERS, b'{"name":"-a"}', 400, "8", id="name-begins-with-a-dash"),
        pytest.param("POST", CONSUMERS, b'{"name":"a\\n"}', 400, "8", id="name-ends-with-a-newline"),
        pytest.param("POST", CONSUMERS, b'{"name":"' + b"x" * 64 + b'"}', 400, "8", id="name-too-long"),
        pytest.param("GET", f"{BUNDLES}?search=garbage", None, 400, "21", id="search-garbage"),
        pytest.param("GET", f"{BUNDLES}?search=name%3D%27a{NUL}%27", None, 400, "21", id="nul-in-search"),
        pytest.param("GET", f"{BUNDLES}?search=nocolumn%3D1", None, 400, "21", id="unknown-column"),
        pytest.param("GET", f"{BUNDLES}?orderBy=name%20up", None, 400, "21", id="bad-order"),
        pytest.param("GET", f"{BUNDLES}?orderBy=id%3Bselect", None, 400, "21", id="sql-in-order"),
        pytest.param("GET", f"{CONSUMERS}?fields=secret", None, 400, "8", id="unknown-field"),
    ],
)
def test_hostile_requests(
    api: httpx.Client, method: str, path: str, body: bytes | None, status: int, number: str | None
) -> None:
    answer = api.request(method, path, content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == status, answer.text
    if number is None:
        assert answer.content == b""
    else:
        assert answer.json()["id"] == number
        assert len(answer.json()["reason"]) < 1000
        assert "Traceback" not in answer.text
    assert api.get(CONSUMERS).status_code == 200, "the server is as it was"


def test_refusals_name_the_field(api: httpx.Client) -> None:
    def reason(body: dict[str, Any]) -> str:
        return str(api.post(CONSUMERS, json=body).json()["reason"])

    assert "labels" in reason({"labels": {"a": 1}})
    assert "labels: 'key'" in reason({"labels": {"key": "\0"}})
    assert reason({"name": "Bad_Name"}).startswith(
        'Unable to create Consumer: consumer.name: Invalid value: "Bad_Name": a lowercase RFC 1123 label must'
    )


def test_a_method_that_is_not_there_says_which_are(api: httpx.Client) -> None:
    assert api.put(f"{CONSUMERS}/x").headers["allow"] == "DELETE, GET, OPTIONS, PATCH"


def test_every_refusal_is_logged_with_its_reason(api: httpx.Client, server: Live) -> None:
    api.get(f"{BUNDLES}/none", headers={"X-Operation-ID": "refused-1"})
    api.get("/nowhere", headers={"X-Operation-ID": "refused-2"})

    def refused(operation: str) -> list[dict[str, Any]]:
        return [line for line in server.lines() if line["msg"] == "request rejected" and line.get("op-id") == operation]

    waiting.wait_for(lambda: bool(refused("refused-1") and refused("refused-2")))
    assert refused("refused-1")[0]["status"] == 404
    assert refused("refused-1")[0]["reason"] == "Resource with id='none' not found"


def test_access_lines_are_json_and_hold_no_token(api: httpx.Client, server: Live) -> None:
    headers = {"X-Operation-ID": "access-1", "Authorization": "Bearer hunter2"}
    api.get(f"{CONSUMERS}?size=1", headers=headers)

    def lines() -> list[dict[str, Any]]:
        own = [line for line in server.lines() if line.get("op-id") == "access-1"]
        return [json.loads(line["msg"]) for line in own]

    waiting.wait_for(lambda: len(lines()) == 2)
    asked, answered = lines()
    assert (asked["request_method"], asked["request_url"]) == ("GET", f"{CONSUMERS}?size=1")
    assert asked["request_remote_ip"].startswith("127.0.0.1:")
    assert answered["response_status"] == 200
    assert answered["elapsed"].endswith("ms")
    assert b"hunter2" not in server.log.getvalue()


def test_operation_ids_are_made_where_none_is_fit(api: httpx.Client) -> None:
    for given in (None, "x" * 200, "caf\xe9"):
        headers: Any = {} if given is None else {"X-Operation-ID": given.encode("latin-1")}
        made = api.get(f"{BUNDLES}/none", headers=headers).json()["operation_id"]
        assert len(made) == 27
        assert made.isalnum()


def test_metrics_know_templates_only(api: httpx.Client, server: Live) -> None:
    server.metrics.requests.clear()
    api.get(f"{BUNDLES}/one")
    api.get(f"{BUNDLES}/two/")
    api.delete(f"{CONSUMERS}/three")
    api.get("/some/where")

    waiting.wait_for(lambda: len(server.metrics.requests) == 4)
    assert server.metrics.requests == [
        ("GET", f"{BUNDLES}/-", 404),
        ("GET", f"{BUNDLES}/-", 404),
        ("DELETE", f"{CONSUMERS}/-", 204),
        ("GET", "-", 404),
    ]


# -- around it ---------------------------------------------------------------------------------------------------------


def test_the_roots(api: httpx.Client) -> None:
    assert api.get("/api/maestro").json() == {
        "id": "maestro",
        "href": "/api/maestro",
        "kind": "API",
        "versions": [{"id": "v1", "href": "/api/maestro/v1", "kind": "", "collections": None}],
    }
    assert api.get(f"{BASE}/").json() == {
        "id": "v1",
        "href": "/api/maestro/v1",
        "kind": "APIVersion",
        "collections": [{"id": "resources", "href": "/api/maestro/v1/resources", "kind": "ResourceList"}],
    }
    errors = api.get(f"{BASE}/errors").json()
    assert [item["id"] for item in errors["items"]] == [
        *("1", "4", "6", "7", "8", "9", "10", "11", "15", "17", "21", "23", "26")
    ]
    assert api.get(f"{BASE}/errors/7").json() == errors["items"][3]
    assert [item["id"] for item in api.get(f"{BASE}/errors?page=2&size=5").json()["items"]] == [
        *("9", "10", "11", "15", "17")
    ]


def test_configured_origins_may_use_the_api(server: Live) -> None:
    console = {"Origin": "https://console"}
    asked = {**console, "Access-Control-Request-Method": "PATCH"}
    with rest_live.live(server.address, allowed_origins=("https://console",)) as open_to, open_to.client() as api:
        preflight = api.options(CONSUMERS, headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://console"
        assert preflight.headers["access-control-max-age"] == "600"
        assert api.get(CONSUMERS, headers=console).headers["access-control-allow-origin"] == "https://console"
        assert "access-control-allow-origin" not in api.get(CONSUMERS, headers={"Origin": "https://other"}).headers
        assert api.options(BUNDLES).status_code == 200


def test_a_token_is_asked_for_where_the_operator_wants_one(server: Live) -> None:
    async def authenticate(header: str | None) -> RestCaller:
        if header != "Bearer good":
            raise Unverified("send the header Authorization: Bearer <token>")
        return UNRESTRICTED

    with rest_live.live(server.address, authenticate=authenticate) as guarded, guarded.client() as api:
        refused = api.get(CONSUMERS)

        assert (refused.status_code, refused.json()["id"]) == (401, "15")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert api.get(CONSUMERS, headers={"Authorization": "Bearer good"}).status_code == 200
        # The second answer has come, so what the first one had to say is written.
        assert [line["status"] for line in guarded.lines() if line["msg"] == "request rejected"] == [401]


def test_unavailable_database_returns_503(server: Live) -> None:
    with rest_live.live(server.address) as lonely, lonely.client() as api:
        lonely.stop_database()

        for method, path in (("GET", CONSUMERS), ("GET", BUNDLES), ("DELETE", f"{CONSUMERS}/x")):
            answer = api.request(method, path)
            assert (answer.status_code, answer.json()["id"]) == (503, "9"), path
            assert answer.headers["retry-after"] == "5"
        assert api.get(f"{BASE}/errors").status_code == 200


def test_a_bug_is_answered_without_its_traceback(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maestropy.server.api.rest.representations.consumer", lambda *_: 1 / 0)
    server.clear()
    server.add_consumer()
    with server.client() as api:
        answer = api.get(CONSUMERS, headers={"X-Operation-ID": "bug-1"})

    assert answer.status_code == 500
    assert (answer.json()["id"], answer.json()["operation_id"]) == ("1000", "bug-1")
    assert "ZeroDivision" not in answer.text


def test_many_clients_at_once(api: httpx.Client, server: Live) -> None:
    long_list(server, 60)
    failures: list[str] = []

    def read() -> None:
        with server.client() as client:
            for _ in range(3):
                answer = client.get(BUNDLES, params={"size": 1000})
                if answer.status_code != 200 or answer.json()["size"] != 60:
                    failures.append(answer.text[:200])

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)

    assert failures == []
