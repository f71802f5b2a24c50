"""One dispatcher for every broker: which pending events are sent, and which stay pending."""

from datetime import timedelta

import pytest

from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.server.controllers.spec import spec_dispatcher
from maestropy.server.controllers.spec.spec_dispatcher import SpecDispatcher
from maestropy.server.dispatch.spec_sender import SpecSender
from maestropy.store import resources, statuses
from maestropy.store.rows import NewStatus
from maestropy.wire.events import event
from tests.simulation.memory_postgres import Transaction
from tests.unit.server.controllers.scripted_broker import (
    CONNECTED_AGENTS,
    MESSAGE_BROKER,
    START,
    Database,
    ScriptedBroker,
)

BOTH = pytest.mark.parametrize(
    "capabilities",
    [pytest.param(CONNECTED_AGENTS, id="connected-agents"), pytest.param(MESSAGE_BROKER, id="message-broker")],
)


def dispatcher(database: Database, broker: port.Broker) -> SpecDispatcher:
    return SpecDispatcher(database.context, broker, SpecSender(database.context, broker))


@BOTH
async def test_pending_events_are_sent_and_reconciled(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1", "w2")
    assert await dispatcher(database, broker)._dispatch(["create-w1"], everything=False) == 1
    assert (broker.sent_ids(), database.pending()) == (["w1"], ["w2"])
    assert await dispatcher(database, broker)._dispatch([], everything=True) == 1
    assert (broker.sent_ids(), database.pending()) == (["w1", "w2"], [])
    assert broker.sent[0].type == event.SPEC_CREATE


@BOTH
async def test_long_queue_does_not_delay_a_short_one(
    capabilities: port.Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec_dispatcher, "RESOURCES_AT_ONCE", 4)
    database = Database("long", "short")
    broker = ScriptedBroker(capabilities=capabilities, connected=("long", "short"))
    await database.create(*(f"l{number}" for number in range(50)), consumer="long")
    await database.create("s1", consumer="short")
    assert await dispatcher(database, broker)._dispatch([], everything=True) == 51
    assert "s1" in broker.sent_ids()[:4]


@BOTH
async def test_resource_with_several_events_is_sent_once(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    events = database.engine.tables["events"]
    for number in range(4):
        events[f"more-{number}"] = {**events["create-w1"], "id": f"more-{number}"}
    assert await dispatcher(database, broker)._dispatch(["create-w1"], everything=True) == 1
    assert (broker.sent_ids(), database.pending()) == (["w1"], [])


@BOTH
@pytest.mark.parametrize(
    ("outcome", "is_reconciled"),
    [
        pytest.param(Outcome.SENT, True, id="sent"),
        pytest.param(Outcome.NO_SUBSCRIBER, True, id="no-subscriber"),
        pytest.param(Outcome.NEVER, True, id="never"),
        pytest.param(Outcome.NO_ROOM, False, id="no-room"),
        pytest.param(Outcome.REJECTED, False, id="rejected"),
        pytest.param(Outcome.OFFLINE, False, id="offline"),
    ],
)
async def test_outcome_decides_whether_an_event_is_reconciled(
    capabilities: port.Capabilities, outcome: Outcome, *, is_reconciled: bool
) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities, outcomes={"w1": outcome})
    await database.create("w1", "w2")
    await dispatcher(database, broker)._dispatch([], everything=True)
    assert database.pending() == ([] if is_reconciled else ["w1"])


@BOTH
async def test_consumer_without_room_keeps_its_events_and_the_others_go_on(capabilities: port.Capabilities) -> None:
    database = Database("full", "c")
    broker = ScriptedBroker(capabilities=capabilities, connected=("full", "c"), full={"full"})
    await database.create("f1", consumer="full")
    await database.create("w1")
    await dispatcher(database, broker)._dispatch([], everything=True)
    assert (broker.sent_ids(), database.pending()) == (["w1"], ["f1"])


@BOTH
async def test_rejected_consumer_is_left_out_for_a_while(capabilities: port.Capabilities) -> None:
    database = Database("refused", "c")
    broker = ScriptedBroker(
        capabilities=capabilities, connected=("refused", "c"), outcomes={"refused": Outcome.REJECTED}
    )
    await database.create("r1", "r2", consumer="refused")
    await database.create("w1")
    controller = dispatcher(database, broker)
    await controller._dispatch([], everything=True)
    assert database.logged("the broker rejects messages to a consumer") == 1
    broker.outcomes.clear()
    await controller._dispatch([], everything=True)
    assert database.pending() == ["r1", "r2"]
    database.seconds = 31
    await controller._dispatch([], everything=True)
    assert database.pending() == []


async def test_new_connection_ends_the_rest_of_a_rejected_consumer() -> None:
    database = Database()
    broker = ScriptedBroker(capabilities=MESSAGE_BROKER, outcomes={"c": Outcome.REJECTED})
    await database.create("w1")
    controller = dispatcher(database, broker)
    await controller._dispatch([], everything=True)
    broker.outcomes.clear()
    controller.on_online()
    await controller._dispatch([], everything=True)
    assert database.pending() == []


@BOTH
async def test_nothing_is_sent_while_the_broker_is_offline(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities, is_online=False)
    await database.create("w1")
    assert await dispatcher(database, broker)._dispatch(["create-w1"], everything=True) == 0
    assert database.pending() == ["w1"]


async def test_events_of_consumers_that_are_not_connected_here_are_left_alone() -> None:
    database = Database("away", "c")
    broker = ScriptedBroker(capabilities=CONNECTED_AGENTS)
    await database.create("w1", consumer="away")
    assert await dispatcher(database, broker)._dispatch(["create-w1"], everything=True) == 0
    assert database.pending() == ["w1"]


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        # The agents that got it are connected to the other instance; those here have not got it.
        pytest.param(CONNECTED_AGENTS, ["w1"], id="connected-agents"),
        pytest.param(MESSAGE_BROKER, [], id="message-broker"),
    ],
)
async def test_event_that_another_instance_has_reconciled(capabilities: port.Capabilities, sent: list[str]) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    database.reconcile(["create-w1"])
    await dispatcher(database, broker)._dispatch(["create-w1"], everything=False)
    assert broker.sent_ids() == sent


