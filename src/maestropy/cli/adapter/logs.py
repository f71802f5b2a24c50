"""Write the log records of the adapter and its libraries to standard error: one line each, no control characters."""

import logging
import sys
from typing import TextIO

from maestropy.untrusted import printable


class OneLineFormatter(logging.Formatter):
    """Formats a log record of a library on one line; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        """Return the line, escaped."""
        return printable.escape(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name of the base class
        """Return the traceback, escaped line by line and indented, so that none of its lines looks like a record."""
        trace = super().formatException(ei)  # type: ignore[arg-type]  # as the base class gets it
        return "\t" + printable.escape_lines(trace).replace("\n", "\n\t")


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error as it is now: the adapter's own code may have closed the one of the start."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.stream = sys.stderr
        super().emit(record)


def write_to_standard_error(level: int, *, line_format: str, verbose: bool = False) -> None:
    """Write the log records of libraries from `level` on to standard error; `verbose` adds the adapter's details."""
    handler = _StandardError()
    handler.setFormatter(OneLineFormatter(line_format))
    logging.basicConfig(level=level, handlers=[handler])
    # An adapter retries for a minute and a half: without this line a Job whose server is away says nothing meanwhile.
    logging.getLogger("maestropy.sdk.retry").setLevel(logging.INFO)
    if verbose:
        logging.getLogger("maestropy.adapter").setLevel(logging.DEBUG)
