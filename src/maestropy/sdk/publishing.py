"""Send wishes: one publish with its retries, told by its operation id."""

from dataclasses import dataclass

from maestropy.sdk import failures
from maestropy.sdk.errors import ConfigError, Invalid, MaestroError
from maestropy.sdk.links import Link
from maestropy.sdk.retry import Retrier
from maestropy.transport import grpc_client
from maestropy.transport.grpc_client import GrpcClient
from maestropy.transport.status import Code, Refused
from maestropy.wire import errors as wire_errors
from maestropy.wire import event


@dataclass(slots=True)
class Sent:
    """What became of a publish."""

    tries: int = 0
    """More than one means that an earlier try may have been carried out without our hearing of it."""


class Publisher:
    """The gRPC endpoint for sources, for writing."""

    def __init__(self, link: Link[GrpcClient], *, retrier: Retrier, timeout: float) -> None:
        self._link = link
        self._retrier = retrier
        self._timeout = timeout

    async def publish(self, wish: event.Event, *, request: failures.Request, sent: Sent) -> None:
        """Return when the server has the wish safe. A wish names its bundle and version, so it can be repeated."""

        async def once() -> None:
            sent.tries += 1
            try:
                await self._link.current().publish(wish, timeout_seconds=self._timeout)
            except Exception as error:
                raise translated(error, request=request) from error

        await self._retrier.run(once)


def translated(error: Exception, *, request: failures.Request) -> MaestroError:
    """Return what an error of the connection means; errors that are not of the connection are raised as they are."""
    match error:
        case MaestroError():
            return error
        case Refused():
            found = failures.from_grpc(error.code, str(error), request=request)
            # gRPC says so only in its text; a connection that was never made carried nothing.
            found.was_sent = not (error.code is Code.UNAVAILABLE and "failed to connect" in str(error))
            return found
        case grpc_client.StreamTimeout():
            return failures.from_silence(str(error), request=request, was_sent=True, in_time=False)
        case grpc_client.BadCredentials():
            return ConfigError(str(error), doing=request.doing)
        case wire_errors.WireError():
            return Invalid(str(error), doing=request.doing, operation_id=request.operation_id)
        case _:
            raise error