async def test_event_that_another_instance_has_claimed_is_left_to_it() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=MESSAGE_BROKER)
    await database.create("w1", "w2")
    other = Transaction(database.engine)
    assert other.try_lock("events", "create-w1")
    await dispatcher(database, broker)._dispatch([], everything=True)
    assert (broker.sent_ids(), database.pending()) == (["w2"], ["w1"])


async def test_wake_up_of_an_event_that_a_scan_has_sent_does_not_send_it_again() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=CONNECTED_AGENTS)
    await database.create("w1")
    controller = dispatcher(database, broker)
    await controller._dispatch([], everything=True)
    await controller._dispatch(["create-w1"], everything=False)
    assert broker.sent_ids() == ["w1"]


async def remove(database: Database, name: str) -> None:
    """Delete a resource, and let an agent at another instance confirm it."""
    document = '{"id":"e","source":"a","type":"t","specversion":"1.0","clustername":"c","resourceversion":"1"}'
    async with database.context.database.connection() as connection:
        await resources.mark_deleting(connection, [name], event_ids=["deletion"], now=database.context.now())
        status = NewStatus(id=name, source="s", document=document, event_id="end")
        await statuses.remove(connection, [status], now=database.context.now())


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        pytest.param(CONNECTED_AGENTS, ["w1"], id="connected-agents"),
        pytest.param(MESSAGE_BROKER, [], id="message-broker"),
    ],
)
async def test_event_of_a_removed_resource_is_reconciled(capabilities: port.Capabilities, sent: list[str]) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    await remove(database, "w1")
    await dispatcher(database, broker)._dispatch(["create-w1", "deletion"], everything=False)
    assert database.pending() == []
    assert broker.sent_ids() == sent, "an agent that is connected here may not have got the deletion"


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        pytest.param(CONNECTED_AGENTS, ["w1"], id="connected-agents"),
        pytest.param(MESSAGE_BROKER, [], id="message-broker"),
    ],
)
async def test_resources_that_changed_during_a_gap_are_sent_again(
    capabilities: port.Capabilities, sent: list[str]
) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    database.reconcile(["create-w1"])
    controller = dispatcher(database, broker)
    controller.resend_changed_since(START - timedelta(seconds=1))
    await controller._dispatch([], everything=True)
    assert broker.sent_ids() == sent
