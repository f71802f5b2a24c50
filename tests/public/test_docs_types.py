"""Every Python snippet of the documentation passes `mypy --strict` and pyright, as a user's editor would check it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
_BLOCK = re.compile(r"^```python(?: \S+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JOINED = {"README.md", "sdk.md"}
"""Pages whose snippets continue each other; on other pages each snippet is a program of its own."""


@pytest.fixture(scope="module")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the snippets as modules; their lines are those of the page."""
    folder = tmp_path_factory.mktemp("snippets")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        programs = ["\n" * (text[: block.start()].count("\n") + 1) + block[1] for block in _BLOCK.finditer(text)]
        if page.name in _JOINED:
            programs = [_joined(programs)]
        for number, program in enumerate(filter(None, programs)):
            (folder / f"{page.stem.replace('-', '_').lower()}_{number}.py").write_text(program, encoding="utf-8")
    assert len(list(folder.iterdir())) > 5
    return folder


def _joined(programs: list[str]) -> str:
    lines: list[str] = []
    for program in programs:
        lines += program.splitlines()[len(lines) :]
    return "\n".join(lines) + "\n"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_snippets_pass_mypy_strict(snippets: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(snippets)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs Node.js")
def test_snippets_and_examples_pass_pyright(snippets: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(snippets), str(ROOT / "examples")],
        cwd=snippets,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
