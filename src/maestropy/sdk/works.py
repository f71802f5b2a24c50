"""The works of one source on one cluster, or on all: write, read, wait; `writing` and `waiting` know how.

Writes go over gRPC and are safe when they return; reads go over REST. A handle is a value: any number of tasks may use
it, and handles of different clusters know nothing of each other.
"""

import difflib
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from maestropy.aio import clock
from maestropy.sdk import changing, failures, selector, waiting, writing
from maestropy.sdk.bundles import search_for
from maestropy.sdk.changing import Patch
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.errors import ConsumerNotFound, Invalid, MaestroError, NotFound
from maestropy.sdk.hub import Hub
from maestropy.sdk.publishing import Publisher
from maestropy.sdk.rest import PAGE_SIZE, Call, Rest
from maestropy.sdk.selector import Labels
from maestropy.sdk.waiting import Condition as Condition
from maestropy.sdk.watch import Wanted, Watch
from maestropy.sdk.work import Work
from maestropy.sdk.writing import Writer
from maestropy.wire import errors as wire_errors
from maestropy.wire import event, identity, instant

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Applied:
    """What `apply` did."""

    operation: Literal["created", "updated", "unchanged"]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """What a handle works with."""

    rest: Rest
    publisher: Publisher
    hub: Hub
    source: str
    patience: float
    """How long to wait for a first connection."""


