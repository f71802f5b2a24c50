"""Measure a process under attack: its memory, and how fast it answers meanwhile."""

import asyncio
import re
import time
from pathlib import Path

import httpx

MIB = 2**20


def peak_bytes(pid: int) -> int:
    """Return the largest resident memory that the process ever had."""
    return _status_bytes(pid, "VmHWM")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of the process."""
    return _status_bytes(pid, "VmRSS")


def _status_bytes(pid: int, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


async def answer_seconds(url: str, *, count: int = 20, client: httpx.AsyncClient | None = None) -> list[float]:
    """Return the sorted times of requests that each open a connection of their own."""
    seconds = []
    for _ in range(count):
        async with client or httpx.AsyncClient(timeout=30, verify=False) as session:  # a self-signed certificate
            started = time.monotonic()
            response = await session.get(url)
            seconds.append(time.monotonic() - started)
            assert response.status_code == 200
        await asyncio.sleep(0)
    return sorted(seconds)
