"""Write a request report to standard output or to a file."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from maestropy.cli import screen
from maestropy.cli.trace import output_files
from maestropy.cli.trace.logs.request_options import ReportingOptions
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.logs import index as log_index
from maestropy.trace.logs.read.inputs import input_files


def put(pieces: Iterable[str], *, out: Path | None, option: str = "--out") -> None:
    """Write the pieces of a report to standard output or to a file."""
    if out is None:
        for piece in pieces:
            screen.write(piece)
        sys.stdout.flush()
        return
    output_files.write(pieces, out, option=option)
    # Additional messages must not be inside a document on standard output.
    stream = sys.stdout if option == "--out" else sys.stderr
    stream.write(f"Report written to {out}\n")


def check(reporting: ReportingOptions, paths: Iterable[str], *, index: str = "off") -> None:
    """Raise InvalidArguments if a report or an index would overwrite a log, or another output."""
    outputs = {"--out": reporting.out, "--csv": reporting.csv, "--html": reporting.html}
    if index not in ("auto", "off"):
        log_index.check_place(index)
        outputs["--index"] = Path(index)
    if any(outputs.values()):
        given = input_files.distinct(list(paths))
        output_files.check(outputs, [*given.files, *(copy for copy, _ in given.copies)])


def put_trace_log(pieces: Iterable[str], paths: Iterable[str], *, moment: str, folder: Path | None) -> None:
    """Write `trace_request.<moment>.log` beside the logs, where runbooks expect it; never overwrite a file."""
    if folder is None:
        folder = next((Path(path) for path in paths if Path(path).is_dir()), Path())
    name = folder / f"trace_request.{moment}.log"
    for number in range(2, 100):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with name.open("x", encoding="utf-8") as stream:
                _write_whole(pieces, stream, name)
        except FileExistsError:
            name = folder / f"trace_request.{moment}-{number}.log"
        except OSError as error:
            raise InvalidArguments(f"{name} cannot be written: {error.strerror}; use -o log --out FILE") from error
        else:
            screen.write(f"Trace log: {name}\n")
            return


def _write_whole(pieces: Iterable[str], stream: TextIO, path: Path) -> None:
    """Write all pieces, or leave no file."""
    try:
        stream.writelines(pieces)
        stream.flush()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
