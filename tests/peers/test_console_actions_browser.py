"""Operator actions in a real browser: by mouse and by keyboard, for every role, with errors, and for screen readers."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maestropy.console.actions import with_token_of
from maestropy.console.serve import ConsoleOptions, serve
from maestropy.console.sessions import Gate, Viewer, loopback_host
from tests.console.fake_api import FakeApi, bundle
from tests.console.test_app import HOSTILE
from tests.peers import axe
from tests.peers.browser import Page, browser, program
from tests.peers.test_console_browser import go, loaded, sample

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]


@contextlib.asynccontextmanager
async def opened(
    api: FakeApi, folder: Path, *, role: str = "", allows: bool = True, width: int = 1280
) -> AsyncIterator[tuple[Page, str]]:
    async def authenticate(_: str | None) -> Viewer:
        return Viewer(user="ada", role=role)

    async with api.client() as client:
        options = ConsoleOptions(
            client=client,
            description="test fleet",
            gate=Gate(allows_host=loopback_host, authenticate=authenticate if role else None),
            actions=with_token_of(client, requested_by="ann@laptop") if allows else None,
        )
        async with serve(options, port=0) as address, browser(folder, width=width) as page:
            if role:
                await page.ask("Network.setExtraHTTPHeaders", headers={"Authorization": "Bearer of-ada"})
            yield page, address


async def text(page: Page) -> str:
    found: str = await page.run("document.querySelector('dialog[open]').innerText")
    return found


async def test_consumer_is_paused_with_keys_alone(tmp_path: Path) -> None:
    source = axe.script()
    if source is None:
        pytest.skip("axe-core is not in the cache, and npm cannot get it")
    api = sample()
    async with opened(api, tmp_path / "browser") as (page, address):
        await loaded(page, address, works=40)
        await page.until(
            "document.querySelector('[data-actions=cluster1]') && document.body.innerText.includes('MT-301')"
        )
        await page.run("document.querySelector('[data-actions=cluster1]').focus()")
        await page.press("Enter")
        await page.until("document.querySelectorAll('dialog[open] [data-action]').length === 2")
        assert await axe.violations(page, source) == []
        await page.press("Enter")
        await page.until("document.querySelector('dialog[open] form')")
        for part in ("pause cluster1.", "be careful", "4 works are concerned", "work-11", "id-0000011"):
            assert part in await text(page)
        assert await page.run("document.activeElement.name") == "reason"
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            assert await axe.violations(page, source) == [], scheme
        await page.prefer("light")
        await page.ask("Input.insertText", text="node upgrade")
        await page.press("Enter")
        await page.until("document.querySelector('dialog[open] [data-done]')")
        for part in ("Done", "consumer.paused", "ada", "node upgrade"):
            assert part in await text(page)
        assert await axe.violations(page, source) == []
        await page.press("Escape")
        await page.until("!document.querySelector('dialog')")
        assert await page.run("document.activeElement.dataset.actions") == "cluster1"
        assert [action["dryRun"] for action in api.actions] == ["All", None]
        assert page.errors == []


async def test_retirement_wants_the_name_and_says_when_the_plan_changed(tmp_path: Path) -> None:
    api = sample()
    async with opened(api, tmp_path, width=360) as (page, address):
        await loaded(page, address, works=40)
        # The agents are read last, and move what is below.
        await page.until(
            "document.querySelector('[data-actions=cluster5]') && document.body.innerText.includes('MT-301')"
        )
        await page.click("[data-actions=cluster5]")
        await page.click("dialog[open] [data-action=retire-release]")
        await page.until("document.querySelector('dialog[open] form [name=name]')")
        assert await page.run("document.querySelector('dialog').getBoundingClientRect().right <= innerWidth")
        await page.run("document.querySelector('[name=name]').focus()")
        await page.ask("Input.insertText", text="cluster4")
        await page.press("Enter")
        assert await page.run("document.querySelector('dialog[open] [type=submit]').disabled")
        assert len(api.actions) == 1, "the dry run only"
        await page.run("document.querySelector('[name=name]').select()")
        await page.ask("Input.insertText", text="cluster5")
        api.plan = "plan-2"
        await page.press("Enter")
        await page.until("document.querySelector('dialog[open] [role=alert]')?.textContent.includes('was shown')")
        assert len(api.actions) == 1
        # The dry run is asked for again, and then it is done.
        await page.click("dialog[open] [data-again]")
        await page.until("document.querySelector('dialog[open] form [name=name]')?.value === ''")
        await page.run("document.querySelector('[name=name]').focus()")
        await page.ask("Input.insertText", text="cluster5")
        await page.press("Enter")
        await page.until("document.querySelector('dialog[open] [data-entry]')")
        assert "consumer.retired" in await text(page)
        await page.click("dialog[open] [data-close]")
        await go(page, "#/stuck")
        await page.until("document.querySelector('[data-action]')")
        api.is_down = True
        await page.click("[data-action]")
        await page.until("document.querySelector('dialog[open] [role=alert]')?.textContent.includes('refused')")


async def test_reader_sees_why_and_a_read_only_console_says_it(tmp_path: Path) -> None:
    source = axe.script()
    if source is None:
        pytest.skip("axe-core is not in the cache, and npm cannot get it")
    api = sample()
    async with opened(api, tmp_path / "a", role="read") as (page, address):
        await loaded(page, address, works=40)
        await go(page, "#/work/id-0000008")
        await page.click("[data-action=resend]")
        assert await page.run("document.querySelector('dialog') === null")
        said = await page.run("document.querySelector('#s-actions').innerText")
        assert "It needs the role write, and you have read." in said
        for fragment in ("#/work/id-0000008", "#/stuck", "#/fleet"):
            await go(page, fragment)
            assert await axe.violations(page, source) == [], fragment
    assert api.actions == []
    for api, allows, note in (
        (sample(), False, "readonly"),
        (FakeApi([bundle(1, version=2)], has_history=False), True, "unsupported"),
    ):
        async with opened(api, tmp_path / note, allows=allows) as (page, address):
            await loaded(page, address, works=len(api.bundles))
            for fragment in ("#/fleet", "#/stuck", f"#/work/{'id-0000008' if not allows else 'id-0000001'}"):
                await go(page, fragment)
                await page.until(f"document.querySelector('[data-note={note}]')")
                assert await page.run("document.querySelectorAll('[data-action], [data-actions]').length") == 0


async def test_hostile_names_are_text_in_the_dialog(tmp_path: Path) -> None:
    works = [
        bundle(number, version=2, consumer_name=name, metadata={"name": name})
        for number, name in enumerate(HOSTILE[:5])
    ]
    async with opened(FakeApi(works), tmp_path) as (page, address):
        await page.ask("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.bad = true; };")
        await loaded(page, address, works=5)
        for number in range(5):
            await go(page, f"#/work/id-000000{number}")
            await page.click("[data-action=resend]")
            await page.until("document.querySelector('dialog[open] form')")
            assert HOSTILE[number] in await text(page)
            assert await page.run("window.bad === undefined && !document.querySelector('img, iframe, svg')")
            await page.press("Escape")
            await page.until("!document.querySelector('dialog')")
        assert page.errors == []
