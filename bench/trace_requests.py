"""Measure the request tracer: time, memory, and whether every verdict is right.

    python bench/trace_requests.py [requests] [folder] [noise in MB]

Writes about 9.5 MB per thousand requests into the folder (a temporary one by default), and removes nothing that it did
not write itself. Each measurement is a process of its own; CPU time and memory include its workers.
"""

import gc
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from maestropy.trace.logs import index, tracer
from maestropy.trace.logs.model import Options
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.inputs import log_inputs
from maestropy.trace.report.statistics import statistics
from tests import trace_request_logs as logs

NOW = logs.BASE + 86400


def write(folder: Path, count: int, *, noise: int = 0) -> dict[str, int | None]:
    """Write the logs and return at which stage each resource's request stops."""
    chance = random.Random(1)
    files = {pod: (folder / f"{pod}.log").open("w") for pod in (*logs.SERVERS, logs.AGENT)}
    truth: dict[str, int | None] = {}
    chatter = noise * 1_000_000 // max(1, count * len(files))
    for number in range(count):
        until = chance.randint(1, 8) if chance.random() < 0.01 else 9
        logged = logs.LoggedRequest(work=f"work-{number}", at=logs.BASE + number * 0.02, until=until)
        truth[logged.resource] = until + 1 if until < 9 else None
        for pod, _, line in logs.lines_g4(logged):
            files[pod].write(f"{line}\n")
        if chatter:
            line = logs.klog(
                logged.at, "reflector.go:561", f'"Watch close" reflector="a.go:1" type="v1.Secret" n={number}'
            )
            for file in files.values():
                file.write(f"{line}\n" * (chatter // len(line)))
    end = logs.BASE + count * 0.02 + 600
    for file in files.values():
        file.write(logs.klog(end, "writer.go:35", "still here") + "\n")
        file.close()
    return truth


def scan_all(folder: Path, jobs: int, *, kept: Path | None) -> str:
    """Judge all requests; say how many verdicts are wrong."""
    files = log_inputs.plain_files([str(folder)])
    if kept is not None and kept.exists():
        found = index.load(kept, files)
        read, resources = found.scan, found.resources
        environment = tracer.read_environment(read.records, read.writers, options=Options(), are_clocks_known=True)
    else:
        read = scan.scan_all([str(folder)], now=NOW, jobs=jobs)
        environment = tracer.read_environment(read.records, read.writers, options=Options())
        resources = tracer.classify(read.records, environment.writers)
        if kept is not None:
            index.save(kept, read, resources, files=files)
    traces = list(tracer.traces(read.records, environment, options=Options(), resources=resources))
    statistics(traces)
    truth = json.loads((folder / "truth.json").read_text())
    verdicts = {trace.key.resource: trace.failed_stage for trace in traces}
    wrong = sum(verdicts.get(each) != stage for each, stage in truth.items())
    return f"{len(verdicts):,} requests, {wrong} wrong"


def one(folder: Path, identifier: str) -> str:
    """Judge the requests behind one identifier, as the command does."""
    matches: scan.Matches = {}
    read = scan.scan_around([str(folder)], [identifier], now=NOW, matches=matches)
    wanted = frozenset(scan.resources_of(read.records, [identifier])[identifier])
    if identifier not in wanted:
        read = scan.scan_around([str(folder)], [*wanted, identifier], now=NOW, matches=matches)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    return ", ".join(
        trace.verdict for trace in tracer.traces(read.records, environment, options=Options(), wanted=wanted)
    )


def measured(name: str, command: list[str], size: float) -> float:
    """Run a command; print and return its CPU time."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, _, usage = os.wait4(process.pid, 0)
        out.seek(0)
        said = out.read().strip().splitlines()
    wall, cpu = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
    print(f"{name:28} {cpu:7.2f} s CPU {wall:7.2f} s wall {size / cpu:7.0f} MB/s of CPU "
          f"{usage.ru_maxrss / 1024:6.0f} MB   {said[-1] if said else ''}")  # fmt: skip
    return cpu


def main() -> None:
    """Write logs and measure."""
    if len(sys.argv) > 1 and sys.argv[1] == "--measure":
        gc.disable()
        _, _, what, measured, word = sys.argv
        if what == "one":
            print(one(Path(measured), word))
        else:
            print(scan_all(Path(measured), int(what), kept=Path(word) if word else None))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    noise = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        truth = write(folder, count, noise=noise)
        (folder / "truth.json").write_text(json.dumps(truth))
        measure(folder, list(truth), kept=Path(temporary) / "kept.index")


def measure(folder: Path, resources: list[str], *, kept: Path) -> None:
    """Measure everything there is to measure."""
    files = sorted(str(path) for path in folder.glob("*.log"))
    size = sum(Path(file).stat().st_size for file in files) / 1e6
    print(f"{size:,.0f} MB, {len(resources):,} requests")
    me = [sys.executable, __file__, "--measure"]
    measured("all, one process", [*me, "1", str(folder), ""], size)
    measured("all, two processes", [*me, "2", str(folder), ""], size)
    measured("all, keeping an index", [*me, "1", str(folder), str(kept)], size)
    measured("all, from the index", [*me, "1", str(folder), str(kept)], size)
    place = len(resources) * 3 // 4
    resource = measured("one by its resource", [*me, "one", str(folder), resources[place]], size)
    measured("one by its operation", [*me, "one", str(folder), f"op-work-{place}-create-1"], size)
    grep = shutil.which("grep")
    if grep is not None:
        cpu = measured("grep -F, its resource", [grep, "-cF", resources[place], *files], size)
        print(f"the tracer takes {resource / cpu:.1f} times what grep takes")


if __name__ == "__main__":
    main()
