"""Define the rejection of a gRPC call with its status code; other packages need not import grpc."""

import enum

import grpc


class StatusCode(enum.Enum):
    """The status codes of gRPC for failed calls."""

    CANCELLED = grpc.StatusCode.CANCELLED
    UNKNOWN = grpc.StatusCode.UNKNOWN
    INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT
    DEADLINE_EXCEEDED = grpc.StatusCode.DEADLINE_EXCEEDED
    NOT_FOUND = grpc.StatusCode.NOT_FOUND
    ALREADY_EXISTS = grpc.StatusCode.ALREADY_EXISTS
    PERMISSION_DENIED = grpc.StatusCode.PERMISSION_DENIED
    RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
    FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
    ABORTED = grpc.StatusCode.ABORTED
    OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
    UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
    INTERNAL = grpc.StatusCode.INTERNAL
    UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
    DATA_LOSS = grpc.StatusCode.DATA_LOSS
    UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


class CallRejected(Exception):
    """A call that ends with a status other than OK; the text is meant for the caller."""

    def __init__(self, code: StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
