"""The site of `make docs`, opened from the disk in a real browser: search and diagrams work without a network."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.browser import browser, program

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed; run make docs"),
]
ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def site() -> Path:
    subprocess.run([sys.executable, "scripts/build_site.py"], cwd=ROOT, check=True)
    if not (SITE / "mermaid.min.js").stat().st_size or not (SITE / "iframe-worker.js").stat().st_size:
        pytest.skip("the scripts of the site come from npm, which is not installed")
    return SITE


async def test_search_and_diagrams_need_no_network(site: Path, tmp_path: Path) -> None:
    async with browser(tmp_path) as page:
        await page.ask("Page.navigate", url=f"{(site / 'on-call.html').as_uri()}?q=finalizer")
        await page.until("document.querySelectorAll('.md-search-result__item').length > 3")
        found = await page.run("document.querySelector('.md-search-result__list').innerText")
        assert "Tracing a work" in found
        # The theme replaces the text of a diagram by its picture.
        await page.until(
            "document.querySelectorAll('div.mermaid').length == 1 && !document.querySelector('pre.mermaid')"
        )
        assert await page.run("document.querySelector('div.mermaid').clientHeight") > 300
        await page.ask("Page.navigate", url=(site / "decisions" / "0007-cel.html").as_uri() + "?q=hold")
        await page.until("document.querySelectorAll('.md-search-result__item').length > 3")
        assert [address for address in page.requests if address.startswith(("http:", "https:"))] == []
