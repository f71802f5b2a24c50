"""Publish spec requests exactly once: with retries after conflicts and after lost responses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TypeVar

from maestropy.aio import backoff, clock
from maestropy.sdk._connection import error_mapping
from maestropy.sdk._connection.publisher import PublishAttempts, Publisher
from maestropy.sdk.errors import AlreadyExists, Conflict, MaestroError, NotFound
from maestropy.sdk.work import Work
from maestropy.wire import codec, timestamps
from maestropy.wire.events import event
from maestropy.wire.works import work as wire

Result = TypeVar("Result")

_MAX_ATTEMPTS = 10
_log = logging.getLogger(__name__)


class WorkWriter:
    """Publishes the spec requests of one source; `read` returns a stored work."""

    def __init__(self, publisher: Publisher, *, source: str, read: Callable[[str], Awaitable[Work]]) -> None:
        self._publisher = publisher
        self._source = source
        self._read = read

    async def write(self, desired: Work, action: event.EventAction, *, request: error_mapping.Operation) -> None:
        """Publish a spec request; it is stored when this returns."""
        marked = desired.with_annotations({event.OPERATION_ID_KEY: request.operation_id}).manifest_work
        moment = timestamps.from_datetime(clock.Clock().now())
        attributes = codec.ContextAttributes(id=clock.new_id(), source=self._source, time=moment)
        attempts = PublishAttempts()
        try:
            spec_event = codec.spec_event(
                wire.ManifestWork({**marked.body, "status": {}}), action=action, attributes=attributes
            )
            await self._publisher.publish(spec_event, request=request, attempts=attempts)
        except (AlreadyExists, Conflict) as error:
            # An attempt whose response was lost may have been stored; then the rejection refers to our own write.
            if attempts.count == 1 or not await self._was_stored_by(desired.name, request.operation_id):
                raise
            _log.info("%s was stored by an earlier attempt: %s", request.doing, error)

    async def update(
        self, stored: Work, desired: Work, *, version: int | None, request: error_mapping.Operation
    ) -> Work:
        """Replace `stored` with `desired`, if its version is still the newest; `version` is the expected one."""
        base_version = stored.version if version is None else version
        if version is not None and version != stored.version:
            raise Conflict(
                f"version {version} is not the latest, the latest version: {stored.version}",
                doing=request.doing,
                operation_id=request.operation_id,
            )
        changed = at_version(desired, base_version).with_annotations({wire.VERSION_ANNOTATION: None})
        await self.write(changed, event.EventAction.UPDATE_REQUEST, request=request)
        return at_version(changed, base_version + 1)

    async def _was_stored_by(self, name: str, operation_id: str) -> bool:
        try:
            stored = await self._read(name)
        except NotFound:
            return False
        return stored.annotations.get(event.OPERATION_ID_KEY) == operation_id


async def retry_on_conflict(attempt: Callable[[], Awaitable[Result]], *, version: int | None) -> Result:
    """Read and write again after a conflict; not if the caller expects one `version`."""
    pauses = backoff.delays(base=0.01, factor=2, cap=1.0)
    for pause in islice(pauses, _MAX_ATTEMPTS - 1):
        try:
            return await attempt()
        except (Conflict, AlreadyExists) as error:
            if version is not None or _is_final(error):
                raise
        await asyncio.sleep(pause)
    return await attempt()


def at_version(work: Work, version: int) -> Work:
    """Return the work with another version."""
    return Work.wrap(work.manifest_work.with_metadata(generation=version, resourceVersion=str(version)))


def _is_final(error: MaestroError) -> bool:
    """Return whether a retry cannot help: a work that is being deleted stays so."""
    return "under deletion" in error.reason
