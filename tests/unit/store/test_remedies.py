"""An operator learns which setting keeps the server from its database."""

import asyncio

import asyncpg
import pytest

from maestropy.store import errors
from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.store.postgres import remedies


async def without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the request for TLS as a PostgreSQL without TLS does."""
    await reader.readexactly(8)
    writer.write(b"N")
    await reader.read()
    writer.close()


@pytest.mark.parametrize("sslmode", ["require", "verify-full"])
async def test_sslmode_is_named_where_postgresql_has_no_tls(sslmode: str) -> None:
    async with asyncio.timeout(20), await asyncio.start_server(without_tls, "127.0.0.1", 0) as server:
        address = Dsn.parse(f"postgresql://u@127.0.0.1:{server.sockets[0].getsockname()[1]}/d?sslmode={sslmode}")
        with pytest.raises(errors.DatabaseUnavailable) as raised:
            await migrate.migrate(address)
    message = remedies.explain(address, raised.value, failed="cannot be migrated")
    assert f"PostgreSQL there has no TLS, and sslmode={sslmode} needs it" in message
    assert "--db-sslmode=disable" in message


@pytest.mark.parametrize(
    ("sslmode", "refusal", "is_named"),
    [
        pytest.param("disable", 'user "u", database "d", no encryption', True, id="without-encryption"),
        pytest.param("disable", 'user "u", database "d", SSL off', True, id="earlier-postgresql"),
        pytest.param("require", 'user "u", database "d", SSL encryption', False, id="encrypted"),
    ],
)
def test_sslmode_is_named_where_postgresql_accepts_only_tls(sslmode: str, refusal: str, *, is_named: bool) -> None:
    address = Dsn(host="db", user="u", database="d", sslmode=sslmode)
    refused = asyncpg.InvalidAuthorizationSpecificationError(f'no pg_hba.conf entry for host "10.0.0.7", {refusal}')
    error = errors.translate(refused)
    error.__cause__ = refused
    message = remedies.explain(address, error, failed="cannot be used")
    assert ("--db-sslmode=require" in message) is is_named
    assert ("check the --db flags" in message) is not is_named
