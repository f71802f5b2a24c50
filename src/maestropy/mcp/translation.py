"""Turn the errors of engines and clients into errors of a tool, each with what to do. Tracebacks end here."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

from maestropy.mcp.answers import Result, ToolError
from maestropy.sdk.errors import (
    Conflict,
    Forbidden,
    MaestroError,
    NotFound,
    Timeout,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from maestropy.trace.errors import Ambiguous, Declined, InputUnreadable, InvalidArguments, NoAccess, TraceError
from maestropy.trace.errors import NotFound as TraceNotFound

_REMEDIES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (Ambiguous, "Name one of them by its resource ID, or narrow it with consumer."),
    (TraceNotFound, "Check the identifier; call find to search for a part of the name."),
    (InvalidArguments, "Correct the argument."),
    (InputUnreadable, "Give another file to `maestro mcp`."),
    (Declined, "A person has to confirm this in a terminal: use the command line."),
    (NoAccess, "Check the access that `maestro config` has for this environment; other tools may still answer."),
    (Unauthorized, "The token is missing, wrong or expired: the user has to give another one to `maestro mcp`."),
    (Forbidden, "The user of this token may not do that: ask for a token with more rights."),
    (NotFound, "Check the name; call find or fleet for those that exist."),
    (Unsupported, "The server cannot do that, as a Go Maestro; use another tool."),
    (Conflict, "Read the reason, and plan the action again."),
    (Timeout, "The server did not respond in time; ask again, or narrow the question."),
    (Unavailable, "The server does not respond: check that it runs, and ask again."),
)


def translated(tool: Callable[[Any], Awaitable[Result]]) -> Callable[[Any], Awaitable[Result]]:
    """Return a tool whose errors are ToolErrors."""

    @functools.wraps(tool)
    async def call(arguments: Any) -> Result:
        try:
            return await tool(arguments)
        except (TraceError, MaestroError) as error:
            remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), "Ask again, or ask otherwise.")
            raise ToolError(str(error), remedy=remedy) from error
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(
                f"{tool.__name__} failed unexpectedly ({type(error).__name__}: {error})",
                remedy="This is a mistake in `maestro mcp`; use another tool, and report it.",
            ) from error

    return call
