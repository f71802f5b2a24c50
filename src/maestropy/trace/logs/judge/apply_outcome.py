"""Decide whether the agent applied the version of a request, from everything the logs show. Pure.

Three kinds of evidence: the conditions of logged statuses, the agent's records of applied objects, and its errors. A
status that names the version decides, unless the agent applied it after that status. Without one, a success without an
error soon after it decides ("applied" is logged before the error is checked), and errors that end although the agent
would have retried were overcome. Once applied, a later error does not undo it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from maestropy.journal.redact import HIDDEN
from maestropy.trace.findings.apply_errors import code_of_apply_error
from maestropy.trace.logs.evidence import DONE, FAILED
from maestropy.trace.logs.log_records import NOT_APPLIED, LogRecord, RecordKind, says_applied
from maestropy.trace.logs.match.spec_requests import TracedRequest
from maestropy.trace.logs.objects import identity
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.stages import Stage

NOT_PUBLISHED: Final = "Failed to publish resource"
# Two controllers of a Go agent conflict and one retries at once, or a work is deleted while one reads it. If the retry
# never succeeded, later stages would be missing.
_OWN_CONFLICT: Final = re.compile(
    r"the resource version of the work is outdated|manifestworks\.work\.open-cluster-management\.io \S* not found"
)
# The agent's own list of applied objects: its controllers, and agents that share a cluster, write it at the same time.
_OWN_RECORD: Final = re.compile(
    r"Operation cannot be fulfilled on appliedmanifestworks\.work\.open-cluster-management\.io"
)
_SETTLED_AFTER: Final = 10.0
ERROR_FOLLOWS: Final = 1.0
"""An attempt logs "applied" and then its error, usually within milliseconds; calls of webhooks take longer."""
_FIRST_RETRY: Final = 5.0
_NEXT_RETRY: Final = 4.0
"""The agent doubles the pause between two attempts; twice that is allowed for a busy queue."""
_LONGEST_RETRY: Final = 2000.0
_LONG: Final = 30.0
_PATTERN: Final = 4
"""So many errors show that the agent retries, and how often."""
_RECORDED: Final = "INFO: "
"""The start of a record that is only written after a success; "Server side applied" is written before the result."""
_LASTING: Final = frozenset({"MT-401", "MT-403", "MT-404", "MT-405", "MT-410", "MT-424"})
"""Errors that remain until somebody changes something."""
_PASSING: Final = frozenset({"MT-409", "MT-413"})
"""Errors that pass by themselves; an agent that succeeds after one may log nothing more."""


@dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """What became of a request on the cluster."""

    failures: tuple[LogRecord, ...] = ()
    """The errors that still hold; empty when it was applied, or when nothing is known."""
    earlier: tuple[LogRecord, ...] = ()
    """Errors of attempts before the one that succeeded."""
    later: tuple[LogRecord, ...] = ()
    """Errors of later reconciliations, after it was applied."""
    is_shown: bool = False
    """Whether a record shows that it was applied."""
    since: float = 0.0
    """When it was applied, where that is known and statuses of an earlier time do not tell about it; else 0."""
    applied_at: float = 0.0
    """When the agent recorded an applied object after the last error, at the end of its log; else 0."""
    is_repeat: bool = False
    """Whether it wants what an earlier version wanted that was applied: nothing is to be changed, or reported again."""
    is_brief: bool = False
    """Whether the log ends with errors that the next attempt may overcome."""


def apply_errors(request: TracedRequest) -> list[LogRecord]:
    """Return the agent's errors about the objects of a request."""
    is_handled = _is_handled(request)
    return [
        record
        for record in request.stage(Stage.AGENT_HANDLES)
        if record.kind in FAILED[Stage.AGENT_HANDLES]
        and (record.action != "delete" or request.action == "delete")  # a finalizer applies nothing
        and not _OWN_CONFLICT.search(record.detail)
        and NOT_PUBLISHED not in record.detail
        and not (is_handled and _is_own_record(record))
    ]


