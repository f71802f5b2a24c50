"""How a trace command ends: with a report on standard output or in a file, or with an error and its exit code."""

import sys
from pathlib import Path

from maestropy.cli import screen
from maestropy.trace.errors import TraceError


def write_report(text: str, path: Path | None) -> None:
    """Write a report to standard output, or to the file of `--out`."""
    if path is None:
        screen.write(text)
        sys.stdout.flush()
        return
    from maestropy.cli.trace import output_files  # with tempfile, which the help does not need

    output_files.write([text], path, option="--out")


def failed(error: TraceError) -> int:
    """Print the error that ended a trace, and return its exit code."""
    screen.write_error(f"Error: {error}\n")
    return int(error.exit)
