"""Clusters Service: how far it thinks it is."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import reading, views
from maestropy.trace.hcp.identity import ArmId, Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "clusters-service"


def asks(known: Known) -> Iterable[Question]:
    """Ask for the cluster by id, or by what Azure calls it; then for the rest of it."""
    if known.cid:
        yield Question(topic=Topic.CS_CLUSTER, cid=known.cid)
        for topic in (Topic.CS_STATUS, Topic.CS_CHECKS, Topic.CS_NODE_POOLS):
            yield Question(topic=topic, cid=known.cid)
    elif known.arm:
        yield Question(topic=Topic.CS_CLUSTER, arm=str(known.arm))


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn the id, the prefix and the ARM ID; nothing, if there is more than one cluster."""
    found = [each for topic, each in documents if topic is Topic.CS_CLUSTER]
    if len({reading.text(each.value, "id") for each in found}) != 1:
        return known
    value = found[0].value
    azure = [reading.text(value, "azure", key) for key in ("subscription_id", "resource_group_name", "resource_name")]
    arm = ArmId(subscription=azure[0], group=azure[1], name=azure[2]) if all(azure) else None
    return known.with_gaps_filled(cid=reading.text(value, "id"), prefix=reading.text(value, "domain_prefix"), arm=arm)


def judge(scene: Scene) -> Report:
    """Judge by the state, with the checks where they decide."""
    found = views.cluster(scene)
    if found is None:
        return _without(scene)
    state = views.cluster_state(scene)
    failed = [each for each in scene.documents(Topic.CS_CHECKS) if reading.text(each.value, "state") == "failed"]
    report = Report(
        name=NAME,
        state=State.OK,
        reason=f"the cluster is {state}",
        facts=_facts(scene, found),
        evidence=(Evidence(where=found.where, says=f"state = {state}"),),
        notes=scene.notes(Topic.CS_CLUSTER, Topic.CS_STATUS, Topic.CS_CHECKS),
    )
    checks = tuple(Evidence(where=each.where, says=_check(each)) for each in failed)
    if failed and state in {"validating", "error"}:
        reason = f"inflight checks failed: {'; '.join(each.says for each in checks)}"
        return replace(report, state=State.BAD, code="HCP-301", reason=reason, evidence=checks)
    if failed:
        passed = "although the cluster went on to"
        report = replace(report, notes=(*report.notes, *(f"{each.says}, {passed} {state}" for each in checks)))
    return _by_state(scene, report, state=state, found=found)


def _by_state(scene: Scene, report: Report, *, state: str, found: Document) -> Report:
    if state == "ready":
        return report
    if state == "error":
        said = " ".join(_errors(scene, found)) or "no reason is given"
        return replace(report, state=State.BAD, code="HCP-303", reason=f"the cluster is in error: {said}")
    if state in _OWN_WORK:
        code, reason = _OWN_WORK[state]
    elif own := _own_omission(scene, state):
        code, reason = own
    elif state in {"installing", "updating", "uninstalling"}:
        reason = f"the cluster is {state}: it waits for the hops below"
        return replace(report, state=State.BEHIND, code="HCP-305", waits=True, reason=reason)
    else:
        code = "HCP-309"
        reason = f"the cluster is {state or 'without a state'}, which the resource provider does not handle"
    return replace(report, state=State.BEHIND, code=code, reason=reason)


_OWN_WORK = {
    "validating": ("HCP-308", "it still runs its inflight checks (validating)"),
    "pending": ("HCP-302", "it still prepares Azure and the manifests (pending): its log names the provision step"),
}


def _own_omission(scene: Scene, state: str) -> tuple[str, str] | None:
    """Return what it has not done, where it seems to wait for others."""
    bundles = views.bundles(scene)
    if state == "installing" and scene.outcome(Topic.BUNDLE) is Outcome.ABSENT:
        return "HCP-304", "it says installing, but Maestro has no bundle of it: nothing was sent"
    if state == "installing" and views.is_available(scene):
        return "HCP-306", "it says installing, but the HostedCluster is available: it has not taken note"
    if state == "uninstalling" and bundles and not any(each.deleted for each in bundles):
        return "HCP-310", "it is uninstalling and has deleted no bundle yet: its log names the destructor not through"
    return None


def _without(scene: Scene) -> Report:
    if scene.outcome(Topic.CS_CLUSTER) is not Outcome.ABSENT:
        why = scene.why(Topic.CS_CLUSTER, unasked="neither its id nor its ARM resource ID is known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    said = scene.why(Topic.CS_CLUSTER, unasked="")
    if views.arm_state(scene) in {"Accepted", "Provisioning"}:
        return Report(
            name=NAME,
            state=State.BEHIND,
            code="HCP-307",
            reason=f"it does not know the cluster yet ({said})",
            waits=True,
        )
    if views.is_deleting(scene):
        return Report(name=NAME, state=State.OK, reason=f"the cluster is gone, as a deletion wants it ({said})")
    return Report(name=NAME, state=State.BAD, code="HCP-307", reason=f"it does not know the cluster ({said})")


def _check(each: Document) -> str:
    why = reading.text(each.value, "details", "error") or "no error is given"
    return f"{reading.text(each.value, 'name')} failed: {why}"


def _errors(scene: Scene, found: Document) -> list[str]:
    places = [*(each.value for each in scene.documents(Topic.CS_STATUS)), reading.mapping(found.value, "status")]
    names = ("provision_error_code", "provision_error_message", "description")
    words = [reading.text(place, name) for place in places for name in names]
    return list(dict.fromkeys(filter(None, words)))


def _facts(scene: Scene, found: Document) -> tuple[Fact, ...]:
    value, where = found.value, found.where
    created = reading.moment(value, "creation_timestamp")
    given = [
        Fact(name="id", value=reading.text(value, "id"), since=created, where=where),
        Fact(name="href", value=reading.text(value, "href"), where=where),
        Fact(name="state", value=views.cluster_state(scene), where=where),
        Fact(name="domain_prefix", value=reading.text(value, "domain_prefix"), where=where),
        Fact(name="version", value=reading.text(value, "version", "id"), where=where),
        Fact(name="dns_ready", value=reading.text(value, "status", "dns_ready"), where=where),
        Fact(name="oidc_ready", value=reading.text(value, "status", "oidc_ready"), where=where),
        Fact(name="error", value=" ".join(_errors(scene, found)), where=where),
    ]
    given += [
        Fact(
            name=f"check {reading.text(each.value, 'name')}",
            value=reading.text(each.value, "state"),
            since=reading.moment(each.value, "ended_at") or reading.moment(each.value, "started_at"),
            where=each.where,
        )
        for each in scene.documents(Topic.CS_CHECKS)
    ]
    given += [
        Fact(
            name=f"node pool {reading.text(each.value, 'id')}",
            value=reading.text(each.value, "status", "state", "value") or reading.text(each.value, "state") or "listed",
            where=each.where,
        )
        for each in scene.documents(Topic.CS_NODE_POOLS)
    ]
    return tuple(each for each in given if each.value)