def bookkeeping_errors(request: TracedRequest) -> list[LogRecord]:
    """Return the agent's conflicts over its own record of the work, where it got on with the work all the same."""
    if not _is_handled(request):
        return []
    errors = (record for record in request.stage(Stage.AGENT_HANDLES) if record.kind in FAILED[Stage.AGENT_HANDLES])
    return [record for record in errors if _is_own_record(record)]


def _is_handled(request: TracedRequest) -> bool:
    """Say whether a record shows that the agent got on with the work: of an object, or of a status."""
    handled = request.stage(Stage.AGENT_HANDLES)
    return bool(request.status_updates) or any(record.kind in DONE[Stage.AGENT_HANDLES] for record in handled)


def _is_own_record(record: LogRecord) -> bool:
    return _OWN_RECORD.search(record.detail) is not None


def statements(request: TracedRequest) -> list[LogRecord]:
    """Return the records of statuses that say whether the version was applied, in the order of the statuses."""
    return [record for _, record in _statements(request)]


def _statements(request: TracedRequest) -> list[tuple[float, LogRecord]]:
    """Return when each status was sent that says whether the version was applied, and the record that shows it."""
    if request.action == "delete":
        return []
    said: list[tuple[float, LogRecord]] = []
    for update in sorted(request.status_updates, key=lambda update: (update.sequence or 0, update.at)):
        telling = [record for record in update.records if says_applied(record.detail) or is_denial(record)]
        said += [(update.sent_at, record) for record in telling if not is_foreign(record, request)][:1]
    return said


def is_foreign(record: LogRecord, request: TracedRequest) -> bool:
    """Say whether a status names another consumer than the request: servers reject it, and it proves nothing."""
    consumer = request.arrival.consumer if request.arrival else ""
    return bool(record.consumer and consumer) and record.consumer != consumer


def is_denial(record: LogRecord) -> bool:
    """Say whether a status says that the version was not applied."""
    return record.detail.startswith(NOT_APPLIED)


def last_readable(records: Sequence[LogRecord]) -> LogRecord:
    """Return the last record whose error can be read: a server redacts messages about Secrets, an agent does not."""
    return next((record for record in reversed(records) if HIDDEN not in record.detail), records[-1])


def outcome(request: TracedRequest, environment: Environment) -> ApplyOutcome:
    """Return what became of a request."""
    known = _outcome(request, environment)
    if request.action == "unknown":
        known = replace(known, is_brief=False)  # the agent had it before its log begins: it has tried more than once
    own = bookkeeping_errors(request)
    return known if known.failures or not own else replace(known, earlier=(*own, *known.earlier))


def _outcome(request: TracedRequest, environment: Environment) -> ApplyOutcome:
    errors = apply_errors(request)
    if _is_repeat(request, errors, environment):
        return ApplyOutcome(later=tuple(errors), is_shown=True, is_repeat=True)
    if request.action == "delete":
        is_over = any(update.confirms_deletion for update in request.status_updates)
        removed = [record for record in request.stage(Stage.AGENT_HANDLES) if record.kind is RecordKind.REMOVED]
        is_failing = bool(errors) and not is_over and not any(record.at > errors[-1].at for record in removed)
        return ApplyOutcome(failures=tuple(errors) if is_failing else (), is_shown=is_over)
    said = _statements(request)
    if said:
        return _by_status(request, said, errors, environment)
    return _by_records(request, errors, environment)


def _is_repeat(request: TracedRequest, errors: Sequence[LogRecord], environment: Environment) -> bool:
    """Say whether an update wants what was applied before: a Go agent then writes nothing and reports it only once."""
    if request.repeats is None or any(is_denial(record) for record in statements(request)):
        return False
    if errors and not _is_settled_before(errors, (), request, environment):
        return False
    return outcome(request.repeats, environment).is_shown


def _applied(request: TracedRequest) -> list[LogRecord]:
    return [record for record in request.stage(Stage.AGENT_HANDLES) if record.kind is RecordKind.APPLIED]


