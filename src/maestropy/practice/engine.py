"""Answer an incident with the verdict engines alone: the deterministic baseline. Pure: an analysis in, an answer out.

No rule here knows an incident. Requests, works and systems were judged by `maestro diagnose analyze`; this chooses
which of these verdicts is the answer to a question about one work.
"""

from typing import Final

from maestropy.diagnose.analysis.analyze import Analysis, JudgedRequest, JudgedWork
from maestropy.practice.model import NONE, Answer
from maestropy.practice.scoring import is_settled
from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.codes import CODES

NOT_FOUND: Final = "not found"
_NOT_RECEIVED: Final = "MT-101"
_STAGE_HOPS: Final = {
    1: "source", 2: "server", 3: "agent", 4: "cluster", 5: "agent", 6: "server", 7: "server", 8: "server",
    9: "subscribers",
}  # fmt: skip
"""Who does each stage."""
_CODE_HOPS: Final = {
    "MT-203": "database", "MT-204": "broker", "MT-301": "agent", "MT-412": "agent", "MT-417": "agent",
    "MT-501": "broker", "MT-707": "database", "MT-801": "database",
    "MW-122": "agent", "MW-123": "broker",
}  # fmt: skip
"""Codes that name another hop than the one that does the stage."""
_SYSTEM_HOPS: Final = {"database": "database", "server": "server", "broker": "broker", "agent": "agent"}
"""The hop that a finding about a system is about, by its engine."""
_UNEXPLAINED: Final = frozenset({"MT-209", "MT-306", "MT-412", "MT-503", "MT-603", "MT-708", "MT-803"})
"""Codes that say where a request stopped, and not why: a system that is down explains them."""
_ORDERED: Final = frozenset({"MW-122", "MW-123"})
"""States of a work that somebody or something ordered: they explain every request that waits."""


def answer(incident: str, analysis: Analysis, *, asked: str) -> Answer:
    """Return the answer about what is asked for: a work, its id or a consumer; without it, about the first finding."""
    ids = _ids(analysis, asked)
    works = [work for work in analysis.works if not asked or work.id in ids]
    requests = [request for request in analysis.requests if not asked or request.resource_id in ids]
    work = next((work for work in works if work.exit is Exit.PROBLEM), next(iter(works), None))
    request = _request(requests, work)
    if work is not None and request is not None and work.id != request.resource_id:
        work = next((other for other in works if other.id == request.resource_id), None)
    if work is None and request is None:
        return Answer(incident=incident, work=asked, verdict=NOT_FOUND, stage=1, code=_NOT_RECEIVED, hop=_STAGE_HOPS[1])
    name = (request.work_name if request else "") or (work.name if work else asked)
    if work is not None and work.code in _ORDERED:
        return _of_work(incident, name, work)
    if request is not None and (not is_settled(request.verdict) or request.code):
        return _of_request(incident, name, request, analysis)
    if work is not None and work.exit is Exit.PROBLEM:
        return _of_work(incident, name, work)
    verdict = request.verdict if request is not None else "complete"
    return Answer(incident=incident, work=name, verdict=verdict, code=NONE, hop=NONE)


def _ids(analysis: Analysis, asked: str) -> set[str]:
    """Return the ids of the works that are meant; not every request has the name of its work in the logs."""
    named = {work.id for work in analysis.works if asked in {work.id, work.name, work.consumer}}
    return named | {
        request.resource_id
        for request in analysis.requests
        if asked in {request.resource_id, request.work_name, request.consumer}
    }


def _request(requests: list[JudgedRequest], work: JudgedWork | None) -> JudgedRequest | None:
    """Return the newest request of the work in question: an older one was overtaken by it."""
    unsettled = [request for request in requests if not is_settled(request.verdict)]
    resource = unsettled[-1].resource_id if unsettled else work.id if work else ""
    of_work = [request for request in requests if request.resource_id == resource] or requests
    return of_work[-1] if of_work else None


def _of_request(incident: str, name: str, request: JudgedRequest, analysis: Analysis) -> Answer:
    hop = _CODE_HOPS.get(request.code) or _STAGE_HOPS.get(request.failed_stage or _stage(request.code) or 0, NONE)
    if request.code in _UNEXPLAINED:
        hop = _broken_system(analysis) or hop
    return Answer(
        incident=incident,
        work=name,
        verdict=request.verdict,
        stage=request.failed_stage,
        code=request.code or NONE,
        hop=hop,
    )


def _of_work(incident: str, name: str, work: JudgedWork) -> Answer:
    stage = _stage(work.code)
    hop = _CODE_HOPS.get(work.code) or _STAGE_HOPS.get(stage or 4, NONE)
    return Answer(incident=incident, work=name, verdict=work.verdict, stage=stage, code=work.code, hop=hop)


def _stage(code: str) -> int | None:
    entry = CODES.get(code)
    return (entry.stage or None) if entry else None


def _broken_system(analysis: Analysis) -> str:
    """Return the hop of the most important finding about a system."""
    broken = (ranked for ranked in analysis.findings if ranked.exit is Exit.PROBLEM and ranked.engine in _SYSTEM_HOPS)
    return next((_SYSTEM_HOPS[ranked.engine] for ranked in broken), "")
