"""Run the command `maestro`: find the command of a command line, and map every error to an exit code.

A usage error ends with 2, a failure with 1, Ctrl-C with 130; each with at most one sentence on standard error. A closed
output pipe (`| head`) ends with 141 and without a message, as with other programs.
"""

import importlib
import io
import itertools
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any, TextIO

from maestropy.cli import errors, screen
from maestropy.cli.parsing import aliases

_HELP = {"--help", "-h"}
# These read their flags as Go does, without the parser library: they start faster.
_GO_CLIENT_COMMANDS = {"consumer", "resourcebundle", "get", "history"}
_SUGGESTED_GROUPS = ("resourcebundle", "consumer", "trace", "diagnose")
_SETTINGS_COMMANDS = {
    "server": "maestropy.cli.server.command",
    "agent": "maestropy.cli.agent",
    "migration": "maestropy.cli.server.migration",
}


def call(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    except BrokenPipeError:
        return _output_closed()
    except Exception as error:  # noqa: BLE001 - the outermost handler: every error becomes one sentence
        if errors.was_interrupted(error):
            return errors.INTERRUPTED
        from maestropy.cli.parsing import go_flags

        if isinstance(error, OSError | errors.OutputLost) and _discard_output() and isinstance(error, OSError):
            error = errors.OutputLost(error)
        screen.write_error(errors.report(error, verbosity=go_flags.verbosity(arguments)))
        return errors.exit_code(errors.innermost(error), is_diagnosis=arguments[:1] in (["trace"], ["diagnose"]))
    return code


class _ClosedOutput(io.TextIOWrapper):
    """Stands for a closed standard output, and knows whether output was lost.

    A write does not fail: a system that `maestro up` runs must not stop because nobody reads its summary.
    """

    def __init__(self) -> None:
        super().__init__(open(os.devnull, "wb"), encoding="utf-8")  # noqa: PTH123, SIM115 - kept open to the end
        self.has_lost = False

    def write(self, text: str) -> int:
        """Remember that there was output."""
        self.has_lost = self.has_lost or bool(text)
        return super().write(text)


def _with_lost_output(code: int) -> int:
    """Return 1 for a command that succeeded, but whose output went nowhere."""
    if code != 0 or not isinstance(sys.stdout, _ClosedOutput) or not sys.stdout.has_lost:
        return code
    screen.write_error(
        "Error: the output is lost, because standard output is closed; redirect it to a file or a pipe\n"
    )
    return errors.FAILED


def _repair_streams() -> None:
    """Replace closed standard streams by /dev/null, write whole texts, and escape what has no encoding."""
    # Opened first, so that no connection gets the file descriptor of standard output.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - kept open to the end
    sys.stdout = sys.stdout or _ClosedOutput()
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the same
    sys.stdout = _with_buffer(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors=screen.ESCAPED)


def _with_buffer(stream: TextIO) -> TextIO:
    """Return a stream that writes whole texts: with PYTHONUNBUFFERED, Python ignores that a pipe took only a part.

    A closed pipe was not noticed then, and the rest of the output was lost without an error.
    """
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.RawIOBase):
        return stream
    buffer = io.BufferedWriter(stream.buffer)
    return io.TextIOWrapper(buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def _output_closed() -> int:
    _discard_output()
    return errors.OUTPUT_CLOSED


def _discard_output() -> bool:
    """Discard what standard output does not take, and return whether there is any.

    The interpreter flushes it at exit, and would fail again.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "wb") as null:  # noqa: PTH123 - a descriptor is needed, not a path
            os.dup2(null.fileno(), sys.stdout.fileno())
        return True
    return False


def _run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0].startswith("-"):
        from maestropy.cli.parsing import go_flags

        arguments = go_flags.command_first(arguments)
    arguments = aliases.expand(arguments)
    match arguments:
        case ["__complete", _, *_]:
            from maestropy.cli.completion import answers

            return answers.run(arguments[1:])
        case ["server" | "agent" as name, "status", *rest]:
            from maestropy.cli.check import status

            return {"server": status.SERVER, "agent": status.AGENT}[name].run(rest)
        case ["check", "server" | "agent" | "broker" | "database" as name, *rest]:
            checked: int = importlib.import_module(f"maestropy.cli.check.{name}").COMMAND.run(rest)
            return checked
        case [name, *rest] if name in _SETTINGS_COMMANDS:
            code: int = importlib.import_module(_SETTINGS_COMMANDS[name]).COMMAND.run(rest)
            return code
        case [name, *_] if name in _GO_CLIENT_COMMANDS:
            from maestropy.cli import tracing
            from maestropy.cli.parsing import go_flags

            with tracing.traced_requests():
                return _parsed(aliases.expand(go_flags.without_global_flags(arguments)))
        case _:
            return _parsed(arguments)


def _parsed(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError
    from cyclopts.exceptions import UnknownCommandError

    from maestropy.cli.command_tree import app
    from maestropy.cli.parsing import help_panels

    page: Any = help_panels.HelpPage(help_panels.terminal_style(), out=sys.stdout)
    app.help_formatter = page
    words = list(itertools.takewhile(lambda word: word != "--", arguments))
    try:
        if not _HELP.isdisjoint(words):
            from maestropy.cli.parsing import field_docs

            field_docs.install()
            asked = [word for word in words if word not in _HELP]
            _refuse_unknown_command(app, asked)
            # cyclopts would parse the whole command line before it prints the help.
            app.help_print(asked, console=page)
            return 0
        result = app(list(arguments), exit_on_error=False, print_error=False, console=page, error_console=page)
    except UnknownCommandError as error:
        command = " ".join(["maestro", *app.parse_commands(words)[0]])
        word = str((error.unused_tokens or words)[0])
        raise errors.UsageError(f"{_unknown_command(app, words, word)}; see `{command} --help`") from None
    except CycloptsError as error:
        command = " ".join(["maestro", *app.parse_commands(words)[0]])
        # Remove a full stop, but not the dots of a shortened list.
        message = re.sub(r"(?<!\.)\.$", "", " ".join(str(error).split()))
        with _rejection_recorded(command, arguments):
            raise errors.UsageError(f"{message}; see `{command} --help`") from None
    return result if isinstance(result, int) else 0


def _rejection_recorded(command: str, arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Return the context in which the command line is rejected: the readers of a Job's results are to learn it too."""
    if command != "maestro adapter run":
        return nullcontext()
    from maestropy.cli.adapter import early_failure

    return early_failure.of_command_line(arguments)


def _unknown_command(app: Any, words: Sequence[str], word: str) -> str:
    from maestropy.cli.parsing import suggestions

    names, applications, _ = app.parse_commands(list(words))
    group = " ".join(["maestro", *names])
    elsewhere = {f"maestro {name}": _command_names(app[name]) for name in _SUGGESTED_GROUPS}
    return suggestions.unknown_command(word, group=group, names=_command_names(applications[-1]), elsewhere=elsewhere)


def _command_names(app: Any) -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _refuse_unknown_command(app: Any, words: Sequence[str]) -> None:
    """Raise UsageError for the help of a command that does not exist; cyclopts would print that of its group."""
    names, applications, rest = app.parse_commands(list(words))
    commands = [name for name in applications[-1] if not name.startswith("-")]
    if rest and commands and applications[-1].default_command is None and not rest[0].startswith("-"):
        group = " ".join(["maestro", *names])
        raise errors.UsageError(f"{_unknown_command(app, words, rest[0])}; see `{group} --help`")


def _on_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but end the process at once where a module is being imported.

    Nothing is open then. The import system would lose the exception in one of its callbacks, or keep a lock of a module
    for ever.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(errors.INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line of this process."""
    _repair_streams()
    try:
        # The start of the package let Ctrl-C end the process until here; a process that ignores it stays so.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, _on_interrupt)
        code = _with_lost_output(call(sys.argv[1:]))
        # Nothing is left to clean up but the interpreter.
        if signal.getsignal(signal.SIGINT) is _on_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        code = errors.INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
