"""Tell about lists for which every resource bundle is read, since no index serves their selector."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from maestropy.cli import screen

_STEP = 1000
"""Resource bundles between two lines of progress."""


def is_needed(selector: str, *, narrowed: bool) -> bool:
    """Return whether no index serves a label selector; a list that is `narrowed` otherwise has another one."""
    from maestropy.sdk import selector as selectors

    return bool(selector) and not narrowed and not selectors.parse(selector).has_index


def notify(selector: str) -> None:
    """Say why it takes long, and what makes it faster."""
    screen.write_error(
        f"Reading every resource bundle: no index serves -l '{selector}'; a label with = or in, --consumer or --source "
        "makes it faster\n"
    )
    sys.stderr.flush()


def matching(items: Iterable[Mapping[str, Any]], selector: str, *, shows_progress: bool) -> Iterator[Mapping[str, Any]]:
    """Yield those with the labels, and show on a terminal how many were read."""
    from maestropy.sdk import selector as selectors

    parsed = selectors.parse(selector)
    count = 0
    try:
        for count, item in enumerate(items, start=1):
            if shows_progress and count % _STEP == 0:
                _show(f"{count} read")
            if parsed.matches((item.get("metadata") or {}).get("labels") or {}):
                yield item
    finally:
        if shows_progress and count >= _STEP:
            _show("")


def search(selector: str) -> str:
    """Return what the server can evaluate of a selector."""
    from maestropy.sdk import selector as selectors

    return " and ".join(selectors.parse(selector).search_terms())


def _show(text: str) -> None:
    # The line is cleared, so that it leaves nothing behind.
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
