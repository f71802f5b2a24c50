"""RP frontend: check the provisioning state that ARM reports."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.identity import KnownIds, arm_of
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "frontend"


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the HCP, and its operation once that is known."""
    if known.arm:
        yield HopQuery(topic=Topic.ARM_CLUSTER, arm=str(known.arm))
    if known.arm and known.operation and known.location:
        operation = known.operation.rpartition("/")[2]
        yield HopQuery(topic=Topic.OPERATION, arm=str(known.arm), name=operation, namespace=known.location)


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn the spelling of the ARM ID and the domain prefix."""
    for topic, document in documents:
        if topic is Topic.ARM_CLUSTER:
            own = arm_of(lookup.text(document.value, "id"))
            prefix = lookup.text(document.value, "properties", "dns", "baseDomainPrefix")
            known = known.with_gaps_filled(prefix=prefix, location=lookup.text(document.value, "location"))
            # The query uses the user's spelling and must not change, or it would run again.
            known = known if known.arm or not own else replace(known, arm=own)
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by the provisioning state."""
    cluster = next(iter(context.documents(Topic.ARM_CLUSTER)), None)
    if cluster is None:
        return _without(context)
    state = lookup.text(cluster.value, "properties", "provisioningState")
    facts = _facts(cluster) + _operation(context)
    notes = context.notes(Topic.ARM_CLUSTER, Topic.OPERATION)
    report = HopReport(name=NAME, reason=f"ARM says {state}", facts=facts, notes=notes)
    evidence = (Evidence(cluster.where, f"properties.provisioningState = {state}"),)
    match state:
        case "Succeeded":
            return report
        case "Accepted" if context.outcome(Topic.CS_CLUSTER) is QueryOutcome.ABSENT:
            reason = (
                "the request is stored (Accepted), and nothing was dispatched: the backend has not created the cluster"
            )
            return report.behind("HCP-101", reason, evidence=evidence)
        case "Failed" | "Canceled":
            reason = f"ARM says {state}, which is final: the cause is below, or the deadline passed"
            return report.bad("HCP-103", reason, waits=True, evidence=evidence)
        case _:
            url = lookup.text(cluster.value, "properties", "api", "url")
            empty = "" if url or state != "Provisioning" else "; api.url is still empty"
            reason = f"ARM says {state or 'nothing about its state'}: it waits for the hops below{empty}"
            return report.behind("HCP-102", reason, waits=True, evidence=evidence)


def _without(context: WalkContext) -> HopReport:
    if context.outcome(Topic.ARM_CLUSTER) is not QueryOutcome.ABSENT:
        why = context.why(Topic.ARM_CLUSTER, unasked="its ARM resource ID is not known")
        return HopReport(name=NAME).unknown(why)
    absence = context.why(Topic.ARM_CLUSTER, unasked="")
    if views.is_deleting(context):
        return HopReport(name=NAME, reason=f"not in ARM, as expected for a deletion ({absence})")
    reason = f"ARM does not know it ({absence})"
    return HopReport(name=NAME).bad("HCP-104", reason)


def _facts(cluster: Document) -> tuple[Fact, ...]:
    value, where = cluster.value, cluster.where
    properties = lookup.mapping(value, "properties")
    created = lookup.moment(value, "systemData", "createdAt")
    facts = [
        Fact("id", lookup.text(value, "id"), where=where),
        Fact("provisioningState", lookup.text(properties, "provisioningState"), since=created, where=where),
        Fact("version", lookup.text(properties, "version", "id"), where=where),
        Fact("api.url", lookup.text(properties, "api", "url") or "(empty)", where=where),
        Fact("dns.baseDomain", lookup.text(properties, "dns", "baseDomain"), where=where),
        Fact("dns.baseDomainPrefix", lookup.text(properties, "dns", "baseDomainPrefix"), where=where),
    ]
    return tuple(fact for fact in facts if fact.value)


def _operation(context: WalkContext) -> tuple[Fact, ...]:
    return tuple(
        Fact(
            "operation",
            " ".join(
                filter(
                    None,
                    (
                        lookup.text(operation.value, "name"),
                        lookup.text(operation.value, "status"),
                        lookup.text(operation.value, "error", "message"),
                    ),
                )
            ),
            since=lookup.moment(operation.value, "startTime"),
            where=operation.where,
        )
        for operation in context.documents(Topic.OPERATION)
    )
