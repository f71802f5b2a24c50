"""Incidents on a real fleet, each solved in the console: from the landing page to the first broken hop in three clicks.

The fleet is a `maestro up` process; the agents that an incident kills or freezes are processes of their own.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maestropy.sdk.blocking import Maestro
from maestropy.sdk.work import Work
from tests import waiting
from tests.peers.browser import Page, browser, program

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
]
_MOST_CLICKS = 3
_SECRET = "hunter2-is-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFleet:
    """A running `maestro up`."""

    console: str
    api_url: str
    grpc_url: str
    agents_url: str
    folder: Path

    def client(self) -> Maestro:
        return Maestro(environ={}, api_url=self.api_url, grpc_url=self.grpc_url, source="incidents")

    def kubeconfig(self, consumer: str) -> Path:
        return self.folder / "clusters" / consumer / "kubeconfig"

    @contextlib.contextmanager
    def agent(self, consumer: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run an agent of another consumer on the second cluster."""
        command = [sys.executable, "-m", "maestropy.cli.main", "agent", f"--consumer-name={consumer}"]
        flags = [f"--grpc-url={self.agents_url}", f"--kubeconfig={self.kubeconfig('cluster2')}"]
        with (folder / "agent.log").open("wb") as log:
            process = subprocess.Popen([*command, *flags, "--listen=127.0.0.1:0"], stdout=log, stderr=log)
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFleet]:
    folder = tmp_path_factory.mktemp("up")
    log = folder / "up.log"
    flags = ["--agents", "2", "--free-ports", "--data-dir", str(folder / "data")]
    with log.open("wb") as output:
        command = [sys.executable, "-m", "maestropy.cli.main", "up", *flags]
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, "COLUMNS": "200"})
    try:
        waiting.wait_for(
            lambda: "Ctrl-C stops" in log.read_text() or process.poll() is not None, what="the fleet", seconds=180
        )
        found = dict(re.findall(r"^  (\S.*?)\s{2,}(\S+)", log.read_text(), re.MULTILINE))
        yield RealFleet(
            console=found["console"],
            api_url=found["REST"],
            grpc_url=found["gRPC for sources"],
            agents_url=found["gRPC for agents"],
            folder=folder / "data",
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


class Clicks:
    """Clicks on links, and counts them."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.count = 0

    async def on(self, selector: str) -> None:
        await self._page.click(selector)
        self.count += 1


async def solve(page: Page, fleet: RealFleet, *, code: str, work: str) -> tuple[str, str, int]:
    """Go from the landing page by the problem's code to the work; return its stop, the state, and the clicks."""
    clicks = Clicks(page)
    await page.visit(fleet.console)
    has_code = f"[...document.querySelectorAll('.problem')].find((one) => one.innerText.includes({code!r}))"
    await page.until(has_code)
    await page.run(f"{has_code}.querySelector('a.strong').setAttribute('data-clicked', '')")
    await clicks.on("[data-clicked]")
    await page.until("location.hash !== '' && document.documentElement.dataset.ready !== undefined")
    if await page.run("location.hash.startsWith('#/works')"):
        row = f"[...document.querySelectorAll('.works .rows a.strong')].find((one) => one.textContent === {work!r})"
        await page.until(row)
        await page.run(f"{row}.setAttribute('data-clicked', '')")
        await clicks.on(".works .rows [data-clicked]")
    await page.until("document.querySelector('[data-stop]')")
    assert work in await page.run("document.querySelector('h1').textContent")
    stop = await page.run("(({hop, state}) => [hop, state])(document.querySelector('[data-stop]').dataset)")
    return stop[0], stop[1], clicks.count


async def test_rejected_manifest_is_found_at_the_cluster(fleet: RealFleet, tmp_path: Path) -> None:
    unknown = {"apiVersion": "nope.example/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}
    with fleet.client() as client:
        client.works("cluster1").apply(Work("rejected").add(unknown))
    async with browser(tmp_path) as page:
        hop, state, clicks = await solve(page, fleet, code="MW-005", work="rejected")
        assert (hop, state) == ("cluster", "broken")
        assert clicks <= _MOST_CLICKS
        text = await page.run("document.querySelector('#s-findings').innerText")
        assert 'resource type "Widget"' in text
        assert "install its CustomResourceDefinition" in text
        await page.until("document.querySelectorAll('#s-requests .request').length > 0")
        await page.click("#s-requests .request a.strong")
        await page.until("document.querySelectorAll('.waterfall li').length === 9")
        assert "MT-405" in await page.run("document.querySelector('#s-findings').innerText")
        assert page.errors == []


async def test_agent_that_was_killed_is_the_broken_hop(fleet: RealFleet, tmp_path: Path) -> None:
    with fleet.client() as client:
        client.consumers.create("killed")
        with fleet.agent("killed", tmp_path) as agent:
            client.works("killed").apply(Work("before").add(config_map("before")))
            client.works("killed").wait_for("before", "Applied", timeout=60)
            agent.kill()
            agent.wait()
        client.works("killed").apply(Work("undelivered").add(config_map("undelivered")))
    async with browser(tmp_path / "browser") as page:
        hop, state, clicks = await solve(page, fleet, code="MT-301", work="undelivered")
        assert (hop, state) == ("agent", "broken")
        assert clicks <= _MOST_CLICKS
        assert "not connected" in await page.run("document.querySelector('[data-stop]').innerText")


async def test_frozen_agent_is_the_broken_hop_of_an_update(fleet: RealFleet, tmp_path: Path) -> None:
    with fleet.client() as client:
        client.consumers.create("frozen")
        with fleet.agent("frozen", tmp_path) as agent:
            works = client.works("frozen")
            works.apply(Work("stale").add(config_map("stale", data={"a": "1"})))
            works.wait_for("stale", "Applied", timeout=60)
            agent.send_signal(signal.SIGSTOP)
            works.apply(Work("stale").add(config_map("stale", data={"a": "2"})))
            async with browser(tmp_path / "browser") as page:
                hop, state, clicks = await solve(page, fleet, code="MW-004", work="stale")
                assert (hop, state) == ("agent", "broken")
                assert clicks <= _MOST_CLICKS
                assert "data.a" in await page.run("document.querySelector('#s-changes').innerText")
                agent.send_signal(signal.SIGCONT)
                # Live: the page changes by itself when the agent goes on.
                await page.until("!document.querySelector('[data-stop]')")
                assert "MW-001" in await page.run("document.querySelector('h1').textContent")


async def test_deletion_that_waits_for_a_finalizer_is_found_at_the_cluster(fleet: RealFleet, tmp_path: Path) -> None:
    with fleet.client() as client:
        works = client.works("cluster2")
        works.apply(Work("leaving").add(config_map("leaving", metadata={"finalizers": ["example.com/slow"]})))
        works.wait_for("leaving", "Applied", timeout=60)
        works.delete("leaving")
    async with browser(tmp_path) as page:
        hop, state, clicks = await solve(page, fleet, code="MW-007", work="leaving")
        assert (hop, state) == ("cluster", "waiting")
        assert clicks <= _MOST_CLICKS
        await page.until("document.querySelector('#s-findings').innerText.includes('example.com/slow')")


async def test_secret_values_reach_no_page(fleet: RealFleet, tmp_path: Path) -> None:
    metadata = {"name": "s", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"pw": _SECRET}}
    with fleet.client() as client:
        work_id = client.works("cluster1").apply(Work("secret").add(secret)).work.id
        client.works("cluster1").wait_for("secret", "Applied", timeout=60)
    async with browser(tmp_path) as page:
        await page.visit(f"{fleet.console}#/work/{work_id}")
        await page.click("summary")
        await page.click("[data-key='show 0']")
        await page.until("document.querySelector('pre')?.textContent.includes('[redacted]')")
        everything = await page.run(
            f"Promise.all(['fleet', 'works', 'stuck', 'requests', 'works/{work_id}', 'works/{work_id}/manifests/0']"
            ".map((path) => fetch(`api/${path}`).then((answer) => answer.text()))).then((all) => all.join())"
        )
        assert "secret" in everything
        assert _SECRET not in everything
        assert "aHVudGVyMi" not in everything
