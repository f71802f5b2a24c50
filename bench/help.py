"""How long does `--help` of every command take?

    python -m bench.help [command ...]

Each command runs several times in a fresh process; the best counts. CPU time is the honest figure on a shared machine,
wall time what a person waits on a quiet one.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from scripts import generate_docs

RUNS = 5


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, the whole first."""
    yield ()
    yield from generate_docs.commands()


def measure(words: tuple[str, ...]) -> tuple[float, float]:
    """Return the best CPU and wall time, in milliseconds."""
    used, waited = [], []
    for _ in range(RUNS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "maestropy.cli.main", *words, "--help"], stdout=subprocess.DEVNULL, check=True
        )
        waited.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(used) * 1000, min(waited) * 1000


def main() -> None:
    wanted = tuple(sys.argv[1:])
    print(f"{'command':36}{'CPU ms':>8}{'wall ms':>9}")
    slowest = 0.0
    for words in [wanted] if wanted else commands():
        used, waited = measure(words)
        slowest = max(slowest, used)
        print(f"{'maestro ' + ' '.join(words):36}{used:8.0f}{waited:9.0f}", flush=True)
    print(f"{'slowest':36}{slowest:8.0f}")


if __name__ == "__main__":
    main()
