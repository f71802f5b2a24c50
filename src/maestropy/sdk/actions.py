"""Operator actions over the REST API: what an action does, or would do. A Go server has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.sdk._connection import responses
from maestropy.sdk._connection.error_mapping import UnknownPath
from maestropy.sdk._connection.rest import RestCall, RestClient
from maestropy.sdk.errors import Conflict, Unsupported

_DRY_RUN = {"dryRun": "All"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionWork:
    """A work that an action is about."""

    id: str
    name: str
    version: int
    is_deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """What an action has done; of a dry run, what it would do."""

    action: str
    consumer: str
    is_dry_run: bool
    is_change: bool
    """False: it was done before, and nothing is changed."""
    effects: tuple[str, ...]
    """Exactly what happens, in sentences."""
    warnings: tuple[str, ...] = ()
    work_count: int = 0
    works: tuple[ActionWork, ...] = ()
    """The first hundred of the works."""
    plan: str = ""
    """Identifies what a dry run has shown: an action with this plan is refused if something has changed since."""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "OperatorAction":
        """Parse an action of the REST API."""
        return cls(
            action=str(body.get("action") or ""),
            consumer=str(body.get("consumer_name") or ""),
            is_dry_run=bool(body.get("dry_run")),
            is_change=bool(body.get("changes")),
            effects=tuple(map(str, body.get("effects") or ())),
            warnings=tuple(map(str, body.get("warnings") or ())),
            work_count=int(body.get("work_count") or 0),
            works=tuple(
                ActionWork(
                    id=str(work.get("id") or ""),
                    name=str(work.get("name") or ""),
                    version=int(work.get("version") or 0),
                    is_deleting=bool(work.get("deleting")),
                )
                for work in body.get("works") or ()
            ),
            plan=str(body.get("plan") or ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPause:
    """The delivery of specs to a consumer is paused."""

    consumer: str
    paused_at: str
    paused_by: str
    reason: str = ""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "DeliveryPause":
        """Parse a pause of the REST API."""
        return cls(
            consumer=str(body.get("consumer_name") or ""),
            paused_at=str(body.get("paused_at") or ""),
            paused_by=str(body.get("paused_by") or ""),
            reason=str(body.get("reason") or ""),
        )


async def perform(  # noqa: PLR0913 - one for each part of a call
    rest: RestClient,
    path: str,
    *,
    doing: str,
    body: Mapping[str, Any],
    dry_run: bool,
    operation_id: str = "",
    is_idempotent: bool = True,
) -> OperatorAction:
    """Ask for an action; raises Unsupported on a Go server, Conflict if it is refused."""
    call = RestCall(
        method="POST",
        path=path,
        doing=doing,
        query=_DRY_RUN if dry_run else None,
        body={name: value for name, value in body.items() if value},
        operation_id=operation_id,
        expected=responses.Expected(kind="OperatorAction"),
        is_idempotent=is_idempotent or dry_run,
    )
    try:
        return OperatorAction.from_dict(await rest.ask(call))
    except Conflict as error:
        error.advice = ""  # the reason of a refusal says what to do
        raise
    except UnknownPath as error:
        raise Unsupported(
            "the server has no operator actions: it is a Go Maestro, or a maestropy server before 0.3",
            doing=doing,
            operation_id=error.operation_id,
        ) from error
