"""Record refused requests in the history: those of the REST API, and sign-ins to an app that is mounted beside it.

`decide.history.refusals` says which are recorded, and `HistoryEntries` how many.
"""

from http import HTTPStatus

from starlette.requests import Request
from starlette.types import Scope

from maestropy.server.api.rest.dependencies import RestDependencies
from maestropy.server.api.rest.http import asked_actions, errors, routing
from maestropy.server.decide.history import kinds, refusals
from maestropy.store import rows


def record(deps: RestDependencies, scope: Scope, problem: errors.RestError) -> None:
    """Record a request of the REST API."""
    result = refusals.of_http(scope["method"], problem.status)
    if result is None:
        return
    template = scope.get(routing.TEMPLATE, routing.NO_ROUTE)
    work_id, consumer = refusals.named_in_path(template, str(scope.get("path_params", {}).get("id", "")))
    asked = asked_actions.of(scope)
    subject = rows.HistoryEntry(
        kind=kinds.REQUEST_REFUSED,
        at=deps.clock.now(),
        subject_id=work_id,
        consumer=asked.consumer or consumer,
        requester=routing.requester(scope),
        operation_id=scope[routing.OPERATION_ID],
    )
    entry = refusals.entry(
        subject,
        result=result,
        request=f"{scope['method']} {template}",
        reason=problem.reason,
        requested_by=asked.requested_by,
        is_dry_run=asked.is_dry_run,
    )
    deps.history.add(entry)


def record_sign_in(deps: RestDependencies, request: Request, status: HTTPStatus, reason: str) -> None:
    """Record a sign-in whose token was not accepted; the token does not prove who it was."""
    result = refusals.of_http(request.method, status)
    if result is None:
        return
    subject = rows.HistoryEntry(
        kind=kinds.REQUEST_REFUSED, at=deps.clock.now(), requester=routing.requester(request.scope)
    )
    path = f"{request.method} {request.url.path}"
    deps.history.add(refusals.entry(subject, result=result, request=path, reason=reason))
