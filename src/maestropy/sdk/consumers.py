"""Create, read, update and delete consumers over the REST API."""

import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from maestropy.sdk import actions, history, selector
from maestropy.sdk._connection import responses
from maestropy.sdk._connection.error_mapping import UnknownPath
from maestropy.sdk._connection.rest import RestCall, RestClient
from maestropy.sdk._operations import checks
from maestropy.sdk.actions import DeliveryPause, OperatorAction
from maestropy.sdk.errors import AlreadyExists, Invalid, NotFound
from maestropy.sdk.history import HistoryEntry, HistoryFilter
from maestropy.sdk.selector import Labels
from maestropy.wire import kubernetes_names

_PATH = "/consumers"
_KIND = "Consumer"
_LIST = "ConsumerList"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A registered cluster."""

    id: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "Consumer":
        """Parse a consumer of the REST API."""
        return cls(
            id=str(body.get("id") or ""),
            name=str(body.get("name") or ""),
            labels=dict(body.get("labels") or {}),
            created_at=str(body.get("created_at") or ""),
            updated_at=str(body.get("updated_at") or ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEvictions:
    """Works that an agent evicts after its grace period, because the server does not have them."""

    work_count: int
    works: tuple[str, ...] = ()
    """The names of the works, at most 2,000; empty in a list of holds."""
    since: str = ""
    """When the first grace period began; empty while none has."""
    deadline: str = ""
    """When the first of the works may be evicted."""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "PendingEvictions":
        """Parse the pending evictions of a hold of the REST API."""
        return cls(
            work_count=int(body.get("work_count") or 0),
            works=tuple(map(str, body.get("works") or ())),
            since=str(body.get("since") or ""),
            deadline=str(body.get("deadline") or ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSafetyHold:
    """Works that the agent of a consumer keeps although the database of the server does not ask for them."""

    id: str
    consumer: str
    reason: str
    message: str
    database_id: str
    """The database that the works came from; empty if it is not known."""
    work_count: int
    works: tuple[str, ...] = ()
    """The names of the works, at most 2,000; empty in a list of holds."""
    absent_works: tuple[str, ...] = ()
    """Those of the works that the database does not have: an adoption deletes them."""
    since: str = ""
    pending: PendingEvictions | None = None
    """Works that are not held and will be evicted."""

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "DataSafetyHold":
        """Parse a hold of the REST API."""
        pending = body.get("pending_evictions")
        return cls(
            id=str(body.get("id") or ""),
            consumer=str(body.get("consumer_name") or ""),
            reason=str(body.get("reason") or ""),
            message=str(body.get("message") or ""),
            database_id=str(body.get("database_id") or ""),
            work_count=int(body.get("work_count") or 0),
            works=tuple(map(str, body.get("works") or ())),
            absent_works=tuple(map(str, body.get("absent_works") or ())),
            since=str(body.get("since") or ""),
            pending=PendingEvictions.from_dict(pending) if pending else None,
        )


class AsyncConsumers:
    """The registered clusters. A consumer is addressed by its ID or by its name.

    >>> await client.consumers.create("us-east-mgmt-01", labels={"region": "us-east"})
    """

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    async def list(
        self, *, labels: Labels = None, search: str = "", allow_lag: bool = False
    ) -> AsyncGenerator[Consumer, None]:
        """Yield the consumers that match the labels and the search.

        With `allow_lag`, a server with a read replica may leave out the last changes of others, never those of this
        client.

        >>> [consumer.name async for consumer in client.consumers.list(labels={"region": "us-east"})]
        """
        label_selector = selector.parse(labels)
        pages = self._rest.pages(_PATH, kind=_LIST, doing="list consumers", search=search, allow_lag=allow_lag)
        async with aclosing(pages) as items:
            async for item in items:
                consumer = Consumer.from_dict(item)
                # The Go server cannot search the labels of consumers.
                if label_selector.matches(consumer.labels):
                    yield consumer

    async def page(self, *, page: int = 1, size: int = 100, search: str = "", order_by: str = "") -> dict[str, Any]:
        """Return one page of consumers as the REST API sends it, with `total`."""
        query: dict[str, str | int] = {"page": page, "size": size, "search": search, "orderBy": order_by}
        return await self._rest.page(_PATH, kind=_LIST, doing="list consumers", query=query)

    async def get(self, key: str) -> Consumer:
        """Return the consumer with this ID or name; raises NotFound."""
        doing = f"get consumer {key}"
        if _is_id(key):
            expected = responses.Expected(kind=_KIND, id=key)
            call = RestCall(method="GET", path=_path(key), doing=doing, expected=expected)
            try:
                return Consumer.from_dict(await self._rest.ask(call))
            except NotFound:
                # The name of a consumer can look like an ID.
                pass
        async with aclosing(self.list(search=f"name = {selector.quoted(key)}")) as named:
            async for consumer in named:
                if consumer.name != key:
                    raise responses.unusable(f"the server sent the consumer {consumer.name!r}", doing=doing)
                return consumer
        raise NotFound(f"there is no consumer {key!r}", doing=doing)

    async def history(
        self,
        key: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        kinds: str | Iterable[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncGenerator[HistoryEntry, None]:
        """Yield what happened to a consumer and its works, by its ID or name, also of a deleted one.

        Raises Unsupported on a Go server.

        >>> [entry.time async for entry in client.consumers.history("cluster1", kinds="agent.connected")]
        """
        wanted = HistoryFilter(since=since, until=until, kinds=kinds, newest_first=newest_first, limit=limit)
        doing = f"read the history of consumer {key}"
        async with aclosing(history.read(self._rest, history.consumer_path(key), doing=doing, wanted=wanted)) as found:
            async for entry in found:
                yield entry

    async def holds(self) -> Mapping[str, DataSafetyHold]:
        """Return the data-safety holds by consumer name; a Go server has none."""
        found = await self._unknown_to_go(
            "/data-safety-holds", doing="list data-safety holds", kind="DataSafetyHoldList"
        )
        holds = [DataSafetyHold.from_dict(item) for item in found]
        return {hold.consumer: hold for hold in holds}

    async def hold(self, key: str) -> DataSafetyHold | None:
        """Return the data-safety hold of a consumer with the names of its works; None if there is none."""
        consumer = await self.get(key)
        path, doing = f"{_path(consumer.id)}/data-safety-hold", f"get the data-safety hold of consumer {key}"
        call = RestCall(method="GET", path=path, doing=doing, expected=responses.Expected(kind="DataSafetyHold"))
        try:
            return DataSafetyHold.from_dict(await self._rest.ask(call))
        except (NotFound, UnknownPath):
            return None

    async def adopt(
        self, key: str, *, hold_id: str, reason: str = "", requested_by: str = "", operation_id: str = ""
    ) -> None:
        """Let the database of the server decide about the works of a hold; raises AlreadyExists if it changed."""
        consumer = await self.get(key)
        call = RestCall(
            method="POST",
            path=f"{_path(consumer.id)}/data-safety-hold/adoption",
            doing=f"adopt the database for consumer {key}",
            body={"hold_id": hold_id, "requested_by": requested_by, **({"reason": reason} if reason else {})},
            operation_id=operation_id,
            expected=responses.Expected(kind="DataSafetyAdoption"),
            is_idempotent=False,
        )
        await self._rest.ask(call)

    async def adoption_plan(
        self, key: str, *, hold_id: str, requested_by: str = "", operation_id: str = ""
    ) -> OperatorAction:
        """Return what the adoption of a hold would do, and change nothing; its `plan` is the `hold_id` to adopt."""
        consumer = await self.get(key)
        return await actions.perform(
            self._rest,
            f"{_path(consumer.id)}/data-safety-hold/adoption",
            doing=f"plan the adoption of the database for consumer {key}",
            body={"hold_id": hold_id, "requested_by": requested_by},
            dry_run=True,
            operation_id=operation_id,
        )

    async def pauses(self) -> Mapping[str, DeliveryPause]:
        """Return the pauses of delivery by consumer name; a Go server has none."""
        found = await self._unknown_to_go("/delivery-pauses", doing="list delivery pauses", kind="DeliveryPauseList")
        pauses = [DeliveryPause.from_dict(item) for item in found]
        return {pause.consumer: pause for pause in pauses}

    async def _unknown_to_go(self, path: str, *, doing: str, kind: str) -> Sequence[dict[str, Any]]:
        """Return the objects of a list that Go servers do not have; of such a server, none."""
        call = RestCall(method="GET", path=path, doing=doing, expected=responses.Expected(kind=kind))
        try:
            body = await self._rest.ask(call)
        except UnknownPath:
            return ()
        items: Sequence[dict[str, Any]] = body.get("items") or ()
        return items

    async def pause(
        self, key: str, *, reason: str = "", requested_by: str = "", dry_run: bool = False, operation_id: str = ""
    ) -> OperatorAction:
        """Stop sending works to a consumer until it is resumed; what sources request meanwhile is stored and waits.

        >>> (await client.consumers.pause("cluster1", dry_run=True)).effects
        """
        return await self._act(
            key, "pause", reason=reason, requested_by=requested_by, dry_run=dry_run, operation_id=operation_id
        )

    async def resume(
        self, key: str, *, reason: str = "", requested_by: str = "", dry_run: bool = False, operation_id: str = ""
    ) -> OperatorAction:
        """Send works to a consumer again: all of them, because its agent may have restarted during the pause."""
        return await self._act(
            key, "resume", reason=reason, requested_by=requested_by, dry_run=dry_run, operation_id=operation_id
        )

    async def resync(
        self, key: str, *, reason: str = "", requested_by: str = "", dry_run: bool = False, operation_id: str = ""
    ) -> OperatorAction:
        """Send all works of a consumer again, and let its agent report all statuses that the server does not have."""
        return await self._act(
            key, "resync", reason=reason, requested_by=requested_by, dry_run=dry_run, operation_id=operation_id
        )

    async def retire(  # noqa: PLR0913 - one for each field of the request
        self,
        key: str,
        *,
        works: Literal["release", "delete"],
        plan: str = "",
        reason: str = "",
        requested_by: str = "",
        dry_run: bool = False,
        operation_id: str = "",
    ) -> OperatorAction:
        """Retire a consumer whose agent is gone: release its works (their objects stay), or mark them for deletion.

        `plan` is that of a dry run. Raises Conflict if the agent was seen lately, or if the works have changed since.
        """
        return await actions.perform(
            self._rest,
            f"{_path(key, doing='retire a consumer')}/retirement",
            doing=f"retire consumer {key}",
            body={"works": works, "plan": plan, "reason": reason, "requested_by": requested_by},
            dry_run=dry_run,
            operation_id=operation_id,
            is_idempotent=False,
        )

    async def sweep(
        self,
        *,
        classes: Iterable[str] = (),
        plan: str = "",
        reason: str = "",
        requested_by: str = "",
        dry_run: bool = False,
        operation_id: str = "",
    ) -> OperatorAction:
        """Remove rows of the database that belong to no consumer or work; `plan` is that of a dry run."""
        return await actions.perform(
            self._rest,
            "/sweep",
            doing="sweep orphans",
            body={"classes": list(classes), "plan": plan, "reason": reason, "requested_by": requested_by},
            dry_run=dry_run,
            operation_id=operation_id,
            is_idempotent=False,
        )

    async def _act(
        self, key: str, action: str, *, reason: str, requested_by: str, dry_run: bool, operation_id: str
    ) -> OperatorAction:
        return await actions.perform(
            self._rest,
            f"{_path(key, doing=f'{action} a consumer')}/{action}",
            doing=f"{action} consumer {key}",
            body={"reason": reason, "requested_by": requested_by},
            dry_run=dry_run,
            operation_id=operation_id,
        )

    async def create(self, name: str, *, labels: Mapping[str, str] | None = None, operation_id: str = "") -> Consumer:
        """Register a cluster; raises AlreadyExists."""
        problems = kubernetes_names.dns1123_label(name)
        if problems:
            raise Invalid(f"name {name!r}: {problems[0]}", doing="create consumer")
        body = {"name": name, "labels": dict(labels)} if labels else {"name": name}
        call = RestCall(
            method="POST",
            path=_PATH,
            doing=f"create consumer {name}",
            body=body,
            operation_id=operation_id,
            expected=responses.Expected(kind=_KIND),
            is_idempotent=False,
        )
        return Consumer.from_dict(await self._rest.ask(call))

    async def ensure(self, name: str, *, labels: Mapping[str, str] | None = None) -> Consumer:
        """Return the consumer of this name, creating it if it is missing; the labels are added to its own."""
        try:
            return await self.create(name, labels=labels)
        except AlreadyExists:
            consumer = await self.get(name)
        missing = {key: value for key, value in (labels or {}).items() if consumer.labels.get(key) != value}
        return await self.update(consumer.id, labels=missing) if missing else consumer

    async def update(self, key: str, *, labels: Mapping[str, str | None], operation_id: str = "") -> Consumer:
        """Set labels of a consumer; None removes a label, other labels stay."""
        consumer = await self.get(key)
        merged = {**consumer.labels, **labels}
        body = {"labels": {name: value for name, value in merged.items() if value is not None}}
        doing = f"update consumer {key}"
        call = RestCall(
            method="PATCH",
            path=_path(consumer.id),
            doing=doing,
            body=body,
            operation_id=operation_id,
            expected=responses.Expected(kind=_KIND, id=consumer.id),
        )
        return Consumer.from_dict(await self._rest.ask(call))

    async def delete(self, key: str, *, operation_id: str = "") -> None:
        """Delete a consumer without works; a missing consumer counts as deleted."""
        try:
            consumer = await self.get(key)
        except NotFound:
            return
        doing = f"delete consumer {consumer.name}"
        path = _path(consumer.id)
        await self._rest.ask(
            RestCall(method="DELETE", path=path, doing=doing, operation_id=operation_id, expected=responses.NOTHING)
        )


def _path(key: str, *, doing: str = "find a consumer") -> str:
    return f"{_PATH}/{checks.path_segment(key, name='key', doing=doing)}"


def _is_id(key: str) -> bool:
    try:
        uuid.UUID(key)
    except ValueError:
        return False
    return True
