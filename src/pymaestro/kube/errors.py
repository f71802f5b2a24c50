"""What can go wrong between us and a Kubernetes API server, by who has to act.

The HTTP library's own errors end here: callers see these classes and nothing else, with the library's
error chained as the cause.
"""


class KubeError(Exception):
    """A question to the API server got no answer."""


class BadConfig(KubeError):
    """The kubeconfig or service account cannot be used; the operator has to fix it."""


class Unreachable(KubeError):
    """The API server did not answer in time, or answered with a failure of its own; try again later."""


class Refused(KubeError):
    """The API server does not let this server ask; the operator has to grant it."""
