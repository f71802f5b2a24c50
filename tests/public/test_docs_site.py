"""The check of `make docs` finds what a page of the site would load from another host."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "build_site.py"))


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/mermaid.js"></script>',
        '<script async src="//cdn.example/mermaid.js"></script>',
        '<link href="https://fonts.example/css" rel="stylesheet">',
        '<link rel="shortcut icon" href="https://cdn.example/icon.png">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img alt="badge" src="http://badges.example/build.svg">',
        '<iframe src="https://videos.example/1"></iframe>',
    ],
    ids=["script", "without-scheme", "style", "icon", "preconnect", "image", "frame"],
)
def test_asset_of_another_host_is_found(page: str) -> None:
    assert len(SCRIPT["foreign_assets"](page)) == 1


@pytest.mark.parametrize(
    "page",
    [
        '<script src="mermaid.min.js"></script>',
        '<link rel="stylesheet" href="assets/stylesheets/main.css">',
        '<link rel="canonical" href="https://docs.example/on-call.html">',
        '<a href="https://github.com/openshift-online/maestro">Maestro</a>',
    ],
    ids=["local-script", "local-style", "canonical", "link-to-follow"],
)
def test_local_assets_and_links_are_allowed(page: str) -> None:
    assert SCRIPT["foreign_assets"](page) == []


def test_pictures_of_the_main_decisions_are_mermaid() -> None:
    for name in ("concepts", "trace-request", "data-safety", "on-call", "troubleshooting"):
        assert "```mermaid\n" in (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), name
