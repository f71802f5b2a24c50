"""Write into a page what its commands print, on a real `maestro up` with two clusters.

    python scripts/record_runs.py docs/trace-work.md

A block of commands is run if `<!-- recorded -->` stands above it, in the order of the page; YAML blocks that begin with
`# NAME.yaml` are files to run them on. A command may only be one of ours. In the page `$DATA` stands for the folder in
which everything is kept, and `$SOCKET` for the one where the database listens. `tests/stack/test_docs_trace_work.py`
fails when a page shows something else than what is printed.
"""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from maestropy.cli import main as cli

_BLOCK = re.compile(r"(?<=^<!-- recorded -->\n```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.+)\n", re.MULTILINE)
_SOCKET = re.compile(r"/\S*/maestropy-pg-\w+")
_PATIENCE_SECONDS = 60


@contextlib.contextmanager
def up(folder: Path) -> Iterator[None]:
    """Run `maestro up` while entered, known to commands of this process as the environment in use."""
    (folder / "config").mkdir()
    (folder / "works").mkdir()
    given = {"XDG_CONFIG_HOME": str(folder / "config"), "DATA": str(folder / "data"), "COLUMNS": "100"}
    known = {name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "HYPERFLEET_"))}
    shown = folder / "up.log"
    command = [sys.executable, "-m", "maestropy.cli.main", "up", "--agents=2", "--free-ports", "--write-config"]
    with shown.open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--data-dir={folder / 'data'}"], stdout=log, stderr=log, env=known | given
        )
    before, place = dict(os.environ), Path.cwd()
    try:
        wait_until(lambda: "Ctrl-C stops" in shown.read_text() or process.poll() is not None)
        if process.poll() is not None:
            raise RuntimeError(shown.read_text())
        os.environ.clear()
        os.environ.update(known | given)
        os.chdir(folder / "works")
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)
        process.send_signal(signal.SIGINT)
        process.wait(_PATIENCE_SECONDS)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {_PATIENCE_SECONDS} seconds")
        time.sleep(0.05)


def write_files(page: str) -> None:
    """Write the files of a page into the working directory."""
    for name, content in _FILE.findall(page):
        Path(name).write_text(content, encoding="utf-8")


def written(page: str) -> str:
    """Return the page with what its commands print now; to be called while `maestro up` runs."""
    write_files(page)
    return _BLOCK.sub(lambda found: "".join(f"$ {each}\n{printed(each)}" for each, _ in _commands(found[1])), page)


def shown(page: str) -> Iterator[tuple[str, str]]:
    """Yield every command of a page that is recorded, and what the page shows under it."""
    for block in _BLOCK.findall(page):
        yield from _commands(block)


def _commands(block: str) -> Iterator[tuple[str, str]]:
    parts = _COMMAND.split(block)[1:]
    yield from zip(parts[::2], parts[1::2], strict=True)


def printed(command: str) -> str:
    """Return what a command prints, and how it ends."""
    program, *words = shlex.split(os.path.expandvars(command.replace("\\\n", " ")))
    if program != "maestro":
        raise ValueError(f"{program} is not ours; only maestro is run")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = cli.call(words)
    text = _SOCKET.sub("$SOCKET", out.getvalue().replace(os.environ["DATA"], "$DATA"))
    lines = text.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in [*lines, f"exit {code}"])


def main() -> None:
    """Record every page that is named."""
    for name in sys.argv[1:]:
        path = Path(name).absolute()
        with tempfile.TemporaryDirectory(prefix="maestro-pages-") as folder, up(Path(folder)):
            page = written(path.read_text(encoding="utf-8"))
        path.write_text(page, encoding="utf-8")
        sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main()
