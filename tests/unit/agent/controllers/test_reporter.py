"""A status is reported once for a version of a work, and again for another version, even if it reads the same."""

import itertools
from typing import Any

from maestropy.agent.controllers.reporter import StatusReporter
from maestropy.agent.state.work_cache import CachedWork
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio.clock import Clock
from maestropy.wire.events import event
from maestropy.wire.works import status, work

APPLIED = status.WorkStatus({"conditions": [{"type": "Applied", "status": "True", "observedGeneration": 2}]})


class Connection:
    """Sends every status at once."""

    def __init__(self) -> None:
        self.sent: list[event.CloudEvent] = []

    def enqueue(self, _work_id: str, message: Any) -> None:
        outgoing = message.encode()
        self.sent.append(outgoing)
        message.on_sent(outgoing)


def reporter(connection: Any) -> StatusReporter:
    numbers = itertools.count()
    return StatusReporter(
        connection,
        client_id="agent",
        clock=Clock(),
        new_id=lambda: f"event-{next(numbers)}",
        on_deleted=lambda _: None,
        spans=WorkSpans(),
    )


def manifest_work(version: int) -> work.ManifestWork:
    metadata = {
        "uid": "w",
        "name": "w",
        "namespace": "c",
        "generation": version,
        "labels": {work.ORIGINAL_SOURCE_LABEL: "maestro"},
    }
    return work.ManifestWork({"metadata": metadata})


def test_same_status_of_another_version_is_reported() -> None:
    connection = Connection()
    sender, cached = reporter(connection), CachedWork(manifest_work(1), status=APPLIED)
    sender.report(cached)
    sender.report(cached)
    assert [sent.extensions[event.RESOURCE_VERSION] for sent in connection.sent] == [1]
    cached.manifest_work = manifest_work(2)
    sender.report(cached)
    sender.report(cached)
    assert [sent.extensions[event.RESOURCE_VERSION] for sent in connection.sent] == [1, 2]


def test_same_status_of_another_incarnation_is_reported() -> None:
    connection = Connection()
    sender, cached = reporter(connection), CachedWork(manifest_work(1), created="2026-11-16T10:00:00Z", status=APPLIED)
    sender.report(cached)
    cached.created = "2026-11-16T10:00:01Z"
    sender.report(cached)
    assert len(connection.sent) == 2
