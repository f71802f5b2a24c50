"""Write a record as one klog text line, the format today's dashboards, queries and runbooks read.

Pure: a record in, text out. The layout is klog's to the byte, including its forms for long and odd values:
`Lmmdd hh:mm:ss.uuuuuu threadid file:line] "message" err="…" key="value" key={json}`.
"""

import time
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Final

from maestropy.journal import chain, gotext
from maestropy.journal.record import Record, Severity

_LETTER: Final[Mapping[Severity, str]] = {"info": "I", "warning": "W", "error": "E"}


def line(record: Record) -> str:
    """Return `record` as a line, with its newline."""
    # A float holds today's time to a quarter of a microsecond: rounding gives back what the clock meant.
    second, micros = divmod(round(record.stamp * 1e6), 1_000_000)
    err = record.err
    trouble = "" if err is None else f" err{_string(err)}"
    return (
        # Cutting the digits out of a number is twice as fast as formatting it with zeros.
        f"{_LETTER[record.severity]}{_second(second)}.{str(1_000_000 + micros)[1:]}"
        f" {_thread(record.pid)} {record.caller}] "
        f"{_message(record.message)}{trouble}{record.bound}{pairs(record.fields)}\n"
    )


def pairs(fields: Mapping[str, object]) -> str:
    """Return ` key=value` for every field, in their order."""
    parts = []
    for key, value in fields.items():
        # Nearly all values are ids; for these the quotes are all that quoting does.
        if type(value) is str and value.isprintable() and '"' not in value and "\\" not in value:
            parts.append(f' {key}="{value}"')
        elif type(value) is dict:
            parts.append(f" {key}={gotext.json_text(value)}")
        else:
            parts.append(f" {key}{_value(value)}")
    return "".join(parts)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, BaseException):
        return _string(chain.describe(value))
    if isinstance(value, timedelta):
        return f"={gotext.quote(gotext.duration(value))}"
    if isinstance(value, bytes):
        return f"={gotext.quote_bytes(value)}"
    return f"={gotext.json_text(value)}"


def _string(text: str) -> str:
    if "\n" not in text:
        return f"={gotext.quote(text)}"
    # Many lines stay readable: each is indented by a tab, so no line of the value can look like a new record.
    body = text.removesuffix("\n").replace("\n", "\n\t")
    return f"=<\n\t{body}\n >"


# Messages are constants, so quoting each once is enough; the bound is for those that are not.
_message = lru_cache(maxsize=1024)(gotext.quote)


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%m%d %H:%M:%S", time.gmtime(second))


@lru_cache(maxsize=4)
def _thread(pid: int) -> str:
    return f"{pid:>7}"
