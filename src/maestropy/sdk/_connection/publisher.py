"""Publish spec requests over gRPC, with retries."""

from dataclasses import dataclass

from maestropy.sdk._connection import client_spans, error_mapping
from maestropy.sdk._connection.connections import ReloadingConnection
from maestropy.sdk.errors import ConfigError, Invalid, MaestroError
from maestropy.sdk.retry import Retrier
from maestropy.transport.grpc import client as grpc_client
from maestropy.transport.grpc.client import GrpcClient
from maestropy.transport.grpc.status import CallRejected, StatusCode
from maestropy.wire import errors as wire_errors
from maestropy.wire import positions
from maestropy.wire.events import event


@dataclass(slots=True)
class PublishAttempts:
    """Counts the attempts of one publish."""

    count: int = 0
    """More than one means that an earlier attempt may have been stored although its response was lost."""


class Publisher:
    """The gRPC endpoint for sources, for spec requests."""

    def __init__(
        self,
        connection: ReloadingConnection[GrpcClient],
        *,
        retrier: Retrier,
        timeout: float,
        credentials: error_mapping.Credentials = error_mapping.NO_CREDENTIALS,
        seen: positions.Seen | None = None,
    ) -> None:
        self._connection = connection
        self._credentials = credentials
        self._seen = positions.Seen() if seen is None else seen
        self._retrier = retrier
        self._timeout = timeout

    def check(self) -> None:
        """Read the certificate files without connecting; raises ConfigError as the first write would."""
        self._connection.current()

    async def publish(
        self, spec_event: event.CloudEvent, *, request: error_mapping.Operation, attempts: PublishAttempts
    ) -> None:
        """Return when the server has stored the request. It carries resource ID and version, so it can be repeated."""
        sent = client_spans.with_parent(spec_event, client_spans.trace_parent(request))

        async def once() -> str:
            attempts.count += 1
            try:
                return await self._connection.current().publish(sent, timeout_seconds=self._timeout)
            except MaestroError:
                raise  # as it is: an error that is its own cause has no end
            except Exception as error:
                raise translated(error, request=request, credentials=self._credentials) from error

        begun, position = self._seen.begin(), ""
        try:
            position = await self._retrier.run(once)
        except MaestroError as error:
            client_spans.end(request, problem=str(error))
            raise
        else:
            client_spans.end(request)
        finally:
            self._seen.end(begun, position)


def translated(
    error: Exception,
    *,
    request: error_mapping.Operation,
    credentials: error_mapping.Credentials = error_mapping.NO_CREDENTIALS,
) -> MaestroError:
    """Return the client error for an error of the connection; other errors are raised unchanged."""
    match error:
        case MaestroError():
            return error
        case CallRejected():
            maestro_error = error_mapping.from_grpc(error.code, str(error), request=request, credentials=credentials)
            # Only the text tells that no connection was made, so that nothing was sent.
            maestro_error.was_sent = not (error.code is StatusCode.UNAVAILABLE and "failed to connect" in str(error))
            return maestro_error
        case grpc_client.StreamTimeout():
            return error_mapping.from_no_response(str(error), request=request, was_sent=True, in_time=False)
        case grpc_client.BadCredentials():
            return ConfigError(str(error), doing=request.doing)
        case wire_errors.WireError():
            return Invalid(str(error), doing=request.doing, operation_id=request.operation_id)
        case _:
            raise error
