"""What clients search for is served by an index, on a database of 20,000 resources; `enable_seqscan` stays on."""

from collections.abc import Iterator

import asyncpg
import pytest

from maestropy.server.api.rest.list_parameters import ListParameters
from maestropy.store import resources, search
from maestropy.store.lists import outline
from tests.store import list_database
from tests.store.list_database import Run

NAME = "work-c4ca4238a0b923820dcc509a6f75849b"
LABELS = "payload->'metadata'->'labels'"
ID = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"

BY_NAME = "maestropy_resources_work_name"
BY_LABEL = "idx_resources_payload_labels"
BY_CONSUMER = "maestropy_resources_consumer"
BY_SOURCE = "maestropy_resources_source"
BY_NAME_COLUMN = "maestropy_resources_name"
BY_ID = "resources_pkey"
BY_CREATION = "maestropy_resources_order"

SEARCHES = [
    # The command line: `maestro resourcebundle get NAME`, its help, and completion.
    ("", "", BY_CREATION),
    (f"payload->'metadata'->>'name' = '{NAME}'", "", BY_NAME),
    (f"payload->'metadata'->>'name' = '{NAME}' and consumer_name = 'cluster1'", "", BY_NAME),
    ("name like '55c6%'", "", BY_NAME_COLUMN),
    ("consumer_name like 'cluster4%'", "", BY_CONSUMER),
    ("consumer_name = 'cluster1'", "", BY_CONSUMER),
    # The SDK: lists of works and resource bundles by ID, and label selectors.
    ("source = 'rare'", "id", BY_SOURCE),
    ("source = 'cs' and consumer_name = 'cluster1'", "id", "consumer"),
    (f"(source = 'cs' and consumer_name = 'cluster1') and id > '{ID}'", "id", "consumer"),
    (f"id = '{ID}'", "id", BY_ID),
    (
        f"""source = 'cs' and {LABELS}@>'{{"api.openshift.com/id":"c4ca4238a0b923820dcc509a6f75849b"}}'""",
        "id",
        BY_LABEL,
    ),
    (f"source = 'cs' and {LABELS}->>'api.openshift.com/id'in('c4ca4238a0b923820dcc509a6f75849b','x')", "id", BY_LABEL),
    (f"source = 'rare' and {LABELS}->>'app' like '%'", "id", "source"),
    # The tracer over REST.
    (f"payload->'metadata'->>'name' in ('{NAME}', 'other')", "id", BY_NAME),
    (f"{LABELS}->>'app' = 'app7' and consumer_name = 'cluster7'", "id", ""),
    (f"{LABELS}->>'api.openshift.com/id' = 'c4ca4238a0b923820dcc509a6f75849b'", "id", BY_LABEL),
    # How people find the works of a hosted cluster.
    (f"{LABELS}->>'api.openshift.com/id'='c4ca4238a0b923820dcc509a6f75849b'", "", BY_LABEL),
    # The Go SDK.
    ("source='rare' and consumer_name='cluster0'", "", ""),
    (f"""source='cs' and {LABELS}@>'{{"app":"app1","env":"dev"}}'""", "", ""),
    (f"source='cs' and consumer_name='cluster1' and {LABELS}->>'app'in('app1','app2')", "", ""),
    ("source='cs' and (consumer_name='cluster1' or consumer_name='cluster2')", "", "consumer"),
    # What else clients write.
    ("payload->'metadata'->>'name' like 'work-c4ca%'", "", BY_NAME),
    (f"""payload@>'{{"metadata":{{"name":"{NAME}"}}}}'""", "", BY_NAME),
    ("""payload->'metadata'@>'{"labels":{"api.openshift.com/id":"c4ca4238a0b923820dcc509a6f75849b"}}'""", "", BY_LABEL),
    (f"name in ('{ID}', 'x')", "created_at desc", "name"),
    ("created_at > '2026-01-01T05:00:00Z'", "created_at", BY_CREATION),
    ("", "created_at desc", BY_CREATION),
    ("deleted_at is not null", "", "idx_resources_deleted_at"),
]

STATEMENTS = [
    # People on the database itself.
    (f"SELECT id, payload->'metadata'->>'name', created_at, deleted_at FROM resources WHERE id = '{ID}'", BY_ID),
    (f"SELECT id, created_at FROM resources WHERE payload->'metadata'->>'name' = '{NAME}'", BY_NAME),
    (f"SELECT jsonb_pretty(payload) FROM resources WHERE id = '{ID}'", BY_ID),
    (f"SELECT id, event_type, reconciled_date FROM events WHERE source_id = '{ID}'", "source_id"),
    (f"SELECT id, status_event_type FROM status_events WHERE resource_id = '{ID}'", "idx_status_events_resource_id"),
]


@pytest.fixture(scope="module")
def database() -> Iterator[Run]:
    with list_database.running() as run:
        run(lambda connection: connection.execute(list_database.FILL))
        run(lambda connection: connection.execute("VACUUM ANALYZE"))
        yield run


@pytest.mark.parametrize(("text", "order", "index"), SEARCHES)
def test_search_of_a_client_is_served_by_an_index(database: Run, text: str, order: str, index: str) -> None:
    async def plans(connection: asyncpg.Connection) -> str:
        explaining = list_database.Explaining(connection)
        await list_database.page(explaining, ListParameters(search=text, order_by=order))
        return "\n\n".join(explaining.plans)

    plan = database(plans)

    assert "Seq Scan on resources" not in plan, plan
    assert index in plan, plan


