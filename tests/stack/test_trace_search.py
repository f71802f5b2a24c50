"""Searches among works on a real PostgreSQL: bounded, complete where an index helps, and honest about what was read."""

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest

from maestropy import trace
from maestropy.store.dsn import Dsn
from maestropy.store.lists import outline
from maestropy.store.migrations import migrate
from maestropy.trace import library
from maestropy.trace.exit_codes import Exit
from maestropy.trace.work import statements
from maestropy.trace.work.query import WorkIdentifier
from maestropy.trace.work.report import render, work_report
from maestropy.trace.work.report.work_report import WorkReport
from maestropy.wire.works.resource_id import resource_id
from tests.stack import harness
from tests.stack.trace_fleet import url

ROWS = """
INSERT INTO resources (id, name, source, consumer_name, version, type, payload, created_at, updated_at)
SELECT 'id-' || g, 'id-' || g, 'raw', 'c1', 1, '', jsonb_build_object('metadata', jsonb_build_object(
    'name', 'work-' || g, 'labels', jsonb_build_object('team', 'web')), 'logtracing',
    '{"logging.open-cluster-management.io/op-id":"op-' || g || '"}',
  'data', jsonb_build_object('manifests', jsonb_build_array(jsonb_build_object('apiVersion', 'v1', 'kind', 'ConfigMap',
    'metadata', jsonb_build_object('name', 'cm-' || g, 'namespace', 'default'))))),
  now() - g * interval '1 second', now()
FROM generate_series(1, 600) g"""
COMPUTED = resource_id("client", namespace="c1", name="computed")
INDEXES = ("idx_resources_payload_labels", "maestropy_resources_order", "maestropy_resources_work_name")
EVERY_SEARCH: list[WorkIdentifier] = [
    {"work_name": "work-600"},
    {"label": "team=web"},
    {"name_like": "ORK-60"},
    {"manifest": "configmap/default/cm-600"},
    {"op_id": "op-600"},
    {"applied_work": f"{'f' * 64}-work-600"},
]


@pytest.fixture(params=["our-schema", "go-schema"])
def filled(request: pytest.FixtureRequest, database: Dsn) -> Dsn:
    """A database with 600 works of chosen IDs and one of a computed ID; with our indexes, or as Go migrates it."""
    asyncio.run(fill(database, without=INDEXES if request.param == "go-schema" else ()))
    return database


async def fill(database: Dsn, *, without: Sequence[str]) -> None:
    await migrate.migrate(database)
    connection = await asyncpg.connect(**database.connect_kwargs())
    try:
        await connection.execute("INSERT INTO consumers (id, name) VALUES ('c1', 'c1'), ('c2', 'c2')")
        await connection.execute(ROWS)
        await connection.execute(
            "INSERT INTO resources (id, name, source, consumer_name, version, payload, created_at) "
            "VALUES ($1, $1, 'client', 'c1', 1, '{\"metadata\": {\"name\": \"computed\"}}', now())",
            COMPUTED,
        )
        await connection.execute("ANALYZE resources")
        for index in without:
            await connection.execute(f"DROP INDEX {index}")
    finally:
        await connection.close()


async def traced(database: Dsn, identifier: WorkIdentifier) -> WorkReport:
    access = trace.WorkAccess(db_dsn=url(database), no_cluster=True)
    return await library.work(access=access, **identifier)


@pytest.mark.parametrize("identifier", EVERY_SEARCH, ids=lambda identifier: next(iter(identifier)))
async def test_search_finds_the_oldest_work(identifier: WorkIdentifier, filled: Dsn) -> None:
    report = await traced(filled, identifier)
    ids = {work_report.resource_id(work.facts) for work in report.works}
    ids |= {row.id for row in report.result.candidates}
    assert "id-600" in ids or ("label" in identifier and len(ids) == 500)
    assert report.result.coverage is not None
    assert report.result.coverage.is_complete


@pytest.mark.parametrize("identifier", EVERY_SEARCH, ids=lambda identifier: next(iter(identifier)))
async def test_search_without_time_is_inconclusive(
    identifier: WorkIdentifier, filled: Dsn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "SCAN", "0 milliseconds")
    report = await traced(filled, identifier)
    coverage = report.result.coverage
    assert coverage is not None
    if identifier.keys() & {"label", "work_name", "applied_work"} and coverage.is_complete:
        assert coverage.matches == (600 if "label" in identifier else 1), "the indexes on labels and names need no scan"
        return
    assert (coverage.searched, coverage.total, coverage.is_counted) == (0, 601, False)
    codes = {finding.code for finding in report.findings} | {work.verdict.code for work in report.works}
    assert "MW-120" in codes
    assert not codes & {"MW-009", "MW-010", "MW-119"}, "what was not searched is not missing"
    assert report.exit is Exit.INCONCLUSIVE
    assert "0 of about 601 works were searched" in render.text(report)
    assert work_report.model(report)["search"]["isComplete"] is False


