"""Find the request of one resource that a record belongs to. Pure.

A resource may have a hundred thousand requests and records, so each record is looked up, by its time and what it names,
instead of being compared with all requests.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.match.status_updates import OF_STATUS_EVENTS, StatusUpdateRecords
from maestropy.trace.logs.match.traced_request import TracedRequest

SLACK: Final = 0.5
"""Seconds by which clocks may differ."""
SPEC: Final = frozenset({
    RecordKind.PUBLISHING, RecordKind.SENDING_SPEC, RecordKind.SENT_TO_AGENTS, RecordKind.RECEIVED_SPEC
})  # fmt: skip
_ON_AGENT: Final = frozenset(
    {
        RecordKind.STORED,
        RecordKind.APPLIED,
        RecordKind.APPLY_FAILED,
        RecordKind.DECODE_FAILED,
        RecordKind.CONTROLLER_FAILED,
    }
)
_OF_DELETIONS: Final = frozenset({RecordKind.DELETING, RecordKind.REMOVED, RecordKind.PENDING_DELETION})
Fits = Callable[[TracedRequest], bool]


class _InOrder:
    """Requests in order of time."""

    __slots__ = ("_requests", "_times")

    def __init__(self) -> None:
        self._requests: list[TracedRequest] = []
        self._times: list[float] = []

    def add(self, request: TracedRequest) -> None:
        place = bisect_right(self._times, request.at)
        self._times.insert(place, request.at)
        self._requests.insert(place, request)

    def first(self, fits: Fits) -> TracedRequest | None:
        return next(filter(fits, self._requests), None)

    def latest(self, at: float, fits: Fits) -> TracedRequest | None:
        """Return the last request that started by `at`, within the tolerance of clocks; the first of one time."""
        found: TracedRequest | None = None
        for place in range(bisect_right(self._times, at + SLACK) - 1, -1, -1):
            request = self._requests[place]
            if found is not None and request.at < found.at:
                break
            if fits(request):
                found = request
        return found


class RequestOwners:
    """The requests of one resource, by what their records name."""

    def __init__(self, requests: Iterable[TracedRequest]) -> None:
        self._all = _InOrder()
        self._by_action: dict[str, _InOrder] = defaultdict(_InOrder)
        self._by_version: dict[int, _InOrder] = defaultdict(_InOrder)
        self._by_operation: dict[str, _InOrder] = defaultdict(_InOrder)
        self._with_operation: set[int] = set()
        """The requests among these, by their identities in memory."""
        self._by_event: dict[str, TracedRequest] = {}
        self._consumers: set[str] = set()
        for request in requests:
            self.add(request)

    def add(self, request: TracedRequest) -> None:
        """Add a request."""
        self._all.add(request)
        self._by_action[request.action].add(request)
        if request.is_change:
            self._by_version[request.version].add(request)
        if request.arrival is not None:
            self._consumers.add(request.arrival.consumer)
            self._note_operation(request, request.arrival.op_id)

    def attribute(self, record: LogRecord, *, consumer: str) -> None:
        """Add a record that is about no status to its request; `consumer` is that of its agent."""
        of_consumer = self._of_consumer(consumer)
        request = self._owner(record, lambda request: of_consumer(request) and not _is_later(request, record))
        if request is None:
            return
        request.records.append(record)
        self._note_operation(request, record.op_id)
        if record.event and record.version > 0:
            self._by_event.setdefault(record.event, request)
        if record.kind is RecordKind.RECEIVED_SPEC:
            request.received_at = min(request.received_at, record.at)
        elif record.kind is RecordKind.REQUEST_REJECTED:
            request.rejection, request.is_surely_rejected = record.detail or "the server rejected it", True
        elif record.kind is RecordKind.NO_OP:
            request.no_op = record.detail or "it changes nothing"

    def _note_operation(self, request: TracedRequest, op_id: str) -> None:
        """Note the first op-id of a request."""
        if op_id and id(request) not in self._with_operation:
            self._with_operation.add(id(request))
            self._by_operation[op_id].add(request)

    def _of_consumer(self, consumer: str) -> Fits:
        """Return which requests may be of a consumer; all if none is. Two environments may have one ID."""
        if consumer not in self._consumers or len(self._consumers) == 1:
            return _any
        return lambda request: request.arrival is None or request.arrival.consumer == consumer

    def matching(
        self, record: LogRecord, *, action: str, version: int, fits: Fits | None = None
    ) -> TracedRequest | None:
        """Return the request of this action or version that a record of publishing it is about."""
        fits = fits or _any
        if action == "delete":
            return self._by_action["delete"].latest(record.at, fits)
        if version > 0:
            return self._by_version[version].latest(record.at, fits)
        return self._by_action[action].latest(record.at, lambda request: not request.rejection and fits(request))

    def _owner(self, record: LogRecord, is_own: Fits) -> TracedRequest | None:
        kind, at = record.kind, record.at
        if kind is RecordKind.REQUEST_RECEIVED:
            return None  # every arrival has made its request
        if kind in (RecordKind.REQUEST_REJECTED, RecordKind.NO_OP):
            return self._all.latest(at, lambda request: is_own(request) and _is_of_operation(request, record.op_id))

        def fits(request: TracedRequest) -> bool:
            return _is_accepted(request) and is_own(request)

        if kind in SPEC:
            action = "delete" if record.is_deleting or record.action == "delete" else record.action
            return self.matching(record, action=action, version=self._version(record, is_own), fits=fits)
        deletes = self._by_action["delete"]
        if kind in _OF_DELETIONS or (kind is RecordKind.APPLY_FAILED and record.action == "delete"):
            return deletes.latest(at, fits) or self._all.latest(at, fits)
        if kind in _ON_AGENT:
            return self._on_agent(record, fits)
        by_action = self._by_action[record.action].latest(at, fits) if record.action else None
        return by_action or self._all.latest(at, fits)

    def _on_agent(self, record: LogRecord, fits: Fits) -> TracedRequest | None:
        """Return the request that an agent was handling: of the same operation, else received, else known by then."""

        def is_handled(request: TracedRequest) -> bool:
            return (request.is_change or record.kind is not RecordKind.APPLIED) and fits(request)

        by_operation = self._by_operation.get(record.op_id) if record.op_id else None
        return (
            (by_operation.latest(record.at, is_handled) if by_operation is not None else None)
            or self._all.latest(record.at, lambda one: one.received_at <= record.at + 0.001 and is_handled(one))
            or self._all.latest(record.at, is_handled)
        )

    def _version(self, record: LogRecord, is_own: Fits) -> int:
        """Return the version of a record; "Publishing" has that with which the same database event was sent."""
        if record.version > 0 or not record.event:
            return record.version
        sent = self._by_event.get(record.event)
        return sent.version if sent is not None and is_own(sent) else record.version

    def of_update(self, update: StatusUpdateRecords, *, consumer: str) -> TracedRequest | None:
        """Return the request that a status reports on."""
        of_consumer, at = self._of_consumer(consumer), update.at
        named = [record for record in update.records if record.kind not in OF_STATUS_EVENTS]

        def fits(request: TracedRequest) -> bool:
            is_own = _is_accepted(request) and of_consumer(request)
            return is_own and not any(_is_later(request, record) for record in named)

        if update.is_deleting or update.confirms_deletion:
            return self._by_action["delete"].latest(at, fits) or self._all.latest(at, fits)
        if update.version > 0:
            return self._by_version[update.version].latest(at, fits)
        if update.has(RecordKind.STALE):
            return None
        first = self._all.first(fits)
        return self._all.latest(at, fits) or (first if first is not None and first.arrival is None else None)


def _any(_: TracedRequest) -> bool:
    return True


def _is_later(request: TracedRequest, record: LogRecord) -> bool:
    """Say whether a request arrived after a record was written, by the clock of one server: that has no tolerance."""
    arrival = request.arrival
    return arrival is not None and arrival.file == record.file and record.at < arrival.at


def _is_accepted(request: TracedRequest) -> bool:
    return not request.rejection and not request.no_op


def _is_of_operation(request: TracedRequest, op_id: str) -> bool:
    return not op_id or not request.arrival or request.arrival.op_id == op_id
