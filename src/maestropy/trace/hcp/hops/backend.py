"""RP backend: check the documents of its controllers, including the desires of the kube-applier.

It has no API. Its documents come from a directory (`cosmosdump` of the Admin API), so a live walk reports it as
unknown.
"""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, HopState, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, Topic
from maestropy.trace.output import Evidence

NAME = "backend"
_DESIRES = ("readdesires", "applydesires", "deletedesires")


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query all documents of the HCP."""
    if known.arm:
        yield HopQuery(topic=Topic.COSMOS, arm=str(known.arm))


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn the ids that the backend keeps: of Clusters Service, of the operation, and the namespaces."""
    for topic, document in documents:
        if topic is Topic.COSMOS:
            provider = lookup.mapping(document.value, "properties", "serviceProviderProperties")
            known = known.with_gaps_filled(
                cid=lookup.text(provider, "clusterServiceID").rpartition("/")[2],
                operation=lookup.text(provider, "activeOperationId"),
                entry_namespace=lookup.text(document.value, "properties", "status", "hostedClusterNamespace"),
            )
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by degraded controllers, unsuccessful desires and the provisioning state, in this order."""
    documents = context.documents(Topic.COSMOS)
    if not documents:
        why = context.why(Topic.COSMOS, unasked="its ARM resource ID is not known")
        return HopReport(name=NAME).unknown(f"{why}; it has no API, its documents come from cosmosdump")
    facts = tuple(fact for document in documents for fact in _facts(document))
    report = HopReport(name=NAME, reason="nothing it says is amiss", facts=facts)
    report = replace(report, notes=(*context.notes(Topic.COSMOS), *_deadline(context, documents)))
    for code, problems in (("HCP-201", _degraded(documents)), ("HCP-203", _unread(documents))):
        if problems:
            text = "; ".join(problem.says for problem in problems)
            bad = HopState.BAD if code == "HCP-201" else HopState.BEHIND
            return replace(report, state=bad, code=code, reason=text, waits=True, evidence=tuple(problems))
    states = [(document, _provider(document, "provisioningState")) for document in documents]
    for stored, state in states:
        if state and state != "Succeeded":
            evidence = (Evidence(stored.where, f"provisioningState = {state}"),)
            reason = f"its document says {state}: it waits for the hops below"
            return report.behind("HCP-202", reason, waits=True, evidence=evidence)
    return report


def is_desire(document: Document) -> bool:
    """Whether a document is a desire for the kube-applier."""
    return _type(document) in _DESIRES


def _type(document: Document) -> str:
    return lookup.text(document.value, "resourceType").lower().rpartition("/")[2]


def _short(document: Document) -> str:
    return "/".join(lookup.text(document.value, "resourceID").split("/")[-2:])


def _provider(document: Document, name: str) -> str:
    return lookup.text(document.value, "properties", "serviceProviderProperties", name)


def _conditions(document: Document) -> tuple[decode.ObjectCondition, ...]:
    return decode.conditions(lookup.objects(document.value, "properties", "status", "conditions"))


def _degraded(documents: Iterable[Document]) -> list[Evidence]:
    return [
        Evidence(document.where, f"{_short(document)} is degraded: {condition}")
        for document in documents
        for condition in _conditions(document)
        if condition.type == "Degraded" and condition.status == "True"
    ]


def _unread(documents: Iterable[Document]) -> list[Evidence]:
    return [
        Evidence(document.where, f"{_short(document)} is not successful: {condition}")
        for document in documents
        if is_desire(document)
        for condition in _conditions(document)
        if condition.type == "Successful" and condition.status != "True"
    ]


def _deadline(context: WalkContext, documents: Iterable[Document]) -> tuple[str, ...]:
    deadlines = [
        (document, lookup.parse_moment(_provider(document, "createOperationCompletionDeadline")))
        for document in documents
    ]
    return tuple(
        f"the deadline for the creation passed at {deadline:%Y-%m-%dT%H:%M:%SZ}: ARM will say Failed"
        for document, deadline in deadlines
        if deadline and deadline < context.snapshot.now and _provider(document, "provisioningState") != "Succeeded"
    )


def _facts(document: Document) -> Iterable[Fact]:
    where = document.where
    if is_desire(document):
        conditions = ", ".join(map(str, _conditions(document))) or "says nothing yet"
        content = lookup.mapping(document.value, "properties", "status", "kubeContent")
        brought = ", ".join(map(str, decode.conditions(lookup.objects(content, "status", "conditions"))[:4]))
        yield Fact(f"desire {_short(document)}", f"{conditions}; brought: {brought or 'nothing'}", where=where)
        return
    for name in ("provisioningState", "clusterServiceID", "activeOperationId", "createOperationCompletionDeadline"):
        if value := _provider(document, name):
            yield Fact(name, value, where=where)
    status = lookup.mapping(document.value, "properties", "status")
    for name in ("managementClusterResourceID", "hostedClusterNamespace", "controlPlaneNamespace"):
        if value := lookup.text(status, name):
            yield Fact(name, value, where=where)
    for condition in _conditions(document):
        yield Fact(f"{_short(document)} {condition.type}", str(condition), since=condition.since, where=where)
