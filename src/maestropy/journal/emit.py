"""Write log records at or below the configured verbosity.

`Journal` adds time, process ID and caller to a record, redacts it and queues the formatted line. Messages are constants
of `phrases`; details go into fields, never into the message. Logging never raises and never blocks.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import BinaryIO, Final, Literal, NamedTuple, Protocol, cast

from maestropy.journal import chain, jsonl, klog, redact
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import JournalPhrase
from maestropy.journal.record import LogSeverity, Record
from maestropy.journal.spool import LogSink, Spool

LogFormat = Literal["text", "json"]

_NO_FIELDS: Final[Mapping[str, object]] = {}


class _Renderer(Protocol):
    def line(self, record: Record) -> str: ...

    def pairs(self, fields: Mapping[str, object]) -> str: ...


_RENDERERS: Final[Mapping[LogFormat, _Renderer]] = {"text": klog, "json": jsonl}


class _Output(NamedTuple):
    """The output that a journal and all journals bound to it share."""

    spool: Spool
    clock: Callable[[], float]
    render: _Renderer
    verbosity: int
    pid: int
    trace_id_of: Callable[[str], str] | None


class Journal:
    """The log of one process, or of one component with its context."""

    __slots__ = ("_bound", "_context", "_output", "_verbosity")

    def __init__(
        self,
        sink: LogSink,
        *,
        clock: Callable[[], float],
        verbosity: int = 0,
        format: LogFormat = "text",  # noqa: A002 -- the word of the flag `--log-format`
        trace_id_of: Callable[[str], str] | None = None,
    ) -> None:
        """Write to `sink`; `clock` gives seconds since the epoch; records above `verbosity` are not written.

        `trace_id_of` returns the trace of an operation ID, or an empty string; None: nothing is traced.
        """
        pid = os.getpid()
        render = _RENDERERS[format]

        def format_lost(count: int) -> bytes:
            fields = {LogKey.COUNT: count}
            record = Record("warning", 0, clock(), pid, "spool.py:1", JournalPhrase.LINES_LOST, None, "", fields)
            return render.line(record).encode()

        spool = Spool(sink, format_lost=format_lost)
        self._set_up(_Output(spool, clock, render, verbosity, pid, trace_id_of), _NO_FIELDS)

    def _set_up(self, output: _Output, context: Mapping[str, object]) -> None:
        self._output = output
        self._context = context
        # Rendered once here instead of in every line.
        self._bound = output.render.pairs(redact.fields(context))
        self._verbosity = output.verbosity

    def bind(self, fields: Mapping[str, object] | None = None, /, **more: object) -> "Journal":
        """Return a journal that adds these fields to every record; use a mapping for keys such as `op-id`."""
        added = {**(fields or _NO_FIELDS), **more}
        context = {**_without(self._context, added), **added}
        if LogKey.LOGGER in context:  # always first, as in klog
            context = {LogKey.LOGGER: context.pop(LogKey.LOGGER), **context}
        bound = object.__new__(Journal)
        bound._set_up(self._output, context)
        return bound

    def is_enabled(self, v: int) -> bool:
        """Return whether records of verbosity `v` are written; check it before building expensive fields."""
        return v <= self._verbosity

    def info(self, message: str, fields: Mapping[str, object] | None = None, *, v: int = 0) -> None:
        """Log an action or a decision."""
        if v <= self._verbosity:
            self._write("info", message, fields or _NO_FIELDS, v=v, err=None)

    def warning(
        self, message: str, fields: Mapping[str, object] | None = None, *, err: BaseException | str | None = None
    ) -> None:
        """Log a problem that does not stop the operation."""
        self._write("warning", message, fields or _NO_FIELDS, v=0, err=err)

    def error(
        self, message: str, fields: Mapping[str, object] | None = None, *, err: BaseException | str | None = None
    ) -> None:
        """Log a failure; `err` is written with all its causes."""
        self._write("error", message, fields or _NO_FIELDS, v=0, err=err)

    def flush(self) -> None:
        """Write the queued lines now."""
        self._output.spool.flush()

    def _write(
        self,
        severity: LogSeverity,
        message: str,
        fields: Mapping[str, object],
        *,
        v: int,
        err: BaseException | str | None,
    ) -> None:
        spool, clock, render, _, pid, trace_id_of = self._output
        caller = _caller(sys._getframe(2))
        stamp = clock()
        bound = self._bound
        try:
            if trace_id_of is not None and LogKey.OP_ID in fields:
                trace_id = trace_id_of(str(fields[LogKey.OP_ID]))
                fields = {**fields, LogKey.TRACE_ID: trace_id} if trace_id else fields
            if bound and not self._context.keys().isdisjoint(fields):
                bound = render.pairs(redact.fields(_without(self._context, fields)))
            error = None if err is None else redact.text(chain.describe(err))
            redacted = _message(message)
            record = Record(severity, v, stamp, pid, caller, redacted, error, bound, redact.fields(fields))
            line = render.line(record)
        except Exception as failure:  # noqa: BLE001 -- a value that cannot be formatted must not stop the caller
            context = {LogKey.MESSAGE: message, LogKey.REASON: type(failure).__name__}
            line = render.line(Record("error", 0, stamp, pid, caller, JournalPhrase.UNPRINTABLE, None, bound, context))
        spool.add(line.encode("utf-8", "backslashreplace"))


def stderr() -> BinaryIO:
    """Return standard error as an unbuffered sink."""
    return cast("BinaryIO", open(2, "wb", buffering=0, closefd=False))


def _without(context: Mapping[str, object], overriding: Mapping[str, object]) -> dict[str, object]:
    """Return `context` without the overriding keys: the last value wins and keeps its own position."""
    return {key: value for key, value in context.items() if key not in overriding}


# Messages are constants, so each is redacted once; the bound is for messages that are not.
_message = lru_cache(maxsize=1024)(redact.text)

_callers: Final[dict[tuple[int, int], tuple[CodeType, str]]] = {}


def _caller(frame: FrameType) -> str:
    # The key is the id of the code and the instruction: hashing a code object and computing a line number are slow.
    # The cached value keeps the code alive, so its id stays valid; the number of call sites bounds the cache.
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    if cached := _callers.get(key):
        return cached[1]
    location = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"  # noqa: PTH119 -- Path costs ten times as much
    _callers[key] = (code, location)
    return location
