"""Press Tab in bash, zsh and fish: the shells run for real, on a pseudo-terminal where they need one."""

import fcntl
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from maestropy.cli.completion import scripts
from tests import waiting

SHELLS = ("bash", "zsh", "fish")
_START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
_LOAD = {
    "bash": "source {script}",
    "zsh": "autoload -U compinit && compinit -u -D && source {script}",
}


def require(shell: str) -> None:
    """Skip the test if the shell is not installed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed; `make test` installs it from Debian's packages")


class Completion:
    """A shell with the completion of maestro; `maestro` prints its arguments instead of running a command."""

    def __init__(self, shell: str, folder: Path, environment: Mapping[str, str]) -> None:
        require(shell)
        self._shell = shell
        self._folder = folder
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        program = programs / "maestro"
        maestro = f"{shlex.quote(sys.executable)} -m maestropy.cli.main"
        program.write_text(
            f'#!/bin/sh\nif [ "$1" = __complete ]; then exec {maestro} "$@"; fi\nprintf \'RAN:[%s]\\n\' "$*"\n'
        )
        program.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {**environment, "PATH": path, "TERM": "xterm", "HOME": str(folder)}
        self._script = folder / f"maestro.{shell}"
        self._script.write_text(scripts.SCRIPTS[shell])

    def tab(self, line: str) -> str:
        """Return the arguments of the command line after Tab was pressed at its end; the candidates in fish."""
        if self._shell == "fish":
            return self._fish(line)
        with _Terminal(_START[self._shell], folder=self._folder, environment=self._environment) as terminal:
            terminal.type(_LOAD[self._shell].format(script=self._script) + "\n")
            terminal.type('echo REA""DY\n')
            terminal.wait("READY")
            terminal.type(f"{line}\t\n")
            return terminal.wait("RAN:[").partition("RAN:[")[2].partition("]")[0]

    def _fish(self, line: str) -> str:
        code = f"source {shlex.quote(str(self._script))}; complete -C {shlex.quote(line)}"
        done = subprocess.run(
            ["fish", "--no-config", "-c", code],
            capture_output=True, text=True, check=True, cwd=self._folder, env=self._environment,
        )  # fmt: skip
        assert done.stderr == ""
        return " ".join(candidate.partition("\t")[0] for candidate in done.stdout.splitlines())


class _Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command: list[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
        self._process = subprocess.Popen(
            command, stdin=secondary, stdout=secondary, stderr=secondary, cwd=folder, env=environment,
            start_new_session=True, close_fds=True,
        )  # fmt: skip
        os.close(secondary)
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                block = os.read(self._primary, 4096)
            except OSError:
                return
            if not block:
                return
            self._shown += block

    def type(self, text: str) -> None:
        os.write(self._primary, text.encode())

    def wait(self, text: str) -> str:
        """Return what the program has printed, once a line with this text is complete."""

        def look() -> str:
            shown = self._shown.decode(errors="replace")
            return shown if "\n" in shown.partition(text)[2] else ""

        return waiting.wait_for(look, what=f"{text!r} on the terminal")

    def __enter__(self) -> "_Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(10)
        os.close(self._primary)
