"""The commands of the quick start, run on a real fleet, print what the page shows."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maestropy.testing import running_fleet

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_CHANGING = (
    # What is another one each time: random ids (version 4), moments.
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r" +"), " "),
)
_READS = ("describe", "list", "status", "get", "trace")


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "web.yaml").write_text("".join(_YAML.findall(text)[0]))
    commands = [found for block in _CONSOLE.findall(text) for found in _COMMAND.findall(block)]
    assert len(commands) > 8
    with running_fleet(folder=tmp_path / "fleet") as fleet:
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "HYPERFLEET_"))
        }
        environ |= {"XDG_CONFIG_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        keep = f"maestro config set-env local --rest-url {fleet.api_url} --grpc-server-address {fleet.grpc_url}"
        keep += f" --db-dsn '{fleet.inner.dsn}' --mgmt-kubeconfig cluster1={fleet.cluster().kubeconfig}"
        shown(keep, environ, folder=tmp_path)
        for command, expected in commands:
            assert eventually(command, plain(expected), environ, folder=tmp_path) == plain(expected), command


def eventually(command: str, expected: str, environ: dict[str, str], *, folder: Path) -> str:
    """Return what a command prints; one that only reads is given a moment to print what is expected."""
    end = time.monotonic() + (10 if any(f" {verb}" in command for verb in _READS) else 0)
    while True:
        found = plain(shown(command, environ, folder=folder))
        if found == expected or time.monotonic() > end:
            return found


def shown(command: str, environ: dict[str, str], *, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", command], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def plain(text: str) -> str:
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    # Sorted: conditions stand in the order in which they came true.
    return "\n".join(sorted(line.strip() for line in text.strip().splitlines()))
