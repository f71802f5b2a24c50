"""Write the results of a Job so that nobody ever sees half of them.

Two files, because two readers exist: `adapter-result.json` for the status reporter that runs beside the adapter, and
`adapter-report.json` as the integration guide has it. A file appears whole or not at all; the one that ends the status
reporter's wait comes last.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from maestropy.adapter.errors import BadResults
from maestropy.adapter.report import Report

VARIABLE = "RESULTS_PATH"
DEFAULT = Path("/results/adapter-result.json")
REPORT_NAME = "adapter-report.json"
RESULT_NAME = "adapter-result.json"
_LARGEST = 2**20
"""The status reporter refuses larger files."""


@dataclass(frozen=True, slots=True)
class Results:
    """The two files, beside each other."""

    path: Path
    """Either of them; a directory means the usual names in it."""

    @property
    def result(self) -> Path:
        """The file that the status reporter reads."""
        if self.path.is_dir():
            return self.path / RESULT_NAME
        return self.path.with_name(RESULT_NAME) if self.path.name == REPORT_NAME else self.path

    @property
    def report(self) -> Path:
        """The file of the integration guide."""
        return self.result.with_name(REPORT_NAME)

    def check(self) -> None:
        """Raise BadResults unless results can be written; better known before the work than after it."""
        folder = self.result.parent
        if not folder.is_dir():
            raise BadResults(
                f"the results directory {folder} does not exist; mount it, or set {VARIABLE} to a file elsewhere"
            )
        probe = _unfinished(self.result)
        try:
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise _unwritable(folder, error) from error

    def write(self, report: Report) -> None:
        """Write both files."""
        result = orjson.dumps(report.result())
        if len(result) > _LARGEST:
            brief = report.result() | {"details": {"note": "left out: the file would be larger than 1 MiB"}}
            result = orjson.dumps(brief)
        _write_whole(self.report, orjson.dumps(report.document(), option=orjson.OPT_INDENT_2))
        _write_whole(self.result, result)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears at once, and clear away what runs left that were killed while they wrote."""
    unfinished = _unfinished(path)
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        _clear_away(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def _clear_away(path: Path) -> None:
    for left in path.parent.glob(f".{path.name}.*.unfinished"):
        process = left.name.split(".")[-2]
        if process.isdigit() and not _is_alive(int(process)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _unwritable(folder: Path, error: OSError) -> BadResults:
    return BadResults(
        f"results cannot be written to {folder}: {error.strerror}; make it writable for user {os.getuid()}, or set "
        f"{VARIABLE}"
    )
