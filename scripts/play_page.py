"""Play a page of the documentation as a newcomer would, and write into it what its commands print.

    python scripts/play_page.py docs/start-on-call.md

The commands are those of the `console` blocks, in the order of the page, in one bash. A block whose first line names a
file (three backticks, `yaml web.yaml`) is that file. A command that does not end with 0 is followed by `exit CODE`. A
command that ends with `&` runs until the end of the page; shown is its first line. The home directory is shown as `~`.
`tests/stack/test_docs_newcomers.py` fails when a page shows something else than what is printed.
"""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL = ROOT / "docs" / "install.md"
_BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.+)\n", re.MULTILINE)
_END = "\x1e"
_COMMAND_SECONDS = 240
_RETRY_SECONDS = 30
_CLOSE_SECONDS = 60
# What differs each time: random IDs (version 4), moments, durations, addresses, hashes; and our version.
_VOLATILE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(\.[0-9a-f]{12})?"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\]"), "KLOG"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|h)\b( \([\d:]+\))?"), "DURATION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"^\d+\.\d+\.\d+\S*$", re.MULTILINE), "VERSION"),
    (re.compile(r"\bop [0-9a-f]{8}…|\.log:\d+|\d+ times"), "ID"),
    # The bars of a report of a trace.
    (re.compile(r" [=|X]+( |$)", re.MULTILINE), " "),
    (re.compile(r"[ ─-]+"), " "),
)
# Commands that only read are given time to print what the page shows.
_READS = (" describe", " list", " status", " get", " trace", "--dry-run", "curl", "grep")


