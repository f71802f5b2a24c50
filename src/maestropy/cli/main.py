"""The command `maestro`: how a command line finds its command, and how every one of them ends.

A mistake in the command line ends with 2, a failure with 1, Ctrl-C with 130; each with at most one sentence on
standard error. A reader who leaves (`| head`) ends with 141 and without a word, as with other programs.
"""

import importlib
import io
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from maestropy.cli import failure

_HELP = {"--help", "-h"}


def call(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return failure.INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except Exception as error:  # noqa: BLE001 - the last border: whatever went wrong, the user gets a sentence
        if failure.was_interrupted(error):
            return failure.INTERRUPTED
        from maestropy.cli import goflags

        sys.stderr.write(failure.report(error, verbosity=goflags.verbosity(arguments)))
        return failure.exit_code(failure.innermost(error))
    return code


def _mend_streams() -> None:
    """Let streams that are closed lead nowhere, and letters that a terminal does not have be question marks."""
    # Opened first and lowest, so that no connection gets the number of standard output.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - kept open to the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the same
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")


def _nobody_reads() -> int:
    # What is still in the buffer would be written at the end of the process, and fail again with a traceback.
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return failure.NOBODY_READS


def _run(arguments: Sequence[str]) -> int:
    match arguments:
        case ["server" | "agent" | "migration" as name, *rest]:
            code: int = importlib.import_module(f"maestropy.cli.{name}").COMMAND.run(rest)
            return code
        case _:
            return _parsed(arguments)


def _parsed(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    from maestropy.cli import panels
    from maestropy.cli.root import app

    page: Any = panels.Page(panels.terminal(), out=sys.stdout)
    app.help_formatter = page
    words = list(itertools.takewhile(lambda word: word != "--", arguments))
    try:
        if not _HELP.isdisjoint(words):
            from maestropy.cli import fielddocs

            fielddocs.adopt()
            # The library would read the whole command line first, to explain it all the same.
            app.help_print([word for word in words if word not in _HELP], console=page)
            return 0
        result = app(list(arguments), exit_on_error=False, print_error=False, console=page, error_console=page)
    except CycloptsError as error:
        command = " ".join(["maestro", *app.parse_commands(words)[0]])
        # A full stop goes; the dots of a list that is cut short stay.
        said = re.sub(r"(?<!\.)\.$", "", " ".join(str(error).split()))
        raise failure.UsageError(f"{said}; see `{command} --help`") from None
    return result if isinstance(result, int) else 0


def main() -> None:
    """Run the command line of this process."""
    _mend_streams()
    sys.exit(call(sys.argv[1:]))


if __name__ == "__main__":
    main()
