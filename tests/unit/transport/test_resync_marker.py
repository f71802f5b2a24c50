"""When a spec resync counts as answered, behind a message broker."""

import asyncio

from maestropy.transport import resync_marker
from maestropy.wire import resync
from maestropy.wire.events import event


def request(id_: str) -> event.CloudEvent:
    return event.CloudEvent(
        id=id_, source="agent", type=event.SPEC_RESYNC_REQUEST, extensions={}, data=resync.encode_versions({})
    )


def end_of(id_: str) -> event.CloudEvent:
    return event.CloudEvent(
        id="e", source="server", type=event.SPEC_RESYNC_RESPONSE, extensions={event.RESOURCE_ID: id_}
    )


async def test_every_request_needs_an_answer_of_its_own() -> None:
    marker = resync_marker.ResyncMarker()
    marker.mark(request("first"))
    assert not await marker.is_answered(within=0)
    marker.receive(end_of("first"))
    await asyncio.sleep(0.01)
    assert await marker.is_answered(within=0)
    marker.mark(request("second"))
    assert not await marker.is_answered(within=0.01), "the answer to the first request counts for the second"
    marker.receive(end_of("another"))
    assert not await marker.is_answered(within=0.01)
    marker.receive(end_of("second"))
    assert await marker.is_answered(within=5)
