"""How a trace ends, as a number. A module of its own, so that a command line can know it without the rest."""

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
    """The input cannot be read, or holds nothing of Maestro."""
    NOT_FOUND = 4
    """Nobody knows the identifier."""
    NO_ACCESS = 5
    """A cluster, a database or a login refused."""
    INCONCLUSIVE = 6
    """Too little could be seen for a verdict."""
    AMBIGUOUS = 7
    """Several match; they are listed."""
    DECLINED = 8
    """The user did not say yes."""
    INTERRUPTED = 130
