"""Messages of agents: which are stored, which are resyncs, and when they are acknowledged."""

import itertools
from dataclasses import dataclass, field

import pytest

from maestropy.aio import batches
from maestropy.server.controllers.agents.agent_messages import AgentMessages, Handlers
from maestropy.server.controllers.status.status_intake import StatusIntake
from maestropy.server.decide import status_intake
from maestropy.store import errors as store_errors
from maestropy.wire import errors
from maestropy.wire.events import event
from tests.unit.server.controllers.scripted_broker import Database


@dataclass
class Server:
    """The receiver with controllers that only record."""

    owned: tuple[str, ...] = ("c",)
    failures: list[Exception] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = Database()

        async def submit(update: status_intake.StatusUpdate) -> status_intake.Verdict:
            if self.failures:
                raise self.failures.pop(0)
            self.done.append(f"stored {update.id}")
            return status_intake.Store()

        async def owned() -> tuple[str, ...]:
            if self.failures:
                raise self.failures.pop(0)
            return self.owned

        def owns(consumer: str) -> bool:
            return consumer in self.owned

        handlers = Handlers(
            intake=StatusIntake(self.database.context, submit=submit, owns=owns),
            answer_resync=lambda received, _: self.done.append(f"answer {received.data.decode()}"),
            request_statuses=lambda consumers: self.done.append(f"request {' '.join(consumers)}"),
            dispatch_pending=lambda: self.done.append("dispatch"),
            owns=owns,
            owned=owned,
        )
        self.messages = AgentMessages(self.database.context, handlers, delays=lambda: itertools.repeat(0.0))

    async def receive(self, received: event.CloudEvent) -> None:
        await self.messages.receive(received, lambda: self.done.append("acknowledged"))


def message(kind: str = event.STATUS_UPDATE, **more: event.Attribute) -> event.CloudEvent:
    extensions: dict[str, event.Attribute] = {
        event.RESOURCE_ID: "w1",
        event.RESOURCE_VERSION: 1,
        event.CLUSTER_NAME: "c",
        event.ORIGINAL_SOURCE: "maestro",
        event.SEQUENCE_ID: "1834773391719010304",
    }
    return event.CloudEvent(id="e", source="agent", type=kind, extensions={**extensions, **more}, data=b"{}")


async def test_status_update_is_stored_and_then_acknowledged() -> None:
    server = Server()
    await server.receive(message())
    assert server.done == ["stored w1", "acknowledged"]
    assert server.database.logged("Received event") == 1


async def test_status_update_of_a_consumer_of_another_instance_is_acknowledged_and_not_stored() -> None:
    server = Server(owned=())
    await server.receive(message())
    assert server.done == ["acknowledged"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(store_errors.DatabaseUnavailable("away"), id="database-away"),
        pytest.param(batches.Overloaded(), id="overloaded"),
    ],
)
async def test_status_update_is_stored_again_after_a_failure(failure: Exception) -> None:
    server = Server(failures=[failure, failure])
    await server.receive(message())
    assert server.done == ["stored w1", "acknowledged"]


async def test_status_update_is_not_acknowledged_when_the_server_stops() -> None:
    server = Server(failures=[batches.Stopped()])
    await server.receive(message())
    assert server.done == []


async def test_status_update_is_given_up_when_the_database_stays_away() -> None:
    server = Server(failures=[store_errors.DatabaseUnavailable("away")] * 100)
    await server.receive(message())
    assert server.done == ["acknowledged"]
    assert server.database.logged("the database could not be reached for too long") == 1


async def test_owner_answers_a_spec_resync_and_requests_statuses_in_return() -> None:
    server = Server()
    await server.receive(message(event.SPEC_RESYNC_REQUEST))
    assert server.done == ["answer {}", "request c"], "the queue acknowledges it when it is answered"


async def test_instance_that_does_not_own_the_consumer_answers_a_spec_resync_all_the_same() -> None:
    server = Server(owned=())
    await server.receive(message(event.SPEC_RESYNC_REQUEST))
    assert server.done == ["answer {}"]


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        pytest.param(message("rubbish"), "unsupported cloudevents type", id="no-type"),
        pytest.param(message("a.b.c.status.update_request"), "unsupported event data type", id="other-data-type"),
        pytest.param(message(event.SPEC_CREATE), "agents send statuses", id="spec"),
        pytest.param(message(event.STATUS_RESYNC_REQUEST), "agents send statuses", id="status-resync"),
        pytest.param(message(originalsource="other"), "unmatched original source", id="other-server"),
        pytest.param(message(sequenceid="x"), "sequence", id="bad-sequence-id"),
    ],
)
async def test_wrong_message_is_rejected(received: event.CloudEvent, reason: str) -> None:
    server = Server()
    with pytest.raises(errors.WireError, match=reason):
        await server.receive(received)
    assert server.done == []


async def test_new_connection_dispatches_pending_events_and_requests_statuses() -> None:
    server = Server(owned=("c", "d"))
    await server.messages.on_online()
    assert server.done == ["dispatch", "request c d"]


async def test_new_connection_without_a_database_fails() -> None:
    server = Server(failures=[store_errors.DatabaseUnavailable("away")])
    with pytest.raises(store_errors.DatabaseUnavailable):
        await server.messages.on_online()


async def test_lost_messages_are_made_up_for_by_requests() -> None:
    server = Server()
    await server.messages.on_messages_lost()
    server.failures = [store_errors.DatabaseUnavailable("away")]
    await server.messages.on_messages_lost()
    assert server.done == ["request c"]
    assert server.database.logged("failed to get all consumers") == 1
