"""Read a CSV or TSV export: its columns, its rows as (pod, line), and the records of rows with interleaved pods.

A row spans lines while a quote is open, and the parser keeps four bytes for each character of it: one missing quote in
a large file, or a file made to do harm, would fill the memory. So a row that is far too long ends the reading. Only a
few rows per pod are kept in memory. If the rows of a pod are not in order of time, `OutOfOrder` is raised and the
caller must sort the export first. Fills a record table; knows columns and pods, but no log phrases.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple, Protocol, TextIO

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.log_records import RecordTable
from maestropy.trace.logs.read import lines, log_writers
from maestropy.trace.logs.read.lines import RawRecord
from maestropy.trace.logs.read.log_writers import LogWriter

_LONGEST_ROW = 16 << 20
_HEAD = 64 << 10
_TIME_COLUMNS = frozenset({"timestamp", "precisetimestamp", "env_time", "time", "timegenerated", "@timestamp"})
_POD_COLUMNS = frozenset({"pod_name", "podname", "pod", "kubernetes.pod_name"})
_LOG_COLUMNS = frozenset({"log", "message", "msg", "logmessage", "body"})
_SAMPLE = 500
_SAMPLE_BYTES = 4 << 20
_MORE_BYTES = 16 << 20
_PODS = 10_000
_SORTED_ROWS = 2_000_000
_SORTED_BYTES = 1 << 30


class CsvColumns(NamedTuple):
    """Which column is what; -1 for none."""

    time: int
    pod: int
    log: int
    delimiter: str = ","


def csv_columns(sample: bytes) -> tuple[CsvColumns | None, bool]:
    """Return the columns of a CSV, by its header or its first row; None for other text."""
    first = sample[:_HEAD].decode("utf-8", "replace")
    line = first.split("\n", 1)[0]
    names = [name.strip().strip('"').lower() for name in line.rstrip("\r").split("\t")]
    if len(names) > 1 and set(names) & _LOG_COLUMNS:
        return CsvColumns(*_column_indices(names), "\t"), True
    if "," not in line or (lines.starts_record(line.encode()) and "\t" in line):
        return None, False
    try:
        row = next(csv.reader(io.StringIO(first)))
    except (csv.Error, StopIteration):
        return None, False
    names = [name.strip().lower() for name in row]
    if set(names) & _LOG_COLUMNS:
        return CsvColumns(*_column_indices(names)), True
    if len(row) < 2 or (lines.starts_record(line.encode()) and lines.rfc3339(row[0].encode()) is None):
        return None, False
    log = next((at for at, value in enumerate(row) if lines.starts_record(value.encode()) and len(value) > 40), -1)
    if log < 0:
        return None, False
    time = next((at for at, value in enumerate(row) if lines.rfc3339(value.encode()) is not None and at != log), -1)
    pod = next((at for at in range(len(row)) if at not in (log, time)), -1)
    return CsvColumns(time, pod, log), False


def _column_indices(names: Sequence[str]) -> tuple[int, int, int]:
    return (
        _column_index(names, _TIME_COLUMNS), _column_index(names, _POD_COLUMNS), _column_index(names, _LOG_COLUMNS)
    )  # fmt: skip


def _column_index(names: Sequence[str], accepted: frozenset[str]) -> int:
    return next((at for at, name in enumerate(names) if name in accepted), -1)


def csv_rows(stream: IO[bytes], columns: CsvColumns, *, has_header: bool) -> Iterator[tuple[str, RawRecord]]:
    """Yield (pod, line) of a CSV: a field of several lines becomes several."""
    csv.field_size_limit(_LONGEST_ROW)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    row_lines = _RowLines(text, most=_LONGEST_ROW)
    reader = csv.reader(row_lines, delimiter=columns.delimiter)
    before = 0
    try:
        for row in reader:
            row_lines.next_row()
            number, before = before + 1, reader.line_num
            if (number == 1 and has_header) or len(row) <= max(columns[:3]):
                continue
            stamp = lines.rfc3339(row[columns.time].encode()) if columns.time >= 0 else None
            pod = row[columns.pod] if columns.pod >= 0 else ""
            for part in row[columns.log].encode().rstrip(b"\r\n").split(b"\n"):
                yield pod, RawRecord(number, 0, part.rstrip(b"\r"), stamp or 0.0)
    except _LongRow as error:
        raise InputUnreadable(f"the row at line {reader.line_num} {error}; leave such rows out of the query") from error
    except csv.Error as error:
        raise InputUnreadable(
            f"line {reader.line_num} is not CSV ({error}); export the query's result again"
        ) from error
    finally:
        text.detach()


class _LongRow(Exception):
    """A row has more characters than the limit."""


class _RowLines(Iterator[str]):
    """The lines of a text without NUL characters; the reader says where each row ends."""

    def __init__(self, text: TextIO, *, most: int) -> None:
        self._text = text
        self._most = most
        self._length = 0

    def next_row(self) -> None:
        """Start to count again."""
        self._length = 0

    def __next__(self) -> str:
        line = self._text.readline(self._most + 1)
        if not line:
            raise StopIteration
        self._length += len(line)
        if self._length > self._most:
            raise _LongRow(f"has more than {self._most >> 20} MiB, which is the limit")
        return line.replace("\0", "") if "\0" in line else line


class Table(Protocol):
    """The destination of records and writers."""

    records: RecordTable
    writers: list[LogWriter]


class OutOfOrder(Exception):
    """The rows of a pod are not in order of their times."""


class _PodReader:
    """Reads the rows of one pod into the table."""

    def __init__(self, into: Table, *, path: str, pod: str, modified: float) -> None:
        self._into = into
        self._modified = modified
        self._waiting: list[RawRecord] = []
        self._waiting_bytes = 0
        self._held: RawRecord | None = None
        self._more: list[bytes] = []
        self._more_bytes = 0
        self._clock: lines.RecordClock | None = None
        self._last = 0.0
        self.sample = b""
        self.file = len(into.writers)
        self.writer = LogWriter(path=path, pod=pod, format="csv")
        into.writers.append(self.writer)

    def take(self, raw: RawRecord, *, is_timed: bool) -> None:
        """Add one line."""
        if is_timed and raw.stamp < self._last:
            raise OutOfOrder
        self._last = raw.stamp
        self.writer.unstamped += is_timed and not raw.stamp
        self.writer.lines += 1
        self.writer.bytes += len(raw.text)
        if self._clock is not None:
            self._next(raw)
            return
        self._waiting.append(raw)
        self._waiting_bytes += len(raw.text)
        if len(self._waiting) >= _SAMPLE or self._waiting_bytes > _SAMPLE_BYTES:
            self._start()

    def _start(self) -> None:
        # The first rows show the year and the time zone of klog times.
        self.sample = b"\n".join(raw.text for raw in self._waiting)
        clock_hints = lines.clock_hints(self.sample, modified=self._modified)
        self._clock = lines.RecordClock(around=clock_hints.around, zone=clock_hints.zone)
        self.writer.is_year_guessed = clock_hints.is_guess and not self._waiting[0].stamp
        for raw in self._waiting:
            self._next(raw)
        self._waiting.clear()

    def _next(self, raw: RawRecord) -> None:
        if lines.starts_record(raw.text):
            self._close()
            self._held, self._more, self._more_bytes = raw, [], 0
        elif self._held is not None and len(self._more) < lines.JOINED_LINES and self._more_bytes < _MORE_BYTES:
            self._more.append(raw.text)
            self._more_bytes += len(raw.text)
        elif self._more:
            self._more[-1] = raw.text  # the last line ends a block, and has the fields after it

    def _close(self) -> None:
        if self._held is None or self._clock is None:
            return
        raw = lines.unwrapped(lines.whole(self._held, self._more))
        self.writer.take(raw, self._clock, self._into.records, file=self.file)

    def finish(self) -> None:
        """Read the remaining rows."""
        if self._clock is None:
            self._start()
        self._close()
        self._held = None


def read_rows(
    into: Table, rows: Iterable[tuple[str, RawRecord]], *, path: str, modified: float, is_timed: bool
) -> Iterator[tuple[LogWriter, bytes]]:
    """Read rows of (pod, line) into the table; yield the writers and samples of their first rows."""
    pods: dict[str, _PodReader] = {}
    for order, (pod, raw) in enumerate(rows):
        reader = pods.get(pod)
        if reader is None:
            if len(pods) >= _PODS:
                raise InputUnreadable(f"it has more than {_PODS} pods, which is the limit; export fewer at once")
            reader = pods[pod] = _PodReader(into, path=path, pod=pod or log_writers.pod_of(path), modified=modified)
        # Rows have no offsets that could be read again; what counts is the order in which they are read.
        reader.take(raw._replace(offset=order), is_timed=is_timed)
    for pod_rows in pods.values():
        pod_rows.finish()
        yield pod_rows.writer, pod_rows.sample


def in_order(rows: Iterable[tuple[str, RawRecord]]) -> list[tuple[str, RawRecord]]:
    """Return rows in order of time; rows of the same time keep their order."""
    kept: list[tuple[str, RawRecord]] = []
    size = 0
    for row in rows:
        kept.append(row)
        size += len(row[1].text)
        if len(kept) > _SORTED_ROWS or size > _SORTED_BYTES:
            raise InputUnreadable(
                "its rows are not in order of time, and it is too large to sort: the limit is "
                f"{_SORTED_ROWS} rows and {_SORTED_BYTES >> 20} MiB; end the query with `| order by timestamp asc`, "
                "or export fewer rows at once"
            )
    return sorted(kept, key=lambda row: row[1].stamp)
