"""Maestro agent: check that delivered works are on the management cluster, and deleted ones are not."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents.decode import Bundle
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.hops.maestro import GRACE_MINUTES
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "agent"


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the AppliedManifestWork of each bundle."""
    for bundle_id in sorted(known.bundle_ids):
        yield _record(bundle_id)


def judge(context: WalkContext) -> HopReport:
    """Judge by deletions the agent lost, objects that should be there, and its records."""
    bundles = views.bundles(context)
    records = {
        lookup.text(applied_work.value, "spec", "manifestWorkName"): applied_work
        for applied_work in context.documents(Topic.APPLIED_WORK)
    }
    applied = {bundle.id: records[bundle.id] for bundle in bundles if bundle.id in records}
    notes = context.notes(Topic.APPLIED_WORK)
    report = HopReport(name=NAME, facts=tuple(_facts(applied)), notes=notes)
    desynced = [
        bundle
        for bundle in bundles
        if bundle.deleted and (work := _work_of(context, bundle)) and not lookup.is_deleting(work.value)
    ]
    if desynced:
        evidence = tuple(
            Evidence(bundle.where, f"deleted_at is set, but {bundle.title} is on the cluster without a deletion time")
            for bundle in desynced
        )
        if not any(context.is_older(bundle.deleted, GRACE_MINUTES) for bundle in desynced):
            reason = f"it has not begun to delete {desynced[0].title} of bundle {desynced[0].id}"
            return report.behind("HCP-502", reason, evidence=evidence)
        reason = (
            f"it lost the deletion of bundle {desynced[0].id}: {desynced[0].title} still exists; "
            "a repeated delete request, or a restart of the agent, repairs it"
        )
        return report.bad("HCP-502", reason, evidence=evidence)
    lost = [bundle for bundle in bundles if _is_lost(context, bundle)]
    if lost:
        reason = f"{lost[0].title} was applied by bundle {lost[0].id}, and is not on the cluster"
        evidence = tuple(Evidence(bundle.where, f"{bundle.title} is missing") for bundle in lost)
        return report.bad("HCP-503", reason, evidence=evidence)
    return _by_records(context, report, applied=applied, bundles=bundles)


def _by_records(
    context: WalkContext, report: HopReport, *, applied: dict[str, Document], bundles: tuple[Bundle, ...]
) -> HopReport:
    delivered = [bundle for bundle in bundles if bundle.has_status and not bundle.read_only and not bundle.deleted]
    missing = [bundle for bundle in delivered if _outcome(context, bundle) is QueryOutcome.ABSENT]
    if missing:
        reason = f"it keeps no record of bundle {missing[0].id}, which was delivered: another cluster, or agent?"
        evidence = tuple(Evidence(bundle.where, f"bundle {bundle.id} has no AppliedManifestWork") for bundle in missing)
        return report.bad("HCP-501", reason, evidence=evidence)
    if applied:
        return replace(report, reason=f"it keeps a record of {len(applied)} of {len(bundles)} bundles")
    if context.outcome(Topic.APPLIED_WORK) is QueryOutcome.UNKNOWN or not bundles:
        why = context.why(Topic.APPLIED_WORK, unasked="no bundle is known that it could have applied")
        return report.unknown(why)
    return replace(report, reason="nothing is delivered that it should have applied")


def _record(bundle_id: str) -> HopQuery:
    return HopQuery(topic=Topic.APPLIED_WORK, name=bundle_id)


def _outcome(context: WalkContext, bundle: Bundle) -> QueryOutcome:
    result = context.results.get(_record(bundle.id))
    return result.outcome if result else QueryOutcome.UNKNOWN


def _work_of(context: WalkContext, bundle: Bundle) -> Document | None:
    return next(
        (
            work
            for work in context.documents(Topic.WORK)
            if bundle.title == f"ManifestWork {lookup.namespace(work.value)}/{lookup.name(work.value)}"
        ),
        None,
    )


def _is_lost(context: WalkContext, bundle: Bundle) -> bool:
    if bundle.deleted or bundle.read_only or not bundle.has_status or not bundle.title.startswith("ManifestWork "):
        return False
    return context.outcome(Topic.WORK) is not QueryOutcome.UNKNOWN and _work_of(context, bundle) is None


def _facts(records: dict[str, Document]) -> Iterable[Fact]:
    for bundle_id, record in records.items():
        objects = ", ".join(
            f"{lookup.text(one, 'resource')} {lookup.text(one, 'namespace')}/{lookup.text(one, 'name')}".replace(
                " /", " "
            )
            for one in lookup.objects(record.value, "status", "appliedResources")
        )
        since = lookup.moment(record.value, "metadata", "creationTimestamp")
        yield Fact(f"record of {bundle_id}", objects or "holds nothing", since=since, where=record.where)
