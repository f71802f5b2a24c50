"""Check an active work against its clusters: wrong cluster, missing or terminating applied works, drift, lost objects.

Pure.
"""

from collections.abc import Iterable, Iterator

from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work.judge import manifest_rows
from maestropy.trace.work.judge.differences import differences
from maestropy.trace.work.judge.facts import Facts
from maestropy.trace.work.judge.findings import finding
from maestropy.trace.work.judge.manifest_rows import AppliedEntry, ManifestRow
from maestropy.trace.work.model import LiveObject, NestedWork, TracedResource

_SHOWN = 10
"""Fields of a difference that a report lists; the rest is counted."""


def check(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    """Yield the findings of the clusters about an active work."""
    if facts.no_cluster_readable:
        return
    yield from _check_consumer(facts, row)
    if facts.readable_clusters or facts.data.applied:
        yield from _check_applied_works(facts, row)
        yield from _check_drift(facts)
        yield from _check_objects(facts)
        yield from _check_changes(facts)
        for nested in facts.data.nested:
            yield from _check_nested(facts, nested)


def _check_consumer(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    readable = [cluster for cluster in facts.data.clusters if cluster.is_readable]
    consumers = {cluster.description.removeprefix("cluster "): cluster.consumer for cluster in readable}
    strangers = [
        applied_work
        for applied_work in facts.data.applied
        if consumers.get(applied_work.cluster, "") not in {"", row.consumer}
    ]
    evidence = [Evidence("resources.consumer_name", row.consumer)]
    if strangers:
        evidence += [
            Evidence(
                f"cluster {applied_work.cluster} of {consumers[applied_work.cluster]}",
                f"AppliedManifestWork {applied_work.name}",
            )
            for applied_work in strangers
        ]
        yield finding("MW-103", facts, evidence=evidence)
    elif not facts.candidate_clusters and row.status is not None:
        yield finding("MW-103", facts, evidence=[*evidence, *clusters_of_others(facts)])


def clusters_of_others(facts: Facts) -> list[Evidence]:
    """Return whose the given clusters are if none is the consumer's; a work without a status may have no cluster."""
    readable = [] if facts.candidate_clusters else [each for each in facts.data.clusters if each.is_readable]
    return [Evidence(cluster.description, f"is the cluster of {cluster.consumer}") for cluster in readable]


def _check_applied_works(facts: Facts, row: TracedResource) -> Iterator[Finding]:
    applied = facts.data.applied
    reported = row.status.condition("Applied") if row.status else None
    if not applied and reported and reported.status == "True":
        # Where a cluster could not be seen, the record may be there.
        if all(cluster.is_readable for cluster in facts.candidate_clusters):
            clusters = ", ".join(cluster.description for cluster in facts.readable_clusters)
            evidence = [
                Evidence("resources.status", str(reported)),
                Evidence(clusters, "no AppliedManifestWork for it"),
            ]
            yield finding("MW-006", facts, evidence=evidence)
        return
    for applied_work in applied:
        if applied_work.deleting:
            says = f"deleted {applied_work.deleting}, finalizers {', '.join(applied_work.finalizers) or 'none'}"
            yield finding("MW-106", facts, evidence=[Evidence(applied_work.name, says)])
        if applied_work.evicting:
            says = f"status.evictionStartTime {applied_work.evicting}"
            yield finding("MW-108", facts, evidence=[Evidence(applied_work.name, says)])
    if len(applied) > 1:
        evidence = [Evidence(f"cluster {applied_work.cluster}", applied_work.name) for applied_work in applied]
        yield finding("MW-109", facts, evidence=evidence)


def _check_drift(facts: Facts) -> Iterator[Finding]:
    if not facts.data.applied:
        return
    evidence = [
        Evidence(str(manifest_row.key), "desired, but not in status.appliedResources")
        for manifest_row in facts.manifest_rows
        # A ReadOnly object is listed only if it exists, and it need not exist.
        if manifest_row.desired is not None
        and not manifest_row.is_applied
        and manifest_row.strategy != "ReadOnly"
        and not _has_failed(manifest_row)
    ]
    evidence += [
        Evidence(
            str(manifest_row.key), f"in status.appliedResources of {manifest_row.entries[0].work.name}, but not desired"
        )
        for manifest_row in facts.manifest_rows
        if manifest_row.desired is None
    ]
    if evidence:
        yield finding("MW-012", facts, evidence=evidence)


def _has_failed(line: ManifestRow) -> bool:
    return any(condition.type == "Applied" and condition.status == "False" for condition in line.conditions)


def _lost(rows: Iterable[ManifestRow]) -> Iterator[AppliedEntry]:
    """Yield what was applied, and is not there."""
    for row in rows:
        for entry in row.entries:
            if entry.live is not None and entry.live.state == "absent" and _was_applied(row, entry):
                yield entry


def _was_applied(row: ManifestRow, entry: AppliedEntry) -> bool:
    """Say whether a listed object ever existed.

    Our agent lists an object before it applies it, without a uid, so that a deletion finds it whatever happens.
    """
    is_reported = any(condition.type == "Applied" and condition.status == "True" for condition in row.conditions)
    return bool(entry.resource.uid) or is_reported


def _check_objects(facts: Facts) -> Iterator[Finding]:
    entries = [entry for manifest_row in facts.manifest_rows for entry in manifest_row.entries]
    replaced = [entry for entry in entries if entry.is_same_object is False]
    for entry in replaced:
        live = entry.live
        says = f"uid {live.uid if live else ''} is live, uid {entry.resource.uid} was applied"
        yield finding("MW-013", facts, evidence=[Evidence(str(entry.resource.key), says)], about=live)
    for entry in _lost(facts.manifest_rows):
        assert entry.live is not None
        says = f"listed by {entry.work.name}, not there"
        yield finding("MW-104", facts, evidence=[Evidence(str(entry.live.key), says)], about=entry.live)
    for live in facts.terminating:
        says = f"deleted {live.deleting}, waits for {', '.join(live.finalizers) or 'nothing'}"
        yield finding("MW-114", facts, evidence=[Evidence(str(live.key), says)], about=live)
    shared = [manifest_row for manifest_row in facts.manifest_rows if _others(facts, manifest_row)]
    if shared:
        evidence = [Evidence(str(line.key), f"owned by {', '.join(line.owners)}") for line in shared]
        if facts.expectations.compare:
            evidence += [item for line in shared for live in line.live_objects for item in _changed(line, live)]
        yield finding("MW-110", facts, evidence=evidence, owner=_others(facts, shared[0])[0])


def _others(facts: Facts, manifest_row: ManifestRow) -> list[str]:
    """Return the AppliedManifestWorks of other works that own the same object."""
    own = {applied_work.name for applied_work in facts.data.applied}
    return [name for name in manifest_row.owners if name not in own] if len(manifest_row.owners) > 1 else []


def _check_changes(facts: Facts) -> Iterator[Finding]:
    for manifest_row in facts.manifest_rows if facts.expectations.compare else ():
        if _others(facts, manifest_row):
            continue  # the other work sets the fields: no drift that the agent corrects, and MW-110 names them
        for live in manifest_row.live_objects:
            evidence = _changed(manifest_row, live)
            if evidence:
                yield finding("MW-112", facts, evidence=evidence, about=live)


def _changed(manifest_row: ManifestRow, live: LiveObject) -> list[Evidence]:
    """Return the fields of a live object that differ from its manifest."""
    if manifest_row.desired is None or not live.content or manifest_row.strategy in {"ReadOnly", "CreateOnly"}:
        return []
    changed_fields = differences(manifest_row.desired, live.content)
    shown = [
        f"{difference.path}: desired {difference.desired}, actual {difference.actual}"
        for difference in changed_fields[:_SHOWN]
    ]
    more = [f"and {len(changed_fields) - _SHOWN} more fields"] if len(changed_fields) > _SHOWN else []
    return [Evidence(str(manifest_row.key), text) for text in (*shown, *more)]


def _check_nested(facts: Facts, nested: NestedWork) -> Iterator[Finding]:
    """Yield what is wrong in works within this work, at every level."""
    work = f"ManifestWork/{nested.namespace}/{nested.name}"
    evidence = []
    about: LiveObject | None = next((live for live in facts.data.live_objects if live.key.name == nested.name), None)
    applied = nested.status.condition("Applied") if nested.status else None
    if applied and applied.status == "False":
        evidence.append(Evidence(work, f"{applied}: {applied.message}"))
    if not nested.applied:
        evidence.append(Evidence(work, f"no AppliedManifestWork for it on {nested.cluster}"))
    for manifest_row in manifest_rows.nested_rows(nested):
        evidence += [
            Evidence(f"{work} → {manifest_row.key}", f"{condition}: {condition.message}")
            for condition in manifest_row.conditions
            if condition.type == "Applied" and condition.status == "False"
        ]
        if manifest_row.is_live is False and any(_was_applied(manifest_row, entry) for entry in manifest_row.entries):
            evidence.append(Evidence(f"{work} → {manifest_row.key}", "applied, but not there"))
    if evidence:
        yield finding("MW-113", facts, evidence=evidence, about=about)
    for inner in nested.nested:
        yield from _check_nested(facts, inner)
