"""The inbox and events that arrive after newer ones: they are applied only when a resync confirms them."""

import json
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from maestropy.agent.controllers.inbox import InboxCallbacks, ServerInbox
from maestropy.agent.decide import deletion
from maestropy.agent.state.work_cache import WorkCache
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio.clock import Clock
from maestropy.wire import timestamps
from maestropy.wire.events import event

EARLY, LATE = timestamps.parse("2026-02-01T00:00:00Z"), timestamps.parse("2026-02-01T00:00:05Z")


class Inbox:
    """An inbox with its works, and the resyncs it requests."""

    def __init__(self) -> None:
        self.works = WorkCache()
        self.callbacks = InboxCallbacks(**{name: mock.Mock() for name in InboxCallbacks._fields})
        self.journal = mock.Mock()
        self.inbox = ServerInbox(
            self.works,
            consumer="c1",
            journal=self.journal,
            callbacks=self.callbacks,
            clock=Clock(monotonic=lambda: 0.0),
            spans=WorkSpans(),
        )
        self.inbox.note_resync("first")

    def receive(self, version: int, **changes: Any) -> None:
        self.inbox.receive(spec_event(version, **changes))

    @property
    def version(self) -> int:
        cached = self.works.get("id")
        return 0 if cached is None else cached.manifest_work.generation

    @property
    def resyncs(self) -> int:
        assert isinstance(self.callbacks.resync, mock.Mock)
        return int(self.callbacks.resync.call_count)


def spec_event(
    version: int,
    *,
    answers: str | None = None,
    created: timestamps.Timestamp = EARLY,
    published: timestamps.Timestamp = EARLY,
    is_deletion: bool = False,
    database: str = "d",
) -> event.CloudEvent:
    extensions: dict[str, event.Attribute] = {
        event.RESOURCE_ID: "id",
        event.RESOURCE_VERSION: version,
        event.CLUSTER_NAME: "c1",
        event.ORIGINAL_SOURCE: "",
        event.DATABASE_ID: database,
        event.CREATED_AT: created.rfc3339(),
        event.METADATA: json.dumps({"name": "id", "creationTimestamp": created.rfc3339_seconds()}),
    }
    if answers:
        extensions[event.RESYNC_ID] = answers
    if is_deletion:
        extensions[event.DELETION_TIMESTAMP] = LATE
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}
    data = b"" if is_deletion else json.dumps({"manifests": [manifest]}).encode()
    kind = event.SPEC_UPDATE if answers is None else event.SPEC_RESYNC_RESPONSE
    return event.CloudEvent(
        id=f"e{version}", source="maestro", type=kind, time=published, extensions=extensions, data=data
    )


def test_older_version_is_not_taken_before_a_resync_confirms_it() -> None:
    inbox = Inbox()
    inbox.receive(2)
    inbox.receive(1)
    assert (inbox.version, inbox.resyncs) == (2, 1)
    # The answer to an earlier request may be late, too.
    inbox.receive(1, answers="first")
    assert (inbox.version, inbox.resyncs) == (2, 2)
    inbox.inbox.note_resync("second")
    inbox.receive(1)
    inbox.receive(1, answers="first")
    inbox.receive(1, answers="of-another-agent")
    assert inbox.version == 2
    inbox.receive(1, answers="second")
    assert inbox.version == 1


def test_server_that_does_not_say_what_it_answers_answers_the_last_request() -> None:
    inbox = Inbox()
    inbox.receive(2)
    inbox.inbox.note_resync("second")
    inbox.receive(1, answers="")
    assert (inbox.version, inbox.resyncs) == (1, 0)


def test_version_published_after_a_restore_is_taken_at_once() -> None:
    inbox = Inbox()
    inbox.receive(3)
    inbox.receive(2, published=LATE)
    assert (inbox.version, inbox.resyncs) == (2, 0)


def test_newer_version_ends_the_doubt() -> None:
    inbox = Inbox()
    inbox.receive(2)
    inbox.receive(1)
    inbox.inbox.note_resync("second")
    inbox.receive(3)
    inbox.receive(1, answers="second")
    assert (inbox.version, inbox.resyncs) == (3, 2)


def test_late_spec_does_not_revive_a_deleted_work() -> None:
    inbox = Inbox()
    inbox.receive(1)
    inbox.receive(1, is_deletion=True)
    cached = inbox.works.get("id")
    assert cached is not None
    cached.status = cached.status.with_condition(deletion.deleted(consumer="c1"), now=LATE)
    inbox.works.drop(cached)
    inbox.receive(1)
    assert (inbox.works.get("id"), inbox.resyncs) == (None, 1)
    # A version that the agent never received is of the same incarnation; if it is not, the server sends it again.
    inbox.receive(2, published=LATE)
    assert (inbox.works.get("id"), inbox.resyncs) == (None, 2)
    inbox.inbox.note_resync("next")
    inbox.receive(1, published=LATE, answers="next")
    assert (inbox.version, inbox.resyncs) == (1, 2)


