"""Tokens of Microsoft Entra are shared by connections, renewed before they expire, and their absence is explained."""

import asyncio

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from maestropy.aio.clock import Clock
from maestropy.cli.errors import UsageError
from maestropy.cli.server.database_login import with_login
from maestropy.server.settings import DatabaseSettings
from maestropy.store import errors
from maestropy.store.dsn import Dsn
from maestropy.store.postgres import remedies
from maestropy.store.postgres.entra_tokens import EntraTokens

SCOPE = "https://ossrdbms-aad.database.windows.net/.default"


class Credential:
    """Issues tokens that are valid for an hour."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.issued = 0
        self.problem: Exception | None = None
        self.scopes: set[str] = set()
        self.is_closed = False

    async def get_token(self, *scopes: str) -> AccessToken:
        await asyncio.sleep(0)
        self.scopes.update(scopes)
        if self.problem:
            raise self.problem
        self.issued += 1
        return AccessToken(f"token-{self.issued}", int(self.now + 3600))

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def credential() -> Credential:
    return Credential()


@pytest.fixture
def tokens(credential: Credential) -> EntraTokens:
    return EntraTokens(SCOPE, credential=credential, clock=Clock(epoch=lambda: credential.now))


async def test_connections_share_a_token(tokens: EntraTokens, credential: Credential) -> None:
    async with tokens:
        assert set(await asyncio.gather(*(tokens.password() for _ in range(20)))) == {"token-1"}
        credential.now += 3600 - 301
        assert await tokens.password() == "token-1"
        assert credential.scopes == {SCOPE}
    assert credential.is_closed


async def test_token_is_renewed_before_it_expires(tokens: EntraTokens, credential: Credential) -> None:
    await tokens.password()
    credential.now += 3600 - 299
    assert await tokens.password() == "token-2"
    assert await tokens.password() == "token-2"


async def test_failed_renewal_leaves_the_token_in_use_while_it_is_valid(
    tokens: EntraTokens, credential: Credential
) -> None:
    await tokens.password()
    credential.now += 3600 - 299
    credential.problem = ClientAuthenticationError("AADSTS90033: a transient error")
    assert await tokens.password() == "token-1"
    credential.problem = None
    # Not before half a minute has passed: every new connection would wait for the attempt.
    assert await tokens.password() == "token-1"
    credential.now += 31
    assert await tokens.password() == "token-2"


async def test_expired_token_is_not_used(tokens: EntraTokens, credential: Credential) -> None:
    await tokens.password()
    credential.now += 3600 - 20
    credential.problem = ClientAuthenticationError("AADSTS700016: application not found\nTrace ID: 1")
    with pytest.raises(errors.DatabaseUnavailable, match=r"no token for the database: AADSTS700016.*AZURE_CLIENT_ID"):
        await tokens.password()
    credential.problem = None
    assert await tokens.password() == "token-2"


@pytest.mark.parametrize("problem", [OSError("no such file"), ValueError("no tenant")])
async def test_other_failures_are_explained_too(
    tokens: EntraTokens, credential: Credential, problem: Exception
) -> None:
    credential.problem = problem
    with pytest.raises(errors.DatabaseUnavailable, match=str(problem)):
        await tokens.password()


async def test_authority_without_tls_is_a_mistake_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://login.example")
    settings = DatabaseSettings(auth_method="az-entra")
    with pytest.raises(
        UsageError,
        match=r"Entra gave no token for the database: AZURE_AUTHORITY_HOST: 'http://login.example' is an inv",
    ):
        async with with_login(Dsn(host="h", user="u", database="d"), settings):
            pass


@pytest.mark.parametrize("sentences", [60, 1])
async def test_long_reason_ends_with_a_sentence(tokens: EntraTokens, credential: Credential, *, sentences: int) -> None:
    """One sentence may be longer than the limit; it is kept, with its address."""
    sentence = f"See https://aka.ms/azsdk/{'x' * (1200 // sentences)}/troubleshoot for more. "
    credential.problem = ClientAuthenticationError(sentence * sentences)
    with pytest.raises(errors.NoLoginToken, match=r"/troubleshoot for more\.; check the identity of the pod") as raised:
        await tokens.password()
    assert len(str(raised.value)) < 1600


def test_missing_token_is_no_matter_of_the_connection_flags() -> None:
    address = Dsn(host="db", user="maestro", database="maestro")
    error = errors.NoLoginToken("Microsoft Entra gave no token for the database: no identity; check it")
    assert remedies.explain(address, error, failed="cannot be used").endswith("no identity; check it")
    refused = errors.translate(ConnectionRefusedError(111, "Connection refused"))
    assert "check the --db flags" in remedies.explain(address, refused, failed="cannot be used")
