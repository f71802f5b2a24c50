"""Run every block of the tutorial; `python tests/adapter/test_tutorial.py` rewrites the outputs."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maestropy.adapter import Event
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.service import AdapterService
from maestropy.adapter.tooling import scaffold
from maestropy.sandbox import ports
from maestropy.testing import RunningFleet, running_fleet
from scripts import play_page

PAGE = Path(__file__).parents[2] / "docs" / "write-an-adapter.md"
_BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell_on(fleet: RunningFleet, folder: Path) -> play_page.Reader:
    """Return a shell for the commands of the page, on a fleet and on free ports in place of those of the page."""
    free = dict(zip(("8088", "9090"), map(str, ports.free(2)), strict=True))
    environ = {**play_page.this_installation(), **fleet.environ, "COLUMNS": "80"}
    return play_page.Reader(folder, environ=environ, ports=free)


def rerun(page: str, shell: play_page.Reader) -> str:
    """The page with the current outputs of its commands."""

    def rewritten(block: re.Match[str]) -> str:
        kind, name, body = block.groups()
        if kind == "python" and name == "adapter.py":
            return f"```python adapter.py\n{scaffold.files('hello')['adapter.py']}```"
        if kind != "console":
            return block[0]
        commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
        return (
            "```console\n"
            + "".join(f"$ {command}\n{_without_times(shell.run(command))}" for command in commands)
            + "```"
        )

    return _BLOCK.sub(rewritten, page)


def _without_times(output: str) -> str:
    """Put one time for all; from a minute on pytest adds it in minutes: (0:01:19)."""
    return re.sub(r"passed in [\d.]+s( \([\d:]+\))?", "passed in 4.71s", output)


@pytest.mark.timeout(900)
@pytest.mark.long
def test_page_shows_the_current_output(tmp_path: Path) -> None:
    page = PAGE.read_text()
    with running_fleet() as fleet:
        shell = shell_on(fleet, tmp_path)
        try:
            assert rerun(page, shell) == page
        finally:
            shell.close()


def _programs() -> Iterator[str]:
    yield from (body for kind, name, body in _BLOCK.findall(PAGE.read_text()) if kind == "python" and not name)


def _run(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(program, PAGE.name, "exec"), names)
    return names


async def test_inbox_of_the_page_is_served() -> None:
    inbox_type, *_ = _programs()
    handled: list[str] = []

    async def handle(event: Event) -> EventOutcome:
        handled.append(event.resource_id)
        return EventOutcome(status=None)

    inbox = _run(inbox_type)["QueueInbox"]()
    inbox.queue.put_nowait(b'{"id": "abc", "kind": "Cluster", "generation": 1}')
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(AdapterService(inbox, handle, workers=1).run())
        while not handled or inbox.unsettled:
            await asyncio.sleep(0)
        serving.cancel()
    assert handled == ["abc"]


@pytest.mark.long
def test_fleet_examples_of_the_page_run() -> None:
    _, fleet, operator = _programs()
    assert "works" in _run(fleet)
    assert "observed" in _run(operator)


def _write(fleet: RunningFleet, folder: Path) -> None:
    shell = shell_on(fleet, folder)
    try:
        PAGE.write_text(rerun(PAGE.read_text(), shell))
    finally:
        shell.close()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder, running_fleet() as running:
        _write(running, Path(folder))
