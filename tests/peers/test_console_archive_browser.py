"""An archive in a real browser: the banner on every page, ages of the collection, and hostile texts as text."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maestropy.console.archived import archived
from maestropy.console.serve import listening
from maestropy.diagnose import archive
from tests.console.test_app import HOSTILE
from tests.console.test_archived import about, incident
from tests.peers import axe
from tests.peers.browser import Page, browser, program
from tests.peers.test_console_browser import go, loaded
from tests.unit.diagnose.archives import lines, of_files, row

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]
PAGES = ("#/fleet", "#/works", "#/work/id-2", "#/requests", "#/stuck", "#/explain")


@contextlib.asynccontextmanager
async def opened(path: Path, folder: Path) -> AsyncIterator[tuple[Page, str]]:
    (folder / "unpacked").mkdir()
    with archive.opened(path, folder=folder / "unpacked") as unpacked:
        async with (
            archived(unpacked) as running,
            listening(running, port=0) as address,
            browser(folder, width=1440) as page,
        ):
            yield page, address


async def test_every_page_says_that_it_is_an_archive(tmp_path: Path) -> None:
    source = axe.script()
    async with opened(incident(tmp_path / "incident.tar.zst"), tmp_path) as (page, address):
        await loaded(page, address, works=2)
        for fragment in PAGES:
            await go(page, fragment)
            banner = str(await page.run("document.getElementById('archive').innerText"))
            assert "This is the archive incident.tar.zst, collected at 2026-08-20 11:00:00Z." in banner
            assert "Not, or not wholly, collected: 2." in banner
            assert source is None or await axe.violations(page, source) == [], fragment
        assert await page.run("document.getElementById('connection').textContent") == "Archive"
        await go(page, "#/work/id-2")
        # An hour before the collection, whatever the clock of the browser says.
        assert "(1 h 0 min before)" in str(await page.run("document.querySelector('.facts').innerText"))
        assert await page.run("document.querySelectorAll('#view form').length") == 0
        await go(page, "#/requests")
        assert "this archive holds none" in str(await page.run("document.getElementById('view').innerText"))
        assert page.errors == []


async def test_hostile_archive_is_shown_as_text(tmp_path: Path) -> None:
    rows = []
    for number, text in enumerate(HOSTILE):
        work = row(number, applied="False", message=text)
        work["consumer_name"], work["payload"]["metadata"] = text, {"name": text, "labels": {text: text}}
        rows.append(work)
    told = about(**{f"section{number}": ("failed", text) for number, text in enumerate(HOSTILE)})
    path = of_files(
        tmp_path / "<img src=x onerror=alert(1)>.tar.zst", {"database/rows.jsonl": lines(*rows)}, about=told
    )
    async with opened(path, tmp_path) as (page, address):
        await page.ask(
            "Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.attacked = true; };"
        )
        await loaded(page, address, works=len(HOSTILE))
        for fragment in (*PAGES, "#/work/id-0", "#/work/id-1"):
            await go(page, fragment)
            assert await page.run("window.attacked === undefined"), fragment
            assert await page.run("document.querySelectorAll('script:not([src]), img, iframe, svg').length") == 0
        assert page.errors == []
