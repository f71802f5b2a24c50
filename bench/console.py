"""Measure the console: memory and time to read works, time until a browser paints, scrolling, and a day of changes.

    python -m bench.console --works 10000 --works 100000

The API is in memory, so that only the console and the browser are measured. Needs Chromium.
"""

import argparse
import asyncio
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

_SCROLL = """
new Promise((done) => {
  const scroll = document.querySelector('.works .scroll');
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


async def measure(count: int) -> dict[str, Any]:
    """Measure one number of works."""
    api = FakeApi(bundle(number) for number in range(count))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with api.client() as client:
        options = ConsoleOptions(client=client, description="bench")
        began = time.perf_counter()
        async with console(options) as running:
            running.collector.want()
            await waiting.until(lambda: running.picture.source.is_complete, what="all works", seconds=600)
        loading = time.perf_counter() - began
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        async with serve(options, port=0) as address:
            with tempfile.TemporaryDirectory() as folder:
                async with browser(Path(folder)) as page:
                    await page.visit(address)
                    await waiting.until(lambda: _is_loaded(page, count), what="all works", seconds=600)
                    return {
                        "works": count,
                        "read all, s": round(loading, 1),
                        "memory, MiB": round(memory),
                        **await _in_browser(page, address, api),
                    }


async def _is_loaded(page: Page, count: int) -> bool:
    shown = await page.run("document.querySelector('.tile b')?.textContent ?? ''")
    return bool(shown.replace(",", "") == str(count))


async def _in_browser(page: Page, address: str, api: FakeApi) -> dict[str, Any]:
    paints, datas = [], []
    for _ in range(5):
        await page.ask("Page.navigate", url="about:blank")
        await page.visit(address)
        await page.until("performance.getEntriesByName('first-contentful-paint').length")
        paints.append(await page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        datas.append(await page.run("performance.now()"))
    await page.run("location.hash = '#/works?sort=name'")
    await page.until("document.querySelectorAll('.works .rows a').length > 5")
    frames = await page.run(_SCROLL)
    filtering = await page.run(
        "(async () => { const began = performance.now(); await (await fetch('api/works?q=team3+work')).json();"
        " return performance.now() - began; })()"
    )
    heaps = []
    for times in (20, 200):
        for number in range(times):
            api.bundles["id-0000001"]["version"] = 2 + number
            await page.run("document.dispatchEvent(new Event('visibilitychange'))")
            await page.run("new Promise((done) => setTimeout(done, 15))")
        await page.ask("HeapProfiler.collectGarbage")
        heaps.append((await page.ask("Runtime.getHeapUsage"))["usedSize"] / (1 << 20))
    return {
        "first paint, ms": round(sorted(paints)[2]),
        "all data shown, ms": round(sorted(datas)[2]),
        "frame while scrolling, ms (median, 95 %, longest)": [round(value, 1) for value in frames],
        "filter, ms": round(filtering),
        "browser heap after 20 and 220 refreshes, MiB": [round(value, 1) for value in heaps],
    }


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=int, action="append", help="how many works; may be repeated [10000]")
    arguments = parser.parse_args()
    if program() is None:
        sys.stderr.write("no Chromium is installed; apt-get install chromium\n")
        return 1
    for count in arguments.works or [10_000]:
        for name, value in asyncio.run(measure(count)).items():
            sys.stdout.write(f"{name:<50} {value}\n")
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
