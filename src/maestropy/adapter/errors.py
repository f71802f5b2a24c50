"""Define the errors of an adapter, by who has to act.

    AdapterError
     ├── MalformedEvent      an event lacks a required field: the sender fixes it
     ├── UnknownKind         this adapter has no handler for that kind of resource
     ├── BadAdapter          the adapter's own code or files cannot be used: its author fixes them
     │    └── NoSuchAdapter  the user named a file, module or adapter that does not exist
     ├── BadReport           a status report holds what JSON does not: the author of the adapter fixes it
     ├── BadResults          the results file cannot be written: the author of the Job fixes it
     ├── DidNotReturn        a function of the adapter takes longer than an event may: its author fixes it
     ├── Exited              the adapter's own code tried to end the process: its author returns a value instead
     ├── StaleGeneration     the works are of a newer generation than the event: nothing is applied
     ├── Interrupted         the process was asked to stop: run the event again
     ├── NotYet              the agent has not reported this value yet; Available is reported as Unknown
     └── UnreadableFeedback  a feedback value has an unexpected form; Available is reported as Unknown, with the cause

Failures of Maestro, Kubernetes and the HyperFleet API are errors of `maestropy.sdk.errors`.
"""


class AdapterError(Exception):
    """The root of the errors that this package raises itself."""


class MalformedEvent(AdapterError):
    """An event lacks a required field."""


class UnknownKind(AdapterError):
    """This adapter has no handler for that kind of resource."""


class BadAdapter(AdapterError):
    """The adapter's own code or files cannot be used."""


class NoSuchAdapter(BadAdapter):
    """The user named a file, a module or an adapter that does not exist."""


class BadReport(AdapterError):
    """A status report of the adapter's own code holds what no reader of a status can read."""


class BadResults(AdapterError):
    """The results file cannot be written."""


class DidNotReturn(AdapterError):
    """A function of the adapter's own code did not return in the time for one event."""


class Exited(AdapterError):
    """The adapter's own code raised what ends a process, such as SystemExit; the cause is that exception."""


class StaleGeneration(AdapterError):
    """The works were written for a newer generation of the resource."""


class Interrupted(AdapterError):
    """The process was asked to stop before an effect was finished."""


class NotYet(AdapterError):
    """The agent has not reported this value yet."""


class UnreadableFeedback(AdapterError):
    """A feedback value has an unexpected form."""
