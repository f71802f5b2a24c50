"""Which records show that a stage was done, and which that it failed. Pure."""

import re
from collections.abc import Sequence

from maestropy.trace.request import causes
from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.wishes import Wish

_NOT_PUBLISHED = "Failed to publish resource"
_PROOF = {
    1: {What.WISH},
    2: {What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS},
    3: {What.RECEIVED_SPEC, What.STORED},
    5: {What.SENDING_STATUS},
    6: {What.RECEIVED_STATUS, What.STATUS_TAKEN},
    8: {What.BROADCAST},
    9: {What.TO_CLIENTS},
}
_FAILURES = {
    2: {What.PUBLISH_FAILED, What.HARD_DELETED},
    4: {What.APPLY_FAILED, What.DECODE_FAILED},
    5: {What.STATUS_REFUSED, What.APPLY_FAILED},
    7: {What.STATUS_FAILED},
    9: {What.FANOUT_FAILED},
}
# Two writers inside a Go agent met, and one tries again at once; or a work left while one of them looked at it. If it
# never succeeded, later stages would be missing.
_OWN_CONFLICT = re.compile(
    r"the resource version of the work is outdated|manifestworks\.work\.open-cluster-management\.io \S* not found"
)


def proof(wish: Wish, number: int, environment: Environment) -> list[Hit]:
    """Return the records that show that a stage was done."""
    if number == 4:
        if wish.action == "delete":
            # That a deletion was asked for says nothing of objects that a finalizer holds.
            is_over = any(report.is_last_word for report in wish.reports) or not causes.held(wish, environment)
            return [hit for hit in wish.stage(4) if is_over and hit.what in (What.DELETING, What.REMOVED)]
        return [hit for hit in wish.stage(4) if hit.what in (What.APPLIED, What.DELETING, What.REMOVED)]
    if number < 5 or wish.action != "delete":
        if number == 7:
            reports = [report for report in wish.reports if report.result in ("sent", "nochange")]
            kinds = (What.UPDATE_SENT, What.UPDATING, What.UNCHANGED)
            return sorted((hit for report in reports for hit in report.hits if hit.what in kinds), key=_moment)
        return [hit for hit in wish.stage(number) if hit.what in _PROOF[number]]
    # Of a deletion only the last word counts: reports before it say "deleting".
    last = [hit for report in wish.reports if report.is_last_word for hit in report.hits if hit.stage == number]
    wanted = {What.DELETE_SENT} if number == 7 else _PROOF[number]
    found = [hit for hit in last if hit.what in wanted and (number != 8 or hit.action == "delete")]
    if number == 9 and not found:
        told = [hit.at for hit in proof(wish, 8, environment)]
        found = [hit for hit in wish.stage(9) if hit.what in wanted and told and hit.at >= min(told)]
    return sorted(found, key=_moment)


def _moment(hit: Hit) -> float:
    return hit.at


def failures(number: int, wish: Wish, proven: Sequence[Hit]) -> list[Hit]:
    """Return the errors of a stage that no later success has made good."""
    hits = wish.stage(number)
    if number == 7 and not proven:
        passed = [hit for hit in wish.stage(6) if hit.what is What.NOT_OWNED]
        taken = {hit.file for hit in wish.stage(6) if hit.what is What.STATUS_TAKEN}
        errors = [hit for hit in hits if hit.what is What.STATUS_FAILED]
        return errors or (passed if passed and not hits and taken <= {hit.file for hit in passed} else [])
    if number == 5:
        # The controller that applies also publishes, and reports both kinds of trouble alike.
        hits = sorted((*hits, *(hit for hit in wish.stage(4) if _NOT_PUBLISHED in hit.detail)), key=_moment)
    errors = [
        hit
        for hit in hits
        if hit.what in _FAILURES.get(number, ())
        and not _OWN_CONFLICT.search(hit.detail)
        and (number != 4 or _NOT_PUBLISHED not in hit.detail)
    ]
    if number != 4:
        last = max((hit.at for hit in proven), default=0.0)
        return [hit for hit in errors if hit.at > last] and errors
    # An agent that says that everything is gone has overcome whatever stood in the way.
    is_over = wish.action == "delete" and any(report.is_last_word for report in wish.reports)
    return errors if not is_over and _is_failing(errors, proven) else []


def _is_failing(errors: Sequence[Hit], proven: Sequence[Hit]) -> bool:
    """Say whether the last attempt of the agent failed: "applied" is logged before the error is looked at."""
    if not errors:
        return False
    last = errors[-1]
    place, _, _ = last.detail.partition(": ")
    later = [hit for hit in proven if hit.at > last.at]
    if " " in place and "/" in place and any(hit.detail == place for hit in proven):
        return not any(hit.detail == place for hit in later)
    return not later
