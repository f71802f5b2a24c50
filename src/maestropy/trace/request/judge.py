"""Judge one request: the state of each stage, the verdict, the findings.

For every stage in turn: is there a record of it? Did it fail? Does a later stage prove it? Was it overtaken? Could the
logs show it at all? Is it merely too early? Only what survives all these questions is missing. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from maestropy.trace.request import causes, proving, visibility
from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import (
    Confidence,
    Course,
    Finding,
    Key,
    Options,
    Records,
    Stage,
    State,
    StatusUpdate,
    Trace,
    Verdict,
)
from maestropy.trace.request.reports import Report
from maestropy.trace.request.wishes import Wish

_KNOWN = "the status was known"
_LATE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request and what is known around it."""

    wish: Wish
    environment: Environment
    components: Sequence[Hit]
    options: Options


def judge(case: Case) -> Trace:
    """Return the verdict on one request."""
    wish = case.wish
    proofs = {number: proving.proof(wish, number, case.environment) for number in range(1, 10)}
    stages: list[Stage] = []
    findings: list[Finding] = []
    before = 0.0
    for number in range(1, 10):
        stage, found = _stage(number, case, proofs, before=before)
        before = stage.first or before
        stages.append(stage)
        if found:
            findings += [each for each in found if each.code not in {one.code for one in findings}]
    findings += _remarks(wish, stages)
    verdict, failed = _verdict(wish, stages)
    return _trace(case, verdict, tuple(stages), findings=tuple(findings), failed=failed)


def _trace(
    case: Case, verdict: Verdict, stages: tuple[Stage, ...], *, findings: tuple[Finding, ...], failed: int | None
) -> Trace:
    wish = case.wish
    seen = [stage for stage in stages if stage.first]
    main = next((each for each in findings if failed and each.entry.severity == "error"), None)
    by = wish.later if verdict is Verdict.SUPERSEDED else None
    updates = tuple(_update(report, case.environment) for report in wish.reports)
    records = Records(stages=stages, status_updates=updates)
    return Trace(
        key=_key(wish),
        verdict=verdict,
        course=Course(lambda: records),
        moments=tuple(stage.first if stage.state is State.OK else 0.0 for stage in stages),
        findings=tuple(sorted(findings, key=lambda each: ("error", "warn", "info").index(each.entry.severity))),
        failed_stage=failed,
        confidence=main.confidence if main else "certain",
        superseded_by=f"{by.action} v{by.version}" if by else "",
        start=wish.at,
        end=max((stage.first for stage in seen), default=wish.at),
    )


def _key(wish: Wish) -> Key:
    source = (
        wish.asked.source
        if wish.asked
        else next((hit.source for report in wish.reports for hit in report.hits if hit.what is What.BROADCAST), "")
    )
    return Key(
        resource=wish.resource,
        work_name=wish.first("name"),
        consumer=wish.first("consumer"),
        source=source,
        action=wish.action,
        version=wish.version,
        op=wish.asked.op if wish.asked else wish.first("op"),
        ce=wish.asked.ce if wish.asked else "",
        db_event=next((hit.event for hit in wish.hits if hit.stage == 2 and hit.event), ""),
        life=wish.life,
    )


def _update(report: Report, environment: Environment) -> StatusUpdate:
    handled = next((hit.file for hit in report.hits if hit.stage == 7), None)
    return StatusUpdate(
        sequence=report.sequence,
        version=report.version,
        handled_by="" if handled is None else environment.writers[handled].pod,
        skipped_by=sum(hit.what is What.NOT_OWNED for hit in report.hits),
        result=report.result,
    )


def _stage(number: int, case: Case, proofs: dict[int, list[Hit]], *, before: float) -> tuple[Stage, list[Finding]]:
    wish = case.wish
    proof, hits = proofs[number], tuple(wish.stage(number))
    failures = proving.failures(number, wish, proof)
    first = proof[0].at if proof else failures[0].at if failures else 0.0
    base = Stage(
        number=number,
        state=State.OK,
        hits=hits,
        first=first,
        last=proof[-1].at if proof else 0.0,
        hop=first - before if before and first else None,
        via=_via(number, proof) if proof else "direct",
        note=_remark(number, hits, case.environment) if proof else "",
    )
    if failures:
        finding = causes.of_failure(number, failures)
        count = f"{len(failures)} times" if len(failures) > 1 else ""
        return replace(base, state=State.FAILED, last=failures[-1].at, note=count), [finding]
    if proof:
        return base, []
    return _absent(base, case, proofs)