class Reader:
    """Runs the commands of pages in one bash with a home directory of its own and no inherited variables."""

    def __init__(self, home: Path, *, environ: Mapping[str, str] | None = None, ports: Mapping[str, str] = {}) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self._ports = dict(ports)
        self._started = 0
        self._rest = b""
        self._folder = tempfile.mkdtemp(prefix="maestro-page-")
        # The Python of this process, under the name that a page uses; a virtual environment keeps the path of the link.
        programs = home / ".programs"
        if not programs.exists():
            programs.mkdir()
            (programs / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
        base = {"HOME": str(home), "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],  # noqa: S607 - the one of this computer
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=home,
            env={**base, "COLUMNS": "100", **(environ or {})},
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        """Return what a command prints."""
        real = self._with_ports(command)
        if real.endswith(" &") and ">" not in real:
            return self._started_in_background(real)
        return self._shown(self._printed(real))

    def write(self, name: str, content: str) -> None:
        """Write a file of the page into the working directory of the shell."""
        folder = self._printed("pwd").strip()
        (Path(folder) / name).write_text(self._with_ports(content), encoding="utf-8")

    def close(self) -> None:
        """Stop the shell and everything that it started."""
        assert self._bash.stdin
        assert self._bash.stdout
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._bash.stdin.write(b"kill $(jobs -p) 2> /dev/null; wait; exit\n")
            self._bash.stdin.flush()
            self._bash.wait(_CLOSE_SECONDS)
        # A command that hangs keeps the shell from reading this; a program that started PostgreSQL has to stop it.
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _CLOSE_SECONDS
            while self._bash.poll() is None and _signalled(self._bash.pid, number) and time.monotonic() < end:
                time.sleep(0.5)
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _started_in_background(self, command: str) -> str:
        self._started += 1
        printed = Path(self._folder) / f"{self._started}.out"
        self._printed(f"{command[:-2]} > {printed} 2> /dev/null &")
        end = time.monotonic() + _COMMAND_SECONDS
        while not (first := printed.read_text(encoding="utf-8") if printed.exists() else "").count("\n"):
            if time.monotonic() > end:
                raise TimeoutError(f"{command} printed nothing in {_COMMAND_SECONDS} seconds")
            time.sleep(0.05)
        return self._shown(first.partition("\n")[0] + "\n")

    def _printed(self, command: str) -> str:
        assert self._bash.stdin
        assert self._bash.stdout
        # In braces it runs in this shell, so `cd` and `export` count for what follows.
        script = f"{{ {command}\n}} < /dev/null\nprintf '{_END}%d\\n' $?\n"
        self._bash.stdin.write(script.encode())
        self._bash.stdin.flush()
        out, end = self._rest, time.monotonic() + _COMMAND_SECONDS
        while not (found := re.search(rf"{_END}(\d+)\n".encode(), out)):
            ready, _, _ = select.select([self._bash.stdout], [], [], max(0.0, end - time.monotonic()))
            read = os.read(self._bash.stdout.fileno(), 65536) if ready else b""
            if not read:
                raise TimeoutError(f"{command} did not end; it printed {out.decode(errors='replace')}")
            out += read
        # What a program in the background prints later is seen with the next command.
        self._rest = out[found.end() :]
        text = out[: found.start()].decode()
        if code := int(found[1]):
            text += f"exit {code}\n" if not text or text.endswith("\n") else f"\nexit {code}\n"
        return text

    def _with_ports(self, text: str) -> str:
        for shown, port in self._ports.items():
            text = re.sub(rf"\b{shown}\b", port, text)
        return text

    def _shown(self, text: str) -> str:
        for shown, port in self._ports.items():
            text = re.sub(rf"\b{port}\b", shown, text)
        text = text.replace(str(self.home), "~").replace("\r", "")
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def play(page: str, reader: Reader) -> Iterator[tuple[str, str, str]]:
    """Run the commands of a page; yield each with what the page shows and what it prints.

    A command that only reads is run again for a while if it prints something else than what the page shows.
    """
    for kind, name, body in _BLOCK.findall(page):
        if kind != "console":
            if name:
                reader.write(name, body)
            continue
        for command, shown in commands(body):
            printed = reader.run(command)
            end = time.monotonic() + _RETRY_SECONDS
            while shown and plain(printed) != plain(shown) and is_read(command) and time.monotonic() < end:
                time.sleep(0.2)
                printed = reader.run(command)
            yield command, shown, printed


def recorded(page: str, reader: Reader) -> str:
    """Return the page with what its commands print now; what is equal but for volatile parts stays."""
    outputs = iter([shown if plain(shown) == plain(now) else now for _, shown, now in play(page, reader)])

    def rewritten(block: re.Match[str]) -> str:
        if block[1] != "console":
            return block[0]
        return "```console\n" + "".join(f"$ {command}\n{next(outputs)}" for command, _ in commands(block[3])) + "```"

    return _BLOCK.sub(rewritten, page)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, each with what is shown under it."""
    parts = _COMMAND.split(block)[1:]
    yield from zip(parts[::2], parts[1::2], strict=True)


def is_read(command: str) -> bool:
    """Whether a command can be run again without a further effect."""
    return any(word in f" {command}" for word in _READS)


def plain(text: str) -> str:
    """Return an output without what differs each time.

    Its lines are sorted, because conditions come in the order in which they came true, and equal ones count once,
    because evidence is repeated as often as something was tried.
    """
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return "\n".join(sorted({line.strip() for line in text.strip().splitlines()}))


def copy_tree(target: Path) -> None:
    """Copy the files of the repository, as a clone would have them, with changes that are not committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - the one of this computer
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def package_index() -> dict[str, str]:
    """Return the variables by which pip reaches packages on this computer; only the installation gets them."""
    names = re.compile(r"PIP_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|(https?|no)_proxy", re.IGNORECASE)
    found = {name: value for name, value in os.environ.items() if names.fullmatch(name)}
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {"PIP_CACHE_DIR": f"{cache}/pip", **found}


def this_installation() -> dict[str, str]:
    """Return the variables that make a page use the installation of this process."""
    return {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}


def _signalled(group: int, number: signal.Signals) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def main(names: list[str]) -> None:
    """Record the installation, and then every page that is named, each in the installed clone and a new home."""
    with tempfile.TemporaryDirectory(prefix="maestro-pages-") as folder:
        home = Path(folder) / "home"
        copy_tree(home / "maestropy")
        for path in [INSTALL, *(Path(name).absolute() for name in names)]:
            reader = Reader(home, environ=package_index() if path == INSTALL else {})
            try:
                if path != INSTALL:
                    reader.run("cd maestropy && source .venv/bin/activate")
                path.write_text(recorded(path.read_text(encoding="utf-8"), reader), encoding="utf-8")
            finally:
                reader.close()
            sys.stdout.write(f"wrote {path.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
