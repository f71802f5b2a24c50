"""Follow all objects of a resource for as long as somebody listens.

List, then watch from the list's version on; resume after a disconnect; list again when the API server forgot the
version, and tell who disappeared meanwhile. A reader sees every object that lasts, in the order of its changes, but
not every version of it. It never gives up on an API server that is away or refuses: `on_trouble` hears why, and
`on_open` that it answers (again).
It does raise NotFound when the resource itself is gone, because only the reader knows whether that is a surprise.
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
from maestropy.kube.request import ResourceType, Selector, WatchFrom
from maestropy.kube.roster import Added, Change, Deleted, Modified, Roster, Sighting, Synced

__all__ = ["Added", "Change", "Deleted", "Modified", "Pace", "Sighting", "Synced", "Watch", "split_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds between and within the attempts of a watch."""

    open_for: float = 300.0
    """How long a watch is asked to stay open, at least; up to twice that, so that many do not end together."""
    idle: float = 150.0
    """Silence after which a connection counts as dead; a bookmark comes every minute or so."""
    first_delay: float = 0.5
    longest_delay: float = 30.0


_PACE = Pace()


class Watch:
    """One resource, in one namespace or in all, watched by one reader.

    Usage: `async with aclosing(watch.changes()) as changes: async for change in changes: ...`
    """

    def __init__(  # noqa: PLR0913 - a reader names the first four, the process gives the rest
        self,
        client: KubeClient,
        resource: ResourceType,
        *,
        namespace: str = "",
        selector: Selector = request.EVERYTHING,
        jitter: Callable[[], float],
        pace: Pace = _PACE,
        on_trouble: Callable[[errors.KubeError], None] = lambda _: None,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selector = selector
        self._jitter = jitter
        self._pace = pace
        self._on_trouble = on_trouble
        self._on_open = on_open
        self._roster = Roster(api_version=resource.api_version, kind=resource.kind)
        self._version = ""
        """Where the watch goes on; empty when a list is needed first."""
        self._list_whole = False
        self._delays = self._fresh_delays()

    @property
    def heard_until(self) -> str:
        """The version up to which everything was told; empty while there is no list to go on from."""
        return self._version

    def sight(self, namespace: str, name: str) -> Sighting | None:
        """Return which version of an object was last told; nothing if it is not there."""
        return self._roster.sight(namespace, name)

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Yield changes until closed or cancelled."""
        while True:
            try:
                if not self._version:
                    async with aclosing(self._list()) as listed:
                        async for change in listed:
                            yield change
                async with aclosing(self._follow()) as followed:
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
        met: set[tuple[str, str]] = set()
        version = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                for change in self._roster.take_listed(page.get("items") or (), met=met):
                    yield change
                version = (page.get("metadata") or {}).get("resourceVersion") or ""
        for gone in self._roster.take_missing(met=met):
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
            # Turning pages took longer than the API server remembers: the whole list at once cannot expire.
            self._list_whole = True
            raise

    async def _follow(self) -> AsyncGenerator[Change, None]:
        """Yield the changes of one connection."""
        seconds = max(1, round(self._pace.open_for * (1 + self._jitter())))
        start = WatchFrom(resource_version=self._version, seconds=seconds)
        wish = request.watch(self._resource, namespace=self._namespace, selector=self._selector, start=start)
        opened_at, is_empty = asyncio.get_running_loop().time(), True
        async with self._client.stream(wish, idle=self._pace.idle) as chunks, aclosing(split_lines(chunks)) as lines:
            self._on_open()
            async for line in lines:
                is_empty = False
                for change in self._digest(line):
                    yield change
        if is_empty and asyncio.get_running_loop().time() - opened_at < 1.0:
            raise errors.Unreachable(f"the API server ends every watch of {self._resource} at once")

    def _digest(self, line: bytes) -> Iterator[Change]:
        event, item = _parse(line)
        if event == "ERROR":
            code = item.get("code")
            raise errors.from_status(code if isinstance(code, int) else 500, item)
        changes = () if event == "BOOKMARK" else tuple(self._roster.take_event(event, item))
        # Only a complete event moves the watch on, and one that did shows that the API server is well.
        self._version = (item.get("metadata") or {}).get("resourceVersion") or self._version
        self._delays = self._fresh_delays()
        yield from changes

    async def _pause(self, error: errors.KubeError) -> None:
        self._on_trouble(error)
        asked = error.retry_after if isinstance(error, errors.TooManyRequests | errors.ServerError) else None
        await asyncio.sleep(max(next(self._delays), asked or 0.0))

    def _fresh_delays(self) -> Iterator[float]:
        pace = self._pace
        return backoff.delays(base=pace.first_delay, factor=2, cap=pace.longest_delay, jitter=self._jitter)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream that is cut anywhere; an unfinished last line is dropped, for it says nothing."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            parts.append(line)
            whole = b"".join(parts)
            parts.clear()
            if whole.strip():
                yield whole
        if rest:
            parts.append(rest)


def _parse(line: bytes) -> tuple[str, Json]:
    try:
        event = orjson.loads(line)
        kind, item = event["type"], event["object"]
    except (orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise errors.Unreachable("the API server sent a watch event that is none") from error
    if not isinstance(kind, str) or not isinstance(item, dict):
        raise errors.Unreachable("the API server sent a watch event that is none")
    return kind, item
