"""Generated reference pages are fresh, and no page has a broken link."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))
GENERATED = SCRIPT["PAGES"]
ATTACK_TESTS = sorted((ROOT / "tests" / "attacks").glob("test_*.py"))
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
_ANCHOR = re.compile(r"\]\(([^)\s#]*)#([^)\s]+)\)")
_BLOCK = re.compile(r"```.*?```", re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MARKUP = re.compile(r"`|\*\*|\[([^\]]*)\]\([^)]*\)")


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_reference_page_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path](), f"{path.name} is stale: run `make docs`"


@pytest.mark.parametrize("path", ATTACK_TESTS, ids=lambda path: path.name)
def test_attack_tests_say_what_the_attacker_gets(path: Path) -> None:
    assert SCRIPT["attacks"](path), f'{path.name} has no docstring """<attack> -> <what the attacker gets>"""'


def links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target:
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_has_no_broken_link(page: Path) -> None:
    assert [target for target in links(page) if not (page.parent / target).exists()] == []


def headings(page: Path) -> list[str]:
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = [_MARKUP.sub(r"\1", title).strip().lower() for title in _HEADING.findall(text)]
    return [re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_has_no_broken_anchor(page: Path) -> None:
    linked = [
        ((page.parent / target if target else page), anchor)
        for target, anchor in _ANCHOR.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert [(file.name, anchor) for file, anchor in linked if anchor not in headings(file)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_page_opens_with_what_the_reader_has_at_the_end(page: Path) -> None:
    title, _, text = page.read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith("# ")
    assert text.startswith(("At the end of this page ", "At the end of this path "))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_is_in_the_navigation_of_the_site(page: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert str(page.relative_to(ROOT / "docs")) in navigation.split()
