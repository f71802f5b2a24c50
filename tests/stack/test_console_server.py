"""The console inside a real server: the same login and roles as REST, and a picture that follows the database."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.work import Work
from tests import waiting
from tests.stack import harness
from tests.stack.test_secure_tokens import public_jwk, signed

_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}


@pytest.mark.long
async def test_console_shows_what_the_server_stores(tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)
    async with (
        place.run("--enable-console") as server,
        AsyncMaestro(environ={}, api_url=server.rest, grpc_url=server.sources, source="test") as client,
        httpx.AsyncClient(base_url=server.rest, verify=False) as browser,
    ):
        assert (await browser.get("/console")).headers["location"] == "/console/"
        assert "static/main.js" in (await browser.get("/console/")).text
        assert (await browser.get("/console/api/session")).json()["needsLogin"] is False
        await server.add_consumer("cluster1")
        await client.works("cluster1").apply(Work("hello").add(_CONFIG_MAP))

        async def works() -> list[dict[str, Any]]:
            page = (await browser.get("/console/api/works", params={"q": "source:test"})).json()
            return list(page["items"])

        shown = (await waiting.until(works, what="the work"))[0]
        assert (shown["name"], shown["code"], shown["consumer"]) == ("hello", "MW-002", "cluster1")
        page = (await browser.get(f"/console/api/works/{shown['id']}")).json()
        assert page["work"]["source"] == "test"
        assert [entry["kind"] for entry in page["history"]] == ["work.created"]
        await client.resource_bundles.delete(shown["id"])

        async def is_deleting() -> bool:
            return any(item["deleted"] for item in await works())

        await waiting.until(is_deleting, what="the deletion")
        for path in ("/consoles", "/console/api/nothing", "/api/maestro/v1/console"):
            assert (await browser.get(path)).status_code == 404, path


@pytest.mark.long
async def test_console_has_the_login_and_the_roles_of_rest(tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [public_jwk()]}))
    flags = ("--enable-console", "--rest-authn-type=jwt", f"--jwks-file={keys}", "--jwt-source-claim=sources")
    place = harness.Place(folder=tmp_path)
    async with place.run(*flags) as server, httpx.AsyncClient(base_url=server.rest, verify=False) as browser:
        origin = {"Origin": server.rest, "X-Maestro-Console": "1"}

        async def sign_in(token: str) -> httpx.Response:
            return await browser.post("/console/api/session", json={"token": token}, headers=origin)

        assert (await browser.get("/console/")).status_code == 200
        assert (await browser.get("/console/api/fleet")).status_code == 401
        for token, status, says in (
            (signed(key=None, algorithm="none"), 401, "algorithm"),
            (signed(exp=1), 401, "expired"),
            (signed(roles=[]), 403, "role read"),
            (signed(), 403, "limited to some"),
        ):
            refused = await sign_in(token)
            assert refused.status_code == status, refused.text
            assert says in refused.json()["error"]
        # Refused sign-ins are in the history, with their reasons and without the tokens.
        admin = {"Authorization": f"Bearer {signed(sources=['*'], roles=['maestro-admin'])}"}

        async def refusals() -> list[dict[str, Any]]:
            page = await browser.get("/api/maestro/v1/history", params={"kind": "request.refused"}, headers=admin)
            found = [item for item in page.json()["items"] if "/console/" in item["detail"]["request"]]
            return found if len(found) == 4 else []

        recorded = await waiting.until(refusals, what="the entries of the refused sign-ins")
        assert {(entry["detail"]["request"], entry["result"], entry["address"]) for entry in recorded} == {
            ("POST /console/api/session", "denied", "127.0.0.1")
        }
        for entry, says in zip(recorded, ("algorithm", "expired", "role read", "limited to some"), strict=True):
            assert says in entry["detail"]["reason"]
        accepted = await sign_in(signed(sources=["*"]))
        assert accepted.json()["user"] == "alice"
        assert accepted.json()["role"] == "read"
        assert (await browser.get("/console/api/fleet")).status_code == 200
        # The cookie is the console's own: REST and its writes do not take it.
        assert (await browser.get("/api/maestro/v1/consumers")).status_code == 401
        assert (await browser.post("/api/maestro/v1/consumers", json={"name": "x"})).status_code == 401
        assert (await browser.delete("/console/api/session", headers=origin)).status_code == 200
        assert (await browser.get("/console/api/fleet")).status_code == 401


@pytest.mark.long
async def test_action_is_that_of_the_viewer_and_the_history_names_the_person(tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [public_jwk()]}))
    flags = ("--enable-console", "--rest-authn-type=jwt", f"--jwks-file={keys}")
    place = harness.Place(folder=tmp_path)
    async with place.run(*flags) as server, httpx.AsyncClient(base_url=server.rest, verify=False) as browser:
        rest = "/api/maestro/v1"
        admin = {"Authorization": f"Bearer {signed(sub='ada', roles=['maestro-admin'])}"}
        await browser.post(f"{rest}/consumers", json={"name": "cluster1"}, headers=admin)
        origin = {"Origin": server.rest, "X-Maestro-Console": "1"}
        asked = {"action": "pause", "target": "cluster1", "reason": "node upgrade"}

        async def act(path: str, **claims: Any) -> httpx.Response:
            body = {"token": signed(**claims)}
            assert (await browser.post("/console/api/session", json=body, headers=origin)).status_code == 200
            return await browser.post(f"/console/api/{path}", json=asked, headers=origin)

        refused = await act("actions", sub="eve", roles=["maestro-read"])
        assert (refused.status_code, "needs the role admin, and you have read" in refused.text) == (403, True)
        assert (await act("actions/plan", sub="eve", roles=["maestro-read"])).status_code == 403

        async def refusals() -> list[dict[str, Any]]:
            page = await browser.get(f"{rest}/history", params={"kind": "request.refused"}, headers=admin)
            found = list(page.json()["items"])
            return found if len(found) == 2 else []

        for entry in await waiting.until(refusals, what="the entries of both refusals"):
            assert (entry["user"], entry["address"], entry["result"]) == ("eve", "127.0.0.1", "denied")
            assert entry["detail"]["request"] == "POST /api/maestro/v1/consumers/-/pause"
        planned = await act("actions/plan", sub="ada", roles=["maestro-admin"])
        assert planned.json()["effects"][0].startswith("Send no specs and no deletions to consumer cluster1")
        # Without the header of the console's own pages the cookie of the session does nothing.
        assert (await browser.post("/console/api/actions", json=asked)).status_code == 403
        assert (await browser.get(f"{rest}/delivery-pauses", headers=admin)).json()["items"] == []
        done = (await act("actions", sub="ada", roles=["maestro-admin"])).json()
        assert (done["entry"]["kind"], done["entry"]["by"], done["entry"]["address"]) == (
            ("consumer.paused", "ada", "127.0.0.1")
        )
        assert done["entry"]["detail"] == {"reason": "node upgrade", "requested_by": "console"}
        (pause,) = (await browser.get(f"{rest}/delivery-pauses", headers=admin)).json()["items"]
        assert pause["paused_by"] == "ada from 127.0.0.1 (console)"
        for action, target, status, says in (
            ("sweep", "sweep", 200, "Nothing: every row belongs"),
            ("retire-release", "cluster1", 409, "try again when a server has been running for 10 minutes"),
            ("adopt", "cluster1", 409, "no data-safety hold"),
            ("resend", "absent", 404, "not found"),
        ):
            body = {"action": action, "target": target}
            shown = await browser.post("/console/api/actions/plan", json=body, headers=origin)
            assert (shown.status_code, says in shown.text) == (status, True), shown.text
        again = (await act("actions", sub="ada", roles=["maestro-admin"])).json()
        assert (again["isChange"], again["entry"]) == (False, None)


@pytest.mark.long
async def test_console_checks_the_host_as_rest_does(tmp_path: Path) -> None:
    async with harness.Place(folder=tmp_path).run("--enable-console") as server:
        port = int(server.rest.rpartition(":")[2])
        own = b"Host: 127.0.0.1\r\n"

        async def status(target: str, headers: bytes) -> int:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET %b HTTP/1.1\r\nConnection: close\r\n%b\r\n" % (target.encode(), headers))
            first = await asyncio.wait_for(reader.readline(), 10)
            writer.close()
            return int(first.split()[1])

        for path in ("/console/", "/console/api/fleet", "/api/maestro/v1/consumers"):
            assert await status(path, own) == 200, path
            assert await status(path, b"") == 400, path
            assert await status(path, b"Host:\r\n") == 400, path
            for hosts in (own + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + own, own + own):
                assert await status(path, hosts) == 421, (path, hosts)
            # The name of the target counts, whatever the header says.
            assert await status(f"http://evil.example{path}", own) == 421, path
            assert await status(f"http://127.0.0.1:{port}{path}", b"Host: evil.example\r\n") == 200, path


@pytest.mark.long
async def test_server_without_the_flag_has_no_console(tmp_path: Path) -> None:
    async with (
        harness.Place(folder=tmp_path).run() as server,
        httpx.AsyncClient(base_url=server.rest, verify=False) as browser,
    ):
        assert (await browser.get("/console/")).status_code == 404
