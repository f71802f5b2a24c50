"""Agents are asked for statuses whose order is not known."""

from collections.abc import Collection

import pytest

from maestropy.aio.tasks import TaskOwner
from maestropy.server.brokers import port
from maestropy.server.controllers.status.status_recheck import StatusRecheck
from maestropy.wire import resync
from maestropy.wire.events import event
from tests import waiting
from tests.unit.server.controllers.agents.test_resync import started
from tests.unit.server.controllers.scripted_broker import CONNECTED_AGENTS, MESSAGE_BROKER, Database, ScriptedBroker


async def test_questions_to_one_consumer_are_gathered_and_repeated_after_a_failure() -> None:
    asked: list[tuple[str, Collection[str]]] = []

    async def request(consumer: str, ids: Collection[str]) -> None:
        asked.append((consumer, sorted(ids)))
        if len(asked) == 1:
            raise port.NotDelivered("offline")

    recheck, task_owner = StatusRecheck(Database().context, request=request), TaskOwner()
    task_owner.start("recheck", recheck.run())
    for resource_id in ("a", "b", "a"):
        recheck.add("c1", resource_id)
    await waiting.until(lambda: len(asked) == 2, what="a second attempt")
    assert asked == [("c1", ["a", "b"])] * 2
    recheck.add("c2", "d")
    await waiting.until(lambda: len(asked) == 3, what="the other consumer")
    assert asked[2] == ("c2", ["d"])
    await task_owner.stop()


@pytest.mark.parametrize("capabilities", [CONNECTED_AGENTS, MESSAGE_BROKER], ids=["connected-agents", "message-broker"])
async def test_the_question_names_these_resources_of_the_consumer_only(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1", "w2")
    async with started(database, broker) as controller:
        await controller.request_statuses_of("c", ["w1", "unknown"])
        await controller.request_statuses_of("c", ["unknown"])
    (question,) = broker.sent
    assert question.type == event.STATUS_RESYNC_REQUEST
    assert resync.decode_hashes(question.data) == {"w1": ""}, "an empty question would ask for every status"
