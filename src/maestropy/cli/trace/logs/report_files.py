"""Write a request report to standard output or to a file."""

import sys
from collections.abc import Iterable
from pathlib import Path

from maestropy.cli import screen
from maestropy.trace.errors import InvalidArguments


def put(pieces: Iterable[str], *, out: Path | None, option: str = "--out") -> None:
    """Write the pieces of a report to standard output or to a file."""
    if out is None:
        for piece in pieces:
            screen.write(piece)
        sys.stdout.flush()
        return
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise InvalidArguments(f"{option} {out} cannot be written: {error.strerror}; name another file") from error
    # Additional messages must not be inside a document on standard output.
    stream = sys.stdout if option == "--out" else sys.stderr
    stream.write(f"Report written to {out}\n")


def put_trace_log(pieces: Iterable[str], paths: Iterable[str], *, moment: str, folder: Path | None) -> None:
    """Write `trace_request.<moment>.log` beside the logs, where runbooks expect it; never overwrite a file."""
    if folder is None:
        folder = next((Path(path) for path in paths if Path(path).is_dir()), Path())
    name = folder / f"trace_request.{moment}.log"
    for number in range(2, 100):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with name.open("x", encoding="utf-8") as stream:
                stream.writelines(pieces)
        except FileExistsError:
            name = folder / f"trace_request.{moment}-{number}.log"
        except OSError as error:
            raise InvalidArguments(f"{name} cannot be written: {error.strerror}; use -o log --out FILE") from error
        else:
            screen.write(f"Trace log: {name}\n")
            return
