"""Answers to spec resyncs and requests for statuses, over every kind of broker."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from maestropy.aio.tasks import TaskOwner
from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.server.controllers.agents.resync import Resync
from maestropy.server.dispatch.spec_sender import SpecSender
from maestropy.store import actions, data_safety, resources
from maestropy.store.postgres import pool
from maestropy.wire import errors, resync
from maestropy.wire.events import event
from tests.unit.server.controllers.scripted_broker import (
    CONNECTED_AGENTS,
    MESSAGE_BROKER,
    Database,
    ScriptedBroker,
)

BOTH = pytest.mark.parametrize(
    "capabilities",
    [pytest.param(CONNECTED_AGENTS, id="connected-agents"), pytest.param(MESSAGE_BROKER, id="message-broker")],
)


@asynccontextmanager
async def started(database: Database, broker: port.Broker, *, woken: list[str] | None = None) -> AsyncIterator[Resync]:
    sender = SpecSender(database.context, broker)
    controller = Resync(
        database.context, broker, sender, wake_dispatcher=lambda: (woken if woken is not None else []).append("woken")
    )
    task_owner = TaskOwner()
    controller.start(task_owner)
    try:
        yield controller
    finally:
        await task_owner.stop()


def versions(**reported: int) -> bytes:
    return resync.encode_versions(reported)


@BOTH
async def test_agent_receives_missing_specs_and_orphan_deletions(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("known", "other", "missing")
    async with started(database, broker) as controller:
        await controller.answer("c", versions(known=1, other=1, orphan=3), source="agent")
    assert broker.sent_ids() == ["missing", "orphan"]
    assert [outgoing.type for outgoing in broker.sent] == [event.SPEC_RESYNC_RESPONSE] * 2
    assert event.DELETION_TIMESTAMP in broker.sent[1].extensions
    assert database.pending() == [], "the answer covers the events that were pending"


@BOTH
async def test_large_answer_is_sent_in_parts_while_there_is_room(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities, full={"c"})
    names = [f"w{number:03}" for number in range(300)]
    await database.create(*names)
    async with started(database, broker) as controller:
        await controller.answer("c", b"", source="agent")
    assert sorted(broker.sent_ids()) == names


@BOTH
async def test_resync_that_cannot_be_read_is_rejected(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    async with started(database, broker) as controller:
        with pytest.raises(errors.MalformedMessage, match="spec resync request"):
            await controller.answer("c", b"[", source="agent")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(Outcome.OFFLINE, port.NotDelivered, id="offline"),
        pytest.param(Outcome.REJECTED, port.NotDelivered, id="rejected"),
        pytest.param(Outcome.NO_SUBSCRIBER, port.NoSubscriber, id="no-subscriber"),
    ],
)
@pytest.mark.parametrize(
    "reported", [pytest.param({}, id="spec"), pytest.param({"w1": 1, "w3": 1, "w2": 1}, id="orphan")]
)
async def test_answer_that_the_agent_does_not_get_is_to_be_repeated(
    outcome: Outcome, expected: type[port.NotDelivered], reported: dict[str, int]
) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=MESSAGE_BROKER, outcomes={"c": outcome})
    await database.create("w1", "w3")
    async with started(database, broker) as controller:
        with pytest.raises(port.NotDelivered) as caught:
            await controller.answer("c", versions(**reported), source="agent")
    assert type(caught.value) is expected
    assert database.pending() == ["w1", "w3"], "nothing proves that the agent has it"


async def test_answer_to_an_agent_that_has_gone_leaves_its_events_pending() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=CONNECTED_AGENTS, connected=())
    await database.create("w1")
    async with started(database, broker) as controller:
        await controller.answer("c", b"", source="agent")
    assert (broker.sent_ids(), database.pending()) == ([], ["w1"])


async def test_resource_that_cannot_be_sent_does_not_stop_the_others() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=MESSAGE_BROKER, outcomes={"w1": Outcome.NEVER})
    await database.create("w1", "w2")
    async with started(database, broker) as controller:
        await controller.answer("c", b"", source="agent")
    assert broker.sent_ids() == ["w2"]


@pytest.mark.parametrize("has_pending", [True, False])
async def test_subscription_wakes_the_dispatcher_when_events_are_pending(*, has_pending: bool) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=CONNECTED_AGENTS)
    await database.create("w1")
    if not has_pending:
        database.reconcile(["create-w1"])
    woken: list[str] = []
    async with started(database, broker, woken=woken) as controller:
        await controller.on_subscribe("c", subscription_id="s")
    assert woken == ["woken"] * has_pending
    (request,) = broker.sent
    assert request.type == event.STATUS_RESYNC_REQUEST
    assert json.loads(request.data)["statusHashes"] == [{"resourceID": "w1", "statusHash": ""}]


async def test_subscription_without_resources_asks_for_nothing() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=CONNECTED_AGENTS)
    async with started(database, broker) as controller:
        await controller.on_subscribe("c", subscription_id="s")
    assert broker.sent == []


@pytest.mark.parametrize("resends", [True, False])
async def test_unconfirmed_resources_are_sent_again_with_the_request_for_statuses(*, resends: bool) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=MESSAGE_BROKER)
    await database.create("w1", "w2")
    async with database.context.database.connection() as connection:
        await resources.mark_deleting(connection, ["w2"], event_ids=["deletion"], now=database.context.now())
    async with started(database, broker) as controller:
        await controller.request_statuses("c", resends_unconfirmed=resends)
    assert sorted(broker.sent_ids()) == (["", "w1", "w2"] if resends else [""])


async def test_request_for_statuses_is_split_to_the_size_that_the_broker_takes() -> None:
    database = Database()
    broker = ScriptedBroker(capabilities=MESSAGE_BROKER, max_event_bytes=resync.ENVELOPE_BYTES + 200)
    names = [f"w{number}" for number in range(20)]
    await database.create(*names)
    async with started(database, broker) as controller:
        await controller.request_statuses("c", resends_unconfirmed=False)
    assert len(broker.sent) > 1
    asked = [item["resourceID"] for request in broker.sent for item in json.loads(request.data)["statusHashes"]]
    assert sorted(asked) == sorted(names)


async def test_request_for_statuses_that_the_broker_does_not_take_is_to_be_repeated() -> None:
    database, broker = Database(), ScriptedBroker(capabilities=MESSAGE_BROKER, outcomes={"c": Outcome.OFFLINE})
    await database.create("w1")
    async with started(database, broker) as controller:
        with pytest.raises(port.NotDelivered):
            await controller.request_statuses("c", resends_unconfirmed=False)


@BOTH
async def test_specs_name_the_resync_request_that_they_answer(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    async with started(database, broker) as controller:
        await controller.answer("c", resync.with_marker(versions(), "marker"), source="agent")
        await controller.answer("c", versions(), source="a Go agent")
        await controller.request_statuses("c", resends_unconfirmed=True)
    specs = [sent for sent in broker.sent if sent.optional_text(event.RESOURCE_ID) == "w1"]
    answered, *others = [sent.text(event.RESYNC_ID) for sent in specs]
    assert answered == "marker"
    assert len(others) == 2
    assert "marker" not in others
    assert all(others), "an agent takes an answer without an ID for the answer to its last request"


@BOTH
async def test_part_of_a_request_is_answered_without_an_end(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("w1")
    request = resync.SpecResyncRequest(versions={"w2": 1, "w3": 1, "w4": 1, "w5": 1}, event_ids={})
    parts = resync.split_request(resync.with_marker(resync.encode_request(request), "marker"), count=2)
    async with started(database, broker) as controller:
        for part in parts:
            await controller.answer("c", part, source="agent")
    assert {sent.text(event.RESYNC_ID) for sent in broker.sent if sent.text(event.RESOURCE_ID) == "w1"} == {"marker"}
    assert [sent.text(event.RESOURCE_ID) for sent in broker.sent].count("marker") == 1


@BOTH
async def test_agent_of_an_unknown_consumer_deletes_nothing(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("known")
    asked = resync.with_marker(versions(w=1), "marker")
    async with started(database, broker) as controller:
        await controller.answer("nobody", asked, source="agent")
    (end,) = broker.sent
    assert end.text(event.RESOURCE_ID) == "marker"
    assert end.is_set(event.UNKNOWN_CONSUMER)
    assert end.timestamp(event.DATABASE_TIME) is not None
    assert end.text(event.DATABASE_ID)


@BOTH
async def test_many_orphans_of_an_agent_that_sends_versions_only_are_held(capabilities: port.Capabilities) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("known")
    async with started(database, broker) as controller:
        await controller.answer("c", versions(known=1, **{f"w{number}": 1 for number in range(11)}), source="agent")
        assert broker.sent == []
        assert database.logged("data-safety hold") == 1
        # The works are back, or the agent has given them up.
        await controller.answer("c", versions(known=1), source="agent")
        assert database.logged("data-safety hold ended") == 1


@BOTH
async def test_hold_is_over_only_when_the_agent_says_so(capabilities: port.Capabilities) -> None:
    """An agent that has just started does not know yet what it holds."""
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("known")
    hold = resync.ReportedHold(id="h", reason="OtherDatabase", message="m", database="d", count=1, works=("w",))
    requests = [
        resync.SpecResyncRequest(versions={}, event_ids={}, states_hold=True, hold=hold),
        resync.SpecResyncRequest(versions={}, event_ids={}, states_hold=False),
        resync.SpecResyncRequest(versions={}, event_ids={}, states_hold=True),
    ]
    async with started(database, broker) as controller:
        for asked, ended, is_shown in zip(requests, (0, 0, 1), (True, True, False), strict=True):
            body = resync.with_marker(resync.encode_request(asked), "marker")
            await controller.answer("c", body, source="agent")
            assert database.logged("data-safety hold ended") == ended
            assert broker.sent[-1].is_set(event.STORED_HOLD) is is_shown


async def test_late_report_of_a_hold_is_not_stored() -> None:
    """The agent has connected to another server, where it may have reported the end of the hold."""
    database, broker = Database(), ScriptedBroker(capabilities=CONNECTED_AGENTS, connected=())
    await database.create("known")
    hold = resync.ReportedHold(id="h", reason="OtherDatabase", message="m", database="d", count=1, works=("w",))
    late = resync.SpecResyncRequest(versions={}, event_ids={}, states_hold=True, hold=hold)
    async with started(database, broker) as controller:
        await controller.answer("c", resync.with_marker(resync.encode_request(late), "marker"), source="agent")
    async with database.context.database.connection() as connection:
        assert await data_safety.held_consumers(connection, ["c"]) == frozenset()


@BOTH
async def test_agent_that_knows_other_spec_of_same_version_is_sent_the_stored_one(
    capabilities: port.Capabilities,
) -> None:
    database, broker = Database(), ScriptedBroker(capabilities=capabilities)
    await database.create("same", "other", "back")
    async with database.context.database.connection() as connection:
        stored = {
            row.id: row.event_id
            for row in (await resources.versions_of_consumers(connection, ["c"], with_event_ids=True))["c"]
        }
    request = resync.SpecResyncRequest(
        versions={"same": 1, "other": 1, "back": 7},
        event_ids={"same": stored["same"], "other": "published-before-the-restore", "back": stored["back"]},
        states_hold=True,
    )
    async with started(database, broker) as controller:
        await controller.answer("c", resync.encode_request(request), source="agent")
    assert sorted(broker.sent_ids()) == ["back", "other"]


async def test_ends_of_answers_to_many_agents_share_their_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    consumers = [f"c{number}" for number in range(50)]
    database = Database(*consumers)
    broker = ScriptedBroker(capabilities=CONNECTED_AGENTS, connected=consumers)
    database.engine.tables["maestropy_pauses"]["c7"] = {"consumer_name": "c7"}
    read: list[int] = []
    paused_among = actions.paused_among

    async def count_reads(connection: pool.Connection, consumers: Collection[str]) -> frozenset[str]:
        read.append(len(consumers))
        return await paused_among(connection, consumers)

    monkeypatch.setattr(actions, "paused_among", count_reads)
    request = resync.encode_request(resync.SpecResyncRequest(versions={}, event_ids={}, states_hold=True))
    async with started(database, broker) as controller:
        answers = (
            controller.answer(consumer, resync.with_marker(request, f"end-{consumer}"), source="agent")
            for consumer in consumers
        )
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        assert [type(error) for error in outcomes if error is not None] == [port.Paused]
        assert sum(read) == len(consumers)
        # It is told to resync once, when it is resumed.
        assert await controller.take_resumed() == set()
        database.engine.tables["maestropy_pauses"].clear()
        assert await controller.take_resumed() == {"c7"}
        assert list(await controller.take_resumed()) == []
        read = read[:-2]
    # The agent of a paused consumer is not told that it has received everything.
    assert sorted(broker.sent_ids()) == sorted(f"end-{consumer}" for consumer in consumers if consumer != "c7")
    assert len(read) <= 3
