"""Say what an operator has to do when a database cannot be used at start. Pure."""

import re
from typing import Final

import asyncpg

from maestropy.store import dsn as dsns
from maestropy.store import errors

_ABOUT_THE_CONNECTION: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
"""Errors of PostgreSQL that another address, user or password would avoid."""
_CONNECTION: Final = "; check the --db flags, its user and password, and that PostgreSQL accepts connections there"
_WITHOUT_TLS: Final = "rejected SSL upgrade"
_NEEDS_TLS: Final = re.compile(r"no pg_hba\.conf entry .*(?:no encryption|SSL off)")
"""PostgreSQL before version 14 says `SSL off`."""
_SCHEMA: Final = re.compile(r"permission denied for schema (\S+)")
_DATABASE: Final = re.compile(r"permission denied for database (\S+)")
_TABLE: Final = re.compile(r"(?:permission denied for|must be owner of) \w+ (\S+)")


def explain(address: dsns.Dsn, error: errors.StoreError, *, failed: str) -> str:
    """Return the whole message: the address, what `failed` ("cannot be used"), the reason and the remedy."""
    if isinstance(error, errors.DatabaseReadOnly):
        return (
            f"the database {address} is read-only: {error}; give the address of the primary, or of all hosts "
            "(host1,host2), or make the database writable"
        )
    return f"the database {address} {failed}: {error}{_remedy(address, error)}"


def _remedy(address: dsns.Dsn, error: errors.StoreError) -> str:
    if isinstance(error, errors.PermissionMissing):
        return f"; {_grant(str(error), role=address.user)}"
    if not _is_about_the_connection(error):
        return ""
    if _WITHOUT_TLS in str(error):
        return (
            f"; PostgreSQL there has no TLS, and sslmode={address.sslmode} needs it: switch it on there (ssl = on), or "
            "connect without encryption (sslmode=disable in --db-dsn, --db-sslmode=disable with the --db-*-file flags)"
        )
    if address.sslmode == "disable" and _NEEDS_TLS.search(str(error)):
        return (
            "; PostgreSQL there may accept only TLS: use sslmode=require in --db-dsn, or --db-sslmode=require with the "
            "--db-*-file flags; otherwise add the entry"
        )
    return _CONNECTION


def _is_about_the_connection(error: errors.StoreError) -> bool:
    """Return whether flags may be wrong; the other errors name their remedy, or what PostgreSQL lacks."""
    # A lock is no matter of flags, nor is a token that was not issued.
    if not isinstance(error, errors.DatabaseUnavailable) or isinstance(error, errors.RowLocked | errors.NoLoginToken):
        return False
    cause = error.__cause__
    return not isinstance(cause, asyncpg.PostgresError) or isinstance(cause, _ABOUT_THE_CONNECTION)


def _grant(reason: str, *, role: str) -> str:
    quoted = f'"{role}"'
    if database := _DATABASE.search(reason):
        return f"as the owner of the database: GRANT CONNECT ON DATABASE {database[1]} TO {quoted}"
    if schema := _SCHEMA.search(reason):
        return f"as the owner of the database: GRANT USAGE, CREATE ON SCHEMA {schema[1]} TO {quoted}"
    if table := _TABLE.search(reason):
        return (
            f"the role {role} must own Maestro's tables: use the role that has created them, or, as a superuser, "
            f"ALTER TABLE {table[1]} OWNER TO {quoted}, and the same for the other tables"
        )
    return (
        f"the role {role} needs a schema in which it may create tables: GRANT USAGE, CREATE ON SCHEMA public TO "
        f"{quoted}, and check its search_path"
    )
