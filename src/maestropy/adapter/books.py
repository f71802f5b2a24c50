"""Where resources are read and reports go: the HyperFleet API, if there is one."""

import logging
from dataclasses import dataclass

from maestropy.adapter.event import Event
from maestropy.adapter.hyperfleet import API_VARIABLES, Discarded, HyperFleet
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource, known_from
from maestropy.sdk.errors import ConfigError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """A catalogue of what is there."""

    api: HyperFleet | None = None
    given: Resource | None = None
    """The resource itself, for a Job that is told everything."""

    async def fetch(self, event: Event) -> Resource | None:
        """Return the resource: the given one, the API's, or the event's, if the event carries the spec."""
        if self.given is not None:
            return self.given
        if self.api is not None:
            return await self.api.fetch(event)
        if "spec" not in event.data:
            # A missing spec must not be read as an empty one: adapters have defaults, and clusters would follow them.
            raise ConfigError(
                "nobody says what the resource is: the event carries no spec",
                doing=f"read {event.kind} {event.resource_id}",
                advice=f"set {API_VARIABLES[0]}, or give --resource",
            )
        return known_from(event)

    async def tell(self, event: Event, resource: Resource, report: Report) -> None:
        """Hand the report to the API, if there is one, and to the log."""
        told = report.decisive
        _log.info(
            "%s %s generation %d: %s=%s %s: %s",
            *(resource.kind, resource.id, report.generation, told.type, told.status, told.reason, told.message),
        )
        if self.api is None:
            return
        reception = await self.api.put_status(event, report)
        if isinstance(reception, Discarded):
            _log.warning("the API discarded the status of %s %s: %s", resource.kind, resource.id, reception.why)
