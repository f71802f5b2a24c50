"""Positions and `--db-read-dsn` where there is no standby: what clients get, and what is refused.

`tests/peers/postgres/test_read_replica.py` has real standbys.
"""

from dataclasses import replace

import httpx
import pytest

from maestropy import AsyncMaestro, Work
from maestropy.journal.phrases import DatabasePhrase
from maestropy.server.runtime.database import DatabaseUnusable
from maestropy.store.dsn import Dsn
from maestropy.wire import positions
from tests.stack import harness

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


async def test_primary_answers_when_the_address_leads_to_no_standby(database: Dsn) -> None:
    async with harness.in_process(database, db_read_dsn=str(database)) as server, server.http() as http:
        created = await http.post("/consumers", json={"name": "cluster1"})
        position = positions.Position.parse(created.headers[positions.HEADER])
        for headers in ({}, {positions.HEADER: str(position)}):
            listed = await http.get("/consumers", headers=headers)
            assert [item["name"] for item in listed.json()["items"]] == ["cluster1"]
            assert positions.HEADER not in listed.headers
        for text, reason in (
            ("0/1", "Maestro-Position is not a position of this server"),
            (str(replace(position, lsn=2**63)), "Maestro-Position lies ahead of the database"),
        ):
            for path in ("/consumers", "/resource-bundles"):
                answer = await http.get(path, headers={positions.HEADER: text})
                assert answer.status_code == 400
                assert reason in answer.json()["reason"]
        async with httpx.AsyncClient(verify=False) as client:
            probe = await client.get(f"{server.health}/healthcheck")
        assert probe.status_code == 200
        assert probe.json()["reason"].endswith("it is no standby: it was promoted, or is the primary itself")
        assert len(server.lines(DatabasePhrase.REPLICA_UNUSED)) == 1
        text = server.context.metrics.render("")[0].decode()
        assert 'maestropy_list_reads_total{database="primary",reason="not-a-standby"} 2' in text
        assert "maestropy_read_replica_in_use 0" in text


async def test_position_comes_with_every_write_and_grows(database: Dsn) -> None:
    async with (
        harness.in_process(database, db_read_dsn=str(database)) as server,
        AsyncMaestro(api_url=server.rest, grpc_url=server.sources, source="s1", environ={}) as client,
    ):
        seen = []
        consumer = await client.consumers.create("cluster1")
        seen.append(str(client._rest._seen))
        await client.consumers.update(consumer.id, labels={"a": "b"})
        seen.append(str(client._rest._seen))
        await client.works("cluster1").create(Work("w").add(MANIFEST))
        seen.append(str(client._rest._seen))
        await client.works("cluster1").delete("w")
        seen.append(str(client._rest._seen))
        assert all(seen)
        assert seen == sorted(set(seen))


async def test_server_without_a_replica_sends_no_positions(database: Dsn) -> None:
    async with harness.in_process(database) as server, server.http() as http:
        assert positions.HEADER not in (await http.post("/consumers", json={"name": "cluster1"})).headers
        # A client may come from a server that has one.
        position = positions.Position(system=1, timeline=1, lsn=1)
        assert (await http.get("/consumers", headers={positions.HEADER: str(position)})).status_code == 200


async def test_other_database_is_refused(postgres: harness.Postgres, database: Dsn) -> None:
    other = replace(database, database="postgres")
    with pytest.raises(DatabaseUnusable, match=r"is no replica of .*: it has another Maestro database \(identity none"):
        async with harness.in_process(database, db_read_dsn=str(other)):
            pass
