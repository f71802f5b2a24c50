"""Trace logs of known truth: how fast, in how much memory, and is every verdict right?

    python bench/trace_requests.py [requests] [folder]

Writes about 9.5 MB per thousand requests into the folder (a temporary one by default), and removes nothing that it did
not write itself.
"""

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import trace_request_logs as logs

from pymaestro.trace.request import scan, survey
from pymaestro.trace.request.model import Options


def write(folder: Path, count: int) -> dict[str, int | None]:
    """Write the logs and return at which stage each resource's request stops."""
    chance = random.Random(1)
    files = {pod: (folder / f"{pod}.log").open("w") for pod in (*logs.SERVERS, logs.AGENT)}
    truth: dict[str, int | None] = {}
    for number in range(count):
        until = chance.randint(1, 8) if chance.random() < 0.01 else 9
        story = logs.Story(work=f"work-{number}", at=logs.BASE + number * 0.02, until=until)
        truth[story.resource] = until + 1 if until < 9 else None
        for pod, _, line in logs.lines_g4(story):
            files[pod].write(f"{line}\n")
    end = logs.BASE + count * 0.02 + 600
    for file in files.values():
        file.write(logs.klog(end, "writer.go:35", "still here") + "\n")
        file.close()
    return truth


def measure(folder: Path, truth: dict[str, int | None]) -> None:
    started, used = time.perf_counter(), time.process_time()
    read = scan.everything([str(folder)], now=logs.BASE + 86400)
    scanned = time.process_time() - used
    known = survey.surroundings(read.hits, read.writers, options=Options())
    found = {each.key.resource: each.failed_stage for each in survey.traces(read.hits, known, options=Options())}
    used, wall = time.process_time() - used, time.perf_counter() - started
    wrong = sum(found.get(each) != stage for each, stage in truth.items())
    size = read.bytes / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"all requests: {size:.0f} MB, {len(found):,} requests, {wrong} wrong; {wall:.1f} s wall, {used:.1f} s CPU "
          f"(reading {size / scanned:.0f} MB/s, whole {size / used:.0f} MB/s), {peak:.0f} MB peak")  # fmt: skip
    one = list(truth)[len(truth) * 3 // 4]
    started, used = time.perf_counter(), time.process_time()
    read = scan.about([str(folder)], [one], now=logs.BASE + 86400)
    known = survey.surroundings(read.hits, read.writers, options=Options())
    verdicts = [
        each.verdict.value for each in survey.traces(read.hits, known, options=Options(), wanted=frozenset({one}))
    ]
    used = time.process_time() - used
    print(f"one resource: {time.perf_counter() - started:.2f} s wall, {size / used:.0f} MB/s of CPU time, {verdicts}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, write(folder, count))


if __name__ == "__main__":
    main()
