"""Find the files behind paths, each of them once: a log that is read twice shows everything twice.

Links to one file are one file, and files of equal content are copies of the first of them. Reads no records.
"""

import glob
import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from maestropy.trace.errors import InputUnreadable, InvalidArguments
from maestropy.trace.logs.read.inputs import otlp_export

INDEX_SUFFIX: Final = ".index"
"""The file name suffix of indexes."""
_ACCEPTED: Final = "name a log file, a directory, an archive, or - for standard input"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFiles:
    """The files to read."""

    files: tuple[Path, ...]
    copies: tuple[tuple[Path, Path], ...]
    """Files that are not read, and the file that each is a copy of."""


def distinct(paths: Sequence[str]) -> InputFiles:
    """Return the files behind `paths`, except standard input; raise InputUnreadable where there are none."""
    found = without_other_names(file for path in paths if path != "-" for file in _expanded(path))
    originals = _originals(found)
    return InputFiles(files=tuple(file for file in found if file not in originals), copies=tuple(originals.items()))


def without_other_names(files: Iterable[Path]) -> list[Path]:
    """Return one name of each file: its own rather than that of a link, which names a pod less often."""
    names: dict[object, Path] = {}
    for file in files:
        try:
            status = file.stat()
        except (OSError, ValueError):
            names.setdefault(file, file)  # opening it will raise the error
            continue
        identity = (status.st_dev, status.st_ino)
        if identity not in names or (names[identity].is_symlink() and not file.is_symlink()):
            names[identity] = file
    return list(names.values())


def _originals(files: Iterable[Path]) -> dict[Path, Path]:
    """Return the files that have the content of an earlier one, with that one."""
    by_size: dict[int, list[Path]] = defaultdict(list)
    for file in files:
        status = _status(file)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_size:
            by_size[status.st_size].append(file)
    originals: dict[Path, Path] = {}
    for same_size in by_size.values():
        if len(same_size) == 1:
            continue
        first: dict[bytes, Path] = {}
        # The name of a copy is that of its original with something added.
        for file in sorted(same_size, key=lambda file: ("copy" in file.name, len(file.name), file.name)):
            original = first.setdefault(_content(file), file)
            if original is not file:
                originals[file] = original
    return originals


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except (OSError, ValueError):
        return None


def _content(file: Path) -> bytes:
    """Return a digest of a file; its name if it cannot be read."""
    status = _status(file)
    try:
        if status is not None:
            return _digest(file, status.st_size, status.st_mtime_ns)
    except OSError:
        pass  # opening it will raise the error
    return os.fsencode(file)


@lru_cache(maxsize=4096)
def _digest(file: Path, _size: int, _changed: int) -> bytes:
    # A command asks several times; size and time are there so that a file that has changed is read again.
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").digest()


def _expanded(path: str) -> list[Path]:
    if not path:
        raise InvalidArguments(f"an empty path is given; {_ACCEPTED}")
    here = Path(path)
    if here.is_dir():
        # Traces that were written beside the logs quote them: read again, everything would have happened twice.
        own_prefixes = (".", "trace_request.")
        files = sorted(
            file for file in _below(here) if not file.name.startswith(own_prefixes) and file.suffix != INDEX_SUFFIX
        )
        if not files:
            raise InputUnreadable(f"{path} holds no files; collect logs into it first: maestro trace logs collect")
        return [file for file in files if file.suffix not in {".json", ".yaml", ".html"} or _looks_like_log(file)]
    if here.is_char_device():
        raise InputUnreadable(f"{path} is a device; {_ACCEPTED}")
    if here.exists():
        return [here]
    files = [Path(name) for name in sorted(glob.glob(path, recursive=True))]  # noqa: PTH207 - absolute patterns too
    if not files:
        raise InputUnreadable(f"{path} does not exist; {_ACCEPTED}")
    return files


def _below(folder: Path) -> Iterator[Path]:
    for home, _, names in os.walk(folder):
        yield from (file for file in (Path(home) / name for name in names) if file.is_file())


def _looks_like_log(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return otlp_export.is_export(stream) or b'"msg":"' in stream.read(4096)
    except OSError:
        return True  # opening it will raise the error
