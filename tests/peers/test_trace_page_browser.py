# ruff: noqa: E501 - one script is written as it runs
"""The HTML report in a real browser: no errors, no network, and all interactions.

With MAESTRO_KEEP_PICTURES=1 the screenshots of the documentation are renewed.
"""

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import Options
from maestropy.trace.logs.read import scan
from maestropy.trace.report import page as report_page
from tests import trace_request_logs as logs
from tests.peers.browser import Page, browser, program

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]
IMAGES = Path(__file__).parents[2] / "docs" / "images"
MANY = 27_000
_NAMES = ("api", "billing", "cache", "dns", "etcd", "metrics", "nginx", "registry", "router", "vault", "web")
_REFUSED = 'Deployment.apps \\"{}\\" is invalid: spec.template.spec.containers[0].image: Required value </script><b>'


def write_logs(folder: Path, count: int) -> Path:
    """Write requests of which some stop, with latencies as systems have them."""
    chance = random.Random(3)
    lines: list[tuple[str, float, str]] = []
    usual = dict(logs._DELAYS)
    means = {2: 0.03, 3: 0.02, 4: 0.08, 5: 0.02, 6: 0.03, 7: 0.008, 8: 0.005, 9: 0.001}
    try:
        for number in range(count):
            at = 0.0
            for stage, mean in means.items():
                at += mean * chance.lognormvariate(0, 0.5) * (20 if stage == 4 and chance.random() < 0.01 else 1)
                logs._DELAYS[stage] = at
            logged = logs.LoggedRequest(work=f"{chance.choice(_NAMES)}-{number:05d}", at=logs.BASE + number * 0.02)
            if number % 3 == 1:
                logged = replace(logged, action="update", version=2)
            if number % 25 == 7:
                logged = replace(logged, until=chance.choice((3, 3, 3, 2, 5, 8)))
            lines += logs.lines_g4(logged)
            if logged.until == 3:
                failed = logged.at + logs._DELAYS[4]
                body = f'"controller failed to sync" err="{_REFUSED.format(logged.work)}" key="{logged.resource}"'
                lines.append((logs.AGENT, failed, logs.klog(failed, "base_controller.go:159", body, "E")))
    finally:
        logs._DELAYS.update(usual)
    end = logs.BASE + count * 0.02 + 600
    lines += [(pod, end, logs.klog(end, "writer.go:35", "still here")) for pod in (*logs.SERVERS, logs.AGENT)]
    lines.sort(key=lambda line: line[1])
    folder.mkdir()
    for pod in (*logs.SERVERS, logs.AGENT):
        text = "".join(f"{line}\n" for owner, _, line in lines if owner == pod)
        (folder / f"{pod}.log").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    write_logs(folder / "logs", 600)
    command = [sys.executable, "-m", "maestropy.cli.main", "trace", "requests", str(folder / "logs")]
    done = subprocess.run([*command, "--html", str(folder / "report.html")], capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    return folder / "report.html"


@contextlib.asynccontextmanager
async def opened(folder: Path, *, width: int = 1440) -> AsyncIterator[Page]:
    async with browser(folder, width=width) as page:
        yield page
        assert page.errors == []
        assert all(url.startswith("file:") for url in page.requests), page.requests


async def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = await page.run(f"[...document.querySelectorAll('{selector}')].map((each) => each.innerText)")
    return found


WORKS = "#rows .row > :nth-child(3)"


async def test_the_overview_counts_and_filters(tmp_path: Path, report: Path) -> None:
    async with opened(tmp_path) as page:
        await page.open(report)
        assert await page.run("document.documentElement.dataset.ready") == "600"
        tiles = await texts(page, ".verdict b")
        assert tiles[0] == "600"
        assert sum(int(tile) for tile in tiles[1:]) == 600
        assert len(await texts(page, "#matrix tbody tr")) == 9
        assert len(await texts(page, "#hops tbody tr")) == 9
        failed = await page.run("document.querySelector('[data-verdict=failed] b').innerText")
        await page.run("document.querySelector('[data-verdict=failed]').click()")
        assert (await texts(page, "#shown")) == [f"{failed} of 600"]
        assert {text.split()[-1] for text in await texts(page, "#rows .row > :first-child")} == {"failed"}
        await page.press("Escape")
        assert (await texts(page, "#shown")) == ["600 requests"]
        await page.run("document.querySelector('#findings .link').click()")
        code = await page.run("document.querySelector('#by-code').value")
        assert set(await texts(page, "#rows .code")) == {code}


async def test_the_list_is_sorted_and_searched(tmp_path: Path, report: Path) -> None:
    async with opened(tmp_path) as page:
        await page.open(report)
        await page.run("document.querySelector('[data-sort=work]').click()")
        shown = await texts(page, WORKS)
        assert shown == sorted(shown)
        await page.run("document.querySelector('[data-sort=work]').click()")
        shown = await texts(page, WORKS)
        assert shown == sorted(shown, reverse=True)
        sorts = "[...document.querySelectorAll('[aria-sort]')].map((each) => each.getAttribute('aria-sort'))"
        assert (await page.run(sorts))[2] == "descending"
        await page.press("/")
        await page.ask("Input.insertText", text="vault update")
        assert all(text.startswith("vault-") for text in await texts(page, WORKS))
        assert {text.split()[0] for text in await texts(page, "#rows .row > :nth-child(5)")} == {"update"}
        await page.run("document.querySelector('#search').value = 'nobody'")
        await page.run("document.querySelector('#search').dispatchEvent(new Event('input'))")
        assert await page.run("!document.querySelector('#none').hidden")
        await page.run("document.querySelector('#clear-too').click()")
        assert (await texts(page, "#shown")) == ["600 requests"]


async def test_a_request_is_opened_by_keys_by_its_address_and_shown_in_full(tmp_path: Path, report: Path) -> None:
    async with opened(tmp_path) as page:
        await page.open(report)
        await page.press("j", "j", "Enter")
        name = (await texts(page, WORKS))[1]
        assert await texts(page, "#request h2") == [name]
        assert len(await texts(page, ".fall .stage")) == 9
        assert await page.run("document.querySelectorAll('.fall .track i').length") >= 1
        assert "ERROR: Maestro agent does not handle the spec request" in (await texts(page, ".finding"))[0]
        # What a log says is shown as it says it.
        assert "Required value </script><b>" in (await texts(page, ".finding .detail"))[0]
        records = len(await texts(page, "#log li"))
        assert records > 3
        await page.press("l")
        assert (await texts(page, "#log code"))[0].startswith("I0115 ")
        await page.press("j")
        following = (await texts(page, WORKS))[2]
        assert await texts(page, "#request h2") == [following]
        address = await page.run("location.hash")
        await page.press("Escape")
        assert await page.run("document.querySelector('#request').hidden && location.hash === ''")
        await page.ask("Page.navigate", url="about:blank")
        await page.open(report, fragment=address)
        assert await texts(page, "#request h2") == [following]
        await page.run("document.querySelector('.fall .stage').click()")
        assert await page.run("document.querySelectorAll('#log li:not(.off)').length") == 1


async def test_light_and_dark_follow_the_system_and_the_switch(tmp_path: Path, report: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"

    async with opened(tmp_path) as page:
        await page.prefer("light")
        await page.open(report)
        light = await page.run(background)
        await page.prefer("dark")
        dark = await page.run(background)
        assert light != dark
        await page.run("document.querySelector('[data-theme-choice=light]').click()")
        assert await page.run(background) == light
        await page.press("t")
        assert await page.run(background) == dark
        assert await page.run("document.documentElement.dataset.theme") == "dark"
        for theme in ("light", "dark"):
            await page.run(f"document.querySelector('[data-theme-choice={theme}]').click()")
            assert await page.run(CONTRASTS) == []


CONTRASTS = """(() => {
  const style = getComputedStyle(document.documentElement);
  const parts = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/g).map((each) => parseInt(each, 16) / 255);
  const light = (name) => parts(name).map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const ratio = (one, other) => { const [a, b] = [light(one), light(other)].sort(); return (b + 0.05) / (a + 0.05); };
  const pairs = [['--ink', '--bg'], ['--ink', '--panel'], ['--muted', '--panel'], ['--muted', '--bg'], ['--muted', '--lane'],
    ['--ink', '--select'], ['--muted', '--select'], ['--accent', '--panel'],
    ...['ok', 'bad', 'warn', 'wait', 'grey'].flatMap((tone) => [[`--${tone}`, `--${tone}-soft`], [`--${tone}`, '--panel']])];
  return pairs.filter(([one, other]) => ratio(one, other) < 4.5).map((pair) => [...pair, ratio(...pair)]);
})()"""


async def test_twenty_seven_thousand_requests_stay_quick(tmp_path: Path, report: Path) -> None:
    """Ten thousands of rows: the same six hundred many times over, so that the test need not read 250 MB of logs."""
    page_file = tmp_path / "many.html"
    read = scan.scan_all([str(report.parent / "logs")], now=logs.BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    traces = list(tracer.traces(read.records, environment, options=Options()))
    rows = report_page.rows_of(environment)
    for number in range(MANY):
        trace = traces[number % len(traces)]
        key = trace.key._replace(resource=f"{trace.key.resource}-{number}", work_name=f"{trace.key.work_name}-{number}")
        rows.add(replace(trace, key=key, start=trace.start + number, end=trace.end + number))
    page_file.write_text(report_page.html(rows, code=1, now=logs.BASE), encoding="utf-8")
    assert page_file.stat().st_size < 20_000_000

    async with opened(tmp_path / "profile") as page:
        await page.open(page_file)
        assert await page.run("document.documentElement.dataset.ready") == str(MANY)
        # Only what is in sight exists.
        assert 20 < len(await texts(page, "#rows .row")) < 80
        await page.run("document.querySelector('[data-sort=took]').click()")
        await page.run("document.querySelector('[data-sort=start]').click()")
        first = await texts(page, WORKS)
        await page.press("G", "Enter")
        assert await texts(page, "#request h2") != first[:1]
        assert await page.run("document.querySelector('#scroll').scrollTop") > 800_000
        await page.press("Escape", "/")
        await page.ask("Input.insertText", text=f"-{MANY - 1}")
        assert len(await texts(page, "#rows .row")) == 1


NARROW = """(() => {
  const wide = [...document.querySelectorAll('body *')].filter((element) => element.offsetParent
    && element.getBoundingClientRect().right > innerWidth + 1 && !element.closest('pre, #log, .scrolls'));
  const cut = [...document.querySelectorAll('#rows .row > *, .head > *, th, td, button, label')].filter((element) =>
    element.offsetParent && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0
    && !element.title && getComputedStyle(element).overflowX !== 'visible');
  return {scrolls: document.documentElement.scrollWidth > innerWidth, wide: wide.map((element) => element.outerHTML.slice(0, 120)),
    cut: cut.map((element) => element.outerHTML.slice(0, 120))};
})()"""


@pytest.mark.parametrize("width", [1000, 1280])
async def test_the_page_fits_a_narrow_window(tmp_path: Path, report: Path, width: int) -> None:
    async with opened(tmp_path, width=width) as page:
        await page.open(report)
        for keys in ((), ("j", "Enter")):
            await page.press(*keys)
            shown = await page.run(NARROW)
            assert shown == {"scrolls": False, "wide": [], "cut": []}
            names = await page.run(
                "[...document.querySelectorAll('#rows .row > :nth-child(3)')].map((e) => e.clientWidth)"
            )
            assert min(names) >= 60, "a work's name can be read"


async def test_the_page_prints(tmp_path: Path, report: Path) -> None:
    async with opened(tmp_path) as page:
        await page.open(report)
        printed = await page.ask("Page.printToPDF", printBackground=True)
        assert len(printed["data"]) > 20_000


@pytest.mark.skipif("MAESTRO_KEEP_PICTURES" not in os.environ, reason="pictures are kept on demand")
async def test_pictures_for_the_documentation(tmp_path: Path, report: Path) -> None:
    IMAGES.mkdir(exist_ok=True)
    async with opened(tmp_path) as page:
        await page.open(report)
        for theme, keys in (("light", ()), ("dark", ("j", "Enter"))):
            await page.run(f"document.querySelector('[data-theme-choice={theme}]').click()")
            await page.press(*keys)
            await page.picture(IMAGES / f"trace-requests-{theme}.png")