async def test_search_of_everything_ignores_the_time(filled: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "SCAN", "0 milliseconds")
    report = await traced(filled, {"work_name": "work-600", "search_all": True})
    assert [work_report.resource_id(work.facts) for work in report.works] == ["id-600"]


async def test_computed_id_needs_no_scan(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(database, without=INDEXES)
    monkeypatch.setattr(statements, "SCAN", "0 milliseconds")
    report = await traced(database, {"work_name": "computed"})
    assert [work_report.resource_id(work.facts) for work in report.works] == [COMPUTED]
    assert report.result.coverage is not None
    assert report.result.coverage.by_computed_ids
    narrowed = await traced(database, {"work_name": "computed", "consumer": "c2"})
    assert [work.verdict.code for work in narrowed.works] == ["MW-010"], "the consumer has no work at all"


async def test_index_on_names_finds_every_work_of_a_name(database: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(database, without=())
    monkeypatch.setattr(statements, "SCAN", "0 milliseconds")
    for name, found in (("computed", COMPUTED), ("work-600", "id-600")):
        report = await traced(database, {"work_name": name})
        assert [work_report.resource_id(work.facts) for work in report.works] == [found]
        assert report.result.coverage is not None
        assert report.result.coverage.is_complete
        assert not report.result.coverage.by_computed_ids, "there is no other work of this name"


async def test_label_of_more_than_500_works_says_how_many(filled: Dsn) -> None:
    report = await traced(filled, {"label": "team=web"})
    assert len(report.works) == 500
    assert [(finding.code, finding.title) for finding in report.findings] == [
        ("MW-121", "500 of 600 works that match team=web are shown")
    ]
    assert work_report.model(report)["search"]["matches"] == 600


async def test_part_of_a_name_gives_the_newest_ten(filled: Dsn) -> None:
    report = await traced(filled, {"name_like": "WORK-"})
    assert [row.id for row in report.result.candidates][:10] == [f"id-{number}" for number in range(1, 11)]
    assert len(report.result.candidates) == 10
    assert report.result.coverage is not None
    assert (report.result.coverage.matches, report.result.coverage.is_counted) in [(10, False), (600, True)]


async def test_confirmed_deletion_is_found_by_name(filled: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = resource_id("client", namespace="c1", name="gone")
    connection = await asyncpg.connect(**filled.connect_kwargs())
    try:
        for id_, name in ((gone, "gone"), ("chosen", "gone-too")):
            await connection.execute(
                "INSERT INTO status_events (id, resource_id, resource_source, status_event_type, payload, created_at) "
                "VALUES ($1, $1, 'client', 'StatusDelete', jsonb_build_object('metadata', "
                "jsonb_build_object('name', $2::text)), now())",
                id_,
                name,
            )
    finally:
        await connection.close()
    for name, id_ in (("gone", gone), ("gone-too", "chosen")):
        report = await traced(filled, {"work_name": name})
        tombstones = [tombstone.resource_id for work in report.works for tombstone in work.facts.data.tombstones]
        assert tombstones == [id_], "once, by its ID or by its name"
        assert "MW-102" in codes(report)
    monkeypatch.setattr(statements, "SCAN", "0 milliseconds")
    assert "MW-102" in codes(await traced(filled, {"work_name": "gone"}))
    assert codes(await traced(filled, {"work_name": "gone-too"})) & {"MW-102", "MW-120"} == {"MW-120"}


def codes(report: WorkReport) -> set[str]:
    """Return the codes of all findings about works."""
    return {finding.code for work in report.works for finding in work.verdict.findings}


@pytest.mark.parametrize(("counted", "matches"), [(10_000, "600"), (550, "at least 10,000")])
async def test_label_over_rest_says_how_many_works_match(
    database: Dsn, counted: int, matches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "FEW_MATCHES", counted)
    await fill(database, without=())
    async with harness.in_process(database) as server:
        access = trace.WorkAccess(rest_url=server.rest, no_cluster=True)
        report = await library.work(access=access, label="team=web", options=trace.WorkTraceOptions(live=False))
    assert (len(report.works), [finding.title for finding in report.findings]) == (
        500,
        [f"500 of {matches} works that match team=web are shown"],
    )
