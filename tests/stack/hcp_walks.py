"""Run `maestro trace hcp` on the practice fleet."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from maestropy.sandbox.hcp import documents
from maestropy.sandbox.hcp.practice_fleet import PracticeFleet, practice_fleet

TIMEOUT_SECONDS = 60
"""Of each request; far more than a walk takes on a busy machine, so that one that waits for it is noticed."""


def walked(tmp_path: Path, scenario: str, *more: str) -> dict[str, Any]:
    """Walk along a scenario with the command itself; return the report and how long it took."""

    async def context() -> dict[str, Any]:
        async with practice_fleet(tmp_path / "fleet", documents.SCENARIOS[scenario]) as started:
            return await command(started, *more)

    return asyncio.run(context())


async def command(started: PracticeFleet, *more: str) -> dict[str, Any]:
    return await run_command(*started.arguments, "-o", "json", *more)


async def run_command(*words: str) -> dict[str, Any]:
    """Run `maestro trace hcp`."""
    began = time.monotonic()
    code, printed = await run("trace", "hcp", *words, "--timeout", str(TIMEOUT_SECONDS))
    return {**json.loads(printed), "code": code, "seconds": time.monotonic() - began}


async def run(*words: str) -> tuple[int | None, bytes]:
    """Run a command of ours; return its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "maestropy.cli.main", *words, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return process.returncode, printed