def _absent(stage: Stage, case: Case, proofs: dict[int, list[Hit]]) -> tuple[Stage, list[Finding]]:
    wish, number = case.wish, stage.number
    moment = max((proofs[each][0].at for each in range(1, number) if proofs[each]), default=wish.at)
    blind = _blindness(number, case, moment=moment)
    if number > 1 and (wish.refused or wish.no_op):
        return _not_taken(stage, wish)
    if wish.is_surely_refused or any(proofs[each] for each in range(number + 1, 10)):
        return _proven_later(stage, blind)
    excuse = _excuse(stage, case, moment=moment)
    if excuse is not None:
        return excuse
    if blind is not None:
        return replace(stage, state=State.NOT_OBSERVABLE, note=blind.why), [blind.finding]
    if any(_stops(each, case, proofs) for each in range(1, number)):
        # An earlier stage is where it stopped; what comes after it is not missing by itself.
        return replace(stage, state=State.PENDING), []
    until = moment + case.options.stage_timeout
    finding = causes.of_absence(number, wish, case.environment, case.components, since=moment, until=until)
    if number == 3 and not proofs[2]:
        detail = "whether a server published it, these logs cannot show"
        finding = replace(finding, confidence="possible", detail=detail)
    if number == 6 and not any(proofs[each] for each in (3, 4, 5)):
        # Nothing shows that the agent ever had it: that is as likely as a status that got lost.
        detail = "no status came back; whether the agent received and handled it, these logs cannot show"
        finding = replace(finding, confidence="possible", detail=detail)
    is_early = case.environment.end < until
    return replace(stage, state=State.PENDING if is_early else State.MISSING, note=finding.detail), [finding]


def _stops(number: int, case: Case, proofs: dict[int, list[Hit]]) -> bool:
    """Say whether an earlier stage explains the absence of later ones."""
    if proving.failures(number, case.wish, proofs[number]):
        return True
    if any(proofs[each] for each in range(number, 10)):
        return False
    moment = max((proofs[each][0].at for each in range(1, number) if proofs[each]), default=case.wish.at)
    return _blindness(number, case, moment=moment) is None


def _blindness(number: int, case: Case, *, moment: float) -> visibility.Blind | None:
    blind = visibility.blindness(number, case.wish, case.environment, moment=moment)
    if blind is None and number == 2:
        until = moment + case.options.stage_timeout
        return causes.elsewhere(case.environment, case.components, since=moment, until=until)
    return blind


def _not_taken(stage: Stage, wish: Wish) -> tuple[Stage, list[Finding]]:
    if wish.no_op:
        found = [Finding(code="MT-202", confidence="certain", detail=wish.no_op)] if stage.number == 2 else []
        return replace(stage, state=State.SKIPPED, note="no change"), found
    if stage.number > 2:
        return replace(stage, state=State.SKIPPED), []
    evidence = tuple(hit for hit in wish.hits if hit.what in (What.REFUSED, What.WISH))
    finding = Finding(
        code=causes.of_refusal(wish.refused),
        confidence="certain" if wish.is_surely_refused else "likely",
        detail=wish.refused,
        evidence=evidence,
    )
    return replace(stage, state=State.FAILED, note="rejected"), [finding]


def _proven_later(stage: Stage, blind: visibility.Blind | None) -> tuple[Stage, list[Finding]]:
    if blind is not None:
        return replace(stage, state=State.NOT_OBSERVABLE, note=f"{blind.why}; a later stage proves it"), [blind.finding]
    if stage.number == 4:
        return replace(stage, state=State.LEGIT_ABSENT, note="nothing had to be changed"), []
    if stage.number == 8:
        return replace(stage, state=State.LEGIT_ABSENT, note="sent by a resync"), []
    return replace(stage, state=State.UNKNOWN, note="no line, but a later stage proves it"), []


def _excuse(stage: Stage, case: Case, *, moment: float) -> tuple[Stage, list[Finding]] | None:
    """Return the state of a stage that need not have come."""
    wish, number = case.wish, stage.number
    skipped = [hit for hit in wish.hits if hit.what is What.PUBLISH_SKIPPED]
    # Where nobody listens, a request is answered with the status that is stored, whatever comes after it.
    if number in (8, 9) and any(report.result == "sent" for report in wish.reports):
        alone = _without_clients(stage, case, moment=moment)
        if alone is not None:
            return alone
    if _is_superseded(wish):
        later = wish.later
        assert later is not None
        code = ["MT-206"] if later.action == "delete" and number == 2 else []
        found = [Finding(code=each, confidence="certain", evidence=tuple(skipped)) for each in code]
        return replace(stage, state=State.SKIPPED, note=f"superseded by {later.action} v{later.version}"), found
    if number >= 2 and skipped and not proving.proof(wish, 2, case.environment):
        is_delete = wish.action == "delete"
        reason, note = ("MT-703", "the resource was gone") if is_delete else ("MT-206", "superseded by a delete")
        found = [Finding(code=reason, confidence="certain", evidence=tuple(skipped))] if number == 2 else []
        return replace(stage, state=State.SKIPPED, note=note), found
    return _settled(stage, wish) if number >= 7 else None


