"""The one error of the sandbox."""


class SandboxError(Exception):
    """A part of the sandbox cannot run here; the message says why and what to do."""
