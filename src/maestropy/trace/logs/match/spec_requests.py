"""Split the records of one resource into spec requests, and attribute each record to its request.

An incarnation of a resource lasts from a create to its confirmed deletion; the same ID may be used again. Within an
incarnation, versions count the accepted changes: a create is version 1, and a status names the version it reports on. A
delete keeps the version, and after stage 1 also the op-id, of the change before it. So deletes are recognised by their
type, never by op-id. Pure.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from maestropy.trace.logs.log_records import LogRecord, RecordKind, payload_of
from maestropy.trace.logs.match.request_owners import SLACK, SPEC, RequestOwners
from maestropy.trace.logs.match.status_updates import is_about_status, status_updates_of
from maestropy.trace.logs.match.traced_request import CHANGES
from maestropy.trace.logs.match.traced_request import TracedRequest as TracedRequest
from maestropy.trace.stages import AGENT_STAGES, Stage

_ON_SERVER = (Stage.SERVER_RECEIVES, Stage.SERVER_PUBLISHES)


def spec_requests_of(resource: str, records: Sequence[LogRecord]) -> list[TracedRequest]:
    """Return the requests of `resource` with their records, in order of time."""
    agents = {
        record.file: record.consumer
        for record in records
        if record.kind is RecordKind.RECEIVED_SPEC and record.consumer
    }
    records = _of_own_agents(records, agents)
    requests = _arrivals(resource, records)
    _count_versions(requests, records)
    _add_without_arrival(resource, requests, records)
    requests.sort(key=lambda request: request.at)
    owners = RequestOwners(requests)
    for record in records:
        if not is_about_status(record):
            owners.attribute(record, consumer=record.consumer or agents.get(record.file, ""))
    for update in status_updates_of([record for record in records if is_about_status(record)]):
        consumer = next((record.consumer for record in update.records if record.consumer), "")
        request = owners.of_update(update, consumer=consumer)
        if request is not None:
            request.status_updates.append(update)
    _link(requests)
    return requests


def _of_own_agents(records: Sequence[LogRecord], agents: Mapping[int, str]) -> Sequence[LogRecord]:
    """Return the records without those of agents of consumers for which no server received or published anything."""
    named = {record.consumer for record in records if record.stage in _ON_SERVER and record.consumer}
    if not named or named.issuperset(agents.values()):
        return records
    return [
        record
        for record in records
        if record.stage not in AGENT_STAGES or (record.consumer or agents.get(record.file, "")) in {"", *named}
    ]


def _arrivals(resource: str, records: Sequence[LogRecord]) -> list[TracedRequest]:
    requests: list[TracedRequest] = []
    incarnation, is_over = 1, False
    arrived: set[tuple[float, str, str, str]] = set()
    rows = _InsertedRows(records)
    for record in records:
        if record.kind is RecordKind.PUBLISHING and record.action == "delete":
            # A resource that is inserted again after its deletion is another one, even if nothing confirms that.
            is_over = is_over or rows.last > record.at
        elif record.kind is RecordKind.DELETE_SENT or (
            record.kind is RecordKind.BROADCAST and record.action == "delete"
        ):
            is_over = True
        elif record.kind is RecordKind.REQUEST_RECEIVED and record.action in (*CHANGES, "delete"):
            # Overlapping collections and exports have the same line twice.
            identity = (record.at, record.action, record.cloudevent_id, record.op_id)
            if identity in arrived:
                continue
            arrived.add(identity)
            if record.action == "create" and (is_over or rows.is_new(record.at)):
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


class _InsertedRows:
    """When rows of a resource were inserted into the database."""

    def __init__(self, records: Sequence[LogRecord]) -> None:
        inserted = [record for record in records if record.kind is RecordKind.PUBLISHING and record.action == "create"]
        self.last = max((record.at for record in inserted), default=-math.inf)
        self._first = min((record.at for record in inserted), default=math.inf)
        # Each row has one event, which every attempt to publish it names.
        first: dict[str, float] = {}
        for record in inserted:
            if record.event:
                first[record.event] = min(record.at, first.get(record.event, math.inf))
        self._rows = sorted(first.values())
        self._creates = sorted(
            record.at for record in records if record.kind is RecordKind.REQUEST_RECEIVED and record.action == "create"
        )

    def is_new(self, at: float) -> bool:
        """Say whether the create of a time made another row: the row before was deleted, though no record shows it."""
        after = bisect_right(self._creates, at)
        until = self._creates[after] if after < len(self._creates) else math.inf
        return self._first <= at and bisect_right(self._rows, at) < bisect_right(self._rows, until)


def _count_versions(requests: Sequence[TracedRequest], records: Sequence[LogRecord]) -> None:
    by_op, announced, later = _versions_by_operation(records), _Announced(records), _LaterVersions(records)
    incarnation, current, payload = 0, 0, ""
    first: TracedRequest | None = None
    for at, request in enumerate(requests):
        if request.incarnation != incarnation:
            incarnation, current, payload = request.incarnation, 0, ""
        assert request.arrival is not None
        wanted = payload_of(request.arrival.detail)
        is_announced = bool(wanted) and announced.has(request, until=_next_arrival(requests, at))
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
                by_op.get(request.arrival.op_id, 0) or (sent + 1 if sent > 0 else 0) or later.after(current, request.at)
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


class _Announced:
    """When servers made events of requests."""

    def __init__(self, records: Iterable[LogRecord]) -> None:
        spec = [record for record in records if record.kind in SPEC]
        self._all = [record.at for record in spec]
        self._unnamed = [record.at for record in spec if not record.op_id]
        self._last = {record.op_id: record.at for record in spec if record.op_id}

    def has(self, request: TracedRequest, *, until: float) -> bool:
        """Say whether any record of the time to the next request shows that a server made an event of this one."""
        op_id, since = request.arrival.op_id if request.arrival else "", request.at - SLACK
        times = self._unnamed if op_id else self._all
        return bisect_left(times, since) < bisect_left(times, until) or self._last.get(op_id, -math.inf) >= since


class _LaterVersions:
    """Which versions the records from a time on name."""

    def __init__(self, records: Sequence[LogRecord]) -> None:
        versioned = [record for record in records if record.version > 0]
        self._times = [record.at for record in versioned]
        self._highest = [*accumulate((record.version for record in reversed(versioned)), max)][::-1]
        self._lowest = [*accumulate((record.version for record in reversed(versioned)), min)][::-1]
        self._published = max(
            (record.at for record in records if record.kind is RecordKind.PUBLISHING and record.action == "update"),
            default=-math.inf,
        )

    def after(self, current: int, at: float) -> int:
        """Return the version after `current` if anything from a time on shows that there was one; 0 if nothing does."""
        place = bisect_left(self._times, at - SLACK)
        is_later = place < len(self._times) and self._highest[place] > current
        if current:
            return current + 1 if is_later or self._published >= at else 0
        return self._lowest[place] if is_later else 0


def _add_without_arrival(resource: str, requests: list[TracedRequest], records: Sequence[LogRecord]) -> None:
    """Add requests whose arrival is not in the logs, but whose later stages are."""
    spec = [
        record
        for record in records
        if record.kind in SPEC and (record.version > 0 or record.kind is RecordKind.PUBLISHING)
    ]
    # A work that is sent again is published as an update, whatever its version, which the event that is sent names.
    sent = {record.event for record in spec if record.event and record.version > 0}
    owners = RequestOwners(requests)
    arrived = [request.at for request in requests]
    incarnations = [1, *accumulate((request.incarnation for request in requests), max)]
    # "Publishing" does not contain the version: it may belong to a request that other records name.
    for record in sorted(spec, key=lambda record: (record.version <= 0, record.at)):
        action = "delete" if record.is_deleting or record.action == "delete" else record.action
        is_named = record.version <= 0 and record.event in sent
        if is_named or owners.matching(record, action=action, version=record.version) is not None:
            continue
        if action in ("resync", "update"):
            # An agent behind the gRPC broker that was away gets new works as updates.
            action = "create" if record.version == 1 else "update"
        request = TracedRequest(
            resource=resource,
            action=action,
            at=record.at,
            incarnation=incarnations[bisect_right(arrived, record.at)],
            version=max(record.version, 0),
        )
        requests.append(request)
        owners.add(request)
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


def _link(requests: Sequence[TracedRequest]) -> None:
    """Note the next accepted request of each one; they are in order of time."""
    accepted: dict[int, list[TracedRequest]] = defaultdict(list)
    for request in requests:
        if not request.rejection and not request.no_op:
            accepted[request.incarnation].append(request)
    times = {incarnation: [request.at for request in own] for incarnation, own in accepted.items()}
    for request in requests:
        after = bisect_right(times.get(request.incarnation, ()), request.at)
        request.next_request = next(iter(accepted[request.incarnation][after : after + 1]), None)
