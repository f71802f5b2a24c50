"""Read the REST API again and again, and keep the picture of the fleet up to date.

A maestropy server has a history, which names what changed: only that is read again. Without it (a Go server, a token
without the role admin) works are found by the time of their last update, which no index serves, so the pause grows with
what the search costs. In both cases all versions are compared now and then, because a deleted work leaves no trace in a
list and a Go server writes no history.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from maestropy.aio import tasks
from maestropy.aio.clock import Clock
from maestropy.console import redaction, rows
from maestropy.console.picture import WINDOW_SECONDS, Picture
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.errors import MaestroError, Unauthorized, Unsupported
from maestropy.sdk.selector import quoted
from maestropy.trace.errors import NoAccess
from maestropy.trace.rest_reader import RestReader
from maestropy.trace.work import parse
from maestropy.wire.works import status

TICK_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 600.0
"""Nobody has looked for so long: nothing is read until somebody does."""
_PAGE: Final = 200
"""Bundles of one page; with manifests of two megabytes a page of the default size would be close to a gigabyte."""
_OUTLINE_PAGE: Final = 5_000
_BY_ID: Final = 100
_FLEET_SECONDS: Final = 15.0
_COMPARE_SECONDS: Final = 60.0
_COST_FACTOR: Final = 50
"""A search that no index serves takes at most a fiftieth of the time."""
_OVERLAP: Final = timedelta(seconds=10)
"""A transaction can commit a moment later than its time."""
_AGENT_HISTORY: Final = timedelta(days=30)
_MOST_AGENT_ENTRIES: Final = 20_000
_MOST_ENTRIES: Final = 20_000
_RETRY_SECONDS: Final = 3.0
_SILENT_SECONDS: Final = 4.0
"""A server that sends nothing for so long does not answer; a request itself is given up much later."""
_SILENT: Final = "the server does not answer."
_HELD: Final = f"{status.DATA_SAFETY_HOLD}=True"


class _Interrupted(Exception):
    """A read was cancelled although the collector goes on."""

    def __str__(self) -> str:
        return "a read was interrupted"


class Collector:
    """Keeps a picture up to date while somebody looks at it."""

    def __init__(
        self,
        client: AsyncMaestro,
        picture: Picture,
        *,
        clock: Clock | None = None,
        silent_seconds: float = _SILENT_SECONDS,
    ) -> None:
        self._silent_seconds = silent_seconds
        self._client = client
        self._reader = RestReader(client=client)
        self._picture = picture
        self._clock = clock or Clock()
        self._wanted = asyncio.Event()
        self._wanted_at = 0.0
        self._heard = 0.0
        """When the server last sent something."""
        self._next_fleet = 0.0
        self._next_compare = 0.0
        self._next_updates = 0.0
        self._last_update: datetime | None = None
        self._last_entry: datetime | None = None

    def want(self) -> None:
        """Note that somebody looks."""
        self._wanted_at = self._clock.monotonic()
        self._wanted.set()

    async def run(self) -> None:
        """Read until cancelled; an error of the API is part of the picture."""
        while True:
            await self._wanted.wait()
            is_read = await tasks.attempt(self._refresh_watched, on_error=self._failed)
            if is_read:
                self._picture.succeed(now=self._clock.epoch())
            if self._clock.monotonic() - self._wanted_at > _IDLE_SECONDS:
                self._wanted.clear()
            await asyncio.sleep(TICK_SECONDS if is_read else _RETRY_SECONDS)

    async def _refresh_watched(self) -> None:
        """Bring the picture up to date, and say it while the server is silent; the read itself goes on."""
        self._heard = self._clock.monotonic()
        reading = asyncio.ensure_future(self.refresh())
        try:
            while not reading.done():
                left = self._silent_seconds - (self._clock.monotonic() - self._heard)
                if left <= 0:
                    self._picture.fail(_SILENT, now=self._clock.epoch())
                await asyncio.wait({reading}, timeout=left if left > 0 else TICK_SECONDS)
            if reading.cancelled():
                # Not by us: a library took it for its own. As a cancellation it would end the collector without a word.
                raise _Interrupted
            await reading
        finally:
            reading.cancel()

    def _hear(self) -> None:
        self._heard = self._clock.monotonic()

    def _failed(self, error: Exception) -> None:
        """Put into the picture what is wrong, also a mistake of this program: pages must not show old rows as new."""
        expected = isinstance(error, MaestroError | NoAccess)
        text = str(error) if expected else f"unexpected error in the console ({type(error).__name__}: {error})"
        self._picture.fail(rows.shortened(text), now=self._clock.epoch())

    async def refresh(self) -> None:
        """Bring the picture up to date."""
        now = self._clock.monotonic()
        if now >= self._next_fleet:
            await self._read_fleet()
            self._next_fleet = now + _FLEET_SECONDS
        if not self._picture.source.is_complete:
            await self._load()
            return
        changed = await self._changed()
        changed |= set(self._picture.due(self._clock.epoch()))
        await self.read(changed)
        if now >= self._next_compare:
            await self._compare()
            cost = self._clock.monotonic() - now
            self._next_compare = self._clock.monotonic() + max(_COMPARE_SECONDS, _COST_FACTOR * cost)

    async def read(self, ids: Iterable[str]) -> None:
        """Read works again by their IDs; those that do not exist any more are removed."""
        wanted = sorted(ids)
        for start in range(0, len(wanted), _BY_ID):
            several = wanted[start : start + _BY_ID]
            search = f"id in ({', '.join(map(quoted, several))})"
            found = [bundle async for bundle in self._listed(search)]
            self._put(found)
            self._picture.remove(set(several) - {str(bundle.get("id")) for bundle in found})

    async def ids_of_source(self, source: str) -> set[str]:
        """Return the IDs of the works of a source, which a list does not tell."""
        return {str(bundle["id"]) async for bundle in self._outlines(source=source)}

    async def _load(self) -> None:
        source = self._picture.source
        page = await self._client.resource_bundles.page(size=1)
        source.total, source.loaded = parse.number(page.get("total")), 0
        began = self._clock.now()
        ids: set[str] = set()
        waiting: list[dict[str, Any]] = []
        async for bundle in self._listed(""):
            waiting.append(bundle)
            if len(waiting) >= _PAGE:
                ids |= self._loaded(waiting)
                waiting = []
        ids |= self._loaded(waiting)
        self._picture.remove(set(self._picture.works) - ids)
        self._last_update = began - _OVERLAP
        # The rates and latencies of the last minutes come from the history.
        self._last_entry = began - timedelta(seconds=WINDOW_SECONDS)
        await self._read_agents(began)
        source.is_complete = True
        self._next_compare = self._clock.monotonic() + _COMPARE_SECONDS
        self._picture.touch()

    def _loaded(self, bundles: Sequence[dict[str, Any]]) -> set[str]:
        self._put(bundles)
        self._picture.source.loaded += len(bundles)
        self._picture.touch()
        return {str(bundle.get("id")) for bundle in bundles}

    def _put(self, bundles: Iterable[dict[str, Any]]) -> None:
        found = [self._row(bundle) for bundle in bundles]
        self._picture.put(found)
        if any(_HELD in row.conditions and row.consumer not in self._picture.holds for row in found):
            # A hold has no entry in the history; the status of a held work tells of it.
            self._next_fleet = 0.0

    def _row(self, bundle: dict[str, Any]) -> rows.WorkRow:
        consumer = str(bundle.get("consumer_name") or "")
        hold, pause = self._picture.holds.get(consumer), self._picture.pauses.get(consumer)
        return rows.row(redaction.document(bundle), now=self._clock.now(), hold=hold, pause=pause)

    async def _listed(self, search: str) -> AsyncIterator[dict[str, Any]]:
        async with aclosing(self._client.resource_bundles.list(search=search, page_size=_PAGE)) as bundles:
            async for bundle in bundles:
                self._hear()
                yield bundle

    async def _outlines(self, *, search: str = "", source: str = "") -> AsyncIterator[dict[str, Any]]:
        """Yield works with versions and times; a Go server breaks the connection when asked for some keys only."""
        is_ours = self._picture.source.history in ("yes", "denied")
        listed = self._client.resource_bundles.list(
            search=search,
            source=source,
            page_size=_OUTLINE_PAGE if is_ours else _PAGE,
            fields=("id", "version", "updated_at", "deleted_at") if is_ours else (),
        )
        async with aclosing(listed) as bundles:
            async for bundle in bundles:
                self._hear()
                yield bundle

    async def _read_fleet(self) -> None:
        consumers = {}
        async with aclosing(self._client.consumers.list()) as listed:
            async for consumer in listed:
                consumers[consumer.name] = consumer
        picture = self._picture
        before = (picture.holds, picture.pauses)
        self._hear()
        holds = {hold.consumer: hold for hold in await self._reader.holds()}
        self._hear()
        pauses = {pause.consumer: pause for pause in await self._reader.pauses()}
        picture.put_consumers(consumers, holds, pauses)
        if (holds, pauses) != before and picture.source.is_complete:
            held = {work_id for several in (before[0], holds) for hold in several.values() for work_id in hold.works}
            concerned = before[1].keys() ^ pauses.keys()
            waiting = {row.id for row in picture.works.values() if row.consumer in concerned and not row.is_settled}
            await self.read((held & picture.works.keys()) | waiting)

    async def _read_agents(self, now: datetime) -> None:
        """Read the last connects and disconnects, and take them in the order in which they happened."""
        read = []
        entries = self._client.history(
            kinds="agent", since=now - _AGENT_HISTORY, newest_first=True, limit=_MOST_AGENT_ENTRIES
        )
        try:
            async with aclosing(entries) as found:
                async for entry in found:
                    self._hear()
                    read.append(entry)
            self._picture.source.history = "yes"
        except Unsupported:
            self._picture.source.history = "unsupported"
        except Unauthorized:
            self._picture.source.history = "denied"
        read.reverse()
        for entry in sorted(read, key=lambda entry: _epoch(entry.time)):
            if self._picture.is_new(entry):
                self._picture.take(entry, at=_epoch(entry.time))

    async def _changed(self) -> set[str]:
        if self._picture.source.history == "yes":
            return await self._changed_by_history()
        return await self._changed_by_update()

    async def _changed_by_history(self) -> set[str]:
        now = self._clock.now()
        assert self._last_entry is not None
        changed = set()
        entries = self._client.history(since=self._last_entry, limit=_MOST_ENTRIES)
        newest, count = self._last_entry, 0
        read = []
        async with aclosing(entries) as found:
            async for entry in found:
                self._hear()
                count += 1
                read.append(entry)
        # At once: of a server that was away, the first pages say that agents left, and later ones that they are back.
        for entry in read:
            at = _epoch(entry.time)
            newest = max(newest, datetime.fromtimestamp(at, tz=UTC))
            if not self._picture.is_new(entry):
                continue
            self._picture.take(entry, at=at)
            if entry.kind.startswith("work.") and entry.resource_id:
                changed.add(entry.resource_id)
            elif entry.kind.startswith("consumer."):
                self._next_fleet = 0.0
        # By the times of the server: the clock of this computer may differ. A full page without an overlap, because the
        # next would begin at the same place again; the comparison of all versions finds what was missed.
        begin = min(newest, now) - (_OVERLAP if count < _MOST_ENTRIES else timedelta())
        self._last_entry = max(self._last_entry, begin)
        return changed

    async def _changed_by_update(self) -> set[str]:
        if self._clock.monotonic() < self._next_updates:
            return set()
        assert self._last_update is not None
        began, now = self._clock.monotonic(), self._clock.now()
        moment = quoted(self._last_update.isoformat().replace("+00:00", "Z"))
        changed = set()
        for search in (f"updated_at >= {moment}", f"deleted_at >= {moment}"):
            changed |= {str(bundle["id"]) async for bundle in self._outlines(search=search) if self._differs(bundle)}
        self._last_update = now - _OVERLAP
        cost = self._clock.monotonic() - began
        self._next_updates = self._clock.monotonic() + max(2 * TICK_SECONDS, _COST_FACTOR * cost)
        return changed

    async def _compare(self) -> None:
        """Compare all versions and times with the picture, and read what differs."""
        changed, ids = set(), set()
        async for bundle in self._outlines():
            work_id = str(bundle["id"])
            ids.add(work_id)
            if self._differs(bundle):
                changed.add(work_id)
        # What was created while the list was read is in the picture, but not in the list: it is read, not removed.
        await self.read(changed | (set(self._picture.works) - ids))

    def _differs(self, outline: dict[str, Any]) -> bool:
        row = self._picture.works.get(str(outline["id"]))
        if row is None:
            return True
        stored = (outline.get("version"), _epoch(outline.get("updated_at")), _epoch(outline.get("deleted_at")))
        return stored != (row.version, row.updated, row.deleted)


def _epoch(text: object) -> float:
    moment = parse.moment(text)
    return moment.timestamp() if moment is not None else 0.0