@pytest.mark.parametrize("is_deleted_before", [False, True])
def test_unknown_work_that_a_complete_answer_did_not_have_is_not_taken_before_a_resync(
    *, is_deleted_before: bool
) -> None:
    """The server sent it before its database went back; the agent received it after its resync."""
    inbox = Inbox()
    if is_deleted_before:
        inbox.receive(1)
        inbox.receive(1, is_deletion=True)
        cached = inbox.works.get("id")
        assert cached is not None
        cached.status = cached.status.with_condition(deletion.deleted(consumer="c1"), now=LATE)
        inbox.works.drop(cached)
    inbox.inbox.note_resync("first")
    inbox.inbox.note_resynced(end_of_answer(LATE))
    inbox.receive(1, created=EARLY._replace(nanos=1000))
    assert (inbox.works.get("id"), inbox.resyncs) == (None, 1)
    # The server has it after all: it was created while the first answer was read.
    inbox.inbox.note_resync("second")
    inbox.receive(1, created=EARLY._replace(nanos=1000), answers="second")
    assert (inbox.version, inbox.resyncs) == (1, 1)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param({}, id="server-that-names-no-time"),
        pytest.param({event.DATABASE_TIME: LATE, event.UNKNOWN_CONSUMER: True}, id="unknown-consumer"),
        pytest.param({event.DATABASE_TIME: "yesterday"}, id="malformed"),
        pytest.param({event.DATABASE_TIME: EARLY}, id="created-later"),
    ],
)
def test_unknown_work_is_taken_when_no_answer_shows_that_it_was_absent(end: dict[str, event.Attribute]) -> None:
    inbox = Inbox()
    inbox.inbox.note_resynced(replace(end_of_answer(LATE), extensions=end))
    inbox.receive(1)
    assert (inbox.version, inbox.resyncs) == (1, 0)


def end_of_answer(read_at: timestamps.Timestamp) -> event.CloudEvent:
    return event.CloudEvent(
        id="end",
        source="maestro",
        type=event.SPEC_RESYNC_RESPONSE,
        extensions={event.RESOURCE_ID: "first", event.DATABASE_TIME: read_at},
    )


def test_next_incarnation_is_not_late() -> None:
    inbox = Inbox()
    inbox.receive(1, created=EARLY._replace(nanos=500))
    inbox.receive(1, is_deletion=True, created=EARLY._replace(nanos=500))
    cached = inbox.works.get("id")
    assert cached is not None
    cached.status = cached.status.with_condition(deletion.deleted(consumer="c1"), now=LATE)
    inbox.works.drop(cached)
    inbox.receive(1, created=EARLY._replace(nanos=1000))
    assert (inbox.version, inbox.resyncs) == (1, 0)


@pytest.mark.parametrize("created", [LATE, EARLY._replace(nanos=1000)], ids=["later", "in-the-same-second"])
def test_late_deletion_of_an_earlier_incarnation_is_not_taken(created: timestamps.Timestamp) -> None:
    inbox = Inbox()
    inbox.receive(1, created=created)
    inbox.receive(7, is_deletion=True, created=EARLY._replace(nanos=500))
    cached = inbox.works.get("id")
    assert cached is not None
    assert (cached.is_deleting, inbox.resyncs) == (False, 1)


@pytest.mark.parametrize("version", [1, 2])
def test_server_without_identity_is_not_asked(version: int) -> None:
    inbox = Inbox()
    inbox.receive(2, database="")
    inbox.receive(version, database="")
    assert (inbox.version, inbox.resyncs) == (2, 0)


def test_secret_of_an_event_that_cannot_be_decoded_is_neither_logged_nor_reported() -> None:
    inbox = Inbox()
    data = b'{"manifests":[{"kind":"Secret","metadata":{"name":"s"},"stringData":{"p":"hunter2"}}'
    inbox.inbox.receive(replace(spec_event(1), data=data))
    cached = inbox.works.get("id")
    assert cached is not None
    assert cached.problem.startswith(f"failed to unmarshal event data of {len(data)} bytes, ")
    error = inbox.journal.error.call_args
    assert error.args[0] == "failed to decode spec"
    assert "hunter2" not in f"{cached.problem} {inbox.journal.mock_calls} {error.kwargs['err']}"
