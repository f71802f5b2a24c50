"""RP frontend: what ARM is told."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import reading, views
from maestropy.trace.hcp.identity import Known, arm_of
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "frontend"


def asks(known: Known) -> Iterable[Question]:
    """Ask for the HCP, and for its operation once that is known."""
    if known.arm:
        yield Question(topic=Topic.ARM_CLUSTER, arm=str(known.arm))
    if known.arm and known.operation and known.location:
        operation = known.operation.rpartition("/")[2]
        yield Question(topic=Topic.OPERATION, arm=str(known.arm), name=operation, namespace=known.location)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn the spelling of the ARM ID and the domain prefix."""
    for topic, each in documents:
        if topic is Topic.ARM_CLUSTER:
            own = arm_of(reading.text(each.value, "id"))
            prefix = reading.text(each.value, "properties", "dns", "baseDomainPrefix")
            known = known.with_gaps_filled(prefix=prefix, location=reading.text(each.value, "location"))
            # The question was asked with the user's spelling and must stay the same question.
            known = known if known.arm or not own else replace(known, arm=own)
    return known


def judge(scene: Scene) -> Report:
    """Judge by the provisioning state."""
    found = next(iter(scene.documents(Topic.ARM_CLUSTER)), None)
    if found is None:
        return _without(scene)
    state = reading.text(found.value, "properties", "provisioningState")
    facts = _facts(found) + _operation(scene)
    notes = scene.notes(Topic.ARM_CLUSTER, Topic.OPERATION)
    report = Report(name=NAME, state=State.OK, reason=f"ARM says {state}", facts=facts, notes=notes)
    evidence = (Evidence(where=found.where, says=f"properties.provisioningState = {state}"),)
    match state:
        case "Succeeded":
            return report
        case "Accepted" if scene.outcome(Topic.CS_CLUSTER) is Outcome.ABSENT:
            reason = (
                "the request is stored (Accepted), and nothing was dispatched: the backend has not created the cluster"
            )
            return replace(report, state=State.BEHIND, code="HCP-101", reason=reason, evidence=evidence)
        case "Failed" | "Canceled":
            reason = f"ARM says {state}, which is final: the cause is below, or the deadline passed"
            return replace(report, state=State.BAD, code="HCP-103", waits=True, reason=reason, evidence=evidence)
        case _:
            url = reading.text(found.value, "properties", "api", "url")
            empty = "" if url or state != "Provisioning" else "; api.url is still empty"
            reason = f"ARM says {state or 'nothing about its state'}: it waits for the hops below{empty}"
            return replace(report, state=State.BEHIND, code="HCP-102", waits=True, reason=reason, evidence=evidence)


def _without(scene: Scene) -> Report:
    if scene.outcome(Topic.ARM_CLUSTER) is not Outcome.ABSENT:
        why = scene.why(Topic.ARM_CLUSTER, unasked="its ARM resource ID is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    said = scene.why(Topic.ARM_CLUSTER, unasked="")
    if views.is_deleting(scene):
        return Report(name=NAME, state=State.OK, reason=f"gone from ARM, as a deletion wants it ({said})")
    reason = f"ARM does not know it ({said})"
    return Report(name=NAME, state=State.BAD, code="HCP-104", reason=reason)


def _facts(found: Document) -> tuple[Fact, ...]:
    value, where = found.value, found.where
    properties = reading.mapping(value, "properties")
    created = reading.moment(value, "systemData", "createdAt")
    given = [
        Fact(name="id", value=reading.text(value, "id"), where=where),
        Fact(name="provisioningState", value=reading.text(properties, "provisioningState"), since=created, where=where),
        Fact(name="version", value=reading.text(properties, "version", "id"), where=where),
        Fact(name="api.url", value=reading.text(properties, "api", "url") or "(empty)", where=where),
        Fact(name="dns.baseDomain", value=reading.text(properties, "dns", "baseDomain"), where=where),
        Fact(name="dns.baseDomainPrefix", value=reading.text(properties, "dns", "baseDomainPrefix"), where=where),
    ]
    return tuple(each for each in given if each.value)


def _operation(scene: Scene) -> tuple[Fact, ...]:
    return tuple(
        Fact(
            name="operation",
            value=" ".join(
                filter(
                    None,
                    (
                        reading.text(each.value, "name"),
                        reading.text(each.value, "status"),
                        reading.text(each.value, "error", "message"),
                    ),
                )
            ),
            since=reading.moment(each.value, "startTime"),
            where=each.where,
        )
        for each in scene.documents(Topic.OPERATION)
    )
