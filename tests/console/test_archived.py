"""The console over archives: the pages of a live one, what is absent is named, and hostile archives stay harmless."""

import json
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from maestropy.console.app import Console
from maestropy.console.archived import archived
from maestropy.diagnose import archive, manifest
from maestropy.trace.logs.read.inputs import archives
from tests.console.test_app import HOSTILE
from tests.trace_request_logs import LoggedRequest, write
from tests.unit.diagnose.archives import NOW, lines, of_files, packed, row

PAGES = ("session", "fleet", "consumers", "works", "stuck", "requests", "codes")
BROKEN = row(2, consumer="c2", applied="False", message="quota exceeded")
HISTORY = (
    {"trace": "history", "id": "h3", "time": "2026-08-20T10:59:00+00:00", "kind": "agent.disconnected",
     "subject_id": "x", "consumer_name": "c2", "version": 0, "detail": {}},
    {"trace": "history", "id": "h2", "time": "2026-08-20T10:58:00+00:00", "kind": "work.status", "subject_id": "id-1",
     "consumer_name": "c1", "source": "s", "version": 1, "detail": {"observed_version": 1}},
    {"trace": "history", "id": "h1", "time": "2026-08-20T10:57:58+00:00", "kind": "work.created", "subject_id": "id-1",
     "consumer_name": "c1", "source": "s", "version": 1, "user": "ada", "detail": {"objects": ["ConfigMap d/cm-1"]}},
)  # fmt: skip


@asynccontextmanager
async def opened(path: Path, tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Console]]:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    with archive.opened(path, folder=folder) as unpacked:
        async with archived(unpacked) as running:
            transport = httpx.ASGITransport(running.app())
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8088") as browser:
                yield browser, running


async def page(browser: httpx.AsyncClient, path: str) -> Any:
    response = await browser.get(f"/api/{path}")
    assert response.status_code == 200, (path, response.text)
    return response.json()


def about(**sections: tuple[manifest.State, str]) -> manifest.Manifest:
    listed = [manifest.Section(name=name, state=state, reason=reason) for name, (state, reason) in sections.items()]
    return manifest.Manifest(version="0.2.0", collected_at=NOW, sections=listed)


def incident(target: Path, logs: Mapping[str, bytes | str] | None = None) -> Path:
    files = {
        "database/rows.jsonl": lines(row(), BROKEN),
        "database/consumers.jsonl": lines({"trace": "consumer", "id": "1", "name": "c3", "labels": {"region": "eu"}}),
        "database/history.jsonl": lines(*HISTORY),
        **(logs or {}),
    }
    collected = about(works=("collected", ""), broker=("skipped", "no configuration"), database=("failed", "denied"))
    return of_files(target, files, about=collected)


async def test_pages_show_what_the_archive_holds_with_the_ages_of_the_collection(tmp_path: Path) -> None:
    async with opened(incident(tmp_path / "incident.tar.zst"), tmp_path) as (browser, _):
        who = await page(browser, "session")
        assert who["archive"] == {
            "name": "incident.tar.zst",
            "collectedAt": "2026-08-20T11:00:00.000Z",
            "missing": ["broker (not collected): no configuration", "database (failed): denied"],
            "isAnonymised": False,
        }
        fleet = await page(browser, "fleet")
        assert fleet["now"] == "2026-08-20T11:00:00.000Z"
        assert fleet["totals"] == {"works": 2, "consumers": 3, "healthy": 1, "warnings": 0, "errors": 1,
                                   "agentsConnected": 0, "agentsAway": 1, "agentsNever": 1,
                                   "agentsUnknown": 1}  # fmt: skip
        assert [item["code"] for item in fleet["problems"]] == ["MT-301", "MW-005"]
        assert fleet["rates"]["isKnown"]
        assert fleet["rates"]["p50Ms"] == 2000.0
        assert [item["name"] for item in (await page(browser, "works?q=source:s"))["items"]] == ["work-2", "work-1"]
        assert (await page(browser, "works?q=age:>59m"))["total"] == 2
        assert (await page(browser, "works?q=age:>61m"))["total"] == 0
        stuck = await page(browser, "stuck")
        assert [group["kind"] for group in stuck["groups"]] == ["unapplied"]


