"""The two sides a trace asks: one that has the rows, and clusters that have the objects.

These protocols are all that the gathering stage knows of databases, clusters and dumps. Every method raises NoAccess
when it could not look, and returns nothing when it looked and there was nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maestropy.trace.work import reading, statements
from maestropy.trace.work.model import Json, Kind, Row, Tombstone
from maestropy.trace.work.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a database knows about a question."""

    rows: tuple[Row, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


class DatabaseSide(Protocol):
    """Who has the rows."""

    @property
    def place(self) -> str:
        """Who is asked, in words."""
        ...

    async def find(self, question: Question) -> Found:
        """Return all that fits a question."""
        ...


class ClusterSide(Protocol):
    """A management cluster."""

    @property
    def label(self) -> str:
        """Its name in reports: the context."""
        ...

    @property
    def consumer(self) -> str:
        """The consumer it is said to be; empty if nobody said."""
        ...

    @property
    def kubectl(self) -> str:
        """The flags that lead kubectl there, quoted for a shell."""
        ...

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works, whoever's they are."""
        ...

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""
        ...

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds that these spellings may mean; an empty group means any."""
        ...

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name; without a namespace in all of them."""
        ...

    async def agent_consumer(self) -> str:
        """Return the consumer that the agent on this cluster serves; empty if it cannot be told."""
        ...


class Documents(Protocol):
    """Who can run one statement."""

    @property
    def place(self) -> str:
        """Who is asked, in words."""
        ...

    async def documents(self, sql: str, parameters: Sequence[str]) -> Sequence[dict[str, Any]]:
        """Run it and return its documents."""
        ...


@dataclass(frozen=True, slots=True)
class SqlSide:
    """A database that is asked in SQL, whichever way the statement travels."""

    way: Documents

    @property
    def place(self) -> str:
        """Who is asked."""
        return self.way.place

    async def find(self, question: Question) -> Found:
        """Return all that fits a question."""
        asked = statements.statement(question)
        return found(await self.way.documents(asked.sql, asked.parameters), question)


def found(documents: Collection[Json], question: Question) -> Found:
    """Sort documents of the queries into rows and what is left of deleted ones."""
    rows = tuple(reading.row(each) for each in documents if each.get("trace") == "row")
    left = tuple(reading.tombstone(each) for each in documents if each.get("trace") == "tombstone")
    return Found(rows=tuple(each for each in rows if _is_meant(each, question)), tombstones=left)


def _is_meant(row: Row, question: Question) -> bool:
    # The database looks for the operation id as a part of a text; only an equal one is meant.
    return question.entry != "op-id" or row.operation_id == question.values[0]
