"""Provision shard: which management cluster the HCP is placed on, and under which consumer Maestro knows that one."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import identity, reading
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Question, Topic
from maestropy.trace.output import Evidence

NAME = "shard"


def asks(known: Known) -> Iterable[Question]:
    """Ask for the shard of the cluster."""
    if known.cid:
        yield Question(topic=Topic.SHARD, cid=known.cid)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn the consumer."""
    for topic, each in documents:
        if topic is Topic.SHARD:
            known = known.with_gaps_filled(consumer=reading.text(each.value, "maestro_config", "consumer_name"))
    return known


def judge(scene: Scene) -> Report:
    """Judge by the shard's status."""
    shards = scene.documents(Topic.SHARD)
    if not shards:
        why = scene.why(Topic.SHARD, unasked="the Clusters Service id is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    value, where = shards[0].value, shards[0].where
    status = reading.text(value, "status")
    management = identity.management_cluster(value)
    placed = (
        f"placed on {management.name} (by {management.found_by})" if management else "no management cluster is named"
    )
    report = Report(name=NAME, state=State.OK, reason=placed, facts=_facts(value, where=where))
    several = (f"{len(shards)} shards are told; {where} counts",) if len(shards) > 1 else ()
    report = replace(report, notes=(*scene.notes(Topic.SHARD), *several, *_notes(management, status)))
    if status == "offline":
        evidence = (Evidence(where=where, says="status = offline"),)
        return replace(
            report, state=State.BAD, code="HCP-351", reason=f"the shard is offline; {placed}", evidence=evidence
        )
    return report


def _notes(management: identity.ManagementCluster | None, status: str) -> Iterable[str]:
    if management and management.disagreement:
        yield f"its stamp numbers disagree: {management.disagreement}"
    if management and management.found_by == "stamp number":
        yield "the shard names no management cluster; it is inferred from the stamp number"
    if status == "maintenance":
        yield "the shard is in maintenance: nothing new is placed here"


def _facts(value: reading.Json, *, where: str) -> tuple[Fact, ...]:
    management = identity.management_cluster(value)
    given = [
        Fact(name="id", value=reading.text(value, "id"), where=where),
        Fact(
            name="status",
            value=reading.text(value, "status"),
            since=reading.moment(value, "last_update_timestamp"),
            where=where,
        ),
        Fact(name="management cluster", value=management.name if management else "", where=where),
        Fact(name="resource id", value=management.resource_id if management else "", where=where),
        Fact(name="stamp", value=management.stamp if management else "", where=where),
        Fact(name="consumer", value=reading.text(value, "maestro_config", "consumer_name"), where=where),
        Fact(name="maestro", value=reading.text(value, "maestro_config", "rest_api_config", "url"), where=where),
    ]
    return tuple(each for each in given if each.value)
