import asyncio
import json

from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.event import Event
from maestropy.adapter.service import AdapterService, Delivery, EventDone, EventRetry, Settlement


async def test_events_of_one_resource_are_handled_one_at_a_time() -> None:
    active: list[str] = []
    concurrent: list[set[str]] = []
    settled: list[Settlement] = []

    queue: asyncio.Queue[Delivery] = asyncio.Queue()
    all_done = asyncio.Event()

    async def settle(settlement: Settlement) -> None:
        settled.append(settlement)
        if len(settled) == 4:
            all_done.set()

    for name in ("a", "a", "b", "fails"):
        body = json.dumps({"id": name, "kind": "Cluster", "generation": 1}).encode()
        queue.put_nowait(Delivery(body=body, settle=settle))

    class QueueInbox:
        async def next(self) -> Delivery:
            return await queue.get()

    async def handle(event: Event) -> EventOutcome:
        assert event.resource_id not in active
        active.append(event.resource_id)
        concurrent.append(set(active))
        await asyncio.sleep(0)
        active.remove(event.resource_id)
        if event.resource_id == "fails":
            raise RuntimeError("unexpected")
        return EventOutcome(status=None)

    service = AdapterService(QueueInbox(), handle, workers=4)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(service.run())
        await all_done.wait()
        running.cancel()
    assert service._locks == {}
    assert {"a", "b"} <= set().union(*concurrent)
    assert any(len(resources) > 1 for resources in concurrent)
    assert [settlement for settlement in settled if settlement == EventDone()] == [EventDone()] * 3
    [retry] = [settlement for settlement in settled if isinstance(settlement, EventRetry)]
    assert "RuntimeError" in retry.reason
