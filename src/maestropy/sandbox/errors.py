"""The errors of the sandbox."""


class SandboxError(Exception):
    """A component of the sandbox cannot run; the message gives the cause and the remedy."""


class DirectoryInUse(SandboxError):
    """Another process holds the lock of a directory."""

    def __init__(self, message: str, *, holder: str) -> None:
        super().__init__(message)
        self.holder = holder
        """The ID of that process."""
