"""Walk along the hops: run queries, learn identifiers from results, repeat until no query is new; then judge.

`steps` is pure: it yields rounds of queries and is sent their results, so queries whose inputs are known run in
parallel. `run` is the only function that awaits a query runner.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from maestropy.trace.hcp.hops import (
    agent,
    backend,
    clusters_service,
    control_plane,
    frontend,
    hosted_cluster,
    maestro,
    managed_cluster,
    node_pools,
    shard,
    works,
)
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.judge import verdict
from maestropy.trace.hcp.model import HopReport, Walk, WalkContext
from maestropy.trace.hcp.query import CommandFlags, Document, HopQuery, HopQueryResult, Snapshot, Topic

HopQueries = Sequence[HopQuery]
HopQueryResults = Sequence[HopQueryResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One stop of the walk."""

    name: str
    queries: Callable[[KnownIds], Iterable[HopQuery]]
    learn: Callable[[KnownIds, Iterable[tuple[Topic, Document]]], KnownIds] | None
    """None for a hop whose documents name nothing new."""
    judge: Callable[[WalkContext], HopReport]


class QueryRunner(Protocol):
    """Runs queries: a directory, or live services and clusters."""

    @property
    def flags(self) -> CommandFlags:
        """The flags for printed commands, complete once the queries have run."""

    async def run_queries(self, queries: HopQueries) -> HopQueryResults:
        """Run each query, in order. Never raises for a single query: its result is unknown instead."""


HOPS: Sequence[Hop] = tuple(
    Hop(name=module.NAME, queries=module.queries, learn=getattr(module, "learn", None), judge=module.judge)
    for module in (
        frontend,
        backend,
        clusters_service,
        shard,
        maestro,
        agent,
        works,
        hosted_cluster,
        control_plane,
        managed_cluster,
        node_pools,
    )
)


def steps(
    known: KnownIds, *, snapshot: Snapshot, hops: Sequence[Hop] = HOPS, flags: Callable[[], CommandFlags] = CommandFlags
) -> Generator[HopQueries, HopQueryResults, Walk]:
    """Yield rounds of queries, receive their results, return the finished walk."""
    results: dict[HopQuery, HopQueryResult] = {}
    while new := [query for query in dict.fromkeys(_all_queries(known, hops)) if query not in results]:
        new_results = yield new
        results |= dict(zip(new, new_results, strict=True))
        known = _learn(known, results, hops=hops)
    context = WalkContext(known=known, results=results, snapshot=snapshot, flags=flags())
    reports = tuple(hop.judge(context) for hop in hops)
    return Walk(context=context, hops=reports, verdict=verdict.decide(context, reports))


async def run(known: KnownIds, *, runner: QueryRunner, snapshot: Snapshot, hops: Sequence[Hop] = HOPS) -> Walk:
    """Run a walk with a query runner."""
    walking = steps(known, snapshot=snapshot, hops=hops, flags=lambda: runner.flags)
    results: HopQueryResults | None = None
    while True:
        try:
            queries = next(walking) if results is None else walking.send(results)
        except StopIteration as end:
            finished: Walk = end.value
            return finished
        results = await runner.run_queries(queries)


def _all_queries(known: KnownIds, hops: Sequence[Hop]) -> Iterable[HopQuery]:
    for hop in hops:
        yield from hop.queries(known)


def _learn(known: KnownIds, results: dict[HopQuery, HopQueryResult], *, hops: Sequence[Hop]) -> KnownIds:
    documents = [(query.topic, document) for query, result in results.items() for document in result.documents]
    for hop in hops:
        known = hop.learn(known, documents) if hop.learn is not None else known
    return known
