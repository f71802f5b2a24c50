"""Decide which records of a request prove that a stage was done, and which that it failed. Pure.

The stages after the apply are those of the status updates that tell what became of the request. A Go agent reports on
an update before it has applied it: its status has the new version, and the conditions of the version before. A failure
is reported too, and after a later success another status must reach the client. So only the statuses since the success
tell that a request is done.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from maestropy.trace.logs.evidence import DONE, FAILED
from maestropy.trace.logs.judge import apply_outcome, causes, observability
from maestropy.trace.logs.judge.request_context import RequestContext
from maestropy.trace.logs.log_records import NOT_TRIED, LogRecord, RecordKind
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.status_updates import StatusUpdateRecords
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

_OF_CONTROLLERS: Final = frozenset({RecordKind.APPLY_FAILED, RecordKind.CONTROLLER_FAILED})
_SAME_MOMENT: Final = 0.001
_REPORTERS: Final = 2
"""So many controllers of a Go agent report on an update: one what is available, the other what it applied."""


class StageEvidence:
    """What the records of one request show of each stage; every answer is found once, and asked for often."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._request = context.request
        self._environment = context.environment
        self._proofs: dict[int, list[LogRecord]] = {}
        self._failures: dict[int, list[LogRecord]] = {}
        self._reasons: dict[tuple[int, float], observability.NotObservable | None] = {}
        self.stops: dict[int, bool] = {}
        """Whether the request stopped before a stage, as far as the judge has decided it."""

    @cached_property
    def outcome(self) -> apply_outcome.ApplyOutcome:
        """What became of the request on the cluster."""
        return apply_outcome.outcome(self._request, self._environment)

    @cached_property
    def _updates(self) -> list[StatusUpdateRecords]:
        return sorted(self._request.status_updates, key=lambda update: update.sent_at)

    @cached_property
    def reports(self) -> list[StatusUpdateRecords]:
        """The status updates that tell the outcome of a change, in order of time; all those of other requests."""
        outcome = self.outcome
        if not self._request.is_change or outcome.is_repeat:
            return self._updates
        tried = [update for update in self._updates if not _is_untried(update)]
        if outcome.failures or not outcome.since:
            return tried
        since = [update for update in tried if update.sent_at >= outcome.since - _SAME_MOMENT]
        if since or outcome.earlier or len(tried) < _REPORTERS:
            return since
        return tried  # both controllers had reported: what the agent wrote since was a later reconciliation

    @property
    def untried(self) -> list[StatusUpdateRecords]:
        """The status updates of a change if all of them are of the time before the agent tried it."""
        return self._updates if self._request.is_change and all(map(_is_untried, self._updates)) else []

    @cached_property
    def is_doubtful(self) -> bool:
        """Whether the statuses of an update may all be of the time before the agent applied it.

        Without conditions and without a record of an applied object, only a status of each reporter shows that it did.
        """
        request, outcome = self._request, self.outcome
        if request.version <= 1 or not request.is_change or outcome.is_shown or outcome.failures:
            return False
        received = request.stage(Stage.AGENT_RECEIVES)
        if request.arrival is None and not received:
            return False  # only its statuses are in these logs, of whatever time after it
        if any(self._context.writer(record).is_ours for record in received):
            return False  # this project's agent reports on a version after it has tried it
        return sum(not _is_resync(update) for update in self.reports) < _REPORTERS

    @cached_property
    def last_proven(self) -> int:
        """The last stage that a record shows; 0 for none."""
        return max((number for number in range(1, 10) if self[number]), default=0)

    @cached_property
    def is_on_agent(self) -> bool:
        """Whether errors of the agent about it show that it has received it."""
        return bool(self.failures(Stage.AGENT_HANDLES) or self.failures(Stage.AGENT_PUBLISHES_STATUS))

    def moment(self, number: int) -> float:
        """Return when the last stage before this one was done; when the request came, if none is shown."""
        done = (self[earlier][0].at for earlier in range(1, number) if self[earlier])
        return max(done, default=self._request.at)

    def __getitem__(self, number: int) -> list[LogRecord]:
        """Return the records that show that a stage was done."""
        proof = self._proofs.get(number)
        if proof is None:
            proof = self._proofs[number] = self._proof(number)
        return proof

    def failures(self, number: int) -> list[LogRecord]:
        """Return the errors of a stage that no later success has made good."""
        if number not in self._failures:
            self._failures[number] = self._failed(number)
        return self._failures[number]

    def not_observable_reason(self, number: int, *, moment: float) -> observability.NotObservable | None:
        """Return why a stage could not be seen around a moment; nothing when it could."""
        key = (number, moment)
        if key not in self._reasons:
            self._reasons[key] = observability.not_observable_reason(number, self._context, moment=moment)
        return self._reasons[key]

    def _proof(self, number: int) -> list[LogRecord]:
        request = self._request
        if request.action == "delete":
            return _proof_of_delete(request, number, self._environment)
        done = [record for record in request.stage(number) if record.kind in DONE[number]]
        if number < Stage.AGENT_HANDLES:
            return _after_failures(request, done) if number == Stage.SERVER_PUBLISHES else done
        if number == Stage.AGENT_HANDLES:
            # Attempts that failed may be recorded as applied too.
            outcome = self.outcome
            if outcome.is_repeat:
                # What the agent wrote after it had reported is of a later reconciliation.
                reported = min((update.sent_at for update in self.reports), default=math.inf)
                return [record for record in done if record.at <= reported + apply_outcome.ERROR_FOLLOWS]
            return [record for record in done if record.at >= outcome.since] or done if outcome.earlier else done
        if not done:
            return done
        updates = self.reports
        if number == Stage.SERVER_HANDLES_STATUS:
            updates = [update for update in updates if update.result in ("sent", "nochange")]
        proving = DONE[number] - {RecordKind.DELETE_SENT}
        own = (record for update in updates for record in update.records if record.stage == number)
        return sorted((record for record in own if record.kind in proving), key=_moment)

    def _failed(self, number: int) -> list[LogRecord]:
        if number == Stage.AGENT_HANDLES:
            return list(self.outcome.failures)
        records, proven = self._request.stage(number), self[number]
        if number == Stage.SERVER_PUBLISHES and records and any(self[later] for later in range(3, 10)):
            # It reached the agent: it was published in spite of an error, or the error is of an event left over.
            records = [record for record in records if record.kind is not RecordKind.PUBLISH_FAILED]
        if number == Stage.SERVER_HANDLES_STATUS and not proven:
            return self._unhandled_status(records)
        errors = [record for record in records if record.kind in FAILED[number]]
        if number == Stage.AGENT_PUBLISHES_STATUS:
            # Controllers publish what they found, and report errors of both with the same message.
            handled = (record for record in self._request.stage(4) if record.kind in _OF_CONTROLLERS)
            unpublished = (record for record in handled if apply_outcome.NOT_PUBLISHED in record.detail)
            errors = sorted([*errors, *unpublished], key=_moment)
        last = max((record.at for record in proven), default=0.0)
        return errors if any(record.at > last for record in errors) else []

    def _unhandled_status(self, records: Sequence[LogRecord]) -> list[LogRecord]:
        """Return the errors of handling a status, or the records of all instances that left it to another one."""
        received = self._request.stage(Stage.SERVER_RECEIVES_STATUS)
        passed = [record for record in received if record.kind is RecordKind.NOT_OWNED]
        taken = {record.file for record in received if record.kind is RecordKind.STATUS_UPDATE_RECEIVED}
        errors = [record for record in records if record.kind is RecordKind.STATUS_FAILED]
        is_elsewhere = self._environment.lacks_instances or bool(self._request.stage(Stage.SERVER_BROADCASTS_STATUS))
        is_elsewhere = is_elsewhere or bool(observability.silent_owner(self._context))
        if errors or records or is_elsewhere or not taken <= {record.file for record in passed}:
            return errors
        return passed


