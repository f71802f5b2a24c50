"""What a request for an operator action asks for: a dry run or the action, and in whose name.

Handlers read it, and so does the history of refused requests: a refused dry run is no attempt to act.
"""

from dataclasses import dataclass, replace
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Scope

from maestropy.server.api.rest.http import error_catalogue, errors, routing
from maestropy.server.auth.roles import Role

_KEY: Final = "maestro.asked_action"
_DRY_RUN: Final = "dryRun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is known of a request before it is refused."""

    consumer: str = ""
    """The consumer that its body names; empty: that of its path."""
    requested_by: str = ""
    """Who the client says it is; proves nothing."""
    is_dry_run: bool = False


NOTHING: Final = Asked()


def of(scope: Scope) -> Asked:
    """Return what a request has asked for so far."""
    asked: Asked = scope.get(_KEY, NOTHING)
    return asked


def note(request: Request, *, consumer: str = "", requested_by: str = "") -> None:
    """Note what the body of a request says."""
    request.scope[_KEY] = replace(of(request.scope), consumer=consumer, requested_by=requested_by)


def needs(role: Role, handler: routing.Handler) -> routing.Handler:
    """Return the handler of an action for clients that have at least `role`."""

    async def checked(request: Request) -> ASGIApp:
        _check_parameters(request)
        return await handler(request)

    guarded = routing.needs(role, checked)

    async def noted(request: Request) -> ASGIApp:
        # Before the role is checked: a dry run that is denied is one, too.
        is_dry = request.query_params.getlist(_DRY_RUN) == ["All"]
        request.scope[_KEY] = replace(of(request.scope), is_dry_run=is_dry)
        return await guarded(request)

    return noted


def _check_parameters(request: Request) -> None:
    """Reject what may be meant as a dry run; as in Kubernetes, `All` is the only value."""
    unknown = sorted(set(request.query_params) - {_DRY_RUN})
    if unknown:
        shown = errors.shorten(", ".join(unknown))
        reason = f"unknown parameter {shown}: an action takes only dryRun=All, for a dry run; nothing was done"
        raise errors.RestError(error_catalogue.BAD_REQUEST, reason)
    values = request.query_params.getlist(_DRY_RUN)
    if values not in ([], ["All"]):
        shown = errors.shorten(", ".join(values))
        raise errors.RestError(error_catalogue.BAD_REQUEST, f"dryRun={shown}: use dryRun=All, or leave it out")
