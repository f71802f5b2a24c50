"""Read the lines of a log around one line, however large the file is. Only files named at the start are read."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from maestropy.diagnose.collection.sources import logs
from maestropy.diagnose.redaction.redact import LogRedactor, Redactor
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.texts import Ours, Quoted

_MOST_FILES: Final = 5_000
_CHUNK: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_SHOWN: Final = 1_000
"""Characters of a line that an answer shows."""
_BEFORE_BLOCK: Final = 400
"""Lines before the first that is shown which are read too: a PEM block may have begun there."""


def files_of(roots: Sequence[Path]) -> dict[str, Path]:
    """Return the logs behind some files and folders, by the names that evidence IDs have.

    Other files of the folders, such as keys and those of a database, are not among them.
    """
    found: dict[str, Path] = {}
    for number, root in enumerate(roots):
        for path in sorted(logs.log_files([str(root)], []))[:_MOST_FILES]:
            name = path.relative_to(root).as_posix() if root.is_dir() else path.name
            # Blanks would make an evidence ID two words.
            name = "_".join(name.split())
            found[f"{number}/{name}" if name in found else name] = path
    return found


def names_of(files: Mapping[str, Path]) -> dict[Path, str]:
    """Return the names by path."""
    return {path.resolve(): name for name, path in files.items()}


def around(path: Path, *, name: str, line: int, before: int, after: int) -> Result:
    """Return the lines around one; raise ToolError if the file does not have it."""
    first = max(1, line - before)
    redactor = LogRedactor(Redactor())
    shown: list[tuple[int, str]] = []
    try:
        with _opened(path) as file:
            start = max(1, first - _BEFORE_BLOCK)
            if not _skip(file, start - 1):
                raise ToolError(f"{name} has fewer than {line} lines", remedy="Trace again: the log may be rotated.")
            for number in range(start, line + after + 1):
                text = _line(file)
                if text is None:
                    break
                clean = redactor.line(text)
                if number >= first:
                    shown.append((number, clean))
    except (OSError, EOFError) as error:
        raise ToolError(f"{name} cannot be read: {error}", remedy="Check that the file is still there.") from error
    if not any(number == line for number, _ in shown):
        raise ToolError(f"{name} has fewer than {line} lines", remedy="Trace again: the log may be rotated.")
    shown.sort(key=lambda item: (abs(item[0] - line), item[0]))
    items = [
        {"line": number, **({"is": Ours("the record")} if number == line else {}), "text": Quoted(text[:_SHOWN])}
        for number, text in shown
    ]
    return Result(head={"file": name, "line": line, "order": Ours("nearest first")}, items=items)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        with gzip.open(path, "rb") as packed:
            yield packed  # type: ignore[misc]  # as a binary file
    else:
        with path.open("rb") as file:
            yield file


def _skip(file: IO[bytes], count: int) -> bool:
    """Go to the beginning of the line after `count` lines; return whether there is one."""
    while count:
        chunk = file.read(_CHUNK)
        if not chunk:
            return False
        have = chunk.count(b"\n")
        if have < count:
            count -= have
            continue
        position = -1
        for _ in range(count):
            position = chunk.index(b"\n", position + 1)
        file.seek(position + 1 - len(chunk), 1)
        count = 0
    return True


def _line(file: IO[bytes]) -> str | None:
    """Return one line, cut if it is very long; None at the end."""
    text = file.readline(_LONGEST_LINE)
    if not text:
        return None
    rest = text
    while not rest.endswith(b"\n"):
        rest = file.readline(_LONGEST_LINE)
        if not rest:
            break
    return text.rstrip(b"\r\n").decode("utf-8", "replace")
