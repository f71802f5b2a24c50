"""Define the log record, before it is formatted.

`klog` and `jsonl` format a record as a line; `emit` decides by verbosity whether it is written.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

LogSeverity = Literal["info", "warning", "error"]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A log record that is ready to be formatted; already redacted."""

    # A struct, not a dataclass: a frozen dataclass costs ten times as much to build, once per line.
    severity: LogSeverity
    v: int
    stamp: float
    """Seconds since the epoch."""
    pid: int
    caller: str
    """`file:line` of the code that logs."""
    message: str
    err: str | None
    bound: str
    """The bound fields of the journal, rendered once in the format of this record."""
    fields: Mapping[str, object]