def _by_status(
    request: TracedRequest,
    said: Sequence[tuple[float, LogRecord]],
    errors: Sequence[LogRecord],
    environment: Environment,
) -> ApplyOutcome:
    sent, success = next(((at, record) for at, record in said if not is_denial(record)), (0.0, None))
    if success is not None:
        denials = [(at, record) for at, record in said if is_denial(record) and record.at <= success.at]
        failed = [record for record in errors if record.at <= success.at]
        later = [record for record in errors if record.at > success.at]
        later += [said[-1][1]] if is_denial(said[-1][1]) else []
        before = max((*(at for at, _ in denials), *(record.at for record in failed)), default=0.0)
        applied = [record.at for record in _applied(request) if before < record.at <= sent]
        is_first = request.action == "create" and not before
        return ApplyOutcome(
            earlier=(*(record for _, record in denials), *failed),
            later=tuple(later),
            is_shown=True,
            since=0.0 if is_first else min(applied, default=sent),
        )
    # The status that tells of a success may never have come, or be in no log.
    last, denial = said[-1]
    applied_since = [record for record in _applied(request) if record.at > last]
    overcoming = _overcoming(errors, applied_since, environment) if errors else None
    if overcoming is not None:
        return ApplyOutcome(earlier=(*(record for _, record in said), *errors), is_shown=True, since=overcoming.at)
    return _failing(errors, applied_since, environment, status=(denial,))


def _by_records(request: TracedRequest, errors: Sequence[LogRecord], environment: Environment) -> ApplyOutcome:
    applied = _applied(request)
    # Before an update is applied, Go agents report on the version before; a create has none.
    since = _end_of_attempt(applied) if request.action != "create" else 0.0
    if not errors:
        return ApplyOutcome(is_shown=_is_success_shown(applied, request, environment), since=since)
    if _is_settled_before(errors, applied, request, environment):
        return ApplyOutcome(later=tuple(errors), is_shown=True, since=since)
    overcoming = _overcoming(errors, applied, environment)
    if overcoming is not None:
        return ApplyOutcome(earlier=tuple(errors), is_shown=True, since=overcoming.at)
    if request.status_updates and _did_not_fail_again(errors, request, environment):
        last = errors[-1].at
        is_told = any(record.at >= last for record in request.stage(Stage.AGENT_PUBLISHES_STATUS))
        return ApplyOutcome(earlier=tuple(errors), is_shown=True, since=last if is_told else 0.0)
    return _failing(errors, applied, environment)


def _end_of_attempt(applied: Sequence[LogRecord]) -> float:
    """Return when the first attempt wrote its last object; 0 if it wrote none."""
    last = applied[0].at if applied else 0.0
    for record in applied:
        if record.at > last + ERROR_FOLLOWS:
            break
        last = record.at
    return last


def _failing(
    errors: Sequence[LogRecord],
    applied: Sequence[LogRecord],
    environment: Environment,
    *,
    status: tuple[LogRecord, ...] = (),
) -> ApplyOutcome:
    """Return that errors hold, and whether they may be history by now."""
    if not errors:
        return ApplyOutcome(failures=status)
    last = errors[-1]
    since = [record for record in applied if record.at > last.at]
    applied_at = since[-1].at if since and not _fails_soon(since[-1], errors) else 0.0
    goes_on, lasted = _end(last.file, environment) - last.at, last.at - errors[0].at
    is_brief = goes_on < _FIRST_RETRY and lasted < _LONG and code_of_apply_error(last.detail) not in _LASTING
    return ApplyOutcome(failures=(*errors, *status), applied_at=applied_at, is_brief=is_brief)


def _parts(file: int, environment: Environment) -> set[int]:
    """Return the files of the pod that a file is of: a rotated log is several."""
    pod = environment.writers[file].pod
    return {number for number, writer in enumerate(environment.writers) if writer.pod == pod}


def _end(file: int, environment: Environment) -> float:
    """Return when the log of the pod that a file is of ends."""
    writers = [environment.writers[part] for part in _parts(file, environment)]
    return max(writer.last for writer in writers)


