"""NodePools: check that they have the desired replicas and conditions."""

from collections.abc import Iterable

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.hops import expected_conditions, views
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "node-pools"


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the NodePools in the namespace of the HostedCluster."""
    if known.namespace:
        yield HopQuery(topic=Topic.NODE_POOL, namespace=known.namespace)


def judge(context: WalkContext) -> HopReport:
    """Judge by replicas and expected conditions. There are no nodes before the control plane is available."""
    pools = context.documents(Topic.NODE_POOL)
    if not pools:
        if context.outcome(Topic.NODE_POOL) is QueryOutcome.ABSENT:
            return HopReport(name=NAME, reason="there are none")
        why = context.why(Topic.NODE_POOL, unasked="the namespace of the HostedCluster is not known")
        return HopReport(name=NAME).unknown(why)
    report = HopReport(
        name=NAME,
        reason=f"{len(pools)} of {len(pools)} are as they should be",
        facts=tuple(fact for pool in pools for fact in _facts(pool)),
        notes=context.notes(Topic.NODE_POOL),
    )
    still = "still exists and is not being deleted" if views.is_deleting(context) else ""
    problems = [(pool, problem) for pool in pools if (problem := _problem(pool, still=still))]
    if not problems:
        return report
    evidence = tuple(Evidence(pool.where, f"{lookup.name(pool.value)}: {problem}") for pool, problem in problems)
    first, problem = problems[0]
    reason = f"NodePool {lookup.name(first.value)} {problem}"
    waits = views.is_deleting(context) or not views.is_available(context)
    return report.behind("HCP-901", reason, waits=waits, evidence=evidence)


def _problem(pool: Document, *, still: str) -> str:
    value = pool.value
    if lookup.is_deleting(value):
        finalizers = lookup.finalizers(value)
        return f"is being deleted and held by {finalizers}"
    if still:
        return still
    desired, have = lookup.number(value, "spec", "replicas"), lookup.number(value, "status", "replicas") or 0
    wrong = expected_conditions.NODE_POOL.deviations(decode.conditions(lookup.objects(value, "status", "conditions")))
    parts = [f"has {have} of {desired} replicas"] if desired is not None and desired != have else []
    parts += [str(wrong[0])] if wrong else []
    return ", ".join(parts)


def _facts(pool: Document) -> Iterable[Fact]:
    name = lookup.name(pool.value)
    desired, have = lookup.text(pool.value, "spec", "replicas"), lookup.text(pool.value, "status", "replicas")
    yield Fact(name, f"{have or 0} of {desired or 'autoscaled'} replicas", where=pool.where)
    for condition in decode.conditions(lookup.objects(pool.value, "status", "conditions")):
        yield Fact(f"{name} {condition.type}", str(condition), since=condition.since, where=pool.where)