def _settled(stage: Stage, wish: Wish) -> tuple[Stage, list[Finding]] | None:
    """Return the state of a stage of the server that its answer to a status makes needless."""
    results = {report.result for report in wish.reports}
    if results & {"stale", "duplicate"} and "sent" not in results:
        return replace(stage, state=State.SKIPPED, note="stale status"), []
    gone = tuple(hit for hit in wish.stage(7) if hit.what is What.STATUS_NOT_FOUND)
    if gone:
        found = [Finding(code="MT-703", confidence="certain", evidence=gone)]
        return replace(stage, state=State.LEGIT_ABSENT, note="the resource was gone"), found
    handled = tuple(hit for hit in wish.stage(7) if hit.what is What.HANDLING)
    if "nochange" in results or (wish.version > 1 and handled and results == {"unknown"}):
        # A Go server says nothing more of a status that it has already; the first of a resource is always new.
        confidence: Confidence = "certain" if "nochange" in results else "likely"
        found = [Finding(code="MT-706", confidence=confidence, evidence=handled)]
        return replace(stage, state=State.LEGIT_ABSENT, note=_KNOWN), found
    return None


def _without_clients(stage: Stage, case: Case, *, moment: float) -> tuple[Stage, list[Finding]] | None:
    wish = case.wish
    source = wish.asked.source if wish.asked else ""
    silent = tuple(hit for hit in wish.stage(9) if hit.what is What.NO_CLIENTS)
    told = {hit.file for hit in wish.stage(8)}
    if stage.number == 9 and silent and told <= {hit.file for hit in silent}:
        finding = Finding(code="MT-901", confidence="certain", detail="no clients on any instance", evidence=silent)
        return replace(stage, state=State.SKIPPED, note="no client connected"), [finding]
    nobody = causes.nobody_listens(source, case.environment, at=moment)
    if nobody is not None and nobody.code == "MT-901":
        return replace(stage, state=State.SKIPPED, note="no client connected"), [nobody]
    return None


def _is_superseded(wish: Wish) -> bool:
    """Say whether a later request took over before this one was answered."""
    return wish.later is not None and wish.action != "delete"


def _via(number: int, proof: Sequence[Hit]) -> str:
    if number in (2, 3, 5, 6) and all(hit.action == "resync" for hit in proof if hit.action):
        return "resync" if any(hit.action == "resync" for hit in proof) else "direct"
    return "direct"


def _remark(number: int, hits: Sequence[Hit], environment: Environment) -> str:
    if number == 6:
        passed = sum(hit.what is What.NOT_OWNED for hit in hits)
        return f"{passed} not owned" if passed else ""
    if number in (2, 3):
        published = {hit.event for hit in hits if hit.what is What.PUBLISHING and hit.event}
        return f"{len(published)} attempts" if len(published) > 1 else ""
    if number == 8 and environment.instances > 1:
        return f"{len({hit.file for hit in hits})} of {environment.instances} instances"
    return ""


def _remarks(wish: Wish, stages: Sequence[Stage]) -> list[Finding]:
    found = []
    late = [hit for hit in wish.hits if hit.what is What.REPUBLISHED]
    delivery = stages[2]
    if late or (delivery.via == "resync" and (delivery.hop or 0) > _LATE):
        found.append(Finding(code="MT-304", confidence="certain", evidence=tuple(late or delivery.hits[:1])))
    overtaken = _overtaken(wish)
    if overtaken:
        detail = f"it had version {overtaken[0].version} already"
        found.append(Finding(code="MT-402", confidence="certain", detail=detail, evidence=overtaken))
    stale = [report for report in wish.reports if report.result in ("stale", "duplicate")]
    if stale:
        evidence = tuple(hit for report in stale for hit in report.hits if hit.what is What.STALE)
        is_sequence = any(hit.detail == "sequence" for hit in evidence)
        found.append(Finding(code="MT-705" if is_sequence else "MT-704", confidence="certain", evidence=evidence))
    return found


def _overtaken(wish: Wish) -> tuple[Hit, ...]:
    """Return how an agent received a newer version and then this one, which it passes over in silence."""
    received = [hit for hit in wish.stage(3) if hit.what is What.RECEIVED_SPEC and not hit.is_deleting]
    if not received or not wish.is_change or wish.stage(4):
        return ()
    later = wish.later
    while later is not None:
        for hit in later.stage(3):
            is_newer = hit.version > received[0].version > 0 and hit.file == received[0].file
            if hit.what is What.RECEIVED_SPEC and is_newer and hit.at < received[0].at:
                return hit, received[0]
        later = later.later
    return ()


def _verdict(wish: Wish, stages: Sequence[Stage]) -> tuple[Verdict, int | None]:
    if wish.no_op:
        return Verdict.NO_OP, None
    by_state = {state: [stage.number for stage in stages if stage.state is state] for state in State}
    if by_state[State.FAILED]:
        return Verdict.FAILED, by_state[State.FAILED][0]
    if by_state[State.MISSING]:
        return Verdict.INCOMPLETE, by_state[State.MISSING][0]
    if any(stage.note.startswith("superseded") for stage in stages):
        return Verdict.SUPERSEDED, None
    if by_state[State.PENDING]:
        return Verdict.PENDING, by_state[State.PENDING][0]
    if stages[6].first or stages[8].first or stages[7].first:
        return Verdict.COMPLETE, None
    if stages[6].state is State.SKIPPED:
        return Verdict.SUPERSEDED, None
    return Verdict.COMPLETE if by_state[State.SKIPPED] or stages[6].note == _KNOWN else Verdict.UNKNOWN, None
