"""Write to standard output and standard error without control characters.

Names, labels, conditions and error texts come from other people; a terminal would obey an escape sequence in them.
Newlines and tabs stay: a text that must keep to one line is escaped where the line is built.
"""

import os
import sys
from typing import TextIO

from maestropy.untrusted import printable


def can_draw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that understands colours and cursor movements."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write(text: str) -> None:
    """Write to standard output."""
    sys.stdout.write(printable.escape_lines(text))


def write_error(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(printable.escape_lines(text))
