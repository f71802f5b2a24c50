"""Where it hangs: the first hop that is not where it should be, and does not merely wait for a later one. Pure."""

from collections.abc import Sequence

from maestropy.trace.hcp import advice, contradictions, reading, recreation, views
from maestropy.trace.hcp.model import Report, Scene, State, Verdict
from maestropy.trace.hcp.question import Outcome, Topic
from maestropy.trace.output import Evidence, Exit

_NOT_ESSENTIAL = frozenset({"backend", "shard"})
"""Hops whose absence from view leaves nothing open: the others tell the same."""


_ANYBODYS = frozenset({Topic.SHARD, Topic.CONSUMER, Topic.CS_CHECKS, Topic.APPLIED_WORK})
"""What does not name the HCP, so that finding it does not mean to have found the HCP."""


def decide(scene: Scene, hops: Sequence[Report]) -> Verdict:
    """Return the verdict on a walk."""
    several = _several(scene)
    if several:
        return _verdict(scene, hop="clusters-service", state=State.UNKNOWN, code="HCP-003", reason=several)
    if not any(answer.documents for question, answer in scene.answers.items() if question.topic not in _ANYBODYS):
        return _nothing(scene, hops)
    culprit = _culprit(hops)
    if culprit is None:
        return _without_culprit(scene, hops)
    return _verdict(
        scene,
        hop=culprit.name,
        state=culprit.state,
        code=culprit.code,
        reason=culprit.reason,
        culprit=culprit,
    )


def _culprit(hops: Sequence[Report]) -> Report | None:
    """Return the hop to blame: one that is bad or behind by itself, else the last that waits for nothing visible."""
    own = [each for each in hops if each.state in {State.BAD, State.BEHIND} and not each.waits]
    if own:
        return own[0]
    waiting = [each for each in hops if each.state in {State.BAD, State.BEHIND}]
    if not waiting:
        return None
    last = waiting[-1]
    below = hops[list(hops).index(last) + 1 :]
    # It waits for something below, and not all of that could be seen: blaming it would be a guess.
    is_blind = any(each.state is State.UNKNOWN and each.name not in _NOT_ESSENTIAL for each in below)
    return None if is_blind and last.state is not State.BAD else last


def _without_culprit(scene: Scene, hops: Sequence[Report]) -> Verdict:
    waiting = [each for each in hops if each.state in {State.BAD, State.BEHIND}]
    blind = [each for each in hops if each.state is State.UNKNOWN and each.name not in _NOT_ESSENTIAL]
    if not blind:
        hop = hops[-1].name
        reason = "nothing is left of it" if views.is_deleting(scene) else "every hop is where it should be"
        return _verdict(scene, hop=hop, state=State.OK, code="HCP-000", reason=reason)
    first = next((each for each in blind if not waiting or _is_below(hops, each, waiting[-1])), blind[0])
    waits = f"{waiting[-1].name} waits for the hops below, and " if waiting else ""
    names = ", ".join(each.name for each in blind)
    reason = f"{waits}{names} could not be seen: {first.reason}"
    return _verdict(scene, hop=first.name, state=State.UNKNOWN, code="HCP-001", reason=reason)


def _is_below(hops: Sequence[Report], one: Report, other: Report) -> bool:
    names = [each.name for each in hops]
    return names.index(one.name) > names.index(other.name)


def _several(scene: Scene) -> str:
    found = {reading.text(each.value, "id"): each for each in scene.documents(Topic.CS_CLUSTER)}
    if len(found) < 2:
        return ""
    listed = ", ".join(f"{key} ({reading.text(each.value, 'azure', 'resource_name')})" for key, each in found.items())
    return f"several clusters match: {listed}; give the Clusters Service id of one"


def _nothing(scene: Scene, hops: Sequence[Report]) -> Verdict:
    answers = scene.answers.values()
    told = next((answer.why for answer in answers if answer.outcome is Outcome.ABSENT), "")
    if told or scene.taken.is_offline:
        reason = f"nobody who could be asked knows it: {told or 'no document names it'}"
        return _verdict(scene, hop="frontend", state=State.UNKNOWN, code="HCP-002", reason=reason)
    why = next((answer.why for answer in answers if answer.why), "nothing could be asked")
    return _verdict(
        scene, hop=hops[0].name, state=State.UNKNOWN, code="HCP-004", reason=f"nothing could be seen: {why}"
    )


_EXITS = {
    "HCP-000": Exit.HEALTHY,
    "HCP-001": Exit.INCONCLUSIVE,
    "HCP-002": Exit.NOT_FOUND,
    "HCP-003": Exit.AMBIGUOUS,
    "HCP-004": Exit.NO_ACCESS,
}


def _verdict(scene: Scene, *, hop: str, state: State, code: str, reason: str, culprit: Report | None = None) -> Verdict:
    found = contradictions.find(scene)
    is_deleting = views.is_deleting(scene)
    exit_code = _EXITS.get(code, Exit.PROBLEM)
    # All hops may be fine each by itself, and still not fit together.
    if exit_code is Exit.HEALTHY and any(each.code != "HCP-022" for each in found):
        state, code, exit_code = State.BEHIND, found[0].code, Exit.PROBLEM
        hop, reason = found[0].between[0], found[0].says
    return Verdict(
        hop=hop,
        state=state,
        code=code,
        reason=reason,
        evidence=culprit.evidence if culprit else tuple(_signs(scene)),
        deleting=is_deleting,
        contradictions=found,
        recreations=recreation.find(scene) if is_deleting else (),
        next=advice.commands(scene, culprit),
        exit=exit_code,
    )


def _signs(scene: Scene) -> list[Evidence]:
    return [Evidence(where="deletion", says=sign) for sign in views.deletion_signs(scene)]
