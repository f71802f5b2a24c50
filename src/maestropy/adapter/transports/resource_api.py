"""Read resources and report statuses: through the HyperFleet API, if one is configured."""

import logging
from dataclasses import dataclass
from typing import Any

from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import CallApi
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource, from_event
from maestropy.adapter.transports.hyperfleet_api import API_VARIABLES, HyperFleetClient, StatusDiscarded
from maestropy.sdk.errors import ConfigError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredResourceApi:
    """Reads a resource from a file, from the HyperFleet API, or from the event."""

    api: HyperFleetClient | None = None
    resource: Resource | None = None
    """The resource, for a Job that gets it as a file."""

    async def fetch(self, event: Event) -> Resource | None:
        """Return the configured resource, the API's, or the event's, if the event carries the spec."""
        if self.resource is not None:
            return self.resource
        if self.api is not None:
            return await self.api.fetch(event)
        if "spec" not in event.data:
            # A missing spec must not be read as an empty one: an adapter would apply its defaults to the cluster.
            raise ConfigError(
                "the spec of the resource is unknown: the event carries none",
                doing=f"read {event.kind} {event.resource_id}",
                advice=f"set {API_VARIABLES[0]}, or give --resource",
            )
        return from_event(event)

    async def put_status(self, event: Event, resource: Resource, status: AdapterStatus) -> None:
        """Log the status, and report it to the API, if one is configured."""
        decisive = status.decisive
        _log.info(
            "%s %s generation %d: %s=%s %s: %s",
            *(
                resource.kind,
                resource.id,
                status.generation,
                decisive.type,
                decisive.status,
                decisive.reason,
                decisive.message,
            ),
        )
        if self.api is None:
            return
        receipt = await self.api.put_status(event, status)
        if isinstance(receipt, StatusDiscarded):
            _log.warning("the API discarded the status of %s %s: %s", resource.kind, resource.id, receipt.reason)

    async def call(self, effect: CallApi) -> Any:
        """Make a request that a task asks for; without an API there is nobody to ask."""
        if self.api is None:
            raise ConfigError(
                "no HyperFleet API is configured",
                doing=f"{effect.method} {effect.url}",
                advice=f"set {API_VARIABLES[0]}",
            )
        return await self.api.call(effect)
