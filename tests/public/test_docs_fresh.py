"""The reference pages say what the code says, and no page leads nowhere."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))["PAGES"]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
_BLOCK = re.compile(r"```.*?```", re.DOTALL)


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_a_reference_page_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path](), f"{path.name} is stale: run `make docs`"


def links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target:
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_nowhere(page: Path) -> None:
    assert [target for target in links(page) if not (page.parent / target).exists()] == []
