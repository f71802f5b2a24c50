"""The error for a denied gRPC call: a status code and a text."""

from enum import IntEnum


class DeniedCode(IntEnum):
    """gRPC status codes of a denied call."""

    INVALID_ARGUMENT = 3
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class Denied(Exception):
    """The call ends with this status and text."""

    def __init__(self, code: DeniedCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def is_final(self) -> bool:
        """Whether the credentials are rejected; otherwise they could not be checked."""
        return self.code in (DeniedCode.UNAUTHENTICATED, DeniedCode.PERMISSION_DENIED)
