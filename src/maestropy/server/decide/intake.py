"""Judge a status report against what the store already knows.

Reports travel at least once: they arrive twice, late and out of order. This module answers one question: what, if
anything, does this report change? `maestropy.server.absorb` carries the verdict out.
"""

import contextlib
from dataclasses import dataclass

import msgspec

from maestropy.store import rows
from maestropy.wire import errors, event, instant, order, record

_DELETED = "Deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one event of an agent tells."""

    id: str
    consumer: str
    version: int
    sequence_id: str
    status_hash: str
    deleted: bool
    created: int | None
    """When the bundle was created whose end this reports, in seconds since 1970, as the agent was told."""
    operation_id: str
    received: event.Event
    envelope: bytes
    """The event as it is stored, without metadata and data."""

    @property
    def size(self) -> int:
        """How many bytes the report keeps in memory, roughly."""
        return len(self.received.data) + 1024


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing changes."""

    reason: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """The bundle gets a newer status."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is gone from the cluster, so the row may go too."""


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The agent dropped what nobody asked it to drop: it should get it again."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The report is not about what it claims to be about."""

    reason: str


Verdict = Ignore | Update | Finish | Redeliver | Reject


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _StatusData(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Metadata(msgspec.Struct):
    creation: str | None = msgspec.field(name="creationTimestamp", default=None)


_status_data = msgspec.json.Decoder(_StatusData)
_metadata = msgspec.json.Decoder(_Metadata)


def read_report(received: event.Event, *, source_id: str, operation_id: str) -> Report:
    """Read a status event; raises `WireError` naming what is wrong."""
    deleted = _says_deleted(received.data)
    report = Report(
        id=received.text(event.RESOURCE_ID),
        version=received.integer(event.RESOURCE_VERSION),
        consumer=received.text(event.CLUSTER_NAME),
        sequence_id=received.text(event.SEQUENCE_ID),
        status_hash=received.optional_text(event.STATUS_HASH),
        deleted=deleted,
        # Only an end needs to be told from that of an earlier bundle; other reports are spared the reading.
        created=_creation(received) if deleted else None,
        operation_id=operation_id,
        received=received,
        # Made here, where it can be refused, and not under the locks of a whole group of reports.
        # Without the agent's copy of the metadata: the source's is stored instead.
        envelope=record.envelope_of(received),
    )
    event.check_name(report.id, what="failed to get resourceid extension: it")
    original_source = received.text(event.ORIGINAL_SOURCE)
    if original_source != source_id:
        raise errors.Malformed(
            f"unmatched original source id {original_source[:128]} for resource {report.id}: this server is {source_id}"
        )
    order.parse(report.sequence_id)
    return report


def could_be_of_another(held: rows.Observed | None, report: Report) -> bool:
    """Whether only the last word about an earlier bundle of the same id can tell that this end is not its echo.

    An agent that has reported on this bundle has said all about the earlier ones before.
    """
    return held is not None and report.deleted and not held.sequence_id


def judge(held: rows.Observed | None, report: Report, *, last_word: str = "") -> Verdict:
    """Return what `report` changes; `last_word` is the sequence of the end of an earlier bundle of the same id."""
    if held is None:
        return Ignore("there is no such resource")
    if held.consumer != report.consumer:
        return Reject(f"unmatched consumer name {report.consumer} for resource {report.id}")
    try:
        is_newer = order.is_newer(report.sequence_id, held.sequence_id)
    except errors.Invalid as error:
        return Reject(str(error))
    except errors.Malformed:
        is_newer = True  # the stored one is damaged, the report's was read before: any report is better than that
    if not is_newer:
        return Ignore("its sequence is not newer than the stored one")
    if report.deleted:
        # Two bundles may be created within one second, and that is all an agent says of the time.
        is_echo = _is_echo(report.sequence_id, last_word)
        return Ignore("it told the end of an earlier resource of this id") if is_echo else _judge_end(held, report)
    if held.version != report.version:
        return Ignore(f"it belongs to version {report.version}, the resource has {held.version}", stale=True)
    is_same = report.status_hash != "" and report.status_hash == held.status_hash
    if is_same and held.observed_version == str(report.version):
        return Ignore("the status is unchanged")
    return Update()


def stored_status(held: rows.Observed, report: Report) -> str:
    """Return the report as the store keeps it: the agent's event under the metadata that the source gave."""
    created, deleted = record.moments(held.created_at, held.deleted_at)
    metadata = "{}"
    # Damaged metadata are no reason to lose the status, and with it the reports beside it.
    with contextlib.suppress(errors.WireError):
        metadata = record.metadata_with(held.metadata, record.timestamps(created, deleted)) if held.metadata else "{}"
    parts = record.Parts(envelope=report.envelope, metadata=metadata.encode(), data=report.received.data)
    return parts.document()


def _judge_end(held: rows.Observed, report: Report) -> Verdict:
    """Only a deletion somebody asked for ends a bundle, and only its own.

    A late word about an earlier bundle of the same id must not take its successor along, not even one that is to go as
    well: its objects are still there. The agent is told again what there is, so that it looks.
    """
    created, _ = record.moments(held.created_at, held.deleted_at)
    is_of_another = report.created not in (None, created.seconds)
    return Redeliver() if held.deleted_at is None or is_of_another else Finish()


def _is_echo(sequence_id: str, last_word: str) -> bool:
    try:
        return bool(last_word) and not order.is_newer(sequence_id, last_word)
    except errors.WireError:
        return False  # what is stored is damaged, or another agent's: it proves nothing


def _creation(received: event.Event) -> int | None:
    """Return what an agent was told of the creation; nothing where it does not say, or nobody can read it."""
    text = received.optional_text(event.METADATA)
    try:
        said = _metadata.decode(text).creation if text else None
        return instant.parse(said).seconds if said else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, errors.WireError):
        return None


def _says_deleted(data: bytes) -> bool:
    if not data:
        return False
    try:
        status: _StatusData = _status_data.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Malformed(f"failed to unmarshal event data: {str(error)[:200]}") from error
    return any(each.type == _DELETED and each.status == "True" for each in status.conditions or ())
