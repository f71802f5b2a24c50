"""Measure the console: memory and time to read works, time until a browser paints, scrolling, and a day of changes.

    python -m bench.console --works 10000 --works 100000
    python -m bench.console --works 100000 --consumers 5000 --refreshes 5000
    python -m bench.console --works 10000 --slow-link

The API is in memory, so that only the console and the browser are measured. Needs Chromium.
"""

import argparse
import asyncio
import contextlib
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from maestropy.console.serve import ConsoleOptions, console, serve
from tests import waiting
from tests.console.fake_api import FakeApi, bundle
from tests.peers.browser import Page, browser, program
from tests.peers.slow_link import slow_link

_SCROLL = """
new Promise((done) => {
  const scroll = document.querySelector('LIST .scroll');
  const frames = [];
  let last = performance.now(), steps = 0;
  const step = (now) => {
    frames.push(now - last); last = now;
    scroll.scrollTop += 900;
    if ((steps += 1) < 180) requestAnimationFrame(step);
    else { frames.sort((a, b) => a - b); done([frames[90], frames[170], frames.at(-1)]); }
  };
  requestAnimationFrame(step);
})
"""


async def measure(count: int, *, consumers: int, refreshes: int, is_slow: bool) -> dict[str, Any]:
    """Measure one number of works."""
    api = FakeApi(bundle(number, consumer_name=f"cluster{number % consumers}") for number in range(count))
    for name in api.consumers:
        api.history("agent.connected", "", consumer_name=name, seconds_ago=3600)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with api.client() as client:
        options = ConsoleOptions(client=client, description="bench")
        began = time.perf_counter()
        async with console(options) as running:
            running.collector.want()
            await waiting.until(lambda: running.picture.source.is_complete, what="all works", seconds=600)
        loading = time.perf_counter() - began
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        async with contextlib.AsyncExitStack() as stack:
            address = await stack.enter_async_context(serve(options, port=0))
            if is_slow:
                link = await stack.enter_async_context(slow_link(int(address.split(":")[2].strip("/"))))
                address = f"http://127.0.0.1:{link.port}/"
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            page = await stack.enter_async_context(browser(Path(folder)))
            await page.visit(address)
            await waiting.until(lambda: _is_loaded(page, count), what="all works", seconds=600)
            return {
                "works": count,
                "consumers": len(api.consumers),
                "read all, s": round(loading, 1),
                "memory, MiB": round(memory),
                **await _in_browser(page, address),
                **await _consumers(page),
                **await _a_day(page, api, refreshes=refreshes),
            }


async def _is_loaded(page: Page, count: int) -> bool:
    shown = await page.run("document.querySelector('.tile b')?.textContent ?? ''")
    return bool(shown.replace(",", "") == str(count))


async def _in_browser(page: Page, address: str) -> dict[str, Any]:
    paints, datas = [], []
    for _ in range(5):
        await page.ask("Page.navigate", url="about:blank")
        await page.visit(address)
        await page.until("performance.getEntriesByName('first-contentful-paint').length")
        paints.append(await page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        datas.append(await page.run("performance.now()"))
    await page.run("location.hash = '#/works?sort=name'")
    await page.until("document.querySelectorAll('.works .rows a').length > 5")
    frames = await page.run(_SCROLL.replace("LIST", ".works"))
    return {
        "first paint, ms": round(sorted(paints)[2]),
        "all data shown, ms": round(sorted(datas)[2]),
        "frame while scrolling works, ms (median, 95 %, longest)": [round(value, 1) for value in frames],
        "filter works, ms": round(await _took(page, "api/works?q=team3+work")),
    }


async def _consumers(page: Page) -> dict[str, Any]:
    await page.run("location.hash = '#/fleet'")
    await page.until("document.querySelectorAll('.consumers .rows a').length > 5")
    frames = await page.run(_SCROLL.replace("LIST", ".consumers"))
    return {
        "frame while scrolling consumers, ms (median, 95 %, longest)": [round(value, 1) for value in frames],
        "filter consumers, ms": round(await _took(page, "api/consumers?q=cluster4")),
        "stuck works, ms": round(await _took(page, "api/stuck")),
    }


async def _took(page: Page, path: str) -> float:
    return float(
        await page.run(
            f"(async () => {{ const began = performance.now(); await (await fetch({path!r})).json();"
            " return performance.now() - began; })()"
        )
    )


async def _a_day(page: Page, api: FakeApi, *, refreshes: int) -> dict[str, Any]:
    heaps = []
    for times in (20, refreshes):
        for number in range(times):
            api.bundles["id-0000001"]["version"] = 2 + number
            await page.run("document.dispatchEvent(new Event('visibilitychange'))")
            await page.run("new Promise((done) => setTimeout(done, 15))")
        await page.ask("HeapProfiler.collectGarbage")
        heaps.append((await page.ask("Runtime.getHeapUsage"))["usedSize"] / (1 << 20))
    return {f"browser heap after 20 and {20 + refreshes} refreshes, MiB": [round(value, 2) for value in heaps]}


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=int, action="append", help="how many works; may be repeated [10000]")
    parser.add_argument("--consumers", type=int, default=10, help="how many consumers have them [10]")
    parser.add_argument("--refreshes", type=int, default=200, help="how often a page that stays open is read [200]")
    parser.add_argument("--slow-link", action="store_true", help="300 ms and 1 %% loss between console and browser")
    arguments = parser.parse_args()
    if program() is None:
        sys.stderr.write("no Chromium is installed; apt-get install chromium\n")
        return 1
    for count in arguments.works or [10_000]:
        run = measure(count, consumers=arguments.consumers, refreshes=arguments.refreshes, is_slow=arguments.slow_link)
        for name, value in asyncio.run(run).items():
            sys.stdout.write(f"{name:<60} {value}\n")
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
