"""Protocols for reading works: a database that has the rows, and clusters that have the objects.

`gather` knows databases, clusters and dumps only by these protocols. Every method raises NoAccess when it could not
read, and returns nothing when there was nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maestropy.trace.errors import NoAccess
from maestropy.trace.work import parse, statements
from maestropy.trace.work.model import ConsumerPause, Json, Kind, SearchCoverage, Tombstone, TracedResource, WorkHold
from maestropy.trace.work.query import WorkQuery
from maestropy.wire.works import resource_id

_MOST_COMPUTED = 50_000
"""IDs that are computed for a name; with more sources and consumers, the works are searched by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResources:
    """The resources that match a query."""

    rows: tuple[TracedResource, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    coverage: SearchCoverage | None = None
    """How much was searched; None for a query by ID, and where everything is searched."""


class DatabaseReader(Protocol):
    """Reads rows of the resources table."""

    @property
    def description(self) -> str:
        """The name of the database in reports."""

    async def find(self, query: WorkQuery) -> FoundResources:
        """Return the resources that match a query."""

    async def holds(self) -> Sequence[WorkHold]:
        """Return the data-safety holds; none where there can be none, as in the database of a Go server."""

    async def pauses(self) -> Sequence[ConsumerPause]:
        """Return the pauses of delivery; none where there can be none."""


class ClusterReader(Protocol):
    """A management cluster."""

    @property
    def label(self) -> str:
        """Its name in reports: the context."""

    @property
    def consumer(self) -> str:
        """The consumer of the cluster; empty if not given."""

    @property
    def kubectl(self) -> str:
        """The flags that lead kubectl there, quoted for a shell."""

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works, from any hub."""

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds with these spellings; an empty group matches any."""

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name; without a namespace in all of them."""

    async def agent_consumer(self) -> str:
        """Return the consumer of the agent on this cluster; empty if unknown."""


class StatementRunner(Protocol):
    """Runs one SQL statement."""

    @property
    def description(self) -> str:
        """The name of the database in reports."""

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run it and return its documents."""


@dataclass(frozen=True, slots=True)
class SqlDatabaseReader:
    """A database that is read by SQL, through any statement runner."""

    runner: StatementRunner
    reads_holds: bool = False
    """Whether holds and pauses are read, in two statements more each; not where a person confirms every statement."""

    @property
    def description(self) -> str:
        return self.runner.description

    async def find(self, query: WorkQuery) -> FoundResources:
        computed_ids = await self._computed_ids(query) if query.entry == "work-name" else ()
        statement = statements.statement(query, computed_ids=computed_ids)
        return sort_documents(await self.runner.documents(statement.sql, statement.parameters), query)

    async def holds(self) -> Sequence[WorkHold]:
        """Return the data-safety holds, if the database has the table of them."""
        return [parse.hold(document) for document in await self._optional("holds")]

    async def pauses(self) -> Sequence[ConsumerPause]:
        """Return the pauses of delivery, if the database has the table of them."""
        return [parse.pause(document) for document in await self._optional("pauses")]

    async def _optional(self, table: str) -> Sequence[dict[str, Any]]:
        """Return the documents of a table that not every database has."""
        if not self.reads_holds or not await self.runner.documents(statements.named(f"has_{table}").sql, ()):
            return ()
        return await self.runner.documents(statements.named(table).sql, ())

    async def _computed_ids(self, query: WorkQuery) -> Sequence[str]:
        """Return the IDs that a work client computes for the names, for every source and consumer there is."""
        sources, consumers = [query.source], [query.consumer]
        if not (query.source and query.consumer):
            statement = statements.origins(query)
            try:
                documents = await self.runner.documents(statement.sql, statement.parameters)
            except NoAccess:
                # The consumers may be unreadable for this user. If it is more than that, the search itself fails too.
                return ()
            origins = documents[0] if documents else {}
            sources, consumers = parse.texts(origins.get("sources")), parse.texts(origins.get("consumers"))
        if len(sources) * len(consumers) * len(query.values) > _MOST_COMPUTED:
            return ()
        return [
            resource_id.resource_id(source, namespace=consumer, name=name)
            for source in sources
            for consumer in consumers
            for name in query.values
        ]


def sort_documents(documents: Collection[Json], query: WorkQuery) -> FoundResources:
    """Sort the documents of a statement into rows and tombstones of deleted ones."""
    rows = tuple(parse.row(document) for document in documents if document.get("trace") == "row")
    left = tuple(parse.tombstone(document) for document in documents if document.get("trace") == "tombstone")
    newest = statements.NEWEST if query.entry == "name-like" else None
    has_computed_ids = query.entry == "work-name"
    coverages = [
        parse.coverage(document, most_counted=statements.COUNTED, newest=newest, has_computed_ids=has_computed_ids)
        for document in documents
        if document.get("trace") == "coverage"
    ]
    return FoundResources(
        rows=tuple(row for row in rows if _matches(row, query))[:newest],
        tombstones=left,
        coverage=coverages[0] if coverages else None,
    )


def _matches(row: TracedResource, query: WorkQuery) -> bool:
    # The statement matches the operation ID as a substring; only an equal one counts.
    return query.entry != "op-id" or row.operation_id == query.values[0]