class AsyncWorks:
    """The works of one consumer; with no consumer, of all of them (for `list` and `watch`)."""

    def __init__(self, consumer: str | None, *, connections: Connections) -> None:
        self._consumer = consumer
        self._connections = connections
        self._rest = connections.rest
        self._source = connections.source
        self._writer = Writer(connections.publisher, source=connections.source, read=self.get)

    def id_of(self, name: str) -> str:
        """Return the id under which server, agent and logs know the work."""
        return identity.resource_id(self._source, namespace=self._one_consumer(), name=name)

    async def get(self, name: str) -> Work:
        """Return a work as it is stored; raises NotFound.

        >>> work = await client.works("cluster1").get("hello")
        """
        doing = f"get work {self._consumer}/{name}"
        call = Call(method="GET", path=f"/resource-bundles/{self.id_of(name)}", doing=doing)
        try:
            return Work.from_bundle(await self._rest.ask(call))
        except NotFound as error:
            advice = "check its name, its consumer and the source id"
            raise NotFound(
                "there is no such work", doing=doing, advice=advice, operation_id=error.operation_id
            ) from error
        except wire_errors.WireError as error:
            raise Invalid(f"what is stored is no ManifestWork: {error}", doing=doing) from error

    async def list(
        self, *, labels: Labels = None, search: str = "", page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[Work, None]:
        """Yield the works with these labels that `search` finds, page by page, each once.

        `labels` is a selector such as `app=web,tier in (front,back),!canary` or a dict; `search` is in the language
        of the REST API.

        >>> [each.name async for each in client.works("cluster1").list(labels={"app": "web"})]
        """
        wanted = selector.parse(labels)
        question = search_for([*self._scope(), *([f"({search})"] if search else [])], wanted=wanted)
        path, doing = "/resource-bundles", f"list works of {self._consumer or 'all consumers'}"
        async with aclosing(self._rest.pages(path, doing=doing, search=question, page_size=page_size)) as items:
            async for item in items:
                found = _readable(item)
                if found is not None and wanted.matches(found.labels):
                    yield found

    async def create(self, work: Work, *, operation_id: str = "") -> Work:
        """Store a new work and return it with its id and version; raises AlreadyExists, Invalid, ConsumerNotFound.

        >>> await client.works("cluster1").create(Work("hello").add(config_map))
        """
        wanted = self._mine(work).validate()
        request = self._request("create", wanted.name, operation_id)
        stored = writing.at_version(wanted, 0)
        try:
            await self._writer.write(stored, event.Action.CREATE_REQUEST, request=request)
        except ConsumerNotFound as error:
            raise await self._with_near_names(error) from error
        return writing.at_version(stored, 1)

    async def patch(self, name: str, patch: Patch, *, version: int | None = None, operation_id: str = "") -> Work:
        """Change a work: by a JSON merge patch, or by a function that is given the work and returns another.

        With `version`, only that version is changed and a Conflict raised otherwise; without it the change is made on
        the newest version, again if somebody else was faster. The executor of a work is not shown by the REST API: a
        patched work has none unless the patch sets one.

        >>> await works.patch("hello", {"metadata": {"labels": {"tier": "front"}}})
        >>> await works.patch("hello", lambda work: work.with_labels({"tier": None}))
        """

        async def once() -> Work:
            stored = await self.get(name)
            changed = self._mine(changing.patched(stored, patch)).validate()
            request = self._request("update", name, operation_id)
            return await self._writer.update(stored, changed, version=version, request=request)

        return await writing.while_others_are_faster(once, version=version)

    async def apply(self, work: Work, *, version: int | None = None, operation_id: str = "") -> Applied:
        """Make the stored work equal to `work`: create it, update it, or leave it if it is equal already.

        `work` is the whole of what is wanted: labels and manifests it does not have are removed. With `version`, only
        that version is updated and a Conflict raised otherwise.

        >>> (await works.apply(work)).operation
        'unchanged'
        """
        wanted = self._mine(work).validate()

        async def once() -> Applied:
            try:
                stored = await self.get(wanted.name)
            except NotFound:
                if version:
                    raise
                return Applied("created", await self.create(work, operation_id=operation_id))
            if changing.is_unchanged(stored.manifest_work, wanted.manifest_work) and not stored.is_deleting:
                return Applied("unchanged", stored)
            request = self._request("update", wanted.name, operation_id)
            updated = await self._writer.update(stored, wanted, version=version, request=request)
            return Applied("updated", updated)

        return await writing.while_others_are_faster(once, version=version)

    async def delete(
        self,
        name: str,
        *,
        wait: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the caller is told what was missing when time ran out
        operation_id: str = "",
    ) -> None:
        """Ask for a work's deletion; with `wait`, return when everything is gone from the cluster.

        A work that is not there counts as deleted. Without an agent nothing is ever gone: give a `timeout`.

        >>> await works.delete("hello", wait=True, timeout=300)
        """
        gone = Work(name, consumer=self._one_consumer())
        moment = instant.from_datetime(clock.Clock().now())
        leaving = self._mine(gone).manifest_work.with_metadata(deletionTimestamp=moment.rfc3339_seconds(), generation=0)
        request = self._request("delete", name, operation_id)
        await self._writer.write(Work.wrap(leaving), event.Action.DELETE_REQUEST, request=request)
        if wait:
            doing = f"wait until work {self._consumer}/{name} is gone"
            await waiting.until_gone(self._watch_one(name), doing=doing, seconds=timeout)

    def watch(self, *, labels: Labels = None, bookmarks: bool = False) -> Watch:
        """Return the events of these works: what there is as ADDED, then every change, for as long as wanted.

        A watch outlives its connection: it reconnects, and tells what changed meanwhile. `bookmarks` adds a SYNCED
        event after everything there was has been told.

        >>> async for event in works.watch(labels="app=web"):
        ...     print(event.type, event.work.name)
        """
        wanted = selector.parse(labels)
        return self._watch(
            Wanted(
                list=lambda: self.list(labels=labels),
                includes=lambda work: self._is_of_consumer(work) and wanted.matches(work.labels),
            ),
            bookmarks=bookmarks,
        )

    async def wait_for(
        self,
        name: str,
        condition: Condition = "Available",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the caller is told what was missing when time ran out
    ) -> Work:
        """Wait until a condition of a work is true for the version that is wanted now, and return the work.

        Instead of a condition's type a function may say when it is enough. Raises NotFound if there is no such work
        or it goes meanwhile, and Timeout, which says what is missing.

        >>> work = await works.wait_for("hello", "Available", timeout=60)
        >>> await works.wait_for("hello", lambda work: work.feedback("replicas") == 3, timeout=60)
        """
        doing = f"wait for work {self._consumer}/{name}"
        return await waiting.until_true(self._watch_one(name), condition, doing=doing, seconds=timeout)

    def _watch_one(self, name: str) -> Watch:
        uid = self.id_of(name)
        return self._watch(
            Wanted(
                list=lambda: self.list(search=f"id = {selector.quoted(uid)}"),
                includes=lambda work: work.id == uid,
                may_include=lambda received: received.extensions.get(event.RESOURCE_ID) == uid,
            ),
            bookmarks=True,
        )

    def _watch(self, wanted: Wanted, *, bookmarks: bool) -> Watch:
        return Watch(wanted, hub=self._connections.hub, patience=self._connections.patience, bookmarks=bookmarks)

    async def _with_near_names(self, error: ConsumerNotFound) -> MaestroError:
        consumer = self._one_consumer()
        try:
            known = [each.name async for each in AsyncConsumers(self._rest).list()]
        except MaestroError:
            return error
        near = difflib.get_close_matches(consumer, known, n=3)
        advice = f"did you mean {' or '.join(near)}?" if near else "create the consumer first"
        return ConsumerNotFound(
            f"there is no consumer {consumer!r}", doing=error.doing, advice=advice, operation_id=error.operation_id
        )

    def _mine(self, work: Work) -> Work:
        """Return the work with the identity it has on this cluster."""
        consumer = self._one_consumer()
        if work.consumer not in ("", consumer):
            raise Invalid(f"work {work.name!r} is for {work.consumer!r}, not for {consumer!r}")
        return Work.wrap(work.manifest_work.with_metadata(namespace=consumer, uid=self.id_of(work.name)))

    def _is_of_consumer(self, work: Work) -> bool:
        return not self._consumer or work.consumer == self._consumer

    def _one_consumer(self) -> str:
        if not self._consumer:
            raise Invalid("these are the works of all consumers", advice="name one: client.works(consumer)")
        return self._consumer

    def _scope(self) -> Iterator[str]:
        yield f"source = {selector.quoted(self._source)}"
        if self._consumer:
            yield f"consumer_name = {selector.quoted(self._consumer)}"

    def _request(self, verb: str, name: str, operation_id: str) -> failures.Request:
        doing = f"{verb} work {self._consumer}/{name}"
        return failures.Request(doing=doing, operation_id=operation_id or clock.new_id())


def _readable(bundle: Mapping[str, Any]) -> Work | None:
    """Return a bundle as a work; other clients can store what is none, and it must not hide the rest of a list."""
    try:
        found = Work.from_bundle(bundle)
        _ = found.labels, found.annotations
    except wire_errors.WireError as error:
        _log.warning("bundle %s is no ManifestWork and is left out: %s", bundle.get("id"), error)
        return None
    return found
