"""Write the results of an `adapter run` that ends before its event is handled: a failure, or a signal to stop.

The reader of a Job's results learns the reason from them. Results of an event that is handled are written by `run`.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from maestropy.adapter import runner
from maestropy.adapter.decide import adapter_status
from maestropy.adapter.errors import AdapterError, BadResults
from maestropy.adapter.results import VARIABLE, Results
from maestropy.cli import errors, overwriting, screen
from maestropy.cli.errors import UsageError

NOT_STARTED = "NotStarted"
"""The reason of a run that failed before its event was handled, if the failure has no better one."""
INTERRUPTED = "Interrupted"
_WITHOUT_RESULTS = ("--dry-run", "--replay")


@dataclass(slots=True)
class EarlyRun:
    """What is known of a run before its event is handled."""

    results: Results | None
    adapter: str = ""
    generation: int = 0
    is_deleting: bool | None = None

    @contextlib.contextmanager
    def failure_written(self) -> Iterator[None]:
        """Write a failure into the results, and raise it again; results that cannot be written are a usage error."""
        try:
            yield
        except KeyboardInterrupt:
            # Raised by the adapter's own code: a signal ends the process.
            self._write(INTERRUPTED, "KeyboardInterrupt before the event was handled")
            raise
        except Exception as error:  # whatever it is goes on, or is named in a usage error
            cause = error.__cause__ if isinstance(error, UsageError) and error.__cause__ else error
            reason = type(cause).__name__ if isinstance(cause, AdapterError) else NOT_STARTED
            if not self._write(reason, errors.sentence(error)):
                raise UsageError(errors.sentence(error)) from error
            raise

    @contextlib.contextmanager
    def stop_written(self) -> Iterator[None]:
        """Until the run handles signals itself, let one write the results and end the process.

        No exception is raised: the import of the adapter, or the adapter's own code, might swallow it.
        """

        def end(number: int, _: FrameType | None) -> None:
            self._write(INTERRUPTED, "the adapter was stopped before it handled the event")
            os._exit(errors.INTERRUPTED if number == signal.SIGINT else runner.AGAIN)

        # A process that ignores Ctrl-C, because a shell started it in the background, stays so.
        before = {
            number: handler
            for number in (signal.SIGINT, signal.SIGTERM)
            if (handler := signal.getsignal(number)) is not signal.SIG_IGN
        }
        for number in before:
            signal.signal(number, end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _write(self, reason: str, message: str) -> bool:
        if self.results is None:
            return True
        status = adapter_status.failed(
            self.adapter, self.generation, reason=reason, message=message, is_deleting=self.is_deleting
        )
        try:
            self.results.check()
            self.results.write(status)
        except BadResults as problem:
            screen.write_error(f"Warning: {problem}\n")
            return False
        return True


def named_results(path: Path | None) -> Results | None:
    """Return the results that a flag or the environment names."""
    named = path or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    return Results(named) if named else None


@contextlib.contextmanager
def of_command_line(arguments: Sequence[str]) -> Iterator[None]:
    """Write into the results that the parser rejects a command line; where they are, the words of it say."""
    words = list(arguments)
    is_shown = any(word.partition("=")[0] in _WITHOUT_RESULTS for word in words)
    value, others = _results_word(words)
    results = None if is_shown else named_results(Path(value) if value else None)
    # Another word may name a file to read, such as the adapter: it must not be overwritten.
    files = [Path(part) for word in others for part in (word, word.partition("=")[2]) if part]
    if results is not None and overwriting.problem({"": results.result, "report": results.report}, files):
        results = None
    with EarlyRun(results=results).failure_written():
        yield


def _results_word(words: list[str]) -> tuple[str, list[str]]:
    """Return the value of `--results`, empty without one, and the words that do not belong to it."""
    for index, word in enumerate(words):
        if word.startswith("--results="):
            return word.partition("=")[2], words[:index] + words[index + 1 :]
        if word == "--results" and index + 1 < len(words):
            return words[index + 1], words[:index] + words[index + 2 :]
    return "", words
