"""Build the documentation site: `make docs`.

The pages of docs/ and the pages at the top of the repository (README, ARCHITECTURE, CONTRIBUTING, ...) become one site
in build/site that needs no network: search works from the disk, and Mermaid is taken from its npm package and served
with the pages. Without npm the site is built all the same, and this script says that its diagrams stay text.
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
# Only browsers without module workers need the shim, and only for search in pages opened from the disk.
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
    _add_mermaid(SOURCES / "mermaid.min.js")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode or _check_offline()


def _check_offline() -> int:
    """Remove the theme's only script from another host; fail if anything else is loaded, or cannot be searched."""
    site = ROOT / "build" / "site"
    problems = []
    for page in sorted(site.rglob("*.html")):
        text = _FOREIGN_SHIM.sub("", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        problems += [f"{page.name} loads {address}" for address in foreign_assets(text)]
    for style in sorted(site.rglob("*.css")):
        problems += [f"{style.name} loads {found}" for found in _FOREIGN_IN_STYLE.findall(style.read_text("utf-8"))]
    problems += _unsearchable(site)
    sys.stderr.write("".join(f"the site needs the network: {problem}\n" for problem in problems))
    return 1 if problems else 0


def foreign_assets(page: str) -> list[str]:
    """Return the addresses on other hosts from which an HTML page loads something; links that a reader follows are none."""
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
    """Return why the pages cannot be searched from the disk: the index must be a script, with an entry for each page."""
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


def _add_mermaid(script: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("npm is not installed: the diagrams of the site stay text\n")
        script.write_text("", encoding="utf-8")
        return
    kept = ROOT / "build" / "mermaid"
    kept.mkdir(parents=True, exist_ok=True)
    archive = next(kept.glob("mermaid-*.tgz"), None)
    if archive is None:
        subprocess.run(
            [npm, "pack", "--silent", "--pack-destination", str(kept), _MERMAID], check=True, stdout=subprocess.DEVNULL
        )
        archive = next(kept.glob("mermaid-*.tgz"))
    with tarfile.open(archive) as packed:
        member = packed.extractfile("package/dist/mermaid.min.js")
        assert member is not None
        script.write_bytes(member.read())


if __name__ == "__main__":
    sys.exit(main())
