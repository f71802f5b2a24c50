"""Provision shard: find the management cluster of the HCP and its consumer name in Maestro."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import identity, lookup
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, Topic
from maestropy.trace.output import Evidence

NAME = "shard"
_VAULTS = ("cx_managed_identities_key_vault_url", "cx_secrets_key_vault_url")
"""Their names end with the stamp number, by which people find the management cluster."""


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the shard of the cluster."""
    if known.cid:
        yield HopQuery(topic=Topic.SHARD, cid=known.cid)


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn the consumer."""
    for topic, document in documents:
        if topic is Topic.SHARD:
            known = known.with_gaps_filled(consumer=lookup.text(document.value, "maestro_config", "consumer_name"))
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by the shard's status."""
    shards = context.documents(Topic.SHARD)
    if not shards:
        why = context.why(Topic.SHARD, unasked="the Clusters Service id is not known")
        return HopReport(name=NAME).unknown(why)
    value, where = shards[0].value, shards[0].where
    status = lookup.text(value, "status")
    management = identity.management_cluster(value)
    placed = (
        f"placed on {management.name} (by {management.found_by})" if management else "no management cluster is named"
    )
    report = HopReport(name=NAME, reason=placed, facts=_facts(value, where=where))
    several = (f"{len(shards)} shards were found; {where} is used",) if len(shards) > 1 else ()
    report = replace(report, notes=(*context.notes(Topic.SHARD), *several, *_notes(management, status)))
    if status == "offline":
        evidence = (Evidence(where, "status = offline"),)
        return report.bad("HCP-351", f"the shard is offline; {placed}", evidence=evidence)
    return report


def _notes(management: identity.HcpManagementCluster | None, status: str) -> Iterable[str]:
    if management and management.disagreement:
        yield f"its stamp numbers disagree: {management.disagreement}"
    if management and management.found_by == "stamp number":
        yield "the shard names no management cluster; it is inferred from the stamp number"
    if status == "maintenance":
        yield "the shard is in maintenance: nothing new is placed here"


def _facts(value: lookup.Json, *, where: str) -> tuple[Fact, ...]:
    management = identity.management_cluster(value)
    facts = [
        Fact("id", lookup.text(value, "id"), where=where),
        Fact("href", lookup.text(value, "href"), where=where),
        Fact("status", lookup.text(value, "status"), since=lookup.moment(value, "last_update_timestamp"), where=where),
        Fact("management cluster", management.name if management else "", where=where),
        Fact("resource id", management.resource_id if management else "", where=where),
        *(Fact(name, lookup.text(value, "azure_shard", name), where=where) for name in _VAULTS),
        Fact("stamp", management.stamp if management else "", where=where),
        Fact("consumer", lookup.text(value, "maestro_config", "consumer_name"), where=where),
        Fact("maestro", lookup.text(value, "maestro_config", "rest_api_config", "url"), where=where),
    ]
    return tuple(fact for fact in facts if fact.value)
