"""Say why a file is not collected as a log. Other files of a folder, such as those of a database, are not named."""

import codecs
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from maestropy.trace.logs.read.lines import starts_record

ENDINGS: Final = frozenset({".log", ".csv", ".txt", ".jsonl"})
"""Of the files in a folder, those with these endings may be logs."""
_SAMPLE: Final = 64 << 10
_WIDE: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KUBECONFIG: Final = re.compile(
    rb"^(?:current-context|users|clusters):|\"(?:current-context|users|clusters)\":", re.MULTILINE
)
_KIND: Final = re.compile(rb"\bkind[\"']?:\s*[\"']?Config\b")
_POSTGRES: Final = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.?\d* \S+ \[\d+\] ", re.MULTILINE)


def reason(path: Path, *, is_in_folder: bool) -> str | None:
    """Return why a file is left out; None if it is collected, and empty if it needs no mention."""
    if is_in_folder and path.suffix not in ENDINGS:
        return ""
    if is_special(path):
        return "it is a pipe or a device; write it into a file first"
    try:
        with path.open("rb") as file:
            encoding = wide_encoding(file)
            head = file.read(_SAMPLE)
    except OSError:
        return None  # opening it again raises the error
    if _KIND.search(head) and _KUBECONFIG.search(head):
        return "it is a kubeconfig"
    if head and not head.strip(b"\0"):
        return "it holds NUL characters only"
    if not is_in_folder:
        return None
    text = head.decode(encoding, "replace").encode() if encoding else head
    if path.suffix == ".csv" or any(map(starts_record, text.splitlines())):
        return None
    return "" if not head or _POSTGRES.search(head) else "no record of a log begins in it"


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe, a socket or a device."""
    with suppress(OSError):
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def wide_encoding(stream: IO[bytes]) -> str:
    """Return the encoding that a mark at the beginning names; empty for UTF-8. The stream is at its beginning after."""
    head = stream.read(4)
    stream.seek(0)
    return next((name for mark, name in _WIDE if head.startswith(mark)), "")
