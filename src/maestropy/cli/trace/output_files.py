"""Write reports to files: completely or not at all, and never over a log that is read.

A report is written beside its file and then renamed, so that a full disk or Ctrl-C leaves the old file as it was.
"""

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from maestropy.cli import overwriting
from maestropy.trace.errors import InvalidArguments


def write(pieces: Iterable[str], path: Path, *, option: str) -> None:
    """Write a file; raise InvalidArguments, which names the option, if it cannot be written."""
    try:
        if overwriting.is_special(path):
            with path.open("w", encoding="utf-8") as stream:
                stream.writelines(pieces)
        else:
            _replace(pieces, path.resolve())
    except OSError as error:
        raise InvalidArguments(f"{option} {path} cannot be written: {error.strerror}; name another file") from error


def check(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """Raise InvalidArguments for an output that is a file to read, by whichever name, or is another output."""
    problem = overwriting.problem(outputs, inputs, noun="log")
    if problem:
        raise InvalidArguments(problem)


def _replace(pieces: Iterable[str], path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.writelines(pieces)
        part.chmod(_mode(path))
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """Return the mode of the file to replace, or that of any new file."""
    with suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
