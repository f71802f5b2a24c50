"""The error of the sandbox."""


class SandboxError(Exception):
    """A component of the sandbox cannot run; the message gives the cause and the remedy."""