def _is_settled_before(
    errors: Sequence[LogRecord], applied: Sequence[LogRecord], request: TracedRequest, environment: Environment
) -> bool:
    """Say whether an attempt succeeded before the first error.

    An agent sends the status of an attempt and then logs its error, at once: an error a while after the status is one
    of a later reconciliation.
    """
    first = errors[0]
    parts = _parts(first.file, environment)
    sent = [record.at for record in request.stage(Stage.AGENT_PUBLISHES_STATUS) if record.file in parts]
    reported = any(at + ERROR_FOLLOWS < first.at for at in sent if not applied or at >= applied[0].at)
    if applied and applied[0].at < first.at:
        return reported or any(not _fails_soon(record, errors) for record in applied if record.at < first.at)
    return reported and not applied and (request.action == "create" or request.repeats is not None)


def _fails_soon(applied: LogRecord, errors: Sequence[LogRecord]) -> bool:
    return any(applied.at <= error.at <= applied.at + _SETTLED_AFTER for error in errors)


def _overcoming(
    errors: Sequence[LogRecord], applied: Sequence[LogRecord], environment: Environment
) -> LogRecord | None:
    """Return the record that shows that the agent succeeded after its last error."""
    last = errors[-1]
    later = [record for record in applied if record.at > last.at]
    failing = {name for name in (identity(error.detail) for error in errors) if name}
    recorded = {identity(record.detail) for record in later if record.detail.startswith(_RECORDED)}
    if failing and failing <= recorded:
        return later[-1]  # each object that failed was written since
    settled = [record for record in later if _is_settled(record, errors, applied, environment)]
    name = identity(last.detail)
    if name and any(identity(record.detail) == name for record in applied):
        settled = [record for record in settled if identity(record.detail) == name]
    return settled[0] if settled else None


def _is_success_shown(applied: Sequence[LogRecord], request: TracedRequest, environment: Environment) -> bool:
    """Say whether an attempt without an error is in the logs to its end: with its status, or long before their end."""
    if not applied:
        return False
    last, sent = applied[-1], request.stage(Stage.AGENT_PUBLISHES_STATUS)
    parts = _parts(last.file, environment)
    if any(record.at >= last.at and record.file in parts for record in sent):
        return True
    return any(_is_settled(record, (), (), environment) for record in applied)


def _is_settled(
    success: LogRecord, errors: Sequence[LogRecord], applied: Sequence[LogRecord], environment: Environment
) -> bool:
    """Say whether the agent's log goes on for so long that the error of the same attempt would be in it."""
    delays = [min((error.at - one.at for error in errors if error.at >= one.at), default=0.0) for one in applied]
    usual = max((delay for delay in delays if delay <= _SETTLED_AFTER), default=0.0)
    return _end(success.file, environment) >= success.at + max(ERROR_FOLLOWS, 2 * usual)


def _did_not_fail_again(errors: Sequence[LogRecord], request: TracedRequest, environment: Environment) -> bool:
    """Say whether the errors ended while the agent went on, which would have retried and logged an error again."""
    last = errors[-1]
    writer = environment.writers[last.file]
    parts = _parts(last.file, environment)
    times = [error.at for error in errors if error.file in parts]
    is_passing = code_of_apply_error(last.detail) in _PASSING
    is_retried = len(times) >= _PATTERN or is_passing
    if writer.is_ours or last.kind is not RecordKind.APPLY_FAILED or not is_retried:
        return False
    sent = [record.at for record in request.stage(Stage.AGENT_PUBLISHES_STATUS) if record.file in parts]
    if sent and max(sent) < last.at and not is_passing:
        return False  # a success changes the status, and this log has the statuses that were sent
    # An attempt logs its error twice or more, within milliseconds.
    pause = max((after - before for before, after in pairwise(times[-_PATTERN:])), default=0.0)
    retry = last.at + min(max(_FIRST_RETRY, pause * _NEXT_RETRY), _LONGEST_RETRY)
    stopped = (at for file in parts for at in environment.writers[file].stopped if at > last.at)
    until = min([_end(last.file, environment), *stopped, request.replaced_at])
    return last.at < retry < until < math.inf
