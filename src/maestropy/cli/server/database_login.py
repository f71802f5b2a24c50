"""Give the address of a database what `--db-auth-method` needs to log in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from maestropy import installation
from maestropy.cli.errors import UsageError
from maestropy.server.settings import DatabaseSettings
from maestropy.store.dsn import Dsn
from maestropy.store.errors import DatabaseUnavailable


@asynccontextmanager
async def with_login(dsn: Dsn, settings: DatabaseSettings) -> AsyncIterator[Dsn]:
    """Yield the address with its means to log in: with az-entra a token for every new connection."""
    if settings.auth_method == "password":
        yield dsn
        return
    try:
        from maestropy.store.postgres.entra_tokens import EntraTokens
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--db-auth-method=az-entra needs {error.name}, which is not installed; {installation.hint('azure')}"
        ) from error
    try:
        entra = EntraTokens(settings.token_request_scope)
    except DatabaseUnavailable as error:  # by an environment variable: trying again would not help
        raise UsageError(str(error)) from error
    async with entra as tokens:
        yield replace(dsn, password=None, password_source=tokens.password)
