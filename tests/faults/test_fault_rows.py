"""Rows and messages that were damaged: each is reported and set aside, and none keeps its neighbours waiting.

Rows are damaged as a failing disk, another program or an operator's mistake would do it: bytes flipped, ends cut off,
values of another kind. In every test damaged and sound bundles travel in the same batches.
"""

import asyncio

from maestropy.store.dsn import Dsn
from maestropy.wire.events import event
from tests import waiting
from tests.stack import harness
from tests.stack.clients import agent, bundle_data, source

# No rendition: the row is read as a Go server would have left it.
PAYLOADS = {
    "number": "UPDATE resources SET payload = '5' WHERE id = $1",
    "text": """UPDATE resources SET payload = '"text"' WHERE id = $1""",
    "true": "UPDATE resources SET payload = 'true' WHERE id = $1",
    "json-null": "UPDATE resources SET payload = 'null' WHERE id = $1",
    "list": "UPDATE resources SET payload = '[1]' WHERE id = $1",
    "sql-null": "UPDATE resources SET payload = NULL WHERE id = $1",
    "no-time": """UPDATE resources SET payload = payload || '{"time": "soon"}' WHERE id = $1""",
    "metadata-number": """UPDATE resources SET payload = payload || '{"metadata": 5}' WHERE id = $1""",
}
RENDITIONS = {
    "envelope-flipped": "UPDATE renditions SET envelope = set_byte(envelope, 0, 90) WHERE id = $1",
    "envelope-cut": "UPDATE renditions SET envelope = substring(envelope FROM 1 FOR 20) WHERE id = $1",
    "envelope-empty": "UPDATE renditions SET envelope = '' WHERE id = $1",
    "metadata-cut": "UPDATE renditions SET metadata = substring(metadata FROM 1 FOR 9) WHERE id = $1",
    "metadata-flipped": "UPDATE renditions SET metadata = set_byte(metadata, 2, 255) WHERE id = $1",
    # What a bundle contains is its agent's to read, and to report.
    "data-cut": "UPDATE renditions SET data = substring(data FROM 1 FOR 9) WHERE id = $1",
    "data-flipped": "UPDATE renditions SET data = set_byte(data, 3, 255) WHERE id = $1",
}
STATUSES = {
    "status-number": "UPDATE resources SET status = '5' WHERE id = $1",
    "status-list": "UPDATE resources SET status = '[1]' WHERE id = $1",
    "status-strange": """UPDATE resources SET status = '{"no": "event"}' WHERE id = $1""",
    "sequence-text": """UPDATE resources SET status = '{"sequenceid": "soon", "specversion": "1.0"}' WHERE id = $1""",
    "sequence-huge": """UPDATE resources SET status = '{"sequenceid": "99999999999999999999"}' WHERE id = $1""",
    "sequence-list": """UPDATE resources SET status = '{"sequenceid": ["1"]}' WHERE id = $1""",
    "version-text": """UPDATE resources SET status = status || '{"resourceversion": "x"}' WHERE id = $1""",
}
DAMAGES = PAYLOADS | RENDITIONS | STATUSES
SOUND = [f"sound{number}" for number in range(20)]
WAKE = "SELECT count(pg_notify('events', id)) FROM events"
PENDING = "UPDATE events SET reconciled_date = NULL"


async def damage(server: harness.InProcess) -> None:
    """Damage every bundle in the way its name says, and let all events be due again."""
    for name, statement in DAMAGES.items():
        await server.sql(statement, name)
        if name in PAYLOADS:
            await server.sql("DELETE FROM renditions WHERE id = $1", name)
    await server.sql(PENDING)
    await server.sql(WAKE)


async def test_damaged_row_is_logged_and_does_not_delay_others(database: Dsn) -> None:
    async with (
        harness.in_process(database, sweep_interval="200ms", event_retention="1h") as server,
        source(server.sources) as a,
        agent(server.agents, "cluster1") as one,
    ):
        await server.add_consumer("cluster1")
        everything = [*DAMAGES, *SOUND]
        await asyncio.gather(*(a.create(name, "cluster1") for name in everything))
        await asyncio.gather(*(one.tell(name, 1, hash="") for name in everything))
        await damage(server)

        # Deliveries: by wake-up, and by the resync of an agent that has nothing.
        async with one.subscribe() as got:
            for name in SOUND:
                await got.spec_of(name)
            await waiting.until(server.has_nothing_pending, what="an end of the queue")
            await one.resync({})
            for name in SOUND:
                await got.take(lambda e: is_resync_of(e, name))

            # Reports, statuses to subscribers, and their resync.
            async with a.subscribe() as told:
                await asyncio.gather(*(one.answer(one.report(name, 1)) for name in everything))
                for name in SOUND:
                    await told.spec_of(name)
            async with a.subscribe() as told:
                await a.resync({})
                for name in SOUND:
                    await told.spec_of(name)

            # Its source can mend a damaged bundle, and so can a deletion.
            answers = await asyncio.gather(
                *(a.answer(a.spec(event.SPEC_UPDATE, name, "cluster1", data=bundle_data("new"))) for name in everything)
            )
            assert dict(zip(everything, answers, strict=True)) == dict.fromkeys(everything, "")
            for name in everything:
                await got.spec_of(name, version=2)
        reported = {line.get("resourceID") for line in server.lines("") if line.get("level") == "error"}
        print(sorted(map(str, reported)))
        missing = (PAYLOADS.keys() | RENDITIONS.keys()) - reported - {"data-cut", "data-flipped"}
        assert not missing, f"not reported: {missing}"


def is_resync_of(received: event.CloudEvent, name: str) -> bool:
    return received.type == event.SPEC_RESYNC_RESPONSE and received.text(event.RESOURCE_ID) == name
