"""Measure every output of `maestro trace requests`, and one request, on large logs.

    python -m bench.trace_outputs [requests]

Writes about 9.5 MB of logs per thousand requests (31,700 by default) into a temporary folder. Each measurement is the
command itself, without an index; CPU time and memory include its workers. Prints a table for docs/performance.md.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import trace_requests

_REQUESTS = 31_700
_OUTPUTS = ("text", "json", "jsonl", "yaml", "md", "csv", "html", "mermaid", "log")
_COMMAND = (sys.executable, "-m", "maestropy.cli.main", "trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one command took."""

    cpu: float
    wall: float
    memory: int
    written: int
    exit_code: int


def run(*words: str, out: Path) -> Usage:
    """Run `maestro trace` and measure it with its workers."""
    began = time.perf_counter()
    with out.open("wb") as file:
        process = subprocess.Popen([*_COMMAND, *words], stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
    return Usage(
        cpu=usage.ru_utime + usage.ru_stime,
        wall=time.perf_counter() - began,
        memory=usage.ru_maxrss * 1024,
        written=out.stat().st_size,
        exit_code=os.waitstatus_to_exitcode(status),
    )


def measurements(folder: Path, truth: dict[str, int | None]) -> Iterator[tuple[str, Usage]]:
    """Yield a name and the usage of every command."""
    out = folder.parent / "output"
    for output in _OUTPUTS:
        yield f"`requests -o {output}`", run("requests", str(folder), "-o", output, "--index=off", out=out)
    names = {
        "stopped": next(resource for resource, stage in truth.items() if stage is not None),
        "complete": next(resource for resource, stage in truth.items() if stage is None),
    }
    for name, resource in names.items():
        words = ("request", str(folder), "--resource-id", resource)
        yield f"`request`, one that is {name}", run(*words, out=out)


def main() -> None:
    """Write logs, measure, and print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _REQUESTS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "logs"
        folder.mkdir()
        truth = trace_requests.write(folder, count)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        print(json.dumps({"requests": count, "megabytes": round(size)}), file=sys.stderr)
        print("| command | CPU | compared with text | time | memory | output |\n|---|--:|--:|--:|--:|--:|")
        text_cpu = 0.0
        for name, usage in measurements(folder, truth):
            assert usage.exit_code in (0, 1), (name, usage)
            text_cpu = text_cpu or usage.cpu
            print(
                f"| {name} | {usage.cpu:.1f} s | {usage.cpu / text_cpu:.1f} | {usage.wall:.1f} s "
                f"| {usage.memory / 1e6:.0f} MB | {usage.written / 1e6:.1f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
