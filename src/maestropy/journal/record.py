"""One thing worth saying, before it has a format.

Holds values only. `klog` and `jsonl` turn a record into a line; `emit` decides whether there is one.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record ready to be formatted; redacted already."""

    # A struct, not a dataclass: a frozen dataclass costs ten times as much to build, once per line.
    severity: Severity
    v: int
    stamp: float
    """Seconds since the epoch."""
    pid: int
    caller: str
    """`file:line` of the code that speaks."""
    message: str
    err: str | None
    bound: str
    """The context of the journal, rendered once by the format that renders this record."""
    fields: Mapping[str, object]
