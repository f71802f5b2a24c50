"""Find the hop that blocks the HCP: the first one that is not healthy and does not only wait for a later hop. Pure."""

from collections.abc import Sequence

from maestropy.trace.findings.codes import CODES
from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.judge import advice, contradictions, recreation
from maestropy.trace.hcp.model import HcpVerdict, HopReport, HopState, WalkContext
from maestropy.trace.hcp.query import QueryOutcome, Topic
from maestropy.trace.output import Evidence, Exit

_NOT_ESSENTIAL = frozenset({"backend", "shard"})
"""Hops that need not be readable for a verdict, because others report the same facts."""


_SHARED_TOPICS = frozenset({Topic.SHARD, Topic.CONSUMER, Topic.CS_CHECKS, Topic.APPLIED_WORK})
"""What does not name the HCP, so that finding it does not mean to have found the HCP."""


def decide(context: WalkContext, hops: Sequence[HopReport]) -> HcpVerdict:
    """Return the verdict on a walk."""
    several = _several(context)
    if several:
        return _verdict(context, hop="clusters-service", state=HopState.UNKNOWN, code="HCP-003", reason=several)
    if not any(result.documents for query, result in context.results.items() if query.topic not in _SHARED_TOPICS):
        return _nothing(context, hops)
    blocking_hop = _blocking_hop(hops)
    if blocking_hop is None:
        return _without_blocking_hop(context, hops)
    return _verdict(
        context,
        hop=blocking_hop.name,
        state=blocking_hop.state,
        code=blocking_hop.code,
        reason=blocking_hop.reason,
        blocking_hop=blocking_hop,
    )


def _blocking_hop(hops: Sequence[HopReport]) -> HopReport | None:
    """Return the hop to blame: one that is bad or behind by itself, else the last that waits for nothing visible."""
    own = [hop for hop in hops if hop.state in {HopState.BAD, HopState.BEHIND} and not hop.waits]
    if own:
        return own[0]
    waiting = [hop for hop in hops if hop.state in {HopState.BAD, HopState.BEHIND}]
    if not waiting:
        return None
    last = waiting[-1]
    below = hops[list(hops).index(last) + 1 :]
    # It waits for something below, and not all of that could be seen: blaming it would be a guess.
    is_blind = any(hop.state is HopState.UNKNOWN and hop.name not in _NOT_ESSENTIAL for hop in below)
    return None if is_blind and last.state is not HopState.BAD else last


def _without_blocking_hop(context: WalkContext, hops: Sequence[HopReport]) -> HcpVerdict:
    waiting = [hop for hop in hops if hop.state in {HopState.BAD, HopState.BEHIND}]
    blind = [hop for hop in hops if hop.state is HopState.UNKNOWN and hop.name not in _NOT_ESSENTIAL]
    if not blind:
        hop = hops[-1].name
        reason = "nothing remains of it" if views.is_deleting(context) else "every hop is where it should be"
        return _verdict(context, hop=hop, state=HopState.OK, code="HCP-000", reason=reason)
    first = next((hop for hop in blind if not waiting or _is_below(hops, hop, waiting[-1])), blind[0])
    waits = f"{waiting[-1].name} waits for the hops below, and " if waiting else ""
    names = ", ".join(hop.name for hop in blind)
    reason = f"{waits}{names} could not be read: {first.reason}"
    return _verdict(context, hop=first.name, state=HopState.UNKNOWN, code="HCP-001", reason=reason)


def _is_below(hops: Sequence[HopReport], one: HopReport, other: HopReport) -> bool:
    names = [hop.name for hop in hops]
    return names.index(one.name) > names.index(other.name)


def _several(context: WalkContext) -> str:
    clusters = {lookup.text(cluster.value, "id"): cluster for cluster in context.documents(Topic.CS_CLUSTER)}
    if len(clusters) < 2:
        return ""
    listed = ", ".join(
        f"{key} ({lookup.text(cluster.value, 'azure', 'resource_name')})" for key, cluster in clusters.items()
    )
    return f"several clusters match: {listed}; give the Clusters Service id of one"


def _nothing(context: WalkContext, hops: Sequence[HopReport]) -> HcpVerdict:
    results = context.results.values()
    absence = next((result.why for result in results if result.outcome is QueryOutcome.ABSENT), "")
    if absence or context.snapshot.is_offline:
        reason = f"it was not found in any system: {absence or 'no document names it'}"
        return _verdict(context, hop="frontend", state=HopState.UNKNOWN, code="HCP-002", reason=reason)
    why = next((result.why for result in results if result.why), "no system could be queried")
    return _verdict(
        context, hop=hops[0].name, state=HopState.UNKNOWN, code="HCP-004", reason=f"nothing could be read: {why}"
    )


def _verdict(
    context: WalkContext, *, hop: str, state: HopState, code: str, reason: str, blocking_hop: HopReport | None = None
) -> HcpVerdict:
    contradictions_found = contradictions.find(context)
    is_deleting = views.is_deleting(context)
    exit_code = CODES[code].exit
    # All hops may be fine each by itself, and still not fit together.
    if exit_code is Exit.HEALTHY and any(contradiction.code != "HCP-022" for contradiction in contradictions_found):
        state, code, exit_code = HopState.BEHIND, contradictions_found[0].code, Exit.PROBLEM
        hop, reason = contradictions_found[0].between[0], contradictions_found[0].says
    return HcpVerdict(
        hop=hop,
        state=state,
        code=code,
        reason=reason,
        evidence=blocking_hop.evidence if blocking_hop else tuple(_signs(context)),
        deleting=is_deleting,
        contradictions=contradictions_found,
        recreations=recreation.find(context) if is_deleting else (),
        next=advice.commands(context, blocking_hop),
        exit=exit_code,
    )


def _signs(context: WalkContext) -> list[Evidence]:
    return [Evidence("deletion", sign) for sign in views.deletion_signs(context)]
