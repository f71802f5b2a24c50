"""Every test file, test and module path that the documentation names exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *TESTS]
_CODE = re.compile(r"`([^`\n]+)`")
_TEST_NAME = re.compile(r"\btest_[a-z0-9_]+\b(?!\.py)(?!…)")
_MODULE_PATH = re.compile(r"(?<![\w/.-])((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)\b")


def code_spans(page: Path) -> Iterator[str]:
    """Yield the inline code of a page."""
    yield from _CODE.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def known_names() -> set[str]:
    """The names of all test files and test functions."""
    names = {path.stem for path in TESTS}
    for path in TESTS:
        names.update(re.findall(r"def (test_[a-z0-9_]+)\(", path.read_text(encoding="utf-8")))
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_exist(page: Path, known_names: set[str]) -> None:
    named = {name for code in code_spans(page) for name in _TEST_NAME.findall(code)}
    prefixes = {name for name in named if any(known.startswith(name) for known in known_names)}
    assert named - prefixes == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_modules_exist(page: Path) -> None:
    paths = {path for code in code_spans(page) for path in _MODULE_PATH.findall(code)}
    missing = {path for path in paths if not any(source.as_posix().endswith(f"/{path}") for source in SOURCES)}
    assert {path for path in missing if not (ROOT / path).exists()} == set()
