"""Exit codes of `maestro trace`. A separate module, so that the command line can import it without the tracer."""

from enum import IntEnum


class Exit(IntEnum):
    """How a trace ends. Documented and stable: scripts rely on the numbers."""

    HEALTHY = 0
    """Traced, and everything is as it should be."""
    PROBLEM = 1
    """Traced, and something is wrong: failed, incomplete, drifted, orphaned."""
    USAGE = 2
    """The command line does not make sense."""
    UNREADABLE = 3
    """The input cannot be read, or contains no Maestro data."""
    NOT_FOUND = 4
    """The identifier was not found."""
    NO_ACCESS = 5
    """A cluster, a database or a login rejected the request."""
    INCONCLUSIVE = 6
    """Too little could be read for a verdict."""
    AMBIGUOUS = 7
    """Several match; they are listed."""
    DECLINED = 8
    """The user did not confirm."""
    INTERRUPTED = 130
