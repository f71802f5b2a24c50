"""Find an output file of a command that is one of its input files, by whichever name, or another of its outputs."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path


def problem(outputs: Mapping[str, Path | None], inputs: Iterable[Path], *, noun: str = "input") -> str:
    """Return which output would overwrite what; empty if none would. An output is named by its option."""
    read = {_identity(path): path for path in inputs if path.is_file()}
    options: dict[object, str] = {}
    for option, path in outputs.items():
        if path is None or is_special(path):
            continue
        identity = _identity(path)
        if identity in read:
            return f"{option} {path} would overwrite the {noun} {read[identity]}; name another file"
        if identity in options:
            return f"{options[identity]} and {option} name the same file {path}; name two files"
        options[identity] = option
    return ""


def is_special(path: Path) -> bool:
    """Say whether a path is a device or a pipe, which nothing can be renamed to."""
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def _identity(path: Path) -> object:
    """Return what all names of a file have in common."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino
