"""Read logs, or what was kept of them: when an index is looked for, where, and what is said about it."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from maestropy.trace.request import index, scan, sources, survey
from maestropy.trace.request.inputs import Environment

_WORTH_KEEPING = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read."""

    jobs: int
    index: str = "auto"
    """auto: large logs only, in the user's cache; off; or a file."""
    is_verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read, or kept."""

    scan: scan.Scan
    resources: survey.Sorted | None
    files: tuple[Path, ...]
    path: Path | None
    """Where to keep it."""


def read(paths: Sequence[str], how: Reading, *, now: float, progress: Callable[[int], None]) -> Read:
    """Return what the logs say, out of the index where there is one."""
    files = tuple(sources.plain_files(paths))
    path = _place(files, how)
    if path is not None:
        try:
            kept = index.load(path, files)
        except index.Useless as reason:
            _say(how, f"{path}: {reason}; the logs are read")
        else:
            _say(how, f"{path}: the logs are unchanged and not read again")
            return Read(scan=kept.scan, resources=kept.resources, files=files, path=None)
    found = scan.everything(paths, now=now, progress=progress, jobs=how.jobs)
    return Read(scan=found, resources=None, files=files, path=path)


def sorted_out(told: Read, known: Environment, how: Reading) -> survey.Sorted:
    """Return the resources of the logs, told apart; keeps everything for the next time."""
    if told.resources is not None:
        return told.resources
    found = survey.sorted_out(told.scan.hits, known.writers)
    if told.path is not None:
        try:
            is_kept = index.save(told.path, told.scan, found, files=told.files)
            if how.index == "auto":
                index.prune(told.path.parent)
        except (OSError, index.Useless) as error:
            _say(how, f"{told.path}: cannot be written ({error})")
        else:
            _say(how, f"{told.path}: {'written' if is_kept else 'not written, for not all logs are plain files'}")
    return found


def _place(files: Sequence[Path], how: Reading) -> Path | None:
    if how.index == "off" or not files:
        return None
    if how.index != "auto":
        return Path(how.index)
    size = sum(each.stat().st_size for each in files if each.exists())
    return index.place(files, index.home(os.environ)) if size >= _WORTH_KEEPING else None


def _say(how: Reading, text: str) -> None:
    if how.is_verbose:
        sys.stderr.write(f"Index: {text}\n")
