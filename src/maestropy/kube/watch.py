"""List and watch all objects of a resource.

List, then watch from the version of the list; resume after a disconnect; list again when the version has expired, and
report the objects that were deleted meanwhile. A reader sees every lasting object in the order of its changes, but not
every version. The watch retries for ever: `on_error` gets each failure, `on_open` is called when a watch is open.
It raises NotFound when the resource type itself does not exist, because only the reader knows whether that is expected.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

import orjson

from maestropy.aio import backoff
from maestropy.kube import errors, request
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import ObjectSelector, ResourceType, WatchStart
from maestropy.kube.watch_changes import Added, Change, Deleted, KnownObjects, Modified, ObjectVersion, Synced

__all__ = [
    "Added",
    "Change",
    "Deleted",
    "Modified",
    "ObjectVersion",
    "ResourceWatch",
    "Synced",
    "WatchTiming",
    "split_lines",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Seconds between and within the attempts of a watch."""

    open_for: float = 300.0
    """How long a watch stays open, at least; up to twice that, so that many do not end together."""
    idle: float = 150.0
    """Silence after which a connection counts as dead; bookmarks arrive about every minute."""
    first_delay: float = 0.5
    longest_delay: float = 30.0


_TIMING = WatchTiming()


class ResourceWatch:
    """A watch of one resource, in one namespace or in all, for one reader.

    Usage: `async with aclosing(watch.changes()) as changes: async for change in changes: ...`
    """

    def __init__(  # noqa: PLR0913 - the first four name the watch, the others are dependencies
        self,
        client: KubeClient,
        resource: ResourceType,
        *,
        namespace: str = "",
        selector: ObjectSelector = request.EVERYTHING,
        jitter: Callable[[], float],
        timing: WatchTiming = _TIMING,
        on_error: Callable[[errors.KubeError], None] = lambda _: None,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selector = selector
        self._jitter = jitter
        self._timing = timing
        self._on_error = on_error
        self._on_open = on_open
        self._known = KnownObjects(api_version=resource.api_version, kind=resource.kind)
        self._version = ""
        """Where the watch resumes; empty if a list is needed first."""
        self._list_whole = False
        self._delays = self._fresh_delays()

    @property
    def watched_until(self) -> str:
        """The version up to which all changes were yielded; empty while there is no list."""
        return self._version

    def version_of(self, namespace: str, name: str) -> ObjectVersion | None:
        """Return the last known version of an object; None if it does not exist."""
        return self._known.version_of(namespace, name)

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Yield changes until closed or cancelled."""
        while True:
            try:
                if not self._version:
                    async with aclosing(self._list()) as listed:
                        async for change in listed:
                            yield change
                async with aclosing(self._watch_once()) as followed:
                    async for change in followed:
                        yield change
            except errors.NotFound:
                raise
            except errors.Gone as error:
                self._version = ""
                await self._pause(error)
            except errors.KubeError as error:
                await self._pause(error)

    async def _list(self) -> AsyncGenerator[Change, None]:
        listed_keys: set[tuple[str, str]] = set()
        version = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                for change in self._known.apply_list(page.get("items") or (), listed_keys=listed_keys):
                    yield change
                version = (page.get("metadata") or {}).get("resourceVersion") or ""
        for gone in self._known.remove_missing(listed_keys=listed_keys):
            yield gone
        if not version:
            raise errors.Unreachable(f"the API server sent a list of {self._resource} without a resourceVersion")
        self._version = version
        self._list_whole = False
        yield Synced(version)

    async def _pages(self) -> AsyncGenerator[Json, None]:
        if self._list_whole:
            yield await self._client.send(
                request.list_objects(self._resource, namespace=self._namespace, selector=self._selector)
            )
            return
        try:
            async for page in self._client.pages(self._resource, namespace=self._namespace, selector=self._selector):
                yield page
        except errors.Gone:
            # The continue token expired between two pages; a list in one request cannot expire.
            self._list_whole = True
            raise

    async def _watch_once(self) -> AsyncGenerator[Change, None]:
        """Yield the changes of one watch connection."""
        seconds = max(1, round(self._timing.open_for * (1 + self._jitter())))
        start = WatchStart(resource_version=self._version, seconds=seconds)
        api_request = request.watch(self._resource, namespace=self._namespace, selector=self._selector, start=start)
        opened_at, is_empty = asyncio.get_running_loop().time(), True
        async with (
            self._client.stream(api_request, idle=self._timing.idle) as chunks,
            aclosing(split_lines(chunks)) as lines,
        ):
            self._on_open()
            async for line in lines:
                is_empty = False
                for change in self._handle_line(line):
                    yield change
        if is_empty and asyncio.get_running_loop().time() - opened_at < 1.0:
            raise errors.Unreachable(f"the API server ends every watch of {self._resource} at once")

    def _handle_line(self, line: bytes) -> Iterator[Change]:
        event, item = _parse(line)
        if event == "ERROR":
            code = item.get("code")
            raise errors.from_status(code if isinstance(code, int) else 500, item)
        changes = () if event == "BOOKMARK" else tuple(self._known.apply_event(event, item))
        # Only a complete event advances the version. The API server responds, so the backoff restarts.
        self._version = (item.get("metadata") or {}).get("resourceVersion") or self._version
        self._delays = self._fresh_delays()
        yield from changes

    async def _pause(self, error: errors.KubeError) -> None:
        self._on_error(error)
        retry_after = error.retry_after if isinstance(error, errors.TooManyRequests | errors.ServerError) else None
        await asyncio.sleep(max(next(self._delays), retry_after or 0.0))

    def _fresh_delays(self) -> Iterator[float]:
        timing = self._timing
        return backoff.delays(base=timing.first_delay, factor=2, cap=timing.longest_delay, jitter=self._jitter)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream of chunks; an unfinished last line is dropped."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            parts.append(line)
            whole = b"".join(parts)
            parts.clear()
            if whole.strip():
                yield whole
        if tail:
            parts.append(tail)


def _parse(line: bytes) -> tuple[str, Json]:
    try:
        event = orjson.loads(line)
        kind, item = event["type"], event["object"]
    except (orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise errors.Unreachable("the API server sent a malformed watch event") from error
    if not isinstance(kind, str) or not isinstance(item, dict):
        raise errors.Unreachable("the API server sent a malformed watch event")
    return kind, item
