"""Decide what the history records of a refused request, and how much of its text.

Pure. A failure of the server is not a refusal: the client tries again. The reason of an invalid request is not
recorded, because it may quote what the request contains; the log has it under the same operation ID.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from maestropy.server.decide import rejection
from maestropy.server.decide.history import kinds
from maestropy.store import rows
from maestropy.wire.events import event

_BY_REJECTION: Final[Mapping[int, kinds.Result]] = {
    rejection.FORBIDDEN: "denied",
    rejection.CONFLICT: "conflict",
    rejection.NOT_FOUND: "not-found",
}
_BY_GRPC_CODE: Final[Mapping[str, kinds.Result]] = {
    "PERMISSION_DENIED": "denied",
    "UNAUTHENTICATED": "denied",
    "UNKNOWN": "invalid",
    "INVALID_ARGUMENT": "invalid",
    "FAILED_PRECONDITION": "invalid",
}
_BY_STATUS: Final[Mapping[int, kinds.Result]] = {401: "denied", 403: "denied", 404: "not-found", 409: "conflict"}
_WRITES: Final = frozenset(("POST", "PATCH", "PUT", "DELETE"))
_QUOTED: Final = frozenset(("denied", "conflict"))


def of_rejection(rejected: rejection.Rejection) -> kinds.Result:
    """Return the result of a spec request that was rejected."""
    return _BY_REJECTION.get(rejected.code, "invalid")


def of_grpc_code(name: str) -> kinds.Result | None:
    """Return the result of a gRPC call that ended with a status code; None: the server failed."""
    return _BY_GRPC_CODE.get(name)


def of_http(method: str, status: int) -> kinds.Result | None:
    """Return the result of a REST request; None if it is not recorded.

    Of reads only those are recorded that the client was not allowed to make.
    """
    if status >= 500 or status < 400:
        return None
    result = _BY_STATUS.get(status, "invalid")
    return result if result == "denied" or method in _WRITES else None


def named_in_path(template: str, key: str) -> tuple[str, str]:
    """Return which work and which consumer the path of a REST request names; a consumer by its ID or its name."""
    collection = template.partition("/-")[0].rpartition("/")[2]
    return key if collection == "resource-bundles" else "", key if collection == "consumers" else ""


def entry(
    subject: rows.HistoryEntry,
    *,
    result: kinds.Result,
    request: str,
    reason: str,
    requested_by: str = "",
    is_dry_run: bool = False,
) -> rows.HistoryEntry:
    """Return the entry of a refused request; `subject` says when, who, and about what."""
    return rows.HistoryEntry(
        kind=kinds.REQUEST_REFUSED,
        at=subject.at,
        subject_id=subject.subject_id,
        consumer=subject.consumer,
        source=subject.source,
        version=subject.version,
        requester=subject.requester,
        operation_id=subject.operation_id,
        result=result,
        detail=kinds.detail(
            {
                "request": kinds.short(request),
                "reason": kinds.short(reason) if result in _QUOTED else "",
                "requested_by": kinds.short(requested_by),
                "dry_run": is_dry_run,
            }
        ),
    )


def subject_of(
    received: event.CloudEvent, *, at: datetime, requester: rows.Requester, operation_id: str
) -> rows.HistoryEntry:
    """Return what a refused event was about."""
    return rows.HistoryEntry(
        kind=kinds.REQUEST_REFUSED,
        at=at,
        subject_id=received.optional_text(event.RESOURCE_ID),
        consumer=received.optional_text(event.CLUSTER_NAME),
        source=received.source,
        requester=requester,
        operation_id=operation_id,
    )