@pytest.mark.parametrize(("statement", "index"), STATEMENTS)
def test_statement_of_a_person_is_served_by_an_index(database: Run, statement: str, index: str) -> None:
    lines = database(lambda connection: connection.fetch(f"EXPLAIN {statement}"))
    plan = "\n".join(line[0] for line in lines)

    assert "Seq Scan" not in plan, plan
    assert index in plan, plan


RENDITIONS = """
INSERT INTO renditions (id, version, envelope, metadata, data)
SELECT id, version, '{"id":"e"}', '{}', '{}' FROM resources
"""


@pytest.mark.parametrize(
    ("with_event_ids", "is_read"),
    [pytest.param(True, True, id="agents-of-ours"), pytest.param(False, False, id="agents-without-event-ids")],
)
def test_resync_of_many_consumers_reads_their_renditions_only(
    database: Run, with_event_ids: bool, is_read: bool
) -> None:
    async def plan_of_read(connection: asyncpg.Connection) -> str:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(RENDITIONS)
            await connection.execute("ANALYZE renditions")
            explaining = list_database.Explaining(connection)
            consumers = [f"cluster{number}" for number in range(5)]
            versions = await resources.versions_of_consumers(explaining, consumers, with_event_ids=with_event_ids)
        finally:
            await transaction.rollback()
        assert {row.event_id for rows in versions.values() for row in rows} == {"e" if with_event_ids else ""}
        return "\n\n".join(explaining.plans)

    plan = database(plan_of_read)
    assert "Seq Scan on renditions" not in plan, plan
    assert ("renditions_pkey" in plan) is is_read, plan


@pytest.mark.parametrize(
    "text",
    [
        f"{LABELS}->>'env'='dev' or consumer_name='cluster2'",
        f"source='cs' and {LABELS}->>'app'<>'app1'",
        f"source='cs' and {LABELS}->>'app'<>null",
    ],
)
def test_page_of_a_search_that_most_resources_match_is_read_in_order(database: Run, text: str) -> None:
    async def plans(connection: asyncpg.Connection) -> list[str]:
        explaining = list_database.Explaining(connection)
        page = await list_database.page(explaining, ListParameters(search=text))
        assert len(page.entries) == 100
        assert not page.is_exact, "to count them, every document would be read"
        assert page.total > outline.FEW_MATCHES
        return explaining.plans

    matches, ordered, _ = database(plans)
    assert "Limit  (" in matches
    assert f"Index Scan using {BY_CREATION}" in ordered


def test_matches_at_the_other_end_of_the_order_are_sorted(database: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading in order ends after a second, and then all matches are sorted; here after a millisecond."""
    expected = database(
        lambda connection: list_database.page(connection, ListParameters(search=f"{LABELS}->>'app'='app9'"))
    )
    monkeypatch.setattr(outline, "FEW_MATCHES", 100)
    monkeypatch.setattr(outline, "SOON_MS", 1)

    async def read(connection: asyncpg.Connection) -> tuple[outline.Page, str]:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            page = await list_database.page(connection, ListParameters(search=f"{LABELS}->>'app'='app9'"))
            return page, await connection.fetchval("SHOW statement_timeout")

    page, timeout = database(read)
    assert page.entries == expected.entries
    assert (page.total, page.is_exact) == (1000, True)
    assert timeout == "0", "the timeout ends with the savepoint"


def test_page_behind_the_matches_of_a_label_reads_only_the_matches(database: Run) -> None:
    async def read(connection: asyncpg.Connection) -> tuple[outline.Page, list[str]]:
        explaining = list_database.Explaining(connection)
        return await list_database.page(
            explaining, ListParameters(search=f"{LABELS}->>'app'='app9'", page=12)
        ), explaining.plans

    page, plans = database(read)
    assert (page.entries, page.total, page.is_exact) == ([], 1000, True)
    assert all(BY_LABEL in plan for plan in plans), plans


def test_resources_of_a_source_are_counted(database: Run) -> None:
    page = database(lambda connection: list_database.page(connection, ListParameters(search="source = 'cs'")))
    assert (page.total, page.is_exact) == (19_960, True)


def test_work_name_of_any_length_can_be_stored(database: Run) -> None:
    """A B-tree rejects values above 2.7 KB; a Go server must not notice our indexes on what it does not limit."""

    async def store(connection: asyncpg.Connection) -> int:
        async with connection.transaction():
            payload = "jsonb_build_object('metadata', jsonb_build_object('name', repeat('long-', 20000)))"
            await connection.execute(f"INSERT INTO resources (id, version, payload) VALUES ('long', 1, {payload})")
            found = await connection.fetchval(
                "SELECT count(*) FROM resources WHERE payload->'metadata'->>'name' = repeat('long-', 20000)"
            )
            await connection.execute("DELETE FROM resources WHERE id = 'long'")
            return int(found)

    assert database(store) == 1


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("status->'data'->>'x'='y'", ("status->'data'->>'x' =",)),
        ("name ilike 'x%' or version > 3", ("name ilike", "version >")),
        ("not name = 'a'", ("not name =",)),
        ("payload->>'logtracing' like '%a%'", ("payload->>'logtracing' like '%a%'",)),
        ("payload@>'{}'", ("payload @>",)),
        ("version > 3 and name = 'a'", ()),
        ("version > 3 or name = 'a'", ("version >",)),
        ("created_at > '2026-01-01' and version > 3", ()),
        (f"{LABELS}->>'a' = 'b'", ()),
        (f"{LABELS}->>'a' <> 'b'", ("payload->'metadata'->'labels'->>'a' <>",)),
    ],
)
def test_expressions_without_an_index_are_named(text: str, expressions: tuple[str, ...]) -> None:
    assert search.compile_search(text, collection=search.RESOURCES).unserved == expressions
