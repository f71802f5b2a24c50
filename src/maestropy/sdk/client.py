"""The client: settings in, handles out, everything closed at the end."""

import os
import random
from collections.abc import Mapping
from typing import Self, Unpack

from maestropy.sdk import links, settings
from maestropy.sdk.bundles import AsyncBundles
from maestropy.sdk.consumers import AsyncConsumers
from maestropy.sdk.hub import Hub
from maestropy.sdk.publishing import Publisher
from maestropy.sdk.rest import Rest
from maestropy.sdk.retry import Retrier
from maestropy.sdk.works import AsyncWorks, Connections


class AsyncMaestro:
    """A connection to Maestro for programs that `await`.

    What is not given is taken from the environment: `MAESTRO_API_URL`, `MAESTRO_GRPC_URL`, `MAESTRO_SOURCE_ID`,
    `MAESTRO_TOKEN_FILE`, `MAESTRO_CA_FILE`, `MAESTRO_CLIENT_CERT_FILE`, `MAESTRO_CLIENT_KEY_FILE`.

    >>> async with AsyncMaestro(source="my-adapter") as client:
    ...     works = client.works("us-east-mgmt-01")
    ...     await works.apply(Work("hello").add(config_map))
    ...     await works.wait_for("hello", "Applied", timeout=60)
    """

    def __init__(self, *, environ: Mapping[str, str] | None = None, **options: Unpack[settings.Options]) -> None:
        self.settings = settings.load(options, os.environ if environ is None else environ)
        retrier = Retrier(policy=self.settings.retry, current_token=self.settings.current_token)
        self._grpc = links.grpc_link(self.settings)
        self._http = links.rest_link(self.settings)
        self._rest = Rest(self._http, settings=self.settings, retrier=retrier)
        self._publisher = Publisher(self._grpc, retrier=retrier, timeout=self.settings.timeout)
        self._hub = Hub(self._grpc, source=self.settings.source, chance=random.random)
        self.consumers = AsyncConsumers(self._rest)
        """The registered clusters."""
        self.bundles = AsyncBundles(self._rest, publisher=self._publisher, settings=self.settings)
        """The resource bundles of all sources, as the REST API shows them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def works(self, consumer: str | None) -> AsyncWorks:
        """Return the works of this source on one cluster; None means on all of them, for `list` and `watch`."""
        return AsyncWorks(
            consumer,
            connections=Connections(
                rest=self._rest,
                publisher=self._publisher,
                hub=self._hub,
                source=self.settings.needs("source"),
                patience=self.settings.retry.deadline_seconds,
            ),
        )

    def all_works(self) -> AsyncWorks:
        """Return the works of this source on all clusters, for `list` and `watch`."""
        return self.works(None)

    async def close(self) -> None:
        """End all watches and close the connections."""
        await self._hub.close()
        await self._grpc.close()
        await self._http.close()
