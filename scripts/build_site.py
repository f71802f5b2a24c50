"""Build the documentation site: `make docs`.

The pages of docs/ and the pages at the top of the repository (README, ARCHITECTURE, CONTRIBUTING, ...) become one site
in build/site that needs no network. Two scripts are taken from their npm packages and kept with the pages: Mermaid, and
the shim with which browsers search pages that are opened from the disk. Without npm the site is built all the same, and
this script says what is missing.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "build" / "site-sources"
_TOP_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}
_MERMAID = "mermaid@12.3.0"
# Browsers start no worker for a page of the disk, and search runs in one; the shim lets it run in a frame.
_SHIM = "iframe-worker@1.0.4"
_FOREIGN_SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')
_FOREIGN_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"'\s]+""")
_ASSET_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "prefetch", "manifest"}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def main() -> int:
    """Build the site; return mkdocs' exit code."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCES)
    for name, page in _TOP_PAGES.items():
        shutil.copy(ROOT / name, SOURCES / page)
    for path in sorted(SOURCES.rglob("*.md")):
        path.write_text(_with_site_links(path), encoding="utf-8")
    _add_script(SOURCES / "mermaid.min.js", package=_MERMAID, member="package/dist/mermaid.min.js")
    _add_script(SOURCES / "iframe-worker.js", package=_SHIM, member="package/shim/index.js")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode or _check_offline()


def _check_offline() -> int:
    """Put our copy in place of the theme's only foreign script; fail if a page loads more, or cannot be searched."""
    site = ROOT / "build" / "site"
    problems = []
    for page in sorted(site.rglob("*.html")):
        climb = "../" * len(page.relative_to(site).parent.parts)
        shim = f'<script src="{climb}iframe-worker.js"></script>'
        text = _FOREIGN_SHIM.sub(shim, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        problems += [f"{page.name} loads {address}" for address in foreign_assets(text)]
    for style in sorted(site.rglob("*.css")):
        problems += [f"{style.name} loads {found}" for found in _FOREIGN_IN_STYLE.findall(style.read_text("utf-8"))]
    problems += _unsearchable(site)
    sys.stderr.write("".join(f"the site needs the network: {problem}\n" for problem in problems))
    return 1 if problems else 0


def foreign_assets(page: str) -> list[str]:
    """Return the addresses on other hosts from which a page loads something; links that a reader follows are none."""
    finder = _AssetFinder()
    finder.feed(page)
    return [address for address in finder.addresses if re.match(r"(?:https?:)?//", address)]


class _AssetFinder(HTMLParser):
    """Collects the addresses of what a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this element loads."""
        named = {name: value or "" for name, value in attrs}
        if tag == "link":
            if _ASSET_LINKS.intersection(named.get("rel", "").split()):
                self.addresses.append(named.get("href", ""))
        elif "src" in named:
            self.addresses.append(named["src"])


def _unsearchable(site: Path) -> list[str]:
    """Return why pages cannot be searched from the disk: the index must be a script, with an entry for each page."""
    index = site / "search" / "search_index.js"
    if not index.exists():
        return [f"search/{index.name} does not exist, and a browser cannot read an index from the disk otherwise"]
    known = index.read_text(encoding="utf-8")
    pages = (str(page.relative_to(SOURCES).with_suffix(".html")) for page in sorted(SOURCES.rglob("*.md")))
    return [f"the search does not know {page}" for page in pages if f'"location":"{page}"' not in known]


def _with_site_links(page: Path) -> str:
    """Return the page with links between the repository's pages pointing to pages of the site.

    A link to a file that is no page, such as a script, becomes its text: the site does not contain the repository.
    """
    origin = next((ROOT / name for name, copy in _TOP_PAGES.items() if SOURCES / copy == page), None)
    folder = ROOT if origin is not None else ROOT / "docs" / page.relative_to(SOURCES).parent

    def rewritten(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        file = (folder / target).resolve()
        if not file.exists():
            raise SystemExit(f"{page.relative_to(SOURCES)}: the link to {target} leads nowhere")
        if file.parent == ROOT and file.name in _TOP_PAGES:
            place = SOURCES / _TOP_PAGES[file.name]
        elif file.is_relative_to(ROOT / "docs") and file.is_file():
            place = SOURCES / file.relative_to(ROOT / "docs")
        else:
            return link["text"]
        climb = "../" * len(page.relative_to(SOURCES).parent.parts)
        return f"[{link['text']}]({climb}{place.relative_to(SOURCES)}{anchor})"

    return _LINK.sub(rewritten, page.read_text(encoding="utf-8"))


def _add_script(script: Path, *, package: str, member: str) -> None:
    """Write a file of an npm package; packages are fetched once."""
    name, _, version = package.partition("@")
    kept = ROOT / "build" / "npm"
    archive = kept / f"{name}-{version}.tgz"
    npm = shutil.which("npm")
    if not archive.exists() and npm is None:
        lost = "diagrams stay text" if package == _MERMAID else "pages that are opened from the disk have no search"
        sys.stderr.write(f"npm is not installed and {name} is not there: {lost}\n")
        script.write_text("", encoding="utf-8")
        return
    if not archive.exists():
        kept.mkdir(parents=True, exist_ok=True)
        command = [str(npm), "pack", "--silent", "--pack-destination", str(kept), package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(archive) as packed:
        found = packed.extractfile(member)
        assert found is not None
        script.write_bytes(found.read())


if __name__ == "__main__":
    sys.exit(main())
