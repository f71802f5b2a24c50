"""Give a process its standard output and error back after the adapter's own code has closed them.

A closed descriptor is the next one that the system gives away: the report would go into a connection, and the event
loop ends a process that closes a connection with the number of a standard stream.
"""

import os
import sys

_kept: dict[str, tuple[int, int]] = {}
"""The descriptor of each stream, and the copy of it that the adapter does not know."""


def keep() -> None:
    """Keep copies of the streams; called once, before any code of an adapter runs."""
    for name in ("stdout", "stderr"):
        try:
            descriptor = getattr(sys, name).fileno()
            if name not in _kept:
                _kept[name] = (descriptor, os.dup(descriptor))
        except (OSError, ValueError, AttributeError):
            continue  # a stream that has no descriptor cannot be given away


def repair() -> None:
    """Open again what the adapter's own code has closed; called after every call of it."""
    for name, (descriptor, copy) in _kept.items():
        if not _is_open(descriptor):
            os.dup2(copy, descriptor)
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            opened = open(descriptor, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - kept open
            setattr(sys, name, opened)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