def _is_resync(update: StatusUpdateRecords) -> bool:
    return any(record.action == "resync" for record in update.records)


def _is_untried(update: StatusUpdateRecords) -> bool:
    return any(record.detail == NOT_TRIED for record in update.records)


def overcome_failures(request: TracedRequest) -> list[LogRecord]:
    """Return the failed attempts to publish a request that another attempt made good, before it reached the agent."""
    records = request.stage(Stage.SERVER_PUBLISHES)
    received = min((record.at for record in request.stage(Stage.AGENT_RECEIVES)), default=math.inf)
    failed = [record for record in records if record.kind is RecordKind.PUBLISH_FAILED and record.at < received]
    published = max((record.at for record in records if record.kind in DONE[Stage.SERVER_PUBLISHES]), default=0.0)
    return failed if failed and failed[-1].at < published else []


def _after_failures(request: TracedRequest, done: list[LogRecord]) -> list[LogRecord]:
    """Return the records of the attempt that succeeded: every attempt says "Publishing" before its error."""
    failed = overcome_failures(request)
    return [record for record in done if record.at > failed[-1].at] if failed else done


def _proof_of_delete(request: TracedRequest, number: int, environment: Environment) -> list[LogRecord]:
    if number < Stage.AGENT_HANDLES:
        done = [record for record in request.stage(number) if record.kind in DONE[number]]
        return _after_failures(request, done) if number == Stage.SERVER_PUBLISHES else done
    confirming = [update for update in request.status_updates if update.confirms_deletion]
    if number == Stage.AGENT_HANDLES:
        # A requested deletion does not prove that objects with finalizers are deleted.
        if not confirming and causes.undeleted_objects(request, environment):
            return []
        requested = [record for record in request.stage(number) if record.kind is RecordKind.DELETING]
        removed = [record for record in request.stage(number) if record.kind is RecordKind.REMOVED]
        return removed or causes.gone_objects(request)[:1] or requested
    # For a deletion only the last status counts: earlier ones report "deleting".
    last = [record for update in confirming for record in update.records if record.stage == number]
    proving = {RecordKind.DELETE_SENT} if number == Stage.SERVER_HANDLES_STATUS else DONE[number]
    is_broadcast = number == Stage.SERVER_BROADCASTS_STATUS
    records = [record for record in last if record.kind in proving and (not is_broadcast or record.action == "delete")]
    if number == Stage.SERVER_SENDS_STATUS and not records:
        broadcasts = [record.at for record in _proof_of_delete(request, Stage.SERVER_BROADCASTS_STATUS, environment)]
        records = [
            record
            for record in request.stage(number)
            if record.kind in proving and broadcasts and record.at >= min(broadcasts)
        ]
    return sorted(records, key=_moment)


def _moment(record: LogRecord) -> float:
    return record.at
