"""Quote lines of logs, and the lines around them, without payloads and secrets. Reads bounded parts of plain files."""

import re
from collections.abc import Sequence
from typing import Final

from maestropy.journal import redact
from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.lines import STAMPED, RawRecord, starts_record, unwrapped
from maestropy.trace.logs.read.log_writers import LogWriter
from maestropy.trace.output import printable
from maestropy.trace.report.formatting import describe

_NEAR: Final = 1 << 20
_LONGEST_QUOTE: Final = 300
_LONGEST_LINE: Final = 1200
_PAYLOAD: Final = re.compile(r'(event="\{|evt=|Data,|"data":|\\"data\\":)')


def shown_line(line: str, *, longest: int = _LONGEST_LINE) -> str:
    """Return a log line for display: without payload, secrets and control characters, and not too long."""
    match = _PAYLOAD.search(line)
    if match:
        line = f"{line[: match.start()]}{match.group()[:6]}… (payload left out)"
    line = printable(redact.text(line))
    return line if len(line) <= longest else f"{line[:longest]}…"


class LineQuotes:
    """Returns the line of a record for display; its description if the line cannot be read."""

    def __init__(self, writers: Sequence[LogWriter], *, longest: int = _LONGEST_QUOTE) -> None:
        self._writers = writers
        self._longest = longest

    def __call__(self, record: LogRecord) -> str:
        line = self.line(record)
        return shown_line(line, longest=self._longest) if line else describe(record)

    def line(self, record: LogRecord) -> str:
        """Return the line itself; nothing where it cannot be had."""
        return scan.line_of(self._writers, record, longest=max(4000, self._longest))


def around(writers: Sequence[LogWriter], record: LogRecord, *, count: int) -> list[tuple[int, str]]:
    """Return up to `count` lines before and after a record, with their numbers; none for what is no plain file.

    Only lines that start a record are returned: continuation lines may hold a payload.
    """
    origin = writers[record.file].origin
    if origin is None or not count:
        return []
    start = max(0, record.offset - _NEAR)
    with origin.open("rb") as stream:
        stream.seek(start)
        before = stream.read(record.offset - start).split(b"\n")[:-1]
        after = stream.read(_NEAR).split(b"\n")[1:]
    if start:
        del before[0]  # it began before
    first = record.line - len(before)
    earlier = [(first + distance, line) for distance, line in enumerate(before) if _begins(line)]
    later = [(record.line + distance, line) for distance, line in enumerate(after, start=1) if _begins(line)]
    return [(number, _shown(line)) for number, line in (*earlier[-count:], *later[:count])]


def _begins(line: bytes) -> bool:
    text = unwrapped(RawRecord(0, 0, line)).text
    # Collectors stamp every line, also continuation lines.
    stamp = STAMPED.match(text)
    return starts_record(text[stamp.end() :] if stamp else text)


def _shown(line: bytes) -> str:
    return shown_line(line.decode("utf-8", "replace").rstrip(), longest=_LONGEST_QUOTE)
