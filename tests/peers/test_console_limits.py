"""The console at its limits, in Chromium: 5,000 consumers, a manifest of 2 MB, and a slow link that loses packets."""

from pathlib import Path

import pytest

from maestropy.console.serve import ConsoleOptions, serve
from tests.console.fake_api import FakeApi, bundle
from tests.peers.browser import browser, program
from tests.peers.slow_link import slow_link
from tests.peers.test_console_browser import go, loaded, opened, sample

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]
CONSUMERS = 5000


async def test_five_thousand_consumers_are_scrolled_filtered_and_summed_up(tmp_path: Path) -> None:
    works = [bundle(number, consumer_name=f"cluster{number}", version=2) for number in range(CONSUMERS)]
    api = FakeApi(works)
    for name in api.consumers:
        api.history("agent.disconnected", "", consumer_name=name, seconds_ago=3600)
    async with opened(api, tmp_path) as (page, address):
        await loaded(page, address, works=CONSUMERS)
        await page.until("document.querySelector('.consumers').getAttribute('aria-rowcount') === '5001'")
        assert "5,000" in await page.run("document.querySelector('.problems').innerText")
        await page.run("document.querySelector('.consumers .scroll').scrollTop = 4900 * 32")
        await page.until("document.querySelector('.consumers .rows [aria-rowindex=\"4902\"] a')")
        assert await page.run("document.querySelectorAll('.consumers .rows .row').length") < 100
        await page.click(".filters input")
        await page.ask("Input.insertText", text="cluster4321")
        await page.until("document.querySelector('.consumers').getAttribute('aria-rowcount') === '2'")
        # Every consumer is a cause of its own: the page shows the largest, and says how many are left.
        await go(page, "#/stuck")
        await page.until("document.querySelector('main').innerText.includes('4,950 more causes')")
        assert await page.run("document.querySelectorAll('article').length") == 50
        assert await page.run("document.querySelectorAll('*').length") < 5000
        assert page.errors == []


async def test_manifest_of_two_megabytes_is_shown_from_the_beginning(tmp_path: Path) -> None:
    large = {"kind": "ConfigMap", "metadata": {"name": "big"}, "data": {f"key{n}": "x" * 1000 for n in range(2100)}}
    async with opened(FakeApi([bundle(1, manifests=[large])]), tmp_path) as (page, address):
        await loaded(page, address, works=1)
        await go(page, "#/work/id-0000001")
        await page.click("summary")
        await page.click("[data-key='show 0']")
        await page.until("document.querySelector('pre')?.textContent.includes('key0')")
        assert 200_000 < await page.run("document.querySelector('pre').textContent.length") < 300_000
        assert "maestro resourcebundle get id-0000001" in await page.run("document.querySelector('main').innerText")
        assert page.errors == []


async def test_slow_link_shows_everything_and_says_when_it_is_cut(tmp_path: Path) -> None:
    api = sample()
    async with api.client() as client:
        options = ConsoleOptions(client=client, description="test fleet")
        async with serve(options, port=0) as address, slow_link(int(address.split(":")[2].strip("/"))) as link:
            async with browser(tmp_path) as page:
                await page.visit(f"http://127.0.0.1:{link.port}/")
                await page.until("document.querySelector('.tile b')?.textContent === '40'")
                for fragment in ("#/works", "#/work/id-0000003", "#/stuck", "#/explain", "#/fleet"):
                    # Before the answer is there, the page says that it waits.
                    await page.run(f"location.hash = {fragment!r}")
                    assert await page.run("document.querySelector('main').innerText.trim().length > 0"), fragment
                    await page.until("document.documentElement.dataset.ready !== undefined")
                link.cut()
                await page.until("!document.querySelector('#banner').hidden")
                assert await page.run("document.querySelectorAll('.problem').length") > 0
                link.is_cut = False
                await page.until("document.querySelector('#banner').hidden")
