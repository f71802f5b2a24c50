"""`maestro completion`: scripts that shells take and that know our commands."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_COMPLETE = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_maestro
echo "${{COMPREPLY[@]}}"
"""


def script(shell: str) -> str:
    command = [sys.executable, "-m", "maestropy.cli.main", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("maestro resource", "resourcebundle", id="command"),
        pytest.param("maestro resourcebundle des", "describe", id="subcommand"),
        pytest.param("maestro consumer list --sel", "--selector", id="flag"),
        pytest.param("maestro server --grpc-broker-bind", "--grpc-broker-bindport", id="flag-of-the-server"),
    ],
)
def test_bash_completes(words: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "maestro.bash"
    file.write_text(script("bash"))
    code = _COMPLETE.format(script=file, words=words)
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert expected in done.stdout.split(), done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_the_script(shell: str, tmp_path: Path) -> None:
    text = script(shell)
    assert "resourcebundle" in text
    assert "--grpc-broker-bindport" in text or "grpc-broker-bindport" in text
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(text)
        subprocess.run([shell, "-n", str(file)], check=True)
