"""`maestro up` as a person runs it: a process of its own, found by the other commands, stopped by Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

README = Path(__file__).parents[2] / "README.md"
MAESTRO = [sys.executable, "-m", "pymaestro.cli.main"]


def test_the_commands_of_the_readme_find_what_is_up(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAESTRO_", "HYPERFLEET_"))}
    environ |= {"XDG_CONFIG_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shown = tmp_path / "shown"
    with shown.open("wb") as out:
        command = [*MAESTRO, "up", "--ephemeral", "--free-ports", "--write-config"]
        up = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)
    try:
        wait_for_text(shown, "Ctrl-C stops everything", up)
        config = yaml.safe_load((tmp_path / "pymaestro" / "config.yaml").read_text())
        assert config["current"] == "local"
        assert config["environments"]["local"]["rest-url"] in shown.read_text()
        said = [run(line, environ, folder=tmp_path) for line in readme_commands()]
        assert "cluster1" in said[0]
        assert re.search(r" hello +cluster1 +1 .* Applied$", said[-1], re.MULTILINE)
    finally:
        up.send_signal(signal.SIGINT)
        code = up.wait(30)
    assert code == 130
    assert shown.read_text().endswith("stopping\n")


def readme_commands() -> list[str]:
    """Return the commands for a second terminal."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = next(block for block in blocks if "maestro consumer list" in block).splitlines()
    return [line for line in lines if not line.startswith("source ")]


def run(line: str, environ: dict[str, str], *, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", line], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_text(path: Path, text: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 30
    while text not in path.read_text():
        assert process.poll() is None, path.read_text()
        assert time.monotonic() < end, path.read_text()
        time.sleep(0.05)
