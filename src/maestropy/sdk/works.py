"""Create, read, patch, delete, watch and await the works of one source, on one consumer or on all.

Writes go over gRPC and are stored when they return; reads go over REST. Any number of tasks may share an `AsyncWorks`.
"""

import difflib
import itertools
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maestropy.aio import clock
from maestropy.sdk import history, selector
from maestropy.sdk._connection import client_spans, error_mapping, responses
from maestropy.sdk._connection.publisher import Publisher
from maestropy.sdk._connection.rest import PAGE_SIZE, WITH_EXECUTOR, RestCall, RestClient
from maestropy.sdk._connection.subscription_hub import OnConnection, SubscriptionHub
from maestropy.sdk._operations import absence, apply_many, changes, checks, write
from maestropy.sdk._operations import wait as waiting
from maestropy.sdk._operations.apply_many import Applied as Applied
from maestropy.sdk._operations.apply_many import AppliedMany as AppliedMany
from maestropy.sdk._operations.apply_many import OnProgress
from maestropy.sdk._operations.apply_many import Progress as Progress
from maestropy.sdk._operations.changes import Patch
from maestropy.sdk._operations.wait import WaitCondition as WaitCondition
from maestropy.sdk._operations.write import WorkWriter
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.errors import Conflict, ConsumerNotFound, Invalid, MaestroError, NotFound
from maestropy.sdk.history import HistoryEntry, HistoryFilter
from maestropy.sdk.resource_bundles import LIST, search_for
from maestropy.sdk.selector import Labels
from maestropy.sdk.watch import WatchScope, WorkWatch
from maestropy.sdk.work import Work
from maestropy.wire import errors as wire_errors
from maestropy.wire import timestamps
from maestropy.wire.events import event
from maestropy.wire.works import resource_id

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The connections that `AsyncWorks` uses."""

    rest: RestClient
    publisher: Publisher
    hub: SubscriptionHub
    source: str
    connect_timeout: float
    """The timeout of the first connection of a watch, in seconds."""


class AsyncWorks:
    """The works of one consumer; with no consumer, of all of them: for `list`, `watch`, `create` and `apply`."""

    def __init__(self, consumer: str | None, *, connections: Connections) -> None:
        self._consumer = consumer
        self._connections = connections
        self._rest = connections.rest
        self._source = connections.source
        self._writer = WorkWriter(connections.publisher, source=connections.source, read=self.get)

    def id_of(self, name: str) -> str:
        """Return the ID of the work in server, agent and logs."""
        checks.usable({"consumer": self._one_consumer(), "name": name}, doing="use a work")
        return resource_id.resource_id(self._source, namespace=self._one_consumer(), name=name)

    async def get(self, name: str) -> Work:
        """Return a work as it is stored; raises NotFound.

        >>> work = await client.works("cluster1").get("hello")
        """
        doing = f"get work {self._consumer}/{name}"
        uid = self.id_of(name)
        expected = responses.Expected(kind="ResourceBundle", id=uid)
        call = RestCall(
            method="GET", path=f"/resource-bundles/{uid}", doing=doing, expected=expected, query=WITH_EXECUTOR
        )
        try:
            return Work.from_resource_bundle(await self._rest.ask(call))
        except NotFound as error:
            advice = "check its name, its consumer and the source ID"
            raise NotFound(
                "there is no such work", doing=doing, advice=advice, operation_id=error.operation_id
            ) from error
        except wire_errors.WireError as error:
            raise Invalid(f"the stored resource is not a ManifestWork: {error}", doing=doing) from error

    async def list(
        self, *, labels: Labels = None, search: str = "", page_size: int = PAGE_SIZE, allow_lag: bool = False
    ) -> AsyncGenerator[Work, None]:
        """Yield the works that match the labels and the search, page by page, each once.

        `labels` is a selector such as `app=web,tier in (front,back),!canary` or a dict; `search` uses the search
        syntax of the REST API. With `allow_lag`, a server with a read replica may leave out the last changes of others,
        never those of this client.

        >>> [work.name async for work in client.works("cluster1").list(labels={"app": "web"})]
        """
        label_selector = selector.parse(labels)
        full_search = search_for([*self._scope(), *([f"({search})"] if search else [])], label_selector=label_selector)
        path, doing = "/resource-bundles", f"list works of {self._consumer or 'all consumers'}"
        pages = self._rest.pages(
            path, kind=LIST, doing=doing, search=full_search, page_size=page_size, allow_lag=allow_lag
        )
        async with aclosing(pages) as items:
            async for item in items:
                work = _work_or_none(item)
                if work is not None and label_selector.matches(work.labels):
                    yield work

    async def history(
        self,
        name: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        kinds: str | Iterable[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncGenerator[HistoryEntry, None]:
        """Yield who changed a work, what and when, also of a deleted one, in the order of time.

        Values are never recorded, only the names of what changed. Raises Unsupported on a Go server.

        >>> async for entry in client.works("cluster1").history("hello"):
        ...     print(entry.time, entry.kind, entry.user, entry.detail)
        """
        wanted = HistoryFilter(since=since, until=until, kinds=kinds, newest_first=newest_first, limit=limit)
        doing, path = f"read the history of work {self._consumer}/{name}", history.work_path(self.id_of(name))
        async with aclosing(history.read(self._rest, path, doing=doing, wanted=wanted)) as found:
            async for entry in found:
                yield entry

    async def create(self, work: Work, *, operation_id: str = "") -> Work:
        """Store a new work and return it with its ID and version; raises AlreadyExists, Invalid, ConsumerNotFound.

        Of the works of all consumers, the work names its own: `Work("hello", consumer="cluster1")`.

        >>> await client.works("cluster1").create(Work("hello").add(config_map))
        """
        if not self._consumer:
            return await self._of_consumer(work).create(work, operation_id=operation_id)
        desired = self._with_identity(work).validate()
        request = self._request("create", desired.name, operation_id)
        stored = write.at_version(desired, 0)
        try:
            await self._writer.write(stored, event.EventAction.CREATE_REQUEST, request=request)
        except ConsumerNotFound as error:
            raise await self._with_similar_names(error) from error
        return write.at_version(stored, 1)

    async def patch(self, name: str, patch: Patch, *, version: int | None = None, operation_id: str = "") -> Work:
        """Change a work: by a JSON merge patch, or by a function that takes the work and returns the changed one.

        With `version`, only that version is changed, otherwise Conflict is raised. Without it the newest version is
        changed, with a retry after a conflict. A Go server does not return the executor: a work that is patched there
        has none unless the patch sets one.

        >>> await works.patch("hello", {"metadata": {"labels": {"tier": "front"}}})
        >>> await works.patch("hello", lambda work: work.with_labels({"tier": None}))
        """

        async def attempt() -> Work:
            stored = await self.get(name)
            changed = self._with_identity(changes.patched(stored, patch)).validate()
            request = self._request("update", name, operation_id)
            return await self._writer.update(stored, changed, version=version, request=request)

        return await write.retry_on_conflict(attempt, version=version)

    async def apply(
        self, work: Work, *, version: int | None = None, dry_run: bool = False, operation_id: str = ""
    ) -> Applied:
        """Make the stored work equal to `work`: create it, update it, or skip it if it is equal.

        An equal work is published nevertheless if its agent keeps a newer version that the database has lost.

        `work` is the complete desired state: labels and manifests it does not have are removed. With `version`, only
        that version is updated, otherwise Conflict is raised. With `dry_run` nothing is published: the result says what
        would happen. Of the works of all consumers, the work names its own: `Work("hello", consumer="cluster1")`.

        >>> (await works.apply(work)).operation
        'unchanged'
        """
        if not self._consumer:
            own = self._of_consumer(work)
            return await own.apply(work, version=version, dry_run=dry_run, operation_id=operation_id)
        desired = self._with_identity(work).validate()
        if dry_run:
            return await self._dry_run(desired, version=version)

        return await self._apply(work, desired, version=version, operation_id=operation_id)

    async def _apply(
        self, work: Work, desired: Work, *, version: int | None = None, operation_id: str = "", is_absent: bool = False
    ) -> Applied:
        """Create or update a work; one that is known to be absent is created without reading it first."""
        attempts = itertools.count()

        async def attempt() -> Applied:
            try:
                if is_absent and not next(attempts):
                    return Applied("created", await self.create(work, operation_id=operation_id))
                stored = await self.get(desired.name)
            except NotFound:
                if version:
                    raise
                return Applied("created", await self.create(work, operation_id=operation_id))
            if changes.has_nothing_to_publish(stored, desired):
                return Applied("unchanged", stored)
            request = self._request("update", desired.name, operation_id)
            updated = await self._writer.update(stored, desired, version=version, request=request)
            return Applied("updated", updated)

        return await write.retry_on_conflict(attempt, version=version)

    async def apply_many(
        self, works: Iterable[Work], *, concurrency: int = 16, progress: OnProgress | None = None
    ) -> AppliedMany:
        """Apply any number of works, at most `concurrency` at once; one that fails does not end the others.

        Of the works of all consumers, each names its own: `Work("hello", consumer="cluster1")`. `progress` is called
        after each work, with `done`, `total` and `failed`; by the blocking client from its background thread. After a
        failure that all works would have (unavailable, unauthorized), the remaining ones are not begun.

        >>> result = await works.apply_many(fleet, progress=lambda at: print(f"{at.done} of {at.total}"))
        >>> result.raise_for_failures()
        """

        all_works = list(works)
        for work in all_works:
            checks.is_work(work)
        absent = absence.AbsentWorks(filter(None, map(self._id_or_empty, all_works)), self._existing)

        async def apply(work: Work) -> Applied:
            own = self if self._consumer else self._of_consumer(work)
            desired = own._with_identity(work).validate()
            return await own._apply(work, desired, is_absent=await absent.is_absent(self._id_or_empty(work)))

        return await apply_many.apply_many(all_works, apply, concurrency=concurrency, on_progress=progress)

    def _id_or_empty(self, work: Work) -> str:
        """Return the ID of a work; of one that cannot be applied none, and its own error comes later."""
        consumer = self._consumer or work.consumer
        if not consumer or not work.name:
            return ""
        return resource_id.resource_id(self._source, namespace=consumer, name=work.name)

    async def _existing(self, ids: Sequence[str]) -> set[str]:
        """Return those of the IDs that have a work."""
        search = f"id in ({', '.join(map(selector.quoted, ids))})"
        pages = self._rest.pages(
            "/resource-bundles", kind=LIST, doing="look for works", search=search, page_size=len(ids), fields=("id",)
        )
        async with aclosing(pages) as items:
            return {str(item["id"]) async for item in items}

    async def _dry_run(self, desired: Work, *, version: int | None) -> Applied:
        """Compare a work with the stored one; raises the errors that can be foreseen."""
        doing = f"apply work {desired.consumer}/{desired.name}"
        self._connections.publisher.check()
        try:
            stored = await self.get(desired.name)
        except NotFound:
            if version:
                raise
            try:
                await AsyncConsumers(self._rest).get(desired.consumer)
            except NotFound as error:
                raise await self._with_similar_names(ConsumerNotFound(error.reason, doing=doing)) from error
            return Applied("created", desired)
        if stored.is_deleting:
            raise Conflict("it is being deleted", doing=doing, advice="wait until it is gone")
        if version not in (None, stored.version):
            raise Conflict(f"the stored version is {stored.version}, not {version}", doing=doing)
        is_same = changes.has_nothing_to_publish(stored, desired)
        return (
            Applied("unchanged", stored) if is_same else Applied("updated", write.at_version(desired, stored.version))
        )

    async def delete(
        self,
        name: str,
        *,
        wait: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - the error names what was missing
        operation_id: str = "",
    ) -> None:
        """Request the deletion of a work; with `wait`, return after the agent has confirmed it.

        A missing work counts as deleted. Without a running agent a deletion is never confirmed: set a `timeout`; 0
        looks once.

        >>> await works.delete("hello", wait=True, timeout=300)
        """
        checks.timeout_seconds(timeout, doing=f"delete work {self._consumer}/{name}")
        deleted = Work(name, consumer=self._one_consumer())
        moment = timestamps.from_datetime(clock.Clock().now())
        deleting = self._with_identity(deleted).manifest_work.with_metadata(
            deletionTimestamp=moment.rfc3339_seconds(), generation=0
        )
        request = self._request("delete", name, operation_id)
        await self._writer.write(Work.wrap(deleting), event.EventAction.DELETE_REQUEST, request=request)
        if wait:
            doing = f"wait until work {self._consumer}/{name} is gone"
            if timeout == 0:
                await self._gone_now(name, doing=doing)
            else:
                await waiting.until_gone(self._watch_one(name), doing=doing, seconds=timeout)

    def watch(
        self, *, labels: Labels = None, bookmarks: bool = False, on_connection: OnConnection | None = None
    ) -> WorkWatch:
        """Watch these works: existing ones as ADDED, then every change, until closed.

        A watch reconnects by itself and yields what changed meanwhile. `bookmarks` adds a SYNCED event after all
        existing works. `on_connection` is called with the error when the server is lost, and with None when it is back.

        >>> async for event in works.watch(labels="app=web"):
        ...     print(event.type, event.work.name)
        """
        label_selector = selector.parse(labels)
        return self._watch(
            WatchScope(
                list=lambda: self.list(labels=labels),
                includes=lambda work: self._is_of_consumer(work) and label_selector.matches(work.labels),
            ),
            bookmarks=bookmarks,
            on_connection=on_connection,
        )

    async def wait_for(
        self,
        name: str,
        condition: WaitCondition = "Available",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the error names what was missing
    ) -> Work:
        """Wait until a condition is True for the current version of a work, and return the work.

        Instead of a condition type, `condition` may be a predicate, also an asynchronous one. Raises NotFound if the
        work does not exist or is deleted meanwhile, and Timeout, which names what is missing. With a `timeout` of 0 it
        looks once.

        >>> work = await works.wait_for("hello", "Available", timeout=60)
        >>> await works.wait_for("hello", lambda work: work.feedback("replicas") == 3, timeout=60)
        """
        doing = f"wait for work {self._consumer}/{name}"
        checks.timeout_seconds(timeout, doing=doing)
        checks.wait_condition(condition, doing=doing)
        if timeout == 0:
            return await waiting.true_now(await self.get(name), condition, doing=doing)
        return await waiting.until_true(self._watch_one(name), condition, doing=doing, seconds=timeout)

    async def _gone_now(self, name: str, *, doing: str) -> None:
        try:
            stored = await self.get(name)
        except NotFound:
            return
        raise waiting.still_exists(stored, doing=doing, after="now")

    def _watch_one(self, name: str) -> WorkWatch:
        uid = self.id_of(name)
        return self._watch(
            WatchScope(
                list=lambda: self.list(search=f"id = {selector.quoted(uid)}"),
                includes=lambda work: work.id == uid,
                may_include=lambda received: received.extensions.get(event.RESOURCE_ID) == uid,
            ),
            bookmarks=True,
        )

    def _watch(self, scope: WatchScope, *, bookmarks: bool, on_connection: OnConnection | None = None) -> WorkWatch:
        return WorkWatch(
            scope,
            hub=self._connections.hub,
            connect_timeout=self._connections.connect_timeout,
            bookmarks=bookmarks,
            on_connection=on_connection,
        )

    async def _with_similar_names(self, error: ConsumerNotFound) -> MaestroError:
        consumer = self._one_consumer()
        try:
            names = [consumer.name async for consumer in AsyncConsumers(self._rest).list()]
        except MaestroError:
            return error
        similar = difflib.get_close_matches(consumer, names, n=3)
        advice = f"did you mean {' or '.join(similar)}?" if similar else "create the consumer first"
        return ConsumerNotFound(
            f"there is no consumer {consumer!r}", doing=error.doing, advice=advice, operation_id=error.operation_id
        )

    def _with_identity(self, work: Work) -> Work:
        """Return the work with its consumer and its resource ID."""
        checks.is_work(work)
        consumer = self._one_consumer()
        if work.consumer not in ("", consumer):
            raise Invalid(f"work {work.name!r} is for {work.consumer!r}, not for {consumer!r}")
        return Work.wrap(work.manifest_work.with_metadata(namespace=consumer, uid=self.id_of(work.name)))

    def _of_consumer(self, work: Work) -> "AsyncWorks":
        checks.is_work(work)
        if not work.consumer:
            raise Invalid(f"work {work.name!r} names no consumer", advice='give one: Work("name", consumer="cluster1")')
        return AsyncWorks(work.consumer, connections=self._connections)

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

    def _request(self, verb: str, name: str, operation_id: str) -> error_mapping.Operation:
        doing = f"{verb} work {self._consumer}/{name}"
        return client_spans.begin(doing, operation_id)


def _work_or_none(bundle: Mapping[str, Any]) -> Work | None:
    """Return a resource bundle as a work, or None: other clients can store bundles that are not ManifestWorks."""
    try:
        work = Work.from_resource_bundle(bundle)
        _ = work.labels, work.annotations
    except wire_errors.WireError as error:
        _log.warning("resource bundle %s is not a ManifestWork and is skipped: %s", bundle.get("id"), error)
        return None
    return work
