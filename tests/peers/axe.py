"""axe-core, the checker of accessibility."""

from typing import Any

from tests.peers import npm_packages
from tests.peers.browser import Page


def script() -> str | None:
    """Return the script; None if it is not in the cache and npm cannot get it."""
    package = npm_packages.folder("axe-core@4.10.3")
    return (package / "axe.min.js").read_text(encoding="utf-8") if package else None


async def violations(page: Page, source: str) -> list[str]:
    """Return what is wrong on a page, each with the elements."""
    await page.run(f"(() => {{ {source}; return 1; }})()")
    found: list[dict[str, Any]] = await page.run("axe.run(document).then((result) => result.violations)")
    return [f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}" for one in found]
