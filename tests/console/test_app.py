"""The console over HTTP: headers, hosts, sessions, CSRF, hostile names, windows of lists, and the stream of changes."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx
import orjson
import pytest

from maestropy.console import assets
from maestropy.console.app import Console
from maestropy.console.serve import ConsoleOptions, console
from maestropy.console.sessions import COOKIE, CSRF_HEADER, Gate, Refused, Viewer, is_loopback, loopback_host
from tests import waiting
from tests.console.fake_api import FakeApi, bundle, condition, status

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "</title><svg onload=alert(1)>",
    "{{constructor.constructor('alert(1)')()}}",
    "\u202eevil\u0000\x1b[31m",
    "' OR 1=1 --",
]


def token(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2lnbmF0dXJl"


async def authenticate(authorization: str | None) -> Viewer:
    if authorization != f"Bearer {token(exp=4_000_000_000)}":
        raise Refused(HTTPStatus.UNAUTHORIZED, "the token has expired; get a new one")
    return Viewer(user="ada", role="read")


@asynccontextmanager
async def opened(api: FakeApi, gate: Gate | None = None, *, base: str = "") -> AsyncIterator[tuple[Any, Console]]:
    options = ConsoleOptions(client=api.client(), description="test", gate=gate or Gate(allows_host=loopback_host))
    async with options.client, console(options) as running:
        transport = httpx.ASGITransport(running.app(base))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8088") as browser:
            if gate is None:
                running.collector.want()
                await waiting.until(lambda: running.picture.source.is_complete, what="the picture")
            yield browser, running


async def test_every_response_has_the_policy_and_no_page_has_inline_code() -> None:
    async with opened(FakeApi([bundle(1)])) as (browser, _):
        for path in ("/", "/static/main.js", "/static/nothing.js", "/api/fleet", "/api/works/none", "/nowhere"):
            response = await browser.get(path)
            assert response.headers["content-security-policy"] == assets.POLICY, path
            assert response.headers["x-content-type-options"] == "nosniff", path
        page = (await browser.get("/")).text
        assert "unsafe" not in assets.POLICY
        assert "<style" not in page
        assert " style=" not in page
        assert " on" not in page.replace(" only", "")
        assert page.count("<script") == page.count('<script type="module" src="static/')
        assert (await browser.get("/api/fleet")).headers["cache-control"] == "no-store"


async def test_no_script_builds_html_from_text() -> None:
    for name, asset in assets.assets().items():
        text = asset.content.decode()
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "http://",
        ):
            assert name == "icon.svg" or word not in text, (name, word)
        assert text.count("\n") < 400, name


async def test_unchanged_files_are_not_sent_again() -> None:
    async with opened(FakeApi()) as (browser, _):
        first = await browser.get("/static/console.css")
        again = await browser.get("/static/console.css", headers={"If-None-Match": first.headers["etag"]})
        assert (first.status_code, again.status_code) == (200, 304)


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:8088", "127.0.0.1.attacker.example"])
async def test_rebound_name_is_refused(host: str) -> None:
    async with opened(FakeApi()) as (browser, _):
        response = await browser.get("/api/fleet", headers={"Host": host})
        assert response.status_code == HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    ("name", "expected"),
    [("localhost", True), ("127.0.0.1", True), ("::1", True), ("a.localhost", True), ("10.0.0.1", False), ("", False)],
)
def test_loopback_names(name: str, expected: bool) -> None:
    assert is_loopback(name) is expected


async def test_page_of_another_site_reads_and_changes_nothing() -> None:
    async with opened(FakeApi()) as (browser, _):
        cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
        assert (await browser.get("/api/fleet", headers=cross)).status_code == 403
        navigation = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert (await browser.get("/", headers=navigation)).status_code == 200


SIGN_IN = {CSRF_HEADER: "1", "Origin": "http://localhost:8088", "Content-Type": "application/json"}


async def test_token_becomes_a_session_that_scripts_cannot_read() -> None:
    gate = Gate(allows_host=loopback_host, authenticate=authenticate)
    async with opened(FakeApi([bundle(1)]), gate, base="/console") as (browser, running):
        assert (await browser.get("/console/api/fleet")).status_code == 401
        session = (await browser.get("/console/api/session")).json()
        assert (session["isSignedIn"], session["needsLogin"]) == (False, True)
        assert not running.picture.source.is_complete, "nothing is read for somebody without a token"
        body = {"token": token(exp=4_000_000_000)}
        response = await browser.post("/console/api/session", json=body, headers=SIGN_IN)
        assert response.json()["user"] == "ada"
        cookie = response.headers["set-cookie"].lower()
        assert cookie.startswith(COOKIE)
        for part in ("httponly", "samesite=strict", "path=/console", "max-age=28800"):
            assert part in cookie, cookie
        assert (await browser.get("/console/api/fleet")).status_code == 200
        assert (await browser.delete("/console/api/session", headers=SIGN_IN)).status_code == 200
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_session_ends_with_its_token() -> None:
    gate = Gate(allows_host=loopback_host, authenticate=authenticate)
    async with opened(FakeApi(), gate) as (browser, _):
        response = await browser.get("/api/fleet", headers={"Cookie": f"{COOKIE}={token(exp=1)}"})
        assert response.status_code == 401
        assert "expired" in response.json()["error"]


@pytest.mark.parametrize(
    ("headers", "body", "status_code"),
    [
        pytest.param({"Origin": "http://localhost:8088"}, b'{"token": "x"}', 403, id="no-header"),
        pytest.param({CSRF_HEADER: "1", "Origin": "https://evil.example"}, b'{"token": "x"}', 403, id="origin"),
        pytest.param({**SIGN_IN, "Origin": "null"}, b'{"token": "x"}', 403, id="sandboxed"),
        pytest.param({**SIGN_IN, "Origin": ""}, b'{"token": "x"}', 403, id="empty-origin"),
        pytest.param({**SIGN_IN, "Origin": "http://localhost:8089"}, b'{"token": "x"}', 403, id="other-port"),
        pytest.param({**SIGN_IN, "Origin": "http://localhost"}, b'{"token": "x"}', 403, id="no-port"),
        pytest.param({**SIGN_IN, "Origin": "ftp://localhost:8088"}, b'{"token": "x"}', 403, id="other-scheme"),
        pytest.param({**SIGN_IN, "Content-Type": "text/plain"}, b'{"token": "x"}', 415, id="plain-text"),
        pytest.param({**SIGN_IN, "Content-Type": ""}, b'{"token": "x"}', 415, id="no-type"),
        pytest.param({**SIGN_IN, "Content-Type": "application/x-www-form-urlencoded"}, b"token=x", 415, id="form-type"),
        pytest.param(SIGN_IN, b"token=x", 400, id="form"),
        pytest.param(SIGN_IN, b'{"token": "a b"}', 400, id="spaces"),
        pytest.param(SIGN_IN, b'{"token": "a;path=/"}', 400, id="cookie-syntax"),
        pytest.param(SIGN_IN, b'{"token": "' + b"x" * 10_000 + b'"}', 413, id="too-long"),
        pytest.param(SIGN_IN, b'{"token": "wrong"}', 401, id="wrong"),
    ],
)
async def test_bad_sign_in_is_refused(headers: dict[str, str], body: bytes, status_code: int) -> None:
    gate = Gate(allows_host=loopback_host, authenticate=authenticate)
    async with opened(FakeApi(), gate) as (browser, _):
        response = await browser.post("/api/session", content=body, headers=headers)
        assert response.status_code == status_code, response.text
        assert "set-cookie" not in response.headers


@pytest.mark.long
async def test_role_is_not_known_before_something_was_read_with_the_token() -> None:
    api = FakeApi([bundle(1)])
    api.is_down = True
    gate = Gate(allows_host=loopback_host)
    async with opened(api, gate) as (browser, running):
        running.collector.want()
        await waiting.until(lambda: running.picture.source.problem, what="the problem")
        for path in ("/api/session", "/api/fleet"):
            page = (await browser.get(path)).json()
            assert page.get("actions", page)["role"] == "", path
        api.is_down = False
        await waiting.until(lambda: running.picture.source.is_complete, what="the picture")
        await waiting.until(lambda: not running.picture.source.problem, what="the end of the problem")
        assert (await browser.get("/api/session")).json()["role"] == "admin"


async def test_name_of_a_user_cannot_reorder_or_forge_text() -> None:
    async def odd(_: str | None) -> Viewer:
        return Viewer(user="ada\n\x1b[31m\u202e", role="read")

    gate = Gate(allows_host=loopback_host, authenticate=odd)
    async with opened(FakeApi(), gate) as (browser, _):
        session = (await browser.get("/api/session", headers={"Authorization": "Bearer x"})).json()
        assert session["user"] == "ada\\n\\x1b[31m\\u202e"


async def test_head_of_the_stream_takes_no_place() -> None:
    async with opened(FakeApi()) as (browser, running):
        for _ in range(70):
            response = await asyncio.wait_for(browser.head("/api/stream"), 10)
            assert (response.status_code, response.content) == (200, b"")
        assert running._streams == 0


async def test_page_without_tls_cannot_change_anything_by_https() -> None:
    async with opened(FakeApi()) as (_, running):
        transport = httpx.ASGITransport(running.app())
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost:8088") as browser:
            for origin, status_code in (("http://localhost:8088", 403), ("https://localhost:8088", 409)):
                headers = {**SIGN_IN, "Origin": origin}
                response = await browser.post("/api/session", content=b'{"token": "x"}', headers=headers)
                assert response.status_code == status_code, response.text


async def test_token_is_not_taken_without_tls_from_another_host() -> None:
    gate = Gate(allows_host=lambda _: True, authenticate=authenticate)
    async with opened(FakeApi(), gate) as (browser, _):
        host = "maestro.internal:8000"
        headers = {CSRF_HEADER: "1", "Host": host}
        body = {"token": token(exp=4_000_000_000)}
        plain = await browser.post("/api/session", json=body, headers={**headers, "Origin": f"http://{host}"})
        assert (plain.status_code, "https" in plain.json()["error"]) == (400, True)
        secure = await browser.post("/api/session", json=body, headers={**headers, "Origin": f"https://{host}"})
        assert "secure" in secure.headers["set-cookie"].lower()


async def test_hostile_names_come_back_as_text() -> None:
    works = [
        bundle(
            number,
            consumer_name=name,
            metadata={"name": name, "labels": {name: name}},
            status=status(1, [condition("Applied", ok=False, message=name)]),
        )
        for number, name in enumerate(HOSTILE)
    ]
    async with opened(FakeApi(works)) as (browser, _):
        for path in ("/api/fleet", "/api/consumers", "/api/works", "/api/stuck", "/api/works/id-0000000"):
            response = await browser.get(path)
            assert response.status_code == 200, response.text
            assert response.headers["content-type"] == "application/json"
            assert "\x1b" not in response.text
        listed = (await browser.get("/api/works")).json()["items"]
        assert {item["name"] for item in listed} == set(HOSTILE)


@pytest.mark.parametrize("work_id", ["../../etc/passwd", "%00", "x" * 2000, "<script>"])
async def test_odd_identifiers_are_not_found_with_words(work_id: str) -> None:
    async with opened(FakeApi([bundle(1)])) as (browser, _):
        response = await browser.get(f"/api/works/{work_id.replace('/', '%2F')}")
        assert response.status_code in (400, 404, 502)
        assert response.json()["error"]


async def test_windows_of_many_works() -> None:
    async with opened(FakeApi(bundle(number) for number in range(1200))) as (browser, _):
        page = (await browser.get("/api/works?offset=1150&limit=100&sort=name")).json()
        assert (page["total"], len(page["items"])) == (1200, 50)
        page = (await browser.get("/api/works?q=label:team=team3")).json()
        assert (page["all"], page["total"]) == (1200, 171)
        for query, says in (("limit=501", "limit"), ("offset=-1", "offset"), ("sort=x", "sort"), ("q=age:x", "age")):
            response = await browser.get(f"/api/works?{query}")
            assert response.status_code == 400
            assert says in response.json()["error"]


async def test_filter_by_source_asks_the_api() -> None:
    works = [bundle(1, source="adapter"), bundle(2)]
    async with opened(FakeApi(works)) as (browser, _):
        page = (await browser.get("/api/works?q=source:adapter")).json()
        assert [item["id"] for item in page["items"]] == ["id-0000001"]


async def test_work_page_has_hops_history_and_commands() -> None:
    api = FakeApi([bundle(1, version=2)])
    api.history("work.created", "id-0000001", version=1, source="adapter", detail={"objects": ["ConfigMap default/cm"]})
    api.history("work.updated", "id-0000001", version=2, source="adapter", detail={"changes": ["~ data.a"]})
    async with opened(api) as (browser, _):
        page = (await browser.get("/api/works/id-0000001")).json()
        assert page["work"]["code"] == "MW-004"
        assert [hop["hop"] for hop in page["hops"] if hop["isStop"]] == ["agent"]
        assert [entry["kind"] for entry in page["history"]] == ["work.created", "work.updated"]
        assert [one["version"] for one in page["versions"]] == [1, 2]
        assert page["commands"][0] == "maestro trace work --resource-id id-0000001"
        manifest = (await browser.get("/api/works/id-0000001/manifests/0")).json()
        assert "kind: ConfigMap" in manifest["text"]
        assert (await browser.get("/api/works/id-0000001/manifests/7")).status_code == 404


async def test_two_megabytes_of_manifest_are_shown_from_the_beginning() -> None:
    large = {"kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"blob": "x" * (2 << 20)}}
    async with opened(FakeApi([bundle(1, manifests=[large])])) as (browser, _):
        page = await browser.get("/api/works/id-0000001")
        assert len(page.content) < 50_000
        manifest = (await browser.get("/api/works/id-0000001/manifests/0")).json()
        assert manifest["isCut"]


async def test_every_code_of_the_catalogue_is_explained() -> None:
    async with opened(FakeApi()) as (browser, _):
        codes = (await browser.get("/api/codes")).json()["items"]
        assert len(codes) > 100
        assert all(one["title"] and one["cause"] for one in codes)


async def test_stream_tells_of_changes() -> None:
    api = FakeApi([bundle(1)])
    async with opened(api) as (_, running):
        events = running._events(None)  # type: ignore[arg-type]  # without a login nothing of the request is read
        first = orjson.loads((await anext(events)).removeprefix(b"data: "))
        api.bundles["id-0000001"]["version"] = 2
        api.history("work.updated", "id-0000001", version=2)
        second = orjson.loads((await anext(events)).removeprefix(b"data: "))
        assert second["generation"] > first["generation"]
        await events.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert running._streams == 0
