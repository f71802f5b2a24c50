"""The console in a real browser: incidents, accessibility, hostile names, outages, keys, sizes, and a long day.

With MAESTRO_KEEP_PICTURES=1 the screenshots of the documentation are renewed.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest

from maestropy.console import assets
from maestropy.console.serve import ConsoleOptions, serve
from maestropy.console.sessions import Gate, Refused, Viewer, loopback_host
from tests import waiting
from tests.console.fake_api import FakeApi, bundle, condition, status
from tests.console.test_app import HOSTILE, token
from tests.peers import axe, npm_packages
from tests.peers.browser import Page, browser, program

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]
PAGES = ("#/fleet", "#/works", "#/work/id-0000003", "#/requests", "#/stuck", "#/explain")
_REJECTED = status(
    1,
    [condition("Applied", ok=False, message='Deployment.apps "web" is invalid: spec.selector: field is immutable')],
)


def sample() -> FakeApi:
    """Return a fleet of 40 works, of which some are broken."""
    works = [bundle(number) for number in range(40)]
    works[3] |= {"status": _REJECTED}
    works[13] |= {"status": _REJECTED}
    works[5] |= {"version": 2}
    works[8] |= {"deleted_at": "2026-11-01T00:00:00Z"}
    api = FakeApi(works)
    for consumer in api.consumers:
        api.history("agent.connected", "", consumer_name=consumer, seconds_ago=3600)
    api.history("agent.disconnected", "", consumer_name="cluster5", seconds_ago=900)
    api.history("work.created", "id-0000003", version=1, source="adapter", seconds_ago=60)
    return api


@contextlib.asynccontextmanager
async def opened(
    api: FakeApi, folder: Path, *, width: int = 1440, gate: Gate | None = None
) -> AsyncIterator[tuple[Page, str]]:
    gate = gate or Gate(allows_host=loopback_host)
    async with api.client() as client:
        options = ConsoleOptions(client=client, description="test fleet", gate=gate)
        async with serve(options, port=0) as address, browser(folder, width=width) as page:
            yield page, address


async def go(page: Page, fragment: str) -> None:
    """Open a page by its address and wait for its data."""
    await page.run(f"delete document.documentElement.dataset.ready, location.hash = {fragment!r}")
    await page.until("document.documentElement.dataset.ready !== undefined")


async def loaded(page: Page, address: str, *, works: int) -> None:
    """Open the landing page and wait until all works are read."""
    await page.visit(address)
    await page.until(f"document.querySelector('.tile b')?.textContent === {f'{works:,}'!r}")


async def test_pages_are_accessible_in_light_and_dark(tmp_path: Path) -> None:
    source = axe.script()
    if source is None:
        pytest.skip("axe-core is not in the cache, and npm cannot get it")
    async with opened(sample(), tmp_path) as (page, address):
        await loaded(page, address, works=40)
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            for fragment in PAGES:
                await go(page, fragment)
                assert await axe.violations(page, source) == [], (scheme, fragment)
        await page.press("?")
        await page.until("document.querySelectorAll('dialog kbd').length > 5")
        assert await axe.violations(page, source) == []
        assert page.errors == []


async def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    works = [
        bundle(
            number,
            consumer_name=name,
            metadata={"name": name, "labels": {name: name}},
            manifests=[{"apiVersion": name, "kind": name, "metadata": {"name": name, "namespace": name}}],
            status=status(1, [condition("Applied", ok=False, message=name)]),
        )
        for number, name in enumerate(HOSTILE)
    ]
    async with opened(FakeApi(works), tmp_path) as (page, address):
        await page.ask(
            "Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.attacked = true; };"
        )
        await loaded(page, address, works=len(HOSTILE))
        for fragment in (*PAGES, "#/works?q=<img src=x onerror=alert(1)>", "#/explain/<script>alert(1)</script>"):
            await go(page, fragment)
            assert await page.run("window.attacked === undefined"), fragment
            assert await page.run("document.querySelectorAll('script:not([src]), img, iframe, svg').length") == 0
        await go(page, "#/work/id-0000001")
        assert await page.run("document.querySelector('h1').textContent.includes('onerror=alert(1)')")
        await page.click("summary")
        await page.click("[data-key='show 0']")
        await page.until("document.querySelector('pre')?.textContent.includes('onerror')")
        assert page.errors == []
        assert all(url.startswith(address) for url in page.requests), page.requests


async def test_policy_refuses_inline_code_and_html(tmp_path: Path) -> None:
    async with opened(sample(), tmp_path) as (page, address):
        await loaded(page, address, works=40)
        refused = await page.run(
            "(() => { try { document.body.innerHTML = '<b>x</b>'; return ''; } catch (e) { return e.name; } })()"
        )
        assert refused == "TypeError"
        await page.run("document.head.append(document.createElement('style'))")
        await page.run("document.querySelector('style').textContent = 'body { color: rgb(255, 0, 0) }'")
        assert await page.run("getComputedStyle(document.body).color !== 'rgb(255, 0, 0)'")


def test_types_of_the_scripts_are_right() -> None:
    node, package = shutil.which("node"), npm_packages.folder("typescript@5.6.3")
    if node is None or package is None:
        pytest.skip("node or typescript is not installed, and npm cannot get it")
    flags = "--noEmit --allowJs --checkJs --strict --target es2022 --module es2022 --moduleResolution bundler"
    main = Path(assets.__file__).parent / "static" / "main.js"
    command = [node, str(package / "lib" / "tsc.js"), *flags.split(), "--lib", "es2023,dom,dom.iterable", str(main)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize("width", [360, 768, 1440, 3840])
async def test_no_page_is_wider_than_the_screen(tmp_path: Path, width: int) -> None:
    async with opened(sample(), tmp_path, width=width) as (page, address):
        await loaded(page, address, works=40)
        for fragment in PAGES:
            await go(page, fragment)
            # A late read of the page before may have said that its data is there.
            await page.until("document.querySelector('main').innerText.length > 20")
            assert await page.run("document.documentElement.scrollWidth <= innerWidth"), fragment


async def test_keys_lead_everywhere(tmp_path: Path) -> None:
    async with opened(sample(), tmp_path) as (page, address):
        await loaded(page, address, works=40)
        await page.press("2")
        await page.until("location.hash === '#/works' && document.querySelector('.works .rows a')")
        await page.press("/")
        assert await page.run("document.activeElement.matches('[data-search]')")
        await page.ask("Input.insertText", text="code:MW-005")
        # Before the rows of the filter are read: the keys count when they are.
        await page.press("Enter", "j", "Enter")
        await page.until("location.hash.startsWith('#/work/') && document.querySelector('[data-stop]')")
        assert await page.run("document.querySelector('[data-stop]').dataset.hop") == "cluster"
        await page.press("b")
        await page.until("location.hash.startsWith('#/works')")
        await page.press("5")
        await page.until("location.hash === '#/explain' && document.querySelectorAll('details').length > 100")
        assert page.errors == []


async def test_outage_of_the_api_is_said_and_the_rows_stay(tmp_path: Path) -> None:
    api = sample()
    async with opened(api, tmp_path) as (page, address):
        await loaded(page, address, works=40)
        await go(page, "#/works")
        await page.until("document.querySelectorAll('.works .rows a').length > 5")
        api.is_down = True
        await page.until("!document.querySelector('#banner').hidden")
        assert "connection refused" in await page.run("document.querySelector('#banner').textContent")
        assert await page.run("document.querySelectorAll('.works .rows a').length") > 5
        api.is_down = False
        await page.until("document.querySelector('#banner').hidden")


async def test_console_that_restarts_is_found_again(tmp_path: Path) -> None:
    api = sample()
    async with api.client() as client, browser(tmp_path) as page:
        options = ConsoleOptions(client=client, description="test fleet")
        async with serve(options, port=0) as address:
            await loaded(page, address, works=40)
        port = int(address.rsplit(":", 1)[1].strip("/"))
        await page.until("!document.querySelector('#banner').hidden")
        assert await page.run("document.querySelectorAll('.problem').length") > 0
        api.bundles["id-0000030"]["version"] = 2
        async with serve(options, port=port):
            await page.until("document.querySelector('#banner').hidden")
            await page.until("document.querySelector('.problems').innerText.includes('2 works')")


async def test_token_is_asked_for_and_an_expired_session_says_so(tmp_path: Path) -> None:
    is_valid = True

    async def authenticate(authorization: str | None) -> Viewer:
        if not is_valid or authorization != f"Bearer {token(exp=4_000_000_000)}":
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token has expired; get a new one")
        return Viewer(user="ada", role="read")

    gate = Gate(allows_host=loopback_host, authenticate=authenticate)
    async with opened(sample(), tmp_path, gate=gate) as (page, address):
        await page.visit(address)
        assert await page.run("document.documentElement.dataset.ready") == "sign-in"
        await page.ask("Input.insertText", text="wrong")
        await page.press("Enter")
        await page.until("document.querySelector('[role=alert].t-bad')?.textContent.includes('expired')")
        await page.run("document.querySelector('#token').value = ''")
        await page.ask("Input.insertText", text=token(exp=4_000_000_000))
        await page.press("Enter")
        await page.until("document.querySelector('.tile b')?.textContent === '40'")
        assert await page.run("document.cookie") == ""
        is_valid = False
        await go(page, "#/stuck")
        await page.until("document.documentElement.dataset.ready === 'sign-in'")
        assert "expired" in await page.run("document.querySelector('main').innerText")


async def test_a_day_of_changes_leaves_memory_flat(tmp_path: Path) -> None:
    api = sample()
    async with opened(api, tmp_path) as (page, address):
        await loaded(page, address, works=40)

        async def measured() -> tuple[int, int]:
            await page.until("document.querySelector('.problem')")
            await page.ask("HeapProfiler.collectGarbage")
            metrics = {one["name"]: one["value"] for one in (await page.ask("Performance.getMetrics"))["metrics"]}
            return int(metrics["Nodes"]), int(metrics["JSEventListeners"])

        async def refreshed(times: int) -> None:
            for fragment in ("#/works", "#/work/id-0000003", "#/stuck", "#/fleet") * times:
                await go(page, fragment)
                for _ in range(3):
                    await page.run("document.dispatchEvent(new Event('visibilitychange'))")

        await page.ask("Performance.enable")
        await refreshed(5)
        before = await measured()
        await refreshed(25)

        async def is_flat() -> bool:
            # Answers that are under way keep pages that were left; a leak would keep them for ever.
            after = await measured()
            return after[0] < before[0] + 1500 and after[1] < before[1] + 400

        # A leak of one page would be hundreds of nodes for each of the hundred visits.
        await waiting.until(is_flat, what=f"as few nodes and listeners as before, {before}")


async def test_long_list_is_scrolled_by_windows(tmp_path: Path) -> None:
    api = FakeApi(bundle(number) for number in range(5000))
    async with opened(api, tmp_path) as (page, address):
        await loaded(page, address, works=5000)
        await go(page, "#/works?sort=name")
        await page.until("document.querySelectorAll('.works .rows a').length > 5")
        assert await page.run("document.querySelector('.works').getAttribute('aria-rowcount')") == "5001"
        await page.run("document.querySelector('.works .scroll').scrollTop = 4000 * 32")
        await page.until("document.querySelector('.works .rows [aria-rowindex=\"4002\"] a')")
        assert await page.run("document.querySelectorAll('.works .rows .row').length") < 100
        assert await page.run("[...document.querySelectorAll('.works .rows a')].at(-1).textContent.startsWith('work-')")
        assert page.errors == []


async def test_pictures_of_the_documentation(tmp_path: Path) -> None:
    images = Path(__file__).parents[2] / "docs" / "images"
    folder = images if os.environ.get("MAESTRO_KEEP_PICTURES") else tmp_path
    async with opened(sample(), tmp_path / "browser", width=1280) as (page, address):
        await page.resize(1280, 760)
        await loaded(page, address, works=40)
        await page.picture(folder / "console-fleet.png")
        await go(page, "#/work/id-0000003")
        await page.prefer("dark")
        await page.picture(folder / "console-work.png")
        assert (folder / "console-work.png").stat().st_size > 10_000
