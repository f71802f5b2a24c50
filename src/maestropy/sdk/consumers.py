"""The clusters that works can be sent to."""

import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from maestropy.sdk import selector
from maestropy.sdk.errors import AlreadyExists, Invalid, NotFound
from maestropy.sdk.rest import Call, Rest
from maestropy.sdk.selector import Labels
from maestropy.wire import names

_PATH = "/consumers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A cluster that is registered."""

    id: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Consumer":
        """Read what the REST API shows."""
        return cls(
            id=str(found.get("id") or ""),
            name=str(found.get("name") or ""),
            labels=dict(found.get("labels") or {}),
            created_at=str(found.get("created_at") or ""),
            updated_at=str(found.get("updated_at") or ""),
        )


class AsyncConsumers:
    """The registered clusters. A consumer is named by its id or by its name.

    >>> await client.consumers.create("us-east-mgmt-01", labels={"region": "us-east"})
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def list(self, *, labels: Labels = None, search: str = "") -> AsyncGenerator[Consumer, None]:
        """Yield the consumers with these labels that `search` finds.

        >>> [each.name async for each in client.consumers.list(labels={"region": "us-east"})]
        """
        wanted = selector.parse(labels)
        async with aclosing(self._rest.pages(_PATH, doing="list consumers", search=search)) as items:
            async for item in items:
                found = Consumer.from_dict(item)
                # Servers of the Go kind cannot search the labels of consumers.
                if wanted.matches(found.labels):
                    yield found

    async def page(self, *, page: int = 1, size: int = 100, search: str = "", order_by: str = "") -> dict[str, Any]:
        """Return one page of consumers as the REST API sends it, with `total`."""
        query: dict[str, str | int] = {"page": page, "size": size, "search": search, "orderBy": order_by}
        return await self._rest.page(_PATH, doing="list consumers", query=query)

    async def get(self, key: str) -> Consumer:
        """Return the consumer with this id or name; raises NotFound."""
        doing = f"get consumer {key}"
        if _is_id(key):
            try:
                return Consumer.from_dict(await self._rest.ask(Call(method="GET", path=_path(key), doing=doing)))
            except NotFound:
                # A consumer without a name of its own is called by its id, and others may be called so too.
                pass
        async with aclosing(self.list(search=f"name = {selector.quoted(key)}")) as named:
            async for found in named:
                return found
        raise NotFound(f"there is no consumer {key!r}", doing=doing)

    async def create(self, name: str, *, labels: Mapping[str, str] | None = None, operation_id: str = "") -> Consumer:
        """Register a cluster; raises AlreadyExists."""
        problems = names.dns1123_label(name)
        if problems:
            raise Invalid(f"name {name!r}: {problems[0]}", doing="create consumer")
        body = {"name": name, "labels": dict(labels)} if labels else {"name": name}
        call = Call(
            method="POST",
            path=_PATH,
            doing=f"create consumer {name}",
            body=body,
            operation_id=operation_id,
            is_idempotent=False,
        )
        return Consumer.from_dict(await self._rest.ask(call))

    async def ensure(self, name: str, *, labels: Mapping[str, str] | None = None) -> Consumer:
        """Return the consumer of this name, registering it if need be; its labels are added to those it has."""
        try:
            return await self.create(name, labels=labels)
        except AlreadyExists:
            found = await self.get(name)
        missing = {key: value for key, value in (labels or {}).items() if found.labels.get(key) != value}
        return await self.update(found.id, labels=missing) if missing else found

    async def update(self, key: str, *, labels: Mapping[str, str | None], operation_id: str = "") -> Consumer:
        """Set some labels of a consumer; one set to None is removed, those not named stay."""
        found = await self.get(key)
        merged = {**found.labels, **labels}
        body = {"labels": {name: value for name, value in merged.items() if value is not None}}
        doing = f"update consumer {key}"
        call = Call(method="PATCH", path=_path(found.id), doing=doing, body=body, operation_id=operation_id)
        return Consumer.from_dict(await self._rest.ask(call))

    async def delete(self, key: str, *, operation_id: str = "") -> None:
        """Remove a consumer without works; one that is not there counts as removed."""
        try:
            found = await self.get(key)
        except NotFound:
            return
        doing = f"delete consumer {key}"
        await self._rest.ask(Call(method="DELETE", path=_path(found.id), doing=doing, operation_id=operation_id))


def _path(consumer_id: str) -> str:
    return f"{_PATH}/{quote(consumer_id, safe='')}"


def _is_id(key: str) -> bool:
    try:
        uuid.UUID(key)
    except ValueError:
        return False
    return True
