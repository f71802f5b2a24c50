"""Write to standard output and standard error without control characters.

Names, labels, conditions and error texts come from other people; a terminal would obey an escape sequence in them.
Newlines and tabs stay: a text that must keep to one line is escaped where the line is built.
"""

import codecs
import os
import sys
from typing import Final, TextIO

from maestropy.cli.errors import OutputLost
from maestropy.untrusted import printable

ESCAPED: Final = "maestropy.escaped"
"""The name of the error handler of a stream that is not UTF-8: it writes `\\u00e9`, which JSON means as é."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_in_ascii, error.object[error.start : error.end])), error.end


def _in_ascii(char: str) -> str:
    # The lines around a help text are drawn with other characters of the same width.
    return {"─": "-", "│": "|"}.get(char, "+") if "\u2500" <= char <= "\u257f" else printable.json_codes(char)


codecs.register_error(ESCAPED, _escaped)


def can_encode(text: str) -> bool:
    """Return whether standard output has all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def can_draw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that understands colours and cursor movements."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write(text: str) -> None:
    """Write to standard output."""
    try:
        sys.stdout.write(printable.escape_lines(text))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error) from error


def write_error(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(printable.escape_lines(text))
