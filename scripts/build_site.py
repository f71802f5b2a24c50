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
_FOREIGN_SOURCE = re.compile(r'<script[^>]+src="https?://|<link[^>]+rel="stylesheet"[^>]+href="https?://')
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
    """Remove the theme's only script from another host, and fail if a page still loads one."""
    for page in sorted((ROOT / "build" / "site").rglob("*.html")):
        text = _FOREIGN_SHIM.sub("", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        if _FOREIGN_SOURCE.search(text):
            sys.stderr.write(f"{page.name} loads a script or style from another host\n")
            return 1
    return 0


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
