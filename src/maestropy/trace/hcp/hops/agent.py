"""Maestro agent: whether what was delivered is on the management cluster, and what was deleted is not."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import reading, views
from maestropy.trace.hcp.decode import Bundle
from maestropy.trace.hcp.hops.maestro import PATIENCE_MINUTES
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "agent"


def asks(known: Known) -> Iterable[Question]:
    """Ask for the record of each bundle."""
    for each in sorted(known.bundle_ids):
        yield _record(each)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn nothing."""
    del documents
    return known


def judge(scene: Scene) -> Report:
    """Judge by deletions the agent lost, objects that should be there, and its records."""
    found = views.bundles(scene)
    records = {
        reading.text(each.value, "spec", "manifestWorkName"): each for each in scene.documents(Topic.APPLIED_WORK)
    }
    mine = {each.id: records[each.id] for each in found if each.id in records}
    notes = scene.notes(Topic.APPLIED_WORK)
    report = Report(name=NAME, state=State.OK, reason="", facts=tuple(_facts(mine)), notes=notes)
    desynced = [
        each for each in found if each.deleted and (work := _work_of(scene, each)) and not reading.is_going(work.value)
    ]
    if desynced:
        evidence = tuple(
            Evidence(
                where=each.where, says=f"deleted_at is set, but {each.title} is on the cluster without a deletion time"
            )
            for each in desynced
        )
        if not any(scene.is_older(each.deleted, PATIENCE_MINUTES) for each in desynced):
            reason = f"it has not begun to delete {desynced[0].title} of bundle {desynced[0].id}"
            return replace(report, state=State.BEHIND, code="HCP-502", reason=reason, evidence=evidence)
        reason = (
            f"it lost the deletion of bundle {desynced[0].id}: {desynced[0].title} is still there, nobody deletes it; "
            "a deletion sent again, or a restart of the agent, heals it"
        )
        return replace(report, state=State.BAD, code="HCP-502", reason=reason, evidence=evidence)
    lost = [each for each in found if _is_lost(scene, each)]
    if lost:
        reason = f"{lost[0].title} was applied by bundle {lost[0].id}, and is not on the cluster"
        evidence = tuple(Evidence(where=each.where, says=f"{each.title} is missing") for each in lost)
        return replace(report, state=State.BAD, code="HCP-503", reason=reason, evidence=evidence)
    return _by_records(scene, report, mine=mine, found=found)


def _by_records(scene: Scene, report: Report, *, mine: dict[str, Document], found: tuple[Bundle, ...]) -> Report:
    delivered = [each for each in found if each.has_status and not each.read_only and not each.deleted]
    missing = [each for each in delivered if _outcome(scene, each) is Outcome.ABSENT]
    if missing:
        reason = f"it keeps no record of bundle {missing[0].id}, which was delivered: another cluster, or agent?"
        evidence = tuple(
            Evidence(where=each.where, says=f"bundle {each.id} has no AppliedManifestWork") for each in missing
        )
        return replace(report, state=State.BAD, code="HCP-501", reason=reason, evidence=evidence)
    if mine:
        return replace(report, reason=f"it keeps a record of {len(mine)} of {len(found)} bundles")
    if scene.outcome(Topic.APPLIED_WORK) is Outcome.UNKNOWN or not found:
        why = scene.why(Topic.APPLIED_WORK, unasked="no bundle is known that it could have applied")
        return replace(report, state=State.UNKNOWN, reason=why)
    return replace(report, reason="nothing is delivered that it should have applied")


def _record(bundle_id: str) -> Question:
    return Question(topic=Topic.APPLIED_WORK, name=bundle_id)


def _outcome(scene: Scene, found: Bundle) -> Outcome:
    answer = scene.answers.get(_record(found.id))
    return answer.outcome if answer else Outcome.UNKNOWN


def _work_of(scene: Scene, found: Bundle) -> Document | None:
    return next(
        (
            each
            for each in scene.documents(Topic.WORK)
            if found.title == f"ManifestWork {reading.namespace(each.value)}/{reading.name(each.value)}"
        ),
        None,
    )


def _is_lost(scene: Scene, found: Bundle) -> bool:
    if found.deleted or found.read_only or not found.has_status or not found.title.startswith("ManifestWork "):
        return False
    return scene.outcome(Topic.WORK) is not Outcome.UNKNOWN and _work_of(scene, found) is None


def _facts(records: dict[str, Document]) -> Iterable[Fact]:
    for bundle_id, each in records.items():
        held = ", ".join(
            f"{reading.text(one, 'resource')} {reading.text(one, 'namespace')}/{reading.text(one, 'name')}".replace(
                " /", " "
            )
            for one in reading.objects(each.value, "status", "appliedResources")
        )
        since = reading.moment(each.value, "metadata", "creationTimestamp")
        yield Fact(name=f"record of {bundle_id}", value=held or "holds nothing", since=since, where=each.where)
