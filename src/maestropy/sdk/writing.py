"""Send a wish so that it counts once: among writers who are faster, and over connections that lose answers."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TypeVar

from maestropy.aio import backoff, clock
from maestropy.sdk import failures
from maestropy.sdk.errors import AlreadyExists, Conflict, MaestroError, NotFound
from maestropy.sdk.publishing import Publisher, Sent
from maestropy.sdk.work import Work
from maestropy.wire import codec, event, instant
from maestropy.wire import work as wire

Result = TypeVar("Result")

_TRIES_AMONG_OTHERS = 10
_log = logging.getLogger(__name__)


class Writer:
    """Writes the works of one source; `read` returns one as it is stored."""

    def __init__(self, publisher: Publisher, *, source: str, read: Callable[[str], Awaitable[Work]]) -> None:
        self._publisher = publisher
        self._source = source
        self._read = read

    async def write(self, wanted: Work, action: event.Action, *, request: failures.Request) -> None:
        """Send a wish; it is stored when this returns."""
        marked = wanted.with_annotations({event.OPERATION_ID_KEY: request.operation_id}).manifest_work
        moment = instant.from_datetime(clock.Clock().now())
        stamp = codec.Stamp(id=clock.new_id(), source=self._source, time=moment)
        sent = Sent()
        try:
            wish = codec.spec_event(wire.ManifestWork({**marked.body, "status": {}}), action=action, stamp=stamp)
            await self._publisher.publish(wish, request=request, sent=sent)
        except (AlreadyExists, Conflict) as error:
            # A try whose answer got lost may have been carried out; the refusal is then our own echo.
            if sent.tries == 1 or not await self._is_ours(wanted.name, request.operation_id):
                raise
            _log.info("%s had been carried out by an earlier try: %s", request.doing, error)

    async def update(self, stored: Work, wanted: Work, *, version: int | None, request: failures.Request) -> Work:
        """Put `wanted` in the place of `stored`, if that is still the newest; `version` is what the caller knows."""
        based_on = stored.version if version is None else version
        if version is not None and version != stored.version:
            raise Conflict(
                f"version {version} is not the latest, the latest version: {stored.version}",
                doing=request.doing,
                operation_id=request.operation_id,
            )
        changed = at_version(wanted, based_on).with_annotations({wire.VERSION_ANNOTATION: None})
        await self.write(changed, event.Action.UPDATE_REQUEST, request=request)
        return at_version(changed, based_on + 1)

    async def _is_ours(self, name: str, operation_id: str) -> bool:
        try:
            stored = await self._read(name)
        except NotFound:
            return False
        return stored.annotations.get(event.OPERATION_ID_KEY) == operation_id


async def while_others_are_faster(once: Callable[[], Awaitable[Result]], *, version: int | None) -> Result:
    """Read and write again when somebody else wrote in between; not if the caller means one `version`."""
    pauses = backoff.delays(base=0.01, factor=2, cap=1.0, jitter=random.random)
    for pause in islice(pauses, _TRIES_AMONG_OTHERS - 1):
        try:
            return await once()
        except (Conflict, AlreadyExists) as error:
            if version is not None or _is_final(error):
                raise
        await asyncio.sleep(pause)
    return await once()


def at_version(work: Work, version: int) -> Work:
    """Return the work with another version."""
    return Work.wrap(work.manifest_work.with_metadata(generation=version, resourceVersion=str(version)))


def _is_final(error: MaestroError) -> bool:
    """Say whether reading again cannot help: a work that is going away stays so."""
    return "under deletion" in error.reason
