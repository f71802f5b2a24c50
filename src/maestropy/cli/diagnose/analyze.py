"""`maestro diagnose analyze`, `diff` and `reveal`: read archives. No system is reached."""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli import overwriting, screen
from maestropy.cli.trace import endings
from maestropy.trace.errors import InputUnreadable, InvalidArguments, TraceError

if TYPE_CHECKING:
    from maestropy.diagnose.analysis.analyze import Analysis

_EXITS = """\
Exit codes: 0 healthy, 1 something is wrong, 2 usage, 3 the archive cannot be read, 6 nothing wrong was found, but a
part is unknown."""
_SHOWN = 20

analyze = App(
    name="analyze",
    usage="maestro diagnose analyze ARCHIVE [OPTIONS]",
    help="Run all verdict engines over an archive and print what is wrong, the most important first. Offline.",
    help_epilogue=f"""\
Examples:

  maestro diagnose analyze incident.tar.zst
  maestro diagnose analyze incident.tar.zst -o json
  maestro diagnose analyze incident.tar.zst -o html --out report.html

{_EXITS}""",
    help_format="plaintext",
    version_flags=[],
)
diff = App(
    name="diff",
    usage="maestro diagnose diff BEFORE AFTER [OPTIONS]",
    help="Compare two archives: new findings, those that are gone, and works with another verdict.",
    help_epilogue="""\
Examples:

  maestro diagnose diff before.tar.zst after.tar.zst

Exit codes: 0 no difference, 1 there are differences, 2 usage, 3 an archive cannot be read.""",
    help_format="plaintext",
    version_flags=[],
)
reveal = App(
    name="reveal",
    usage="maestro diagnose reveal [FILE] --key KEY",
    help="Turn the pseudonyms in a report back into names, with the key file of `collect --anonymise`.",
    help_epilogue="""\
Examples:

  maestro diagnose analyze share.tar.zst | maestro diagnose reveal --key share.tar.zst.key
  maestro diagnose reveal report.txt --key share.tar.zst.key

Exit codes: 0 done, 2 usage, 3 a file cannot be read.""",
    help_format="plaintext",
    version_flags=[],
)


@analyze.default
def analyze_archive(
    archive: Path,
    *,
    output: Annotated[Literal["text", "json", "yaml", "html"], Parameter(name=("-o", "--output"))] = "text",
    out: Path | None = None,
    all_: Annotated[bool, Parameter(name="--all", negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
    exit_zero: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Analyse an archive.

    Parameters
    ----------
    archive
        A file of `maestro diagnose collect`.
    output
        Its form.
    out
        Write it to a file, which must not exist; only you can read it.
    force
        Replace the file of --out.
    all_
        Show all findings as text, not only the first 20.
    exit_zero
        End with 0 whatever was found, for reporting jobs.
    """
    try:
        from maestropy.diagnose.analysis import report

        _check(out, force=force)
        with ExitStack() as stack:
            analysis = _analysis(archive, stack)
            match output:
                case "json" | "yaml" as form:
                    text = report.document(analysis, form=form)
                case "html":
                    text = report.html(analysis)
                case _:
                    text = report.text(analysis, most=len(analysis.findings) if all_ else _SHOWN)
        _write(text, out, force=force)
    except TraceError as error:
        return endings.failed(error)
    return 0 if exit_zero else int(analysis.exit)


@diff.default
def diff_archives(
    before: Path,
    after: Path,
    *,
    output: Annotated[Literal["text", "json", "yaml"], Parameter(name=("-o", "--output"))] = "text",
    out: Path | None = None,
    force: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Compare two archives.

    Parameters
    ----------
    before
        The older archive.
    after
        The newer archive.
    output
        Its form.
    out
        Write it to a file, which must not exist; only you can read it.
    force
        Replace the file of --out.
    """
    try:
        from maestropy.diagnose.analysis import diff as comparison

        _check(out, force=force)
        with ExitStack() as stack:
            difference = comparison.compare(_analysis(before, stack), _analysis(after, stack))
            form = output
            text = comparison.text(difference) if form == "text" else comparison.document(difference, form=form)
        _write(text, out, force=force)
    except TraceError as error:
        return endings.failed(error)
    return int(difference.exit)


@reveal.default
def reveal_names(file: Path | None = None, *, key: Path) -> int:
    """Turn pseudonyms back into names.

    Parameters
    ----------
    file
        A report. Without it, standard input.
    key
        The key file that the collection wrote.
    """
    from maestropy.diagnose.collection import pack
    from maestropy.diagnose.redaction import anonymise

    try:
        if not key.exists():
            raise InputUnreadable(f"--key {key} does not exist; name the key file of `collect --anonymise`")
        names = pack.read_key(key)
        content = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return endings.failed(InputUnreadable(f"{file or 'standard input'} cannot be read: {error}"))
    except TraceError as error:
        return endings.failed(error)
    screen.write(anonymise.reveal(content, names))
    return 0


def _check(out: Path | None, *, force: bool) -> None:
    """Raise InvalidArguments for a file that is there, before the archive is analysed."""
    if out is not None and not force and (out.is_symlink() or out.exists()) and not overwriting.is_special(out):
        raise InvalidArguments(f"--out {out} exists already; name another file, or replace it with --force")


def _write(text: str, out: Path | None, *, force: bool) -> None:
    _check(out, force=force)
    endings.write_report(text, out)
    if out is not None and out.is_file():
        out.chmod(0o600)


def _analysis(archive: Path, stack: ExitStack) -> "Analysis":
    from maestropy.diagnose import archive as archives
    from maestropy.diagnose.analysis import analyze as analysing

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maestro-diagnose-")))
    opened = stack.enter_context(archives.opened(archive, folder=folder))
    return analysing.analyze(opened)
