"""Every block of the tutorial, run; `python tests/adapter/test_adapter_tutorial.py` writes the outputs anew."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maestropy.adapter import Event, scaffold
from maestropy.adapter.pipeline import Outcome
from maestropy.adapter.service import Service
from maestropy.sandbox import ports
from maestropy.testing import RunningFleet, running_fleet

PAGE = Path(__file__).parents[2] / "docs" / "write-an-adapter.md"
_BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Shell:
    """Runs the commands of a page one after the other, as a reader would."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = {**os.environ, **environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.background: list[subprocess.Popen[str]] = []
        self.port = str(ports.free(1)[0])

    def run(self, command: str) -> str:
        if command.startswith("cd "):
            self.folder = self.folder / command[3:]
            return ""
        real = command.replace("8088", self.port)
        if real.endswith(" &"):
            started = subprocess.Popen(
                f"exec {real[:-2]}",
                shell=True,
                cwd=self.folder,
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.background.append(started)
            assert started.stdout
            return started.stdout.readline().replace(self.port, "8088")
        ran = subprocess.run(
            real,
            shell=True,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.stdout.replace(self.port, "8088") + ran.stderr

    def close(self) -> None:
        for each in self.background:
            each.terminate()
            each.communicate(timeout=60)


def retold(page: str, shell: Shell) -> str:
    """The page with the outputs that its commands have now."""

    def again(found: re.Match[str]) -> str:
        kind, name, body = found.groups()
        if kind == "python" and name == "adapter.py":
            return f"```python adapter.py\n{scaffold.files('hello')['adapter.py']}```"
        if kind != "console":
            return found[0]
        commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"$ {each}\n{_steady(shell.run(each))}" for each in commands) + "```"

    return _BLOCK.sub(again, page)


def _steady(output: str) -> str:
    return re.sub(r"passed in [\d.]+s", "passed in 4.71s", output)


def test_the_commands_say_what_the_page_says(tmp_path: Path) -> None:
    page = PAGE.read_text()
    with running_fleet() as fleet:
        shell = Shell(tmp_path, fleet.environ)
        try:
            assert retold(page, shell) == page
        finally:
            shell.close()


def _programs() -> Iterator[str]:
    yield from (body for kind, name, body in _BLOCK.findall(PAGE.read_text()) if kind == "python" and not name)


def _run(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(program, PAGE.name, "exec"), names)
    return names


def test_the_broker_is_served() -> None:
    inbox_type, _ = _programs()
    seen: list[str] = []

    async def deal(event: Event) -> Outcome:
        seen.append(event.resource_id)
        return Outcome(report=None)

    async def scenario() -> None:
        inbox = _run(inbox_type)["QueueInbox"]()
        inbox.queue.put_nowait(b'{"id": "abc", "kind": "Cluster", "generation": 1}')
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(Service(inbox, deal, workers=1).run())
            while not seen or inbox.unsettled:
                await asyncio.sleep(0)
            serving.cancel()

    asyncio.run(scenario())
    assert seen == ["abc"]


def test_the_fleet_runs() -> None:
    _, fleet = _programs()
    assert "works" in _run(fleet)


def _write(fleet: RunningFleet, folder: Path) -> None:
    shell = Shell(folder, fleet.environ)
    try:
        PAGE.write_text(retold(PAGE.read_text(), shell))
    finally:
        shell.close()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place, running_fleet() as running:
        _write(running, Path(place))
