"""Errors that end a trace, by who has to act. Every message names the remedy.

TraceError
├── InvalidArguments  the command line is invalid: the user fixes it
├── InputUnreadable   an input exists, but is not what it should be
├── NotFound          the inputs are right, and what is asked for is not in them
├── Ambiguous         several fit; the message lists them
├── NoAccess          a cluster, a database or a login rejects the request or does not respond
└── Declined          the user did not confirm
"""

from typing import ClassVar

from maestropy.trace.exit_codes import Exit


class TraceError(Exception):
    """A trace ended without a result."""

    exit: ClassVar[Exit] = Exit.UNREADABLE
    """With which code a command ends."""


class InvalidArguments(TraceError):
    """The command line is invalid."""

    exit = Exit.USAGE


class InputUnreadable(TraceError):
    """The input cannot be read."""


class NotFound(TraceError):
    """What is asked for is not there."""

    exit = Exit.NOT_FOUND


class Ambiguous(TraceError):
    """Several fit."""

    exit = Exit.AMBIGUOUS


class NoAccess(TraceError):
    """A system cannot be reached, or rejects the request."""

    exit = Exit.NO_ACCESS


class Declined(TraceError):
    """The user did not confirm."""

    exit = Exit.DECLINED