async def test_page_of_a_work_has_verdict_history_and_only_offline_commands(tmp_path: Path) -> None:
    path = incident(tmp_path / "it's.tar.zst")
    async with opened(path, tmp_path) as (browser, _):
        healthy, broken = await page(browser, "works/id-1"), await page(browser, "works/id-2")
        assert [entry["kind"] for entry in healthy["history"]] == ["work.status", "work.created"]
        assert healthy["history"][1]["by"] == "ada"
        assert broken["work"]["code"] == "MW-005"
        assert not broken["work"]["clustersRead"]
        assert "quota exceeded" in json.dumps(broken["work"]["findings"])
        quoted = f"'{tmp_path}/it'\"'\"'s.tar.zst'"
        assert broken["commands"] == [
            f"maestro trace request --resource-id id-2 {quoted}",
            f"maestro diagnose analyze {quoted}",
        ]
        text = await page(browser, "works/id-1/manifests/0")
        assert "cm-1" in text["text"]
        for absent in ("works/none", "works/none/manifests/0", "works/id-1/manifests/9"):
            assert (await browser.get(f"/api/{absent}")).status_code == 404


async def test_requests_come_from_the_logs_of_the_archive(tmp_path: Path) -> None:
    story = LoggedRequest(work="nginx")
    logs = write(tmp_path / "logs", [story])
    files = {f"logs/{path.relative_to(logs)}": path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    async with opened(incident(tmp_path / "a.tar.zst", files), tmp_path) as (browser, running):
        listed = await page(browser, "requests")
        assert listed["hasLogs"]
        assert not listed["problem"]
        assert [(item["workName"], item["verdict"]) for item in listed["items"]] == [("nginx", "complete")]
        whole = await page(browser, f"requests/{listed['items'][0]['name']}")
        assert [stage["state"] for stage in whole["stages"]] == ["ok"] * 9
        # Where it is unpacked is of no use to a reader.
        assert str(tmp_path / "unpacked") not in json.dumps(whole)
        assert running.picture.source.is_complete


async def test_what_is_absent_is_said_and_never_looks_healthy(tmp_path: Path) -> None:
    path = of_files(tmp_path / "a.tar.zst", {"collector.jsonl": lines({"trace": "collector"})}, about=about(
        works=("failed", "no database and no REST API; give --db-dsn or --rest-url"),
    ))  # fmt: skip
    async with opened(path, tmp_path) as (browser, _):
        fleet = await page(browser, "fleet")
        assert fleet["totals"]["works"] == 0
        assert not fleet["rates"]["isKnown"]
        missing = fleet["source"]["archive"]["missing"]
        assert missing[0] == "works (failed): no database and no REST API; give --db-dsn or --rest-url"
        assert not (await page(browser, "requests"))["hasLogs"]


async def test_archive_without_manifest_cut_or_newer_opens_as_far_as_it_goes(tmp_path: Path) -> None:
    bare = packed(tmp_path / "a.tar.zst", [(tarfile.TarInfo("database/rows.jsonl"), lines(row()).encode())])
    async with opened(bare, tmp_path) as (browser, _):
        fleet = await page(browser, "fleet")
        assert fleet["totals"]["works"] == 1
        assert (
            "what was collected: the archive has no manifest that can be read" in fleet["source"]["archive"]["missing"]
        )
        assert (await page(browser, "works/id-1"))["historyProblem"] == (
            "The archive holds no history: it was not collected."
        )


async def test_hostile_names_are_escaped_and_pages_keep_their_policy(tmp_path: Path) -> None:
    rows = []
    for number, text in enumerate(HOSTILE):
        work = row(number, applied="False", message=text)
        work["consumer_name"] = text
        work["payload"]["metadata"] = {"name": text, "labels": {text: text}}
        rows.append(work)
    entries = [{**HISTORY[0], "id": text, "consumer_name": text, "address": text} for text in HOSTILE]
    hostile = about(**{f"section{number}": ("failed", text) for number, text in enumerate(HOSTILE)})
    files = {"database/rows.jsonl": lines(*rows), "database/history.jsonl": lines(*entries)}
    async with opened(of_files(tmp_path / "<img>.tar.zst", files, about=hostile), tmp_path) as (browser, _):
        for name in (*PAGES, *(f"works/id-{number}" for number in range(len(HOSTILE)))):
            response = await browser.get(f"/api/{name}")
            assert response.status_code == 200, (name, response.text)
            assert response.headers["content-type"] == "application/json"
            assert "script-src 'self'" in response.headers["content-security-policy"]
        shown = (await browser.get("/api/session")).text
        assert "\\u001b" not in shown
        assert "\u202e" not in shown


@pytest.mark.parametrize(
    "work",
    [
        {"id": "x", "consumer_name": "c", "payload": {"metadata": [], "data": {"manifests": "all"}}, "status": []},
        {"id": ["x"], "consumer_name": {"a": 1}, "payload": {}},
        {"id": "x", "consumer_name": "c", "version": 1e308, "payload": {"metadata": {"name": 7, "labels": [1]}}},
        {"id": "x", "consumer_name": "c", "payload": {"data": {"manifests": [None, 3, {"kind": []}]}}},
        {"id": "x", "consumer_name": "c", "payload": {}, "deleted_at": "9999-12-31T23:59:59+00:00"},
        {"id": "x", "consumer_name": "c", "payload": {}, "created_at": "0001-01-01T00:00:00+23:00"},
    ],
    ids=["wrong-types", "id-is-a-list", "huge-version", "odd-manifests", "far-future", "before-time"],
)
async def test_works_that_nobody_collects_do_no_harm(tmp_path: Path, work: dict[str, Any]) -> None:
    entries: list[dict[str, Any]] = [
        {"id": "1", "time": "soon", "kind": "work.created", "resource_id": "x", "version": "many"},
        {"id": "2", "time": 7, "kind": "work.updated", "resource_id": "x", "version": 2,
         "detail": {"changes": "<b>", "conditions": {"a": 1}}},
    ]  # fmt: skip
    files = {"database/rows.jsonl": lines(work, row()), "server/history.jsonl": lines(*entries)}
    async with opened(of_files(tmp_path / "a.tar.zst", files), tmp_path) as (browser, _):
        for name in PAGES:
            await page(browser, name)
        assert "work-1" in {item["name"] for item in (await page(browser, "works"))["items"]}
        assert (await browser.get("/api/works/x")).status_code in (200, 404, 502)
        assert (await browser.get("/api/works/id-1")).status_code == 200


@pytest.mark.parametrize(
    "collected", ["", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "<script>"],
    ids=["absent", "year-1", "year-9999", "text"],
)  # fmt: skip
async def test_any_time_of_collection_can_be_counted_from(tmp_path: Path, collected: str) -> None:
    whole = manifest.Manifest(version="0.2.0", collected_at=collected)
    path = of_files(tmp_path / "a.tar.zst", {"database/rows.jsonl": lines(row(), BROKEN)}, about=whole)
    async with opened(path, tmp_path) as (browser, _):
        for name in (*PAGES, "works/id-2"):
            await page(browser, name)


async def test_traversal_links_and_bombs_write_nothing_outside(tmp_path: Path) -> None:
    link = tarfile.TarInfo("database/link.jsonl")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members = [
        (tarfile.TarInfo("../outside.jsonl"), b"{}"),
        (tarfile.TarInfo("/tmp/absolute.jsonl"), b"{}"),
        (link, b""),
        (tarfile.TarInfo("database/rows.jsonl"), lines(row()).encode()),
    ]
    async with opened(packed(tmp_path / "a.tar.zst", members), tmp_path) as (browser, _):
        missing = (await page(browser, "session"))["archive"]["missing"]
        assert sum("is left out" in text for text in missing) == 2
        assert not (tmp_path / "unpacked" / "database" / "link.jsonl").exists()
        for path in ("/static/..%2f..%2fapp.py", "/../manifest.json", "/database/rows.jsonl", "/static/rows.jsonl"):
            assert (await browser.get(path)).status_code == 404
    assert not (tmp_path / "outside.jsonl").exists()


async def test_bomb_is_read_up_to_the_limit_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_INFLATED_BYTES", 1 << 20)
    members = [
        (tarfile.TarInfo("database/rows.jsonl"), lines(row()).encode()),
        (tarfile.TarInfo("logs/a.log"), bytes(8 << 20)),
    ]
    async with opened(packed(tmp_path / "a.tar.zst", members), tmp_path) as (browser, _):
        missing = (await page(browser, "session"))["archive"]["missing"]
        assert any("the rest is not read" in text and "inflates to more than" in text for text in missing)
        assert (await page(browser, "fleet"))["totals"]["works"] == 1
    assert sum(path.stat().st_size for path in (tmp_path / "unpacked").rglob("*.log")) < 3 << 20


async def test_nothing_can_be_changed_and_other_hosts_are_refused(tmp_path: Path) -> None:
    async with opened(incident(tmp_path / "a.tar.zst"), tmp_path) as (browser, _):
        for name in ("fleet", "works", "works/id-1", "stuck"):
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                assert (await browser.request(method, f"/api/{name}")).status_code == 405
        assert (await browser.get("/api/fleet", headers={"host": "evil.example"})).status_code in (400, 403, 421)
