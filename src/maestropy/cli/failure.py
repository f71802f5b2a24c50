"""Turn an exception into one sentence and an exit code. No user ever sees a traceback they did not ask for."""

from collections.abc import Iterator
from contextlib import contextmanager

USAGE = 2
FAILED = 1
NOT_COMPARED = 3
INTERRUPTED = 130
NOBODY_READS = 141


class CommandError(Exception):
    """A command that could not do its work; the message says why and what to do."""


class UsageError(CommandError):
    """A mistake in the command line or in what stands for it: variables, configuration."""


class NotCompared(CommandError):
    """A comparison that could not be made, where FAILED already says that there are differences."""


@contextmanager
def comparing() -> Iterator[None]:
    """Let what fails inside end with NOT_COMPARED; a mistake in the command line stays one."""
    try:
        yield
    except Exception as error:
        cause = innermost(error)
        if exit_code(cause) == USAGE or was_interrupted(error):
            raise
        raise NotCompared(sentence(cause)) from error


def innermost(error: BaseException) -> BaseException:
    """Return the first real error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def sentence(error: BaseException) -> str:
    """Return what to tell the user."""
    kind = type(error)
    # Our own errors are written for the user; an error of the system names the file or the address.
    if kind.__module__.startswith("maestropy."):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{place}"
    missing = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
    if isinstance(missing, ModuleNotFoundError) and not (missing.name or "maestropy").startswith("maestropy"):
        return f"{missing.name} is not installed, and this command needs it; pip install 'maestropy[all]'"
    words = " ".join(str(error).split())
    return f"something unexpected happened ({kind.__name__}: {words}); run again with -v=4 to see where"


def was_interrupted(error: BaseException) -> bool:
    """Say whether an error only followed from Ctrl-C: what was being cleaned up then may well fail."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def exit_code(error: BaseException) -> int:
    """Return 2 for a mistake in the command line or in what stands for it (variables, files), 3 or else 1."""
    if isinstance(error, NotCompared):
        return NOT_COMPARED
    # By name: to import the settings and the client for their errors would slow every command down.
    is_usage = isinstance(error, UsageError) or type(error).__name__ in {"SettingsError", "ConfigError"}
    return USAGE if is_usage else FAILED


def report(error: BaseException, *, verbosity: int) -> str:
    """Return all that goes to standard error."""
    cause = innermost(error)
    return f"{_trace(error) if verbosity >= 4 else ''}Error: {sentence(cause)}\n"


def _trace(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))
