"""What can go wrong in an adapter, by who has to act.

    AdapterError
     ├── MalformedEvent   an event lacks what every event has: whoever sends it fixes it
     ├── UnknownKind      no function of this adapter is for that kind of resource
     ├── BadAdapter       the adapter's own code or files cannot be used: its author fixes them
     ├── BadResults       the results file cannot be written: whoever wrote the Job fixes it
     ├── NotYet           the cluster has not said anything about this yet; the kit reports Unknown
     └── Unreadable       the cluster's answer is not what was asked for; the kit reports Unknown and says why

Failures of Maestro, Kubernetes and the HyperFleet API are `maestropy.sdk.errors`: one family for what servers say.
"""


class AdapterError(Exception):
    """The root of what the kit raises itself."""


class MalformedEvent(AdapterError):
    """An event lacks what every event has."""


class UnknownKind(AdapterError):
    """No function of this adapter is for that kind of resource."""


class BadAdapter(AdapterError):
    """The adapter's own code or files cannot be used."""


class BadResults(AdapterError):
    """The results file cannot be written."""


class NotYet(AdapterError):
    """The cluster has not said anything about this yet."""


class Unreadable(AdapterError):
    """The cluster's answer is not what was asked for."""
