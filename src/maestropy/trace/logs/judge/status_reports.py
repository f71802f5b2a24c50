"""Choose the status updates of a request that tell what became of it: the stages after the apply are theirs. Pure.

A Go agent reports on an update before it has applied it: its status has the new version, and the conditions of the
version before. A failure is reported too, and after a later success another status must reach the client. So only the
statuses since the success tell that a request is done.
"""

from collections.abc import Sequence
from typing import Final

from maestropy.trace.logs.judge.apply_outcome import ApplyOutcome
from maestropy.trace.logs.log_records import NOT_TRIED, LogRecord
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.match.status_updates import StatusUpdateRecords
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

_SAME_MOMENT: Final = 0.001
_REPORTERS: Final = 2
"""So many controllers of a Go agent report on an update: one what is available, the other what it applied."""


def telling(request: TracedRequest, outcome: ApplyOutcome) -> list[StatusUpdateRecords]:
    """Return the status updates that tell the outcome of a change, in order of time; all those of other requests."""
    updates = sorted(request.status_updates, key=_sent_at)
    if not request.is_change or outcome.is_repeat:
        return updates
    tried = [update for update in updates if not _is_untried(update)]
    if outcome.failures or not outcome.since:
        return tried
    since = [update for update in tried if update.sent_at >= outcome.since - _SAME_MOMENT]
    if since or outcome.earlier or len(tried) < _REPORTERS:
        return since
    return tried  # both controllers had reported: what the agent wrote since was a later reconciliation


def untried(request: TracedRequest) -> list[StatusUpdateRecords]:
    """Return the status updates of a change if all of them are of the time before the agent tried it."""
    updates = sorted(request.status_updates, key=_sent_at)
    return updates if request.is_change and all(_is_untried(update) for update in updates) else []


def is_doubtful(request: TracedRequest, outcome: ApplyOutcome, environment: Environment) -> bool:
    """Say whether the statuses of an update may all be of the time before the agent applied it.

    Without conditions and without a record of an applied object, only a status of each reporter shows that it did.
    """
    if request.version <= 1 or not request.is_change or outcome.is_shown or outcome.failures:
        return False
    received = request.stage(Stage.AGENT_RECEIVES)
    if request.arrival is None and not received:
        return False  # only its statuses are in these logs, of whatever time after it
    if any(environment.writers[record.file].is_ours for record in received):
        return False  # this project's agent reports on a version after it has tried it
    reports = [update for update in telling(request, outcome) if not _is_resync(update)]
    return len(reports) < _REPORTERS


def _is_resync(update: StatusUpdateRecords) -> bool:
    return any(record.action == "resync" for record in update.records)


def _is_untried(update: StatusUpdateRecords) -> bool:
    return any(record.detail == NOT_TRIED for record in update.records)


def _sent_at(update: StatusUpdateRecords) -> float:
    return update.sent_at


def records_of(updates: Sequence[StatusUpdateRecords], stage: int) -> list[LogRecord]:
    """Return the records of status updates at a stage, in order of time."""
    own = [record for update in updates for record in update.records if record.stage == stage]
    return sorted(own, key=lambda record: record.at)
