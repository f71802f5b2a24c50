"""What can keep a trace from its answer, by who has to act. Every message names the remedy.

TraceError
├── BadQuestion   the command line does not make sense: its author fixes it
├── Unreadable    the input is there, but it is not what it should be
├── NoAccess      a cluster, a database or a login refuses, or does not answer
└── Declined      somebody was asked and did not say yes
"""


class TraceError(Exception):
    """A trace without an answer."""


class BadQuestion(TraceError):
    """The question does not make sense."""


class Unreadable(TraceError):
    """The input cannot be read."""


class NoAccess(TraceError):
    """Who could answer cannot be reached, or refuses."""


class Declined(TraceError):
    """The user did not say yes."""
