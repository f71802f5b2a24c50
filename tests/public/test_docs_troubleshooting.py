"""Every error text and every code on the page about troubleshooting is one of the code's."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from maestropy.trace.findings.codes import CODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SOURCES = [path for path in sorted((ROOT / "src").rglob("*.py")) if "_pb" not in path.parts]
_ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
_CODE = re.compile(r"\b(?:MT|MW|HCP)-\d{3}\b")
_LEAST_CHARACTERS = 12


def templates(path: Path) -> Iterator[str]:
    """Yield the texts of a module; what is put into a text at run time is an ellipsis."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


TEXTS = _ROW.findall(PAGE[PAGE.index("## By error text") : PAGE.index("## Codes")])


@cache
def all_templates() -> list[str]:
    """Return the texts of all modules; not at import, which every worker of a test run does."""
    return [text for path in SOURCES for text in templates(path)]


def is_of(text: str, template: str) -> bool:
    """Whether the constant parts of a text are in a template, in their order."""
    position = 0
    for part in filter(None, (part.strip(" :;,'\"()") for part in text.split("…"))):
        position = template.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def test_page_has_error_texts_of_every_component() -> None:
    assert len(TEXTS) > 60
    assert len(TEXTS) == len(set(TEXTS))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:60])
def test_error_text_is_one_of_the_code(text: str) -> None:
    assert max(map(len, text.split("…"))) >= _LEAST_CHARACTERS, "too short to tell it from other texts"
    assert any(is_of(text, template) for template in all_templates()), "no module has this text: correct the page"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_codes_of_a_page_exist(page: Path) -> None:
    named = set(_CODE.findall(page.read_text(encoding="utf-8")))
    assert named - set(CODES) == set()
