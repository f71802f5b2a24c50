"""Measure how often Ctrl-C in the first moments of `maestro` still shows a traceback of Python.

    python scripts/interrupt_starts.py --runs 200

Each run starts the console script beside this Python and sends it SIGINT after a random time of at most 300 ms. Before
the first line of ours Python itself starts: it reads its own modules and the `.pth` files of the environment, and
handles Ctrl-C by a traceback. The table says how many runs that hit, and how many anything of ours.
"""

import argparse
import collections
import contextlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_CONSOLE_SCRIPT = "import sys\nfrom maestropy import _start\nsys.exit(_start())\n"
"""What pip writes for `[project.scripts]`, without the name of the interpreter."""
_FILE = re.compile(r'^  File "(.+?)", line', re.MULTILINE)
_ENDED = "ended without a word"
_FINISHED = "finished before the signal"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Send SIGINT to starting commands.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--milliseconds", type=int, default=300, help="the latest moment of the signal")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - moments, no secrets
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "maestro"
        script.write_text(_CONSOLE_SCRIPT)
        seen = collections.Counter(
            _run(script, after=chance.uniform(0, given.milliseconds / 1000)) for _ in range(given.runs)
        )
    for what, count in seen.most_common():
        sys.stdout.write(f"{count:>5}  {what}\n")


def _run(script: Path, *, after: float) -> str:
    # A command that lasts as long as the signal may take: it waits for its standard input.
    line = [sys.executable, str(script), "resourcebundle", "diff", "-f", "-"]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if process.returncode in (-signal.SIGINT, 130) and not out + err:
        return _ENDED
    if "KeyboardInterrupt" not in err:
        return f"{_FINISHED} (exit code {process.returncode})"
    return f"traceback {_place(err)}"


def _place(err: str) -> str:
    """Return where a traceback was: in the start of Python, or in which file of ours."""
    ours = [name for name in _FILE.findall(err) if "maestropy" in Path(name).parts]
    if ours:
        return f"in {'/'.join(Path(ours[-1]).parts[-2:])}"
    if "in <module>" in err and "site" not in err:
        return "while the console script imports maestropy"
    return "in the start of Python, before the first line of ours"


if __name__ == "__main__":
    main()
