"""Say something, if anybody wants to hear it.

`Journal` decides by verbosity, gathers time and place, and passes the line on. Formats are elsewhere, and so is the
vocabulary: messages are constants of `fields`, details go into fields, never into the message.
Speaking never fails and never waits.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import BinaryIO, Final, Literal, NamedTuple, Protocol, cast

from maestropy.journal import chain, jsonl, klog, redact
from maestropy.journal.fields import Key, Own
from maestropy.journal.record import Record, Severity
from maestropy.journal.spool import Sink, Spool

Format = Literal["text", "json"]

_NOTHING: Final[Mapping[str, object]] = {}


class _Renderer(Protocol):
    def line(self, record: Record) -> str: ...

    def pairs(self, fields: Mapping[str, object]) -> str: ...


_RENDERERS: Final[Mapping[Format, _Renderer]] = {"text": klog, "json": jsonl}


class _Desk(NamedTuple):
    """What a journal and all journals bound to it share."""

    spool: Spool
    clock: Callable[[], float]
    render: _Renderer
    verbosity: int
    pid: int


class Journal:
    """Where one process, or one part of it with its context, writes."""

    __slots__ = ("_bound", "_context", "_desk", "_verbosity")

    def __init__(
        self,
        sink: Sink,
        *,
        clock: Callable[[], float],
        verbosity: int = 0,
        format: Format = "text",  # noqa: A002 -- the word of the flag `--log-format`
    ) -> None:
        """Write to `sink`; `clock` gives seconds since the epoch; records above `verbosity` are not written."""
        pid = os.getpid()
        render = _RENDERERS[format]

        def tell_lost(count: int) -> bytes:
            fields = {Key.COUNT: count}
            record = Record("warning", 0, clock(), pid, "spool.py:1", Own.LINES_LOST, None, "", fields)
            return render.line(record).encode()

        self._adopt(_Desk(Spool(sink, tell_lost=tell_lost), clock, render, verbosity, pid), _NOTHING)

    def _adopt(self, desk: _Desk, context: Mapping[str, object]) -> None:
        self._desk = desk
        self._context = context
        # Rendered once here instead of in every line.
        self._bound = desk.render.pairs(redact.fields(context))
        self._verbosity = desk.verbosity

    def bind(self, fields: Mapping[str, object] | None = None, /, **more: object) -> "Journal":
        """Return a journal whose every record also carries these fields; a mapping serves keys such as `op-id`."""
        added = {**(fields or _NOTHING), **more}
        context = {**_without(self._context, added), **added}
        if Key.LOGGER in context:  # always first, as in klog
            context = {Key.LOGGER: context.pop(Key.LOGGER), **context}
        bound = object.__new__(Journal)
        bound._adopt(self._desk, context)
        return bound

    def enabled(self, v: int) -> bool:
        """Tell whether records of verbosity `v` are written; ask before building expensive fields."""
        return v <= self._verbosity

    def info(self, message: str, fields: Mapping[str, object] | None = None, *, v: int = 0) -> None:
        """Say what was done or decided."""
        if v <= self._verbosity:
            self._write("info", message, fields or _NOTHING, v=v, err=None)

    def warning(
        self, message: str, fields: Mapping[str, object] | None = None, *, err: BaseException | str | None = None
    ) -> None:
        """Say what somebody should look at some day."""
        self._write("warning", message, fields or _NOTHING, v=0, err=err)

    def error(
        self, message: str, fields: Mapping[str, object] | None = None, *, err: BaseException | str | None = None
    ) -> None:
        """Say what failed; `err` is told with all its causes."""
        self._write("error", message, fields or _NOTHING, v=0, err=err)

    def flush(self) -> None:
        """Write what waits for the end of this turn."""
        self._desk.spool.flush()

    def _write(
        self,
        severity: Severity,
        message: str,
        fields: Mapping[str, object],
        *,
        v: int,
        err: BaseException | str | None,
    ) -> None:
        spool, clock, render, _, pid = self._desk
        caller = _place(sys._getframe(2))
        stamp = clock()
        bound = self._bound
        try:
            if bound and not self._context.keys().isdisjoint(fields):
                bound = render.pairs(redact.fields(_without(self._context, fields)))
            trouble = None if err is None else redact.text(chain.describe(err))
            spoken = _message(message)
            said = Record(severity, v, stamp, pid, caller, spoken, trouble, bound, redact.fields(fields))
            line = render.line(said)
        except Exception as reason:  # noqa: BLE001 -- a value that cannot be printed must not stop the work it tells of
            about = {Key.MESSAGE: message, Key.REASON: type(reason).__name__}
            line = render.line(Record("error", 0, stamp, pid, caller, Own.UNPRINTABLE, None, bound, about))
        spool.add(line.encode("utf-8", "backslashreplace"))


def stderr() -> BinaryIO:
    """Return the sink of servers: standard error without a buffer of its own."""
    return cast("BinaryIO", open(2, "wb", buffering=0, closefd=False))


def _without(context: Mapping[str, object], overriding: Mapping[str, object]) -> dict[str, object]:
    """Return `context` without the keys given anew: the last one wins and stands where it was given."""
    return {key: value for key, value in context.items() if key not in overriding}


# Messages are constants, so looking through each once is enough; the bound is for those that are not.
_message = lru_cache(maxsize=1024)(redact.text)

_places: Final[dict[tuple[int, int], tuple[CodeType, str]]] = {}


def _place(frame: FrameType) -> str:
    # By id and instruction: hashing a code object is slow, and so is computing a line number. The cached value keeps
    # the code alive, so its id cannot come to mean another; call sites are finite, so the cache is.
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    if known := _places.get(key):
        return known[1]
    place = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"  # noqa: PTH119 -- Path costs ten times as much
    _places[key] = (code, place)
    return place
