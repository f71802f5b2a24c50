"""Evidence IDs of one session: what each stands for, so that `archive` and `logs_around` can open it again. No I/O.

`FILE:LINE` is a line of the archive or of a log, `row:ID` the row of a work, `consumer:NAME` a consumer. These can be
opened in every session. What a live system said at one moment is kept under `seen:` or `history:` while the session
lasts.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from maestropy.trace.output import Evidence

_MOST: Final = 5_000
_FILE_LINE: Final = re.compile(r"(?P<file>[^\s:][^\s]*):(?P<line>[0-9]{1,12})")


class EvidenceStore:
    """What the answers of one session referred to."""

    def __init__(self) -> None:
        self._kept: dict[str, Mapping[str, Any]] = {}

    def keep(self, key: str, document: Mapping[str, Any]) -> str:
        """Keep a document under its ID; the oldest are forgotten."""
        self._kept.pop(key, None)
        self._kept[key] = document
        while len(self._kept) > _MOST:
            self._kept.pop(next(iter(self._kept)))
        return key

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept under an ID."""
        return self._kept.get(key)

    def seen(self, where: str, says: str) -> str:
        """Return the ID of something that a system said."""
        digest = hashlib.sha256(f"{where}\0{says}".encode(errors="replace")).hexdigest()[:8]
        return self.keep(f"seen:{digest}", {"where": where, "says": says})

    def items(self, evidence: Iterable[Evidence], *, files: Iterable[str] = ()) -> list[dict[str, str]]:
        """Return evidence of an engine with IDs; `files` are those that can be opened by line."""
        known = frozenset(files)
        return [self._item(item, known) for item in evidence]

    def _item(self, item: Evidence, files: frozenset[str]) -> dict[str, str]:
        line = file_and_line(item.where)
        if line is not None and line[0] in files:
            return {"id": item.where, "says": item.says}
        if item.where in files:
            return {"id": f"{item.where}:1", "says": item.says}
        return {"id": self.seen(item.where, item.says), "where": item.where, "says": item.says}


def file_and_line(text: str) -> tuple[str, int] | None:
    """Return file and line of an ID of that form."""
    match = _FILE_LINE.fullmatch(text)
    return (match["file"], int(match["line"])) if match else None
