"""RP backend: the documents of its controllers, and beside Maestro's path the one of today, the kube-applier's desires.

It has no API; its documents are found in a directory (`cosmosdump` of the Admin API), so live it is usually unknown.
"""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import decode, reading
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Question, Topic
from maestropy.trace.output import Evidence

NAME = "backend"
_DESIRES = ("readdesires", "applydesires", "deletedesires")


def asks(known: Known) -> Iterable[Question]:
    """Ask for all documents of the HCP."""
    if known.arm:
        yield Question(topic=Topic.COSMOS, arm=str(known.arm))


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn the ids that the backend keeps: of Clusters Service, of the operation, and the namespaces."""
    for topic, each in documents:
        if topic is Topic.COSMOS:
            provider = reading.mapping(each.value, "properties", "serviceProviderProperties")
            known = known.with_gaps_filled(
                cid=reading.text(provider, "clusterServiceID").rpartition("/")[2],
                operation=reading.text(provider, "activeOperationId"),
                entry_namespace=reading.text(each.value, "properties", "status", "hostedClusterNamespace"),
            )
    return known


def judge(scene: Scene) -> Report:
    """Judge by degraded controllers, unsuccessful desires and the provisioning state, in this order."""
    documents = scene.documents(Topic.COSMOS)
    if not documents:
        why = scene.why(Topic.COSMOS, unasked="its ARM resource ID is not known")
        return Report(
            name=NAME, state=State.UNKNOWN, reason=f"{why}; it has no API, its documents come from cosmosdump"
        )
    facts = tuple(fact for each in documents for fact in _facts(each))
    report = Report(name=NAME, state=State.OK, reason="nothing it says is amiss", facts=facts)
    report = replace(report, notes=(*scene.notes(Topic.COSMOS), *_deadline(scene, documents)))
    for code, troubles in (("HCP-201", _degraded(documents)), ("HCP-203", _unread(documents))):
        if troubles:
            said = "; ".join(each.says for each in troubles)
            bad = State.BAD if code == "HCP-201" else State.BEHIND
            return replace(report, state=bad, code=code, reason=said, waits=True, evidence=tuple(troubles))
    states = [(each, _provider(each, "provisioningState")) for each in documents]
    for each, state in states:
        if state and state != "Succeeded":
            evidence = (Evidence(where=each.where, says=f"provisioningState = {state}"),)
            reason = f"its document says {state}: it waits for the hops below"
            return replace(report, state=State.BEHIND, code="HCP-202", reason=reason, waits=True, evidence=evidence)
    return report


def is_desire(document: Document) -> bool:
    """Whether a document is a wish to the kube-applier."""
    return _type(document) in _DESIRES


def _type(document: Document) -> str:
    return reading.text(document.value, "resourceType").lower().rpartition("/")[2]


def _short(document: Document) -> str:
    return "/".join(reading.text(document.value, "resourceID").split("/")[-2:])


def _provider(document: Document, name: str) -> str:
    return reading.text(document.value, "properties", "serviceProviderProperties", name)


def _conditions(document: Document) -> tuple[decode.Condition, ...]:
    return decode.conditions(reading.objects(document.value, "properties", "status", "conditions"))


def _degraded(documents: Iterable[Document]) -> list[Evidence]:
    return [
        Evidence(where=each.where, says=f"{_short(each)} is degraded: {condition}")
        for each in documents
        for condition in _conditions(each)
        if condition.type == "Degraded" and condition.status == "True"
    ]


def _unread(documents: Iterable[Document]) -> list[Evidence]:
    return [
        Evidence(where=each.where, says=f"{_short(each)} is not successful: {condition}")
        for each in documents
        if is_desire(each)
        for condition in _conditions(each)
        if condition.type == "Successful" and condition.status != "True"
    ]


def _deadline(scene: Scene, documents: Iterable[Document]) -> tuple[str, ...]:
    given = [(each, reading.parse_moment(_provider(each, "createOperationCompletionDeadline"))) for each in documents]
    return tuple(
        f"the deadline for the creation passed at {deadline:%Y-%m-%dT%H:%M:%SZ}: ARM will say Failed"
        for each, deadline in given
        if deadline and deadline < scene.taken.now and _provider(each, "provisioningState") != "Succeeded"
    )


def _facts(document: Document) -> Iterable[Fact]:
    where = document.where
    if is_desire(document):
        said = ", ".join(map(str, _conditions(document))) or "says nothing yet"
        content = reading.mapping(document.value, "properties", "status", "kubeContent")
        brought = ", ".join(map(str, decode.conditions(reading.objects(content, "status", "conditions"))[:4]))
        yield Fact(name=f"desire {_short(document)}", value=f"{said}; brought: {brought or 'nothing'}", where=where)
        return
    for name in ("provisioningState", "clusterServiceID", "activeOperationId", "createOperationCompletionDeadline"):
        if value := _provider(document, name):
            yield Fact(name=name, value=value, where=where)
    status = reading.mapping(document.value, "properties", "status")
    for name in ("managementClusterResourceID", "hostedClusterNamespace", "controlPlaneNamespace"):
        if value := reading.text(status, name):
            yield Fact(name=name, value=value, where=where)
    for condition in _conditions(document):
        yield Fact(
            name=f"{_short(document)} {condition.type}", value=str(condition), since=condition.since, where=where
        )
