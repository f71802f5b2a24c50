"""Could the logs show this stage at all? The question that comes before every "missing". Pure."""

from typing import NamedTuple

from maestropy.trace.request.hits import AGENT_STAGES, Hit
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Confidence, Finding
from maestropy.trace.request.wishes import Wish

_NEEDS_VERBOSITY = frozenset({3, 5})
_OFTEN_ELSEWHERE = frozenset({1, 2, 6, 7, 9})


class Blind(NamedTuple):
    """Why a stage cannot be seen: a finding's code, and a sentence."""

    code: str
    why: str
    confidence: Confidence = "certain"
    evidence: tuple[Hit, ...] = ()

    @property
    def finding(self) -> Finding:
        """The same as a finding."""
        return Finding(code=self.code, confidence=self.confidence, detail=self.why, evidence=self.evidence)


def blindness(stage: int, wish: Wish, environment: Environment, *, moment: float) -> Blind | None:
    """Return why `stage` could not be seen around `moment`; nothing when it could."""
    if stage in AGENT_STAGES:
        return _agent(stage, wish, environment, moment=moment)
    servers = environment.servers
    if not servers:
        return Blind("MT-001", "no server logs")
    if not any(each.covers(moment) for each in servers):
        return Blind("MT-002", "the server logs do not cover this time")
    if stage in (2, 6) and not environment.shows(stage) and not any(each.is_ours for each in servers):
        later = any(environment.shows(each) for each in range(stage + 1, 10))
        if later or environment.broker == "grpc":
            return Blind("MT-003", "servers behind the gRPC broker write no such line below -v=4")
    if stage == 7 and wish.action == "delete" and all(each.generation in ("G0", "G1") for each in servers):
        return Blind("MT-003", "servers of this generation do not say what they do with a deletion's status")
    if stage in _OFTEN_ELSEWHERE and len({each.pod for each in servers}) < environment.instances:
        return Blind("MT-004", f"logs of {len(servers)} of {environment.instances} server instances")
    return None


def _agent(stage: int, wish: Wish, environment: Environment, *, moment: float) -> Blind | None:
    consumer = wish.first("consumer")
    logs = [each for each in environment.agent_logs if not each.consumers or consumer in each.consumers or not consumer]
    if not logs:
        return Blind("MT-001", f"no logs of the agent of {consumer}" if consumer else "no agent logs")
    covering = [each for each in logs if each.covers(moment, slack=5.0)]
    if not covering:
        return Blind("MT-002", "the agent's logs do not cover this time")
    if stage in _NEEDS_VERBOSITY and not any(each.stages[stage] for each in covering):
        if max(each.verbosity for each in covering) < 2:
            return Blind("MT-003", "the agent's verbosity is below 2")
        if any(each.generation in ("G0", "G1", "G2") and each.verbosity < 4 for each in covering):
            return Blind("MT-003", "agents of this generation need -v=4")
    return None
