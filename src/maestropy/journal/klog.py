"""Format a log record as one klog text line, the format that existing dashboards, queries and runbooks read.

Pure: a record in, text out. The layout equals klog's byte for byte, also for long and unusual values:
`Lmmdd hh:mm:ss.uuuuuu threadid file:line] "message" err="…" key="value" key={json}`.
A value of several lines gets klog's multi-line form only if it is plain text. With control characters, or with a line
that looks like a log record, it is quoted on one line: klog would write it raw to the terminal of the reader.
"""

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Final

from maestropy.journal import chain, go_quoting
from maestropy.journal.record import LogSeverity, Record
from maestropy.untrusted import printable

_LETTER: Final[Mapping[LogSeverity, str]] = {"info": "I", "warning": "W", "error": "E"}
_LIKE_RECORD: Final = re.compile(r"^\s*[IWEF]\d{4} \d\d:", re.MULTILINE)


def line(record: Record) -> str:
    """Return `record` as a line, with its newline."""
    # A float holds the current time to a quarter of a microsecond: rounding restores the exact microsecond.
    second, micros = divmod(round(record.stamp * 1e6), 1_000_000)
    err = record.err
    error = "" if err is None else f" err{_string(err)}"
    return (
        # Slicing the digits out of a larger number is twice as fast as formatting with leading zeros.
        f"{_LETTER[record.severity]}{_second(second)}.{str(1_000_000 + micros)[1:]}"
        f" {_thread(record.pid)} {record.caller}] "
        f"{_message(record.message)}{error}{record.bound}{pairs(record.fields)}\n"
    )


def pairs(fields: Mapping[str, object]) -> str:
    """Return ` key=value` for every field, in their order."""
    pieces = []
    for key, value in fields.items():
        # Nearly all values are IDs, which need quotes but no escapes.
        if type(value) is str and value.isprintable() and '"' not in value and "\\" not in value:
            pieces.append(f' {key}="{value}"')
        elif type(value) is dict:
            pieces.append(f" {key}={go_quoting.json_text(value)}")
        else:
            pieces.append(f" {key}{_value(value)}")
    return "".join(pieces)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, BaseException):
        return _string(chain.describe(value))
    if isinstance(value, timedelta):
        return f"={go_quoting.quote(go_quoting.duration(value))}"
    if isinstance(value, bytes):
        return f"={go_quoting.quote_bytes(value)}"
    return f"={go_quoting.json_text(value)}"


def _string(text: str) -> str:
    if "\n" not in text or not printable.is_safe(text) or _LIKE_RECORD.search(text):
        return f"={go_quoting.quote(text)}"
    # Each line of a multi-line value is indented by a tab, so none can begin a log record.
    body = text.removesuffix("\n").replace("\n", "\n\t")
    return f"=<\n\t{body}\n >"


# Messages are constants, so each is quoted once; the bound is for messages that are not.
_message = lru_cache(maxsize=1024)(go_quoting.quote)


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%m%d %H:%M:%S", time.gmtime(second))


@lru_cache(maxsize=4)
def _thread(pid: int) -> str:
    return f"{pid:>7}"
