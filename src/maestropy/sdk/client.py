"""Asynchronous client of Maestro: opens the connections and gives access to works, consumers and resource bundles."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Self

import httpx

from maestropy.aio import backoff
from maestropy.sdk import history, settings
from maestropy.sdk._connection import connections
from maestropy.sdk._connection.error_mapping import Credentials
from maestropy.sdk._connection.publisher import Publisher
from maestropy.sdk._connection.rest import RestClient
from maestropy.sdk._connection.subscription_hub import SubscriptionHub
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.history import HistoryEntry, HistoryFilter
from maestropy.sdk.resource_bundles import AsyncResourceBundles
from maestropy.sdk.retry import Retrier, RetryPolicy
from maestropy.sdk.works import AsyncWorks, Connections
from maestropy.wire import positions


class AsyncMaestro:
    """An asynchronous connection to Maestro.

    >>> async with AsyncMaestro(source="my-adapter") as client:
    ...     works = client.works("us-east-mgmt-01")
    ...     await works.apply(Work("hello").add(config_map))
    ...     await works.wait_for("hello", "Applied", timeout=60)
    """

    def __init__(  # noqa: PLR0913 - one parameter per option, for editors and `help`
        self,
        *,
        api_url: str | None = None,
        grpc_url: str | None = None,
        source: str | None = None,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        api_ca_file: str | Path | None = None,
        client_cert_file: str | Path | None = None,
        client_key_file: str | Path | None = None,
        insecure_skip_verify: bool | None = None,
        timeout: float | str | None = None,
        retry: RetryPolicy | None = None,
        environ: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """An option that is None is taken from the environment (its first variable in parentheses), or has a default:

        api_url: the address of the REST API, such as `https://maestro:8000` (MAESTRO_API_URL)
        grpc_url: `host:port` of the gRPC endpoint; without it there are no writes and no watches (MAESTRO_GRPC_URL)
        source: the source ID; part of the identity of every work (MAESTRO_SOURCE_ID)
        token, token_file: a bearer token, or the file that holds it and is read for every request (MAESTRO_TOKEN_FILE)
        ca_file, api_ca_file: the CA file, and that of REST if it differs (MAESTRO_CA_FILE, MAESTRO_API_CA_FILE)
        client_cert_file, client_key_file: the client certificate (MAESTRO_CLIENT_CERT_FILE, MAESTRO_CLIENT_KEY_FILE)
        insecure_skip_verify: do not verify the REST server; for tests only (MAESTRO_REST_INSECURE_SKIP_VERIFY)
        timeout: of one request, in seconds or such as "30s" (MAESTRO_REST_TIMEOUT); 30 s
        retry: when and how often requests are repeated; `RetryPolicy()`
        environ: the variables; those of the process
        transport: what sends REST requests in place of the network, such as a server in the same process
        """
        options: settings.ClientOptions = {
            "api_url": api_url,
            "grpc_url": grpc_url,
            "source": source,
            "token": token,
            "token_file": token_file,
            "ca_file": ca_file,
            "api_ca_file": api_ca_file,
            "client_cert_file": client_cert_file,
            "client_key_file": client_key_file,
            "insecure_skip_verify": insecure_skip_verify,
            "timeout": timeout,
            "retry": retry,
        }
        self.settings = settings.load(options, os.environ if environ is None else environ)
        retrier = Retrier(policy=self.settings.retry, current_token=self.settings.current_token)
        self._grpc = connections.grpc_connection(self.settings)
        self._http = connections.rest_connection(self.settings, transport=transport)
        seen = positions.Seen()
        self._rest = RestClient(self._http, settings=self.settings, retrier=retrier, seen=seen)
        credentials = Credentials(
            uses_tls=bool(self.settings.ca_file),
            client_cert_file=str(self.settings.client_cert_file or ""),
            current_token=self.settings.current_token,
        )
        self._publisher = Publisher(
            self._grpc, retrier=retrier, timeout=self.settings.timeout, credentials=credentials, seen=seen
        )
        self._hub = SubscriptionHub(
            self._grpc,
            source=self.settings.source,
            jitter=backoff.jitter,
            address=self.settings.grpc_url,
            credentials=credentials,
        )
        self.consumers = AsyncConsumers(self._rest)
        """The registered clusters."""
        self.resource_bundles = AsyncResourceBundles(self._rest, publisher=self._publisher, settings=self.settings)
        """The resource bundles of all sources, as the REST API shows them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def works(self, consumer: str | None) -> AsyncWorks:
        """Return the works of this source on one cluster; None means on all of them, as `all_works` does."""
        return AsyncWorks(
            consumer,
            connections=Connections(
                rest=self._rest,
                publisher=self._publisher,
                hub=self._hub,
                source=self.settings.needs("source"),
                connect_timeout=self.settings.retry.deadline_seconds,
            ),
        )

    async def history(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        kinds: str | Iterable[str] = (),
        newest_first: bool = False,
        limit: int | None = None,
    ) -> AsyncGenerator[HistoryEntry, None]:
        """Yield the history of everything, for export; the token needs the role admin.

        >>> async for entry in client.history(since=yesterday):
        ...     archive(entry)
        """
        wanted = HistoryFilter(since=since, until=until, kinds=kinds, newest_first=newest_first, limit=limit)
        async with aclosing(history.read(self._rest, "/history", doing="read the history", wanted=wanted)) as found:
            async for entry in found:
                yield entry

    def all_works(self) -> AsyncWorks:
        """Return the works of this source on all clusters, to list and watch; one to apply names its consumer."""
        return self.works(None)

    async def close(self) -> None:
        """End all watches and close the connections."""
        await self._hub.close()
        await self._grpc.close()
        await self._http.close()
