"""Write the result files of an adapter Job, each of them atomically.

Two files for two readers: `adapter-result.json` for the status reporter that runs beside the adapter, and
`adapter-report.json` as the integration guide describes it. The status reporter waits for `adapter-result.json`, so
that file is written last.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.errors import BadResults

VARIABLE = "RESULTS_PATH"
DEFAULT = Path("/results/adapter-result.json")
REPORT_NAME = "adapter-report.json"
RESULT_NAME = "adapter-result.json"
_LARGEST = 2**20
"""The status reporter rejects larger files."""


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
        """Raise BadResults unless results can be written; called before any effect."""
        folder = self.result.parent
        if not folder.is_dir():
            raise BadResults(
                f"the results directory {folder} does not exist; mount it, or set {VARIABLE} to a file elsewhere"
            )
        for path in (self.result, self.report):
            # A file is replaced by another: a device, a pipe or a folder of this name must stay what it is.
            if path.exists() and not path.is_file():
                raise BadResults(f"{path} is not a regular file; name another file for the results ({VARIABLE})")
        probe = _unfinished(self.result)
        try:
            probe.write_bytes(b"")
        except OSError as error:
            raise _unwritable(folder, error) from error
        finally:
            _discard(probe)

    def write(self, status: AdapterStatus) -> None:
        """Write both files; `adapter-result.json` last."""
        result = orjson.dumps(status.to_result())
        if len(result) > _LARGEST:
            brief = status.to_result() | {"details": {"note": "left out: the file would be larger than 1 MiB"}}
            result = orjson.dumps(brief)
        _write_whole(self.report, orjson.dumps(status.to_report(), option=orjson.OPT_INDENT_2))
        _write_whole(self.result, result)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, and delete the temporary files of killed runs."""
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
    finally:
        _discard(unfinished)


def _discard(unfinished: Path) -> None:
    """Delete a temporary file, if it is still there; the failure before it is the one to report."""
    with contextlib.suppress(OSError):
        unfinished.unlink()


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def _clear_away(path: Path) -> None:
    for unfinished in path.parent.glob(f".{path.name}.*.unfinished"):
        process = unfinished.name.split(".")[-2]
        if process.isdigit() and not _is_alive(int(process)):
            unfinished.unlink(missing_ok=True)


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
