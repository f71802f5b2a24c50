"""How a gRPC call is refused: one status number and one text."""

from enum import IntEnum


class Code(IntEnum):
    """The gRPC status numbers a refusal may carry."""

    INVALID_ARGUMENT = 3
    PERMISSION_DENIED = 7
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class Denied(Exception):
    """The call must end with this status and text."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
