"""Follow a list for `--watch`: read it again and again, and print the rows that changed.

It reads the list of the REST API, because a gRPC subscription shows the works of one source only, and consumers not at
all. A server that is gone is reported once, and so is its return.
"""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from maestropy.cli import lifecycle, screen
from maestropy.cli.client import formats
from maestropy.cli.client import output as rendering
from maestropy.cli.client.formats import Format
from maestropy.cli.client.output import GONE, Columns, Row
from maestropy.untrusted import printable

_PAUSE_SECONDS = 2.0
_PAUSE_PER_READ = 10
"""A list that takes long to read is read less often: at most a tenth of the time."""


def changed_rows(before: Mapping[str, Row], now: Mapping[str, Row]) -> list[Row]:
    """Return the rows that are new or different, then those that are gone, marked as such."""
    changed = [row for key, row in now.items() if before.get(key) != row]
    return [*changed, *({**row, GONE: True} for key, row in before.items() if key not in now)]


def follow(
    read: Callable[[], Mapping[str, Any]], *, output: Format, columns: Columns, headers: bool = True
) -> NoReturn:
    """Print all rows, then those that change, until interrupted."""
    lifecycle.exit_when_output_closes()
    writer = _RowWriter(output, columns=columns, headers=headers)
    before: dict[str, Row] = {}
    reader = PatientReader(read)
    while True:
        began = time.monotonic()
        now = _by_id(reader.read())
        writer.write(changed_rows(before, now))
        before = now
        time.sleep(max(_PAUSE_SECONDS, _PAUSE_PER_READ * (time.monotonic() - began)))


def _by_id(result: Mapping[str, Any]) -> dict[str, Row]:
    return {str(row.get("id")): row for row in result.get("items") or ()}


class PatientReader:
    """Reads until the server answers; says when it is gone and when it is back."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = read
        self._has_answered = False

    def read(self) -> Mapping[str, Any]:
        """Return the next answer. The first one must come, and an error that a retry cannot fix is raised."""
        from maestropy.sdk import errors

        is_gone = False
        while True:
            try:
                result = self._read()
            except errors.MaestroError as error:
                if not (self._has_answered and error.is_retryable):
                    raise
                if not is_gone:
                    report_gone(error.reason)
                is_gone = True
                time.sleep(_PAUSE_SECONDS)
                continue
            if is_gone:
                report_back()
            self._has_answered = True
            return result


def report_gone(reason: str) -> None:
    """Say that the server does not answer, and that the watch goes on."""
    screen.write_error(f"The server is gone: {printable.escape(reason)}; trying again until it is back\n")
    sys.stderr.flush()


def report_back() -> None:
    """Say that the server answers again."""
    screen.write_error("The server is back; what changed meanwhile follows\n")
    sys.stderr.flush()


class _RowWriter:
    """Prints rows as they come, in columns that stay where they are."""

    def __init__(self, output: Format, *, columns: Columns, headers: bool) -> None:
        self._output = output
        self._columns = columns
        self._has_heads = not headers
        self._widths: list[int] = []

    def write(self, rows: list[Row]) -> None:
        """Print rows."""
        if self._output.is_table or self._output.kind == "custom-columns":
            self._write_table(rows)
        else:
            # A row that is gone has no new state; `maestro resourcebundle watch -o json` reports deletions.
            separator = "---\n" if self._output.kind == "yaml" else ""
            ending = "\n" if self._output.kind == "jsonpath" else ""
            for row in rows:
                if not row.get(GONE):
                    screen.write(separator + rendering.single(row, output=self._output, fields=lambda _: ()) + ending)
        sys.stdout.flush()

    def _write_table(self, rows: list[Row]) -> None:
        if self._output.kind == "custom-columns":
            lines = formats.by_columns(self._output.template, [row for row in rows if not row.get(GONE)])
        else:
            shown = len(self._columns.heads) if self._output.kind == "wide" else self._columns.narrow
            lines = [list(line[:shown]) for line in (self._columns.heads, *map(self._columns.cells, rows))]
        self._widths = rendering.widths(lines, at_least=self._widths)
        screen.write(rendering.table(lines[1 if self._has_heads else 0 :], at_least=self._widths))
        self._has_heads = True
