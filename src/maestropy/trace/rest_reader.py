"""Read works from the REST API instead of the database, through the SDK.

The API does not return the source, the operation ID or deleted works. Conditions that its search language cannot
express are checked on the pages it returns.
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.consumers import DataSafetyHold
from maestropy.sdk.errors import Invalid, MaestroError, NotFound
from maestropy.sdk.selector import quoted
from maestropy.trace.errors import InvalidArguments, NoAccess
from maestropy.trace.work import parse
from maestropy.trace.work.model import ConsumerPause, SearchCoverage, TracedResource, WorkHold
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.readers import FoundResources
from maestropy.trace.work.statements import COUNTED, MOST, NEWEST

_SINGLY = 200
_NAME = "payload->'metadata'->>'name'"
_MOST_HOLDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RestReader:
    """The REST API of a Maestro server."""

    client: AsyncMaestro

    @property
    def description(self) -> str:
        return f"REST API {self.client.settings.api_url}"

    async def find(self, query: WorkQuery) -> FoundResources:
        try:
            rows = tuple(await self._rows(query))
            return FoundResources(rows=rows, coverage=await self._coverage(query, rows))
        except Invalid as error:
            raise InvalidArguments(f"--{query.entry}: {error}") from error
        except MaestroError as error:
            raise NoAccess(f"{self.description} does not respond: {error}") from error

    async def holds(self) -> Sequence[WorkHold]:
        """Return the data-safety holds; those of known consumers with the IDs of their works."""
        try:
            listed = await self.client.consumers.holds()
            return [await self._hold(hold) for hold in list(listed.values())[:_MOST_HOLDS]]
        except MaestroError as error:
            raise NoAccess(f"{self.description}: data-safety holds cannot be read: {error}") from error

    async def pauses(self) -> Sequence[ConsumerPause]:
        try:
            listed = await self.client.consumers.pauses()
        except MaestroError as error:
            raise NoAccess(f"{self.description}: pauses cannot be read: {error}") from error
        return [
            ConsumerPause(consumer=pause.consumer, by=pause.paused_by, since=pause.paused_at, reason=pause.reason)
            for pause in listed.values()
        ]

    async def _hold(self, listed: DataSafetyHold) -> WorkHold:
        try:
            whole = await self.client.consumers.hold(listed.consumer) or listed
        except NotFound:
            whole = listed  # the server does not have the consumer, so it cannot show its hold
        return WorkHold(
            consumer=whole.consumer,
            reason=whole.reason,
            message=whole.message,
            work_count=whole.work_count,
            works=frozenset(whole.works),
            since=whole.since,
        )

    async def _rows(self, query: WorkQuery) -> Sequence[TracedResource]:
        match query.entry:
            case "resource-id" | "file" if len(query.values) <= _SINGLY:
                return await self._by_ids(query)
            case "applied-work":
                rows = await self._by_ids(query)
                return rows or await self._list(query, _any_of(_NAME, query.values))
            case "work-name":
                return await self._list(query, _any_of(_NAME, query.values))
            case "label":
                return await self._list(query, _label(query))
            case "name-like":
                part = query.values[0].lower()
                rows = await self._list(query, "", fits=lambda row: part in row.work_name.lower())
                return sorted(rows, key=lambda row: str(row.created), reverse=True)[:NEWEST]
            case "op-id":
                text = f"payload->>'logtracing' like {quoted('%' + query.values[0] + '%')}"
                return await self._list(query, text)
            case "manifest":
                manifest = query.manifest
                assert manifest is not None
                return await self._list(query, "", fits=lambda row: holds(row, manifest))
            case _:
                ids = set(query.values)
                return await self._list(query, "", fits=lambda row: row.id in ids)

    async def _coverage(self, query: WorkQuery, rows: Sequence[TracedResource]) -> SearchCoverage | None:
        """Return how many works have a label, if there are more than are read."""
        if query.entry != "label" or len(rows) < MOST:
            return None
        page = await self.client.resource_bundles.page(size=1, search=_search(query, _label(query)))
        if page.get("total_is_estimate"):
            return SearchCoverage(matches=COUNTED, is_counted=False)  # a server counts as many as the statements do
        return SearchCoverage(matches=parse.number(page.get("total")) or len(rows))

    async def _by_ids(self, query: WorkQuery) -> Sequence[TracedResource]:
        rows = []
        for value in query.values:
            try:
                rows.append(parse.bundle(await self.client.resource_bundles.get(value)))
            except NotFound:
                continue
        return [row for row in rows if query.consumer in {"", row.consumer}]

    async def _list(
        self, query: WorkQuery, search: str, *, fits: Callable[[TracedResource], bool] = lambda _: True
    ) -> Sequence[TracedResource]:
        rows: list[TracedResource] = []
        async with aclosing(self.client.resource_bundles.list(search=_search(query, search))) as bundles:
            async for bundle in bundles:
                row = parse.bundle(bundle)
                if fits(row):
                    rows.append(row)
                if len(rows) >= MOST and query.entry != "name-like":
                    break
        return rows


def holds(row: TracedResource, sought: ManifestQuery) -> bool:
    """Whether a work has that manifest."""
    for manifest in row.manifests:
        key = parse.manifest_key(manifest)
        if (
            key.name == sought.name
            and key.kind.lower() in sought.kinds
            and sought.namespace in {"", key.namespace}
            and sought.group in {"", key.group}
        ):
            return True
    return False


def _label(query: WorkQuery) -> str:
    key, value = query.values
    return f"payload->'metadata'->'labels'->>{quoted(key)} = {quoted(value)}"


def _search(query: WorkQuery, search: str) -> str:
    """Return a search, narrowed by consumer and source."""
    narrowing = {"consumer_name": query.consumer, "source": query.source}
    terms = [search, *(f"{name} = {quoted(value)}" for name, value in narrowing.items() if value)]
    return " and ".join(term for term in terms if term)


def _any_of(path: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{path} = {quoted(values[0])}"
    return f"{path} in ({', '.join(quoted(value) for value in values)})"
