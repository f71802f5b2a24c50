"""Turn an exception into one sentence and an exit code. A traceback is printed only with -v=4."""

from collections.abc import Iterator
from contextlib import contextmanager

from maestropy import installation
from maestropy.untrusted import printable

USAGE = 2
FAILED = 1
COMPARISON_FAILED = 3
INTERRUPTED = 130
OUTPUT_CLOSED = 141

_USAGE_ERRORS = {"SettingsError", "ConfigError", "BadResults", "NoSuchAdapter", "InvalidSelector"}
"""Errors of other packages that a mistake in the command line, a variable or a named file causes."""


class CommandError(Exception):
    """A command failed; the message gives the cause and the remedy."""


class UsageError(CommandError):
    """A mistake in the command line, in an environment variable or in the configuration file."""


class OutputLost(CommandError):
    """Standard output does not take the output, because the disk is full for instance."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror}; the output is lost, or incomplete")


class ComparisonFailed(CommandError):
    """A comparison failed. It needs an exit code of its own, because FAILED means that there are differences."""


@contextmanager
def comparison() -> Iterator[None]:
    """Turn failures inside into ComparisonFailed, except usage errors and Ctrl-C."""
    try:
        yield
    except Exception as error:
        cause = innermost(error)
        if exit_code(cause) == USAGE or was_interrupted(error):
            raise
        raise ComparisonFailed(sentence(cause)) from error


def innermost(error: BaseException) -> BaseException:
    """Return the first error inside exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def sentence(error: BaseException) -> str:
    """Return the error message for the user."""
    kind = type(error)
    # Our own errors are written for users; a system error gives the file or the address.
    if kind.__module__.startswith("maestropy.sdk."):
        # It quotes the server: one line, so that no part of it looks like output of the command.
        return printable.escape(str(error))
    if kind.__module__.startswith("maestropy."):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        file_name = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{file_name}"
    missing = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
    if isinstance(missing, ModuleNotFoundError) and (missing.name or "").startswith("maestropy.sandbox"):
        return (
            "the embedded database and the sandbox are not part of this installation, such as the production image; "
            f"give --db-dsn, or {installation.hint('all')}"
        )
    if isinstance(missing, ModuleNotFoundError) and not (missing.name or "maestropy").startswith("maestropy"):
        extras: dict[str, installation.Extra] = {"google": "pubsub", "aio_pika": "rabbitmq"}
        extra = extras.get((missing.name or "").partition(".")[0], "all")
        return f"{missing.name} is not installed, and this command needs it; {installation.hint(extra)}"
    message = " ".join(str(error).split())
    return f"unexpected error ({kind.__name__}: {message}); run again with -v=4 to see the traceback"


def was_interrupted(error: BaseException) -> bool:
    """Return whether an error is a consequence of Ctrl-C: cleaning up after it may fail."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    # A library can make an error its own cause; such a chain has no end.
    while cause is not None and not any(cause is known for known in seen):
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return False


def exit_code(error: BaseException, *, is_diagnosis: bool = False) -> int:
    """Return 2 for a usage error (command line, variables, files), 3 for a failed comparison or diagnosis, else 1.

    A diagnosis that fails is no result either: 1 means that it found a problem.
    """
    # By name, because importing the settings and the client for their errors slows every command down.
    if isinstance(error, UsageError) or type(error).__name__ in _USAGE_ERRORS:
        return USAGE
    return COMPARISON_FAILED if is_diagnosis or isinstance(error, ComparisonFailed) else FAILED


def report(error: BaseException, *, verbosity: int) -> str:
    """Return the text for standard error."""
    cause = innermost(error)
    return f"{_trace(error) if verbosity >= 4 else ''}Error: {sentence(cause)}\n"


def _trace(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))
