"""Get tokens of Microsoft Entra, with which a user logs in to Azure's PostgreSQL instead of a password.

The credential is found as in every Azure SDK (`DefaultAzureCredential`): in a pod with workload identity by
AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE. A token is needed for new connections only; PostgreSQL
does not end a connection when its token expires.
"""

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Protocol, Self

from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError
from azure.identity.aio import DefaultAzureCredential

from maestropy.aio import clock as clocks
from maestropy.store import errors

REFRESH_SECONDS = 300.0
"""A token is renewed so long before it expires: Azure's clock and ours may differ, and a renewal may fail."""
USABLE_SECONDS = 30.0
"""A token with less time left is not used any more."""
RETRY_SECONDS = 30.0
"""Time between two attempts to renew a token that can still be used."""
MAX_REASON = 1000
"""The library lists every credential that it tried; a longer reason ends with the last sentence that fits."""
TIMEOUT_SECONDS = 8.0
"""Shorter than the time limit of a connection, so that the error names its cause."""

# The library explains failures in warnings of many lines; the error that we raise has the reason.
logging.getLogger("azure").addHandler(logging.NullHandler())


class Credential(Protocol):
    """What this module needs of a credential of azure-identity."""

    async def get_token(self, *scopes: str) -> AccessToken: ...

    async def close(self) -> None: ...


class EntraTokens:
    """The newest token of one scope, shared by all connections."""

    def __init__(self, scope: str, *, credential: Credential | None = None, clock: clocks.Clock | None = None) -> None:
        self._scope = scope
        self._credential = credential or _default_credential()
        self._clock = clock or clocks.Clock()
        self._token: AccessToken | None = None
        self._next_attempt = 0.0
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(AzureError, OSError):
            await self._credential.close()

    async def password(self) -> str:
        """Return a token that is valid for a while; raises `NoLoginToken` if there is none."""
        async with self._lock:
            remaining = self._remaining()
            if remaining < USABLE_SECONDS:
                self._token = await self._request()
            elif remaining < REFRESH_SECONDS and self._clock.epoch() >= self._next_attempt:
                self._next_attempt = self._clock.epoch() + RETRY_SECONDS
                with contextlib.suppress(errors.DatabaseUnavailable):
                    self._token = await self._request()
            assert self._token is not None
            return self._token.token

    def _remaining(self) -> float:
        return self._token.expires_on - self._clock.epoch() if self._token else 0.0

    async def _request(self) -> AccessToken:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._credential.get_token(self._scope)
        except AzureError as error:
            raise errors.NoLoginToken(_problem(error.message)) from error
        except TimeoutError as error:
            raise errors.NoLoginToken(_problem(f"no answer within {TIMEOUT_SECONDS:g} s")) from error
        except (OSError, ValueError) as error:
            raise errors.NoLoginToken(_problem(str(error))) from error


def _shortened(reason: str) -> str:
    """Return at most the sentences that fit: half a word or half an address would mislead."""
    if len(reason) <= MAX_REASON:
        return reason
    end = reason.rfind(". ", 0, MAX_REASON)
    return reason[: end + 1] if end > 0 else reason


def _default_credential() -> Credential:
    try:
        return DefaultAzureCredential()
    except ValueError as error:
        raise errors.DatabaseUnavailable(_problem(f"AZURE_AUTHORITY_HOST: {error}")) from error


def _problem(reason: str) -> str:
    return (
        f"Microsoft Entra gave no token for the database: {_shortened(' '.join(reason.split()))}; check the identity "
        "of the pod (AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE) and --db-token-request-scope"
    )
