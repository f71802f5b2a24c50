"""Split the records of one resource into spec requests, and attribute each record to its request.

An incarnation of a resource lasts from a create to its confirmed deletion; the same ID may be used again. Within an
incarnation, versions count the accepted changes: a create is version 1, and a status names the version it reports on. A
delete keeps the version, and after stage 1 also the op-id, of the change before it. So deletes are recognised by their
type, never by op-id. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.logs.log_records import LogRecord, RecordKind, payload_of
from maestropy.trace.logs.match.status_updates import StatusUpdateRecords, is_about_status, status_updates_of

_SLACK = 0.5
_SPEC = frozenset({RecordKind.PUBLISHING, RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS, RecordKind.RECEIVED_SPEC})
_CHANGES = ("create", "update")
_ON_AGENT = frozenset({RecordKind.STORED, RecordKind.APPLIED, RecordKind.APPLY_FAILED, RecordKind.DECODE_FAILED})


@dataclass(slots=True, kw_only=True)
class TracedRequest:
    """One spec request and all its records."""

    resource: str
    action: str
    at: float
    incarnation: int = 1
    version: int = 0
    """The resource version it led to; 0 when no record shows it."""
    arrival: LogRecord | None = None
    """Its arrival, where the logs show it."""
    rejection: str = ""
    """Why the server rejected it."""
    is_surely_rejected: bool = False
    no_op: str = ""
    repeats: "TracedRequest | None" = None
    """The first of the requests just before it that wanted the same, though the server made a version of each."""
    records: list[LogRecord] = field(default_factory=list)
    status_updates: list[StatusUpdateRecords] = field(default_factory=list)
    next_request: "TracedRequest | None" = None
    """The next accepted request of the same incarnation."""
    _by_stage: dict[int, list[LogRecord]] = field(default_factory=dict)
    """Filled on first access, after all records were attributed."""

    @property
    def replaced_at(self) -> float:
        """When the next request of the resource came; infinite when none did."""
        return math.inf if self.next_request is None else self.next_request.at

    @property
    def is_change(self) -> bool:
        """Say whether it creates or updates."""
        return self.action in _CHANGES

    def stage(self, number: int) -> list[LogRecord]:
        """Return its records of one stage in order of time."""
        if not self._by_stage:
            for record in (*self.records, *(record for update in self.status_updates for record in update.records)):
                self._by_stage.setdefault(record.stage, []).append(record)
            for records in self._by_stage.values():
                records.sort(key=lambda record: record.at)
        return self._by_stage.get(number, [])

    def first(self, name: str) -> str:
        """Return the first value that any of its records has for a field."""
        own = [self.arrival] if self.arrival else []
        for record in (*own, *self.records, *(record for update in self.status_updates for record in update.records)):
            value = getattr(record, name)
            if value and (name != "name" or value != self.resource):
                return str(value)
        return ""


def spec_requests_of(resource: str, records: Sequence[LogRecord]) -> list[TracedRequest]:
    """Return the requests of `resource` with their records, in order of time."""
    requests = _arrivals(resource, records)
    _count_versions(requests, records)
    _add_without_arrival(resource, requests, records)
    requests.sort(key=lambda request: request.at)
    agents = {
        record.file: record.consumer
        for record in records
        if record.kind is RecordKind.RECEIVED_SPEC and record.consumer
    }
    for record in records:
        if not is_about_status(record):
            consumer = record.consumer or agents.get(record.file, "")
            owner = _owner(record, _of_consumer(requests, consumer))
            if owner is not None and record is not owner.arrival:
                _attribute(owner, record)
    for update in status_updates_of([record for record in records if is_about_status(record)]):
        consumer = next((record.consumer for record in update.records if record.consumer), "")
        request = _owner_of_update(update, _of_consumer(requests, consumer))
        if request is not None:
            request.status_updates.append(update)
    _link(requests)
    return requests


def _of_consumer(requests: Sequence[TracedRequest], consumer: str) -> Sequence[TracedRequest]:
    """Return the requests of a consumer; all if none is of it. Logs of two environments may have one ID twice."""
    own = [request for request in requests if request.arrival and request.arrival.consumer == consumer]
    return own or requests


def _arrivals(resource: str, records: Sequence[LogRecord]) -> list[TracedRequest]:
    requests: list[TracedRequest] = []
    incarnation, is_over = 1, False
    arrived: set[tuple[float, str, str, str]] = set()
    inserted = [record for record in records if record.kind is RecordKind.PUBLISHING and record.action == "create"]
    for record in records:
        if record.kind is RecordKind.PUBLISHING and record.action == "delete":
            # A resource that is inserted again after its deletion is another one, even if nothing confirms that.
            is_over = is_over or any(other.at > record.at for other in inserted)
        elif record.kind is RecordKind.DELETE_SENT or (
            record.kind is RecordKind.BROADCAST and record.action == "delete"
        ):
            is_over = True
        elif record.kind is RecordKind.REQUEST_RECEIVED and record.action in (*_CHANGES, "delete"):
            # Overlapping collections and exports have the same line twice.
            identity = (record.at, record.action, record.cloudevent_id, record.op_id)
            if identity in arrived:
                continue
            arrived.add(identity)
            is_again = is_over or _is_inserted_again(record, records, inserted)
            if record.action == "create" and is_again:
                incarnation, is_over = incarnation + 1, False
            requests.append(
                TracedRequest(
                    resource=resource,
                    action=record.action,
                    at=record.at,
                    incarnation=incarnation,
                    arrival=record,
                    records=[record],
                )
            )
    return requests


def _is_inserted_again(arrival: LogRecord, records: Sequence[LogRecord], inserted: Sequence[LogRecord]) -> bool:
    """Say whether a create made another row, so that the row before was deleted, though no record shows it."""
    before = {record.event for record in inserted if record.at <= arrival.at}
    if arrival.action != "create" or not before:
        return False
    creates = (record for record in records if record.kind is RecordKind.REQUEST_RECEIVED and record.action == "create")
    until = min((record.at for record in creates if record.at > arrival.at), default=math.inf)
    # Each row has one event, which every attempt to publish it names.
    return any(record.event and record.event not in before for record in inserted if arrival.at < record.at <= until)


def _count_versions(requests: Sequence[TracedRequest], records: Sequence[LogRecord]) -> None:
    by_op = _versions_by_operation(records)
    incarnation, current, payload = 0, 0, ""
    first: TracedRequest | None = None
    for at, request in enumerate(requests):
        if request.incarnation != incarnation:
            incarnation, current, payload = request.incarnation, 0, ""
        assert request.arrival is not None
        wanted = payload_of(request.arrival.detail)
        is_announced = bool(wanted) and _is_announced(request, records, until=_next_arrival(requests, at))
        if request.action == "update" and wanted and wanted == payload and not is_announced:
            request.no_op = "its manifests are those that the resource has already"
            continue
        sent = request.arrival.version
        if request.action == "create":
            if current:
                request.rejection = "the resource exists already"
                continue
            request.version = 1
        elif request.action == "update":
            if sent > 0 and current and sent < current:
                request.rejection = f"it was based on version {sent}, but the resource had version {current} already"
                request.is_surely_rejected = True
                continue
            request.version = (
                by_op.get(request.arrival.op_id, 0) or (sent + 1 if sent > 0 else 0) or _next(current, request, records)
            )
        else:
            request.version = current
        current = max(current, request.version)
        if request.action == "update" and wanted and wanted == payload:
            request.repeats = first
        else:
            payload, first = (wanted, request) if is_announced else ("", None)


def _versions_by_operation(records: Sequence[LogRecord]) -> dict[str, int]:
    by_op: dict[str, int] = {}
    for record in records:
        if (
            record.op_id
            and record.version > 0
            and not record.is_deleting
            and record.kind is not RecordKind.REQUEST_RECEIVED
        ):
            by_op[record.op_id] = min(record.version, by_op.get(record.op_id, record.version))
    return by_op


def _next_arrival(requests: Sequence[TracedRequest], at: int) -> float:
    return requests[at + 1].at if at + 1 < len(requests) else math.inf


def _is_announced(request: TracedRequest, records: Sequence[LogRecord], *, until: float) -> bool:
    """Say whether any record of the time to the next request shows that a server made an event of this one."""
    op_id = request.arrival.op_id if request.arrival else ""
    return any(
        record.kind in _SPEC and (record.op_id == op_id if record.op_id and op_id else record.at < until)
        for record in records
        if record.at >= request.at - _SLACK
    )


def _next(current: int, request: TracedRequest, records: Sequence[LogRecord]) -> int:
    """Return the version after `current` if anything later shows that there was one."""
    later_versions = [
        record.version for record in records if record.version > current and record.at >= request.at - _SLACK
    ]
    published = any(
        record.kind is RecordKind.PUBLISHING and record.action == "update" and record.at >= request.at
        for record in records
    )
    return current + 1 if (later_versions or published) and current else min(later_versions, default=0)


def _add_without_arrival(resource: str, requests: list[TracedRequest], records: Sequence[LogRecord]) -> None:
    """Add requests whose arrival is not in the logs, but whose later stages are."""
    spec = [
        record
        for record in records
        if record.kind in _SPEC and (record.version > 0 or record.kind is RecordKind.PUBLISHING)
    ]
    # "Publishing" does not contain the version: it may belong to a request that other records name.
    for record in sorted(spec, key=lambda record: (record.version <= 0, record.at)):
        action = "delete" if record.is_deleting or record.action == "delete" else record.action
        if _matching(record, requests, action=action) is not None:
            continue
        if action in ("resync", "update"):
            # An agent behind the gRPC broker that was away gets new works as updates.
            action = "create" if record.version == 1 else "update"
        incarnation = max((request.incarnation for request in requests if request.at <= record.at), default=1)
        requests.append(
            TracedRequest(
                resource=resource, action=action, at=record.at, incarnation=incarnation, version=max(record.version, 0)
            )
        )
    _add_reported_version(resource, requests, records)
    if not requests and records:
        version = max(record.version for record in records)
        requests.append(TracedRequest(resource=resource, action="unknown", at=records[0].at, version=max(version, 0)))


def _add_reported_version(resource: str, requests: list[TracedRequest], records: Sequence[LogRecord]) -> None:
    """Add the change that only statuses show: what the agent logs after it is not about the version before."""
    changes = [request for request in requests if request.is_change and not request.rejection]
    known = max((request.version for request in changes), default=0)
    deleted = min((request.at for request in requests if request.action == "delete"), default=math.inf)
    newer = [record for record in records if is_about_status(record) and record.version > known and record.at < deleted]
    if not changes or not newer or not all(request.version for request in changes):
        return
    version = newer[0].version
    requests.append(
        TracedRequest(
            resource=resource, action="update", at=newer[0].at, incarnation=changes[-1].incarnation, version=version
        )
    )


def _matching(record: LogRecord, requests: Sequence[TracedRequest], *, action: str) -> TracedRequest | None:
    if action == "delete":
        return _latest([request for request in requests if request.action == "delete"], record.at)
    if record.version > 0:
        return _latest(
            [request for request in requests if request.is_change and request.version == record.version], record.at
        )
    return _latest([request for request in requests if request.action == action and not request.rejection], record.at)


def _latest(requests: Sequence[TracedRequest], at: float) -> TracedRequest | None:
    """Return the last request that started by `at`, within the tolerance of clocks."""
    return max(
        (request for request in requests if request.at <= at + _SLACK), key=lambda request: request.at, default=None
    )


def _owner(record: LogRecord, requests: Sequence[TracedRequest]) -> TracedRequest | None:
    if record.kind is RecordKind.REQUEST_RECEIVED:
        return next((request for request in requests if request.arrival is record), None)
    if record.kind in (RecordKind.REQUEST_REJECTED, RecordKind.NO_OP):
        return _latest(
            [
                request
                for request in requests
                if not record.op_id or not request.arrival or request.arrival.op_id == record.op_id
            ],
            record.at,
        )
    accepted = [request for request in requests if not request.rejection and not request.no_op]
    if record.kind in _SPEC:
        action = "delete" if record.is_deleting or record.action == "delete" else record.action
        return _matching(_with_version(record, requests), accepted, action=action)
    if record.kind in (RecordKind.DELETING, RecordKind.REMOVED, RecordKind.PENDING_DELETION):
        return _latest([request for request in accepted if request.action == "delete"], record.at) or _latest(
            accepted, record.at
        )
    if record.kind in _ON_AGENT:
        changes = (
            [request for request in accepted if request.is_change] if record.kind is RecordKind.APPLIED else accepted
        )
        by_op = [request for request in changes if record.op_id and request.first("op_id") == record.op_id]
        arrived = [request for request in changes if _is_received_by(request, record.at)]
        return _latest(by_op, record.at) or _latest(arrived, record.at) or _latest(changes, record.at)
    by_action = [request for request in accepted if record.action and request.action == record.action]
    return _latest(by_action, record.at) or _latest(accepted, record.at)


def _is_received_by(request: TracedRequest, at: float) -> bool:
    return any(record.kind is RecordKind.RECEIVED_SPEC and record.at <= at + 0.001 for record in request.records)


def _with_version(record: LogRecord, requests: Sequence[TracedRequest]) -> LogRecord:
    """Give "Publishing" the version with which the same database event was sent."""
    if record.version > 0 or not record.event:
        return record
    for request in requests:
        if any(one.event == record.event and one.version > 0 for one in request.records):
            return record._replace(version=request.version)
    return record


def _attribute(request: TracedRequest, record: LogRecord) -> None:
    if record.kind is RecordKind.REQUEST_RECEIVED:
        return
    request.records.append(record)
    if record.kind is RecordKind.REQUEST_REJECTED:
        request.rejection, request.is_surely_rejected = record.detail or "the server rejected it", True
    elif record.kind is RecordKind.NO_OP:
        request.no_op = record.detail or "it changes nothing"


def _owner_of_update(update: StatusUpdateRecords, requests: Sequence[TracedRequest]) -> TracedRequest | None:
    accepted = [request for request in requests if not request.rejection and not request.no_op]
    deletes = [request for request in accepted if request.action == "delete"]
    if update.is_deleting or update.confirms_deletion:
        return _latest(deletes, update.at) or _latest(accepted, update.at)
    if update.version > 0:
        return _latest(
            [request for request in accepted if request.version == update.version and request.is_change], update.at
        )
    if update.has(RecordKind.STALE):
        return None
    return _latest(accepted, update.at) or (accepted[0] if accepted and accepted[0].arrival is None else None)


def _link(requests: Sequence[TracedRequest]) -> None:
    accepted = [request for request in requests if not request.rejection and not request.no_op]
    for request in requests:
        request.next_request = next(
            (
                other
                for other in accepted
                if other.incarnation == request.incarnation and other.at > request.at and other is not request
            ),
            None,
        )
