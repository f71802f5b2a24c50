"""A real browser, driven over its DevTools protocol: open a page, run a script in it, press keys, take a picture."""

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from tests import waiting

_START_SECONDS = 60.0
_PATIENCE = 60.0
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"),
    "--remote-debugging-port=0",
)
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9}


def program() -> str | None:
    """Return where a Chromium is; None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Page:
    """One tab. What its console and its network did is kept from the beginning."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.errors: list[str] = []
        self.requests: list[str] = []

    async def listen(self) -> None:
        """Take what the browser says, until it is gone."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            elif said["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(said["params"]["exceptionDetails"]))
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] in ("error", "warning"):
                self.errors.append(said["params"]["entry"]["text"])
            elif said["method"] == "Runtime.consoleAPICalled" and said["params"]["type"] in ("error", "warning"):
                self.errors.append(str(said["params"]["args"]))

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        said = await asyncio.wait_for(answer, _PATIENCE)
        assert "error" not in said, said
        result: dict[str, Any] = said.get("result", {})
        return result

    async def open(self, path: Path, *, fragment: str = "") -> None:
        """Open a file and wait until its data are shown."""
        await self.ask("Page.navigate", url=path.as_uri() + fragment)
        await self.until("document.documentElement?.dataset.ready !== undefined")

    async def visit(self, address: str) -> None:
        """Open an address and wait until its page shows data."""
        await self.ask("Page.navigate", url=address)
        await self.until("document.documentElement?.dataset.ready !== undefined")

    async def run(self, script: str) -> Any:
        """Return the value of an expression."""
        result = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression, or what it promises, is true."""
        await waiting.until(
            lambda: self.run(f"Promise.resolve({script}).then(Boolean)"), what=script, seconds=_PATIENCE
        )

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            code = KEYS.get(key, 0)
            more: dict[str, Any] = {"windowsVirtualKeyCode": code} if code else {"text": key}
            if key == "Enter":
                more["text"] = "\r"
            await self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse, as a person does."""
        await self.click_on(f"document.querySelector({selector!r})")

    async def click_on(self, expression: str) -> None:
        """Click the element that an expression finds, as soon as it is there."""
        # Found and measured at once: a live page may replace the element at any moment.
        measure = "(one.scrollIntoView({block: 'center'}), one.getBoundingClientRect().toJSON())"
        # What is closed or hidden has no place where it could be clicked.
        script = f"((one) => one?.getClientRects().length ? {measure} : null)({expression})"
        box = await waiting.until(lambda: self.run(script), what=expression, seconds=_PATIENCE)
        place: dict[str, Any] = {"x": box["x"] + min(box["width"], 60) / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    async def resize(self, width: int, height: int) -> None:
        """Give the tab another size."""
        await self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                       mobile=False)  # fmt: skip

    async def prefer(self, scheme: str) -> None:
        """Let the system be light or dark."""
        await self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def picture(self, file: Path) -> None:
        """Write what is to be seen as PNG."""
        # Two frames later everything that was asked for is drawn.
        await self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        taken = await self.ask("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(taken["data"]))


@contextlib.asynccontextmanager
async def browser(folder: Path, *, width: int = 1440, height: int = 900) -> AsyncIterator[Page]:
    """Yield a tab of a browser that ends with the block."""
    found = program()
    assert found
    port_file = folder / "DevToolsActivePort"
    process = await asyncio.create_subprocess_exec(
        found,
        *(*_FLAGS, f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not port_file.exists() or len(port_file.read_text().splitlines()) < 2:
                assert process.returncode is None, "the browser ended at once"
                await asyncio.sleep(0.05)
        port = int(port_file.read_text().splitlines()[0])
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = await answer.json()
            where = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            async with _connected(session, where, width=width, height=height) as page:
                yield page
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def _connected(session: aiohttp.ClientSession, where: str, *, width: int, height: int) -> AsyncIterator[Page]:
    async with session.ws_connect(where, max_msg_size=1 << 28) as socket, asyncio.TaskGroup() as group:
        page = Page(socket)
        listening = group.create_task(page.listen(), name="listen to the browser")
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.ask(f"{domain}.enable")
        await page.resize(width, height)
        yield page
        listening.cancel()


@contextlib.contextmanager
def shared_browser(folder: Path) -> Iterator[int]:
    """Run a browser for several tests, each with a tab of its own; yield its port."""
    found = program()
    assert found
    port_file = folder / "DevToolsActivePort"
    command = [found, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        waiting.wait_for(
            lambda: port_file.exists() and len(port_file.read_text().splitlines()) > 1,
            what="the browser",
            seconds=_START_SECONDS,
        )
        yield int(port_file.read_text().splitlines()[0])
    finally:
        process.terminate()
        process.wait()


@contextlib.asynccontextmanager
async def tab(port: int, *, width: int = 1440, height: int = 900) -> AsyncIterator[Page]:
    """Yield a new tab of a shared browser; it is closed with the block."""
    address = f"http://127.0.0.1:{port}/json"
    async with aiohttp.ClientSession() as session:
        async with session.put(f"{address}/new?about:blank") as answer:
            made = await answer.json()
        try:
            async with _connected(session, made["webSocketDebuggerUrl"], width=width, height=height) as page:
                yield page
        finally:
            async with session.get(f"{address}/close/{made['id']}"):
                pass
