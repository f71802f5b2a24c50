"""What clusters say against an active work: wrong cluster, missing or leaving records, drift, lost objects. Pure."""

from collections.abc import Iterator

from maestropy.trace.output import Evidence, Finding
from maestropy.trace.work import relations
from maestropy.trace.work.differences import differences
from maestropy.trace.work.facts import Facts
from maestropy.trace.work.findings import finding
from maestropy.trace.work.model import Live, NestedWork, Row
from maestropy.trace.work.relations import Line

_SHOWN = 10
"""Fields of a difference that a report lists; the rest is counted."""


def check(facts: Facts, row: Row) -> Iterator[Finding]:
    """Yield what clusters say against an active work."""
    if facts.cluster_is_dark:
        return
    yield from _place(facts, row)
    if facts.its_clusters or facts.gathered.applied:
        yield from _records(facts, row)
        yield from _drift(facts)
        yield from _objects(facts)
        yield from _changes(facts)
        for nested in facts.gathered.nested:
            yield from _nested(facts, nested)


def _place(facts: Facts, row: Row) -> Iterator[Finding]:
    seen = [each for each in facts.gathered.clusters if each.is_clear]
    theirs = {each.place.removeprefix("cluster "): each.consumer for each in seen}
    strangers = [each for each in facts.gathered.applied if theirs.get(each.cluster, "") not in {"", row.consumer}]
    evidence = [Evidence(where="resources.consumer_name", says=row.consumer)]
    if strangers:
        evidence += [
            Evidence(where=f"cluster {each.cluster} of {theirs[each.cluster]}", says=f"AppliedManifestWork {each.name}")
            for each in strangers
        ]
        yield finding("MW-103", facts, evidence=evidence)
    elif not facts.its_clusters:
        evidence += [Evidence(where=each.place, says=f"is the cluster of {each.consumer}") for each in seen]
        yield finding("MW-103", facts, evidence=evidence)


def _records(facts: Facts, row: Row) -> Iterator[Finding]:
    applied = facts.gathered.applied
    reported = row.status.condition("Applied") if row.status else None
    if not applied and reported and reported.status == "True":
        # Where a cluster could not be seen, the record may be there.
        if all(each.is_clear for each in facts.concerned):
            places = ", ".join(each.place for each in facts.its_clusters)
            evidence = [
                Evidence(where="resources.status", says=str(reported)),
                Evidence(where=places, says="no AppliedManifestWork for it"),
            ]
            yield finding("MW-006", facts, evidence=evidence)
        return
    for each in applied:
        if each.deleting:
            says = f"deleted {each.deleting}, finalizers {', '.join(each.finalizers) or 'none'}"
            yield finding("MW-106", facts, evidence=[Evidence(where=each.name, says=says)])
        if each.evicting:
            says = f"status.evictionStartTime {each.evicting}"
            yield finding("MW-108", facts, evidence=[Evidence(where=each.name, says=says)])
    if len(applied) > 1:
        evidence = [Evidence(where=f"cluster {each.cluster}", says=each.name) for each in applied]
        yield finding("MW-109", facts, evidence=evidence)


def _drift(facts: Facts) -> Iterator[Finding]:
    if not facts.gathered.applied:
        return
    evidence = [
        Evidence(where=str(line.key), says="wanted, but not in status.appliedResources")
        for line in facts.lines
        # An object that is only read is listed if it exists, and nobody promised that it does.
        if line.wanted is not None and not line.is_applied and line.strategy != "ReadOnly" and not _has_failed(line)
    ]
    evidence += [
        Evidence(where=str(line.key), says=f"in status.appliedResources of {line.placed[0].work.name}, but not wanted")
        for line in facts.lines
        if line.wanted is None
    ]
    if evidence:
        yield finding("MW-012", facts, evidence=evidence)


def _has_failed(line: Line) -> bool:
    return any(each.type == "Applied" and each.status == "False" for each in line.conditions)


def _objects(facts: Facts) -> Iterator[Finding]:
    placed = [each for line in facts.lines for each in line.placed]
    replaced = [each for each in placed if each.is_same_object is False]
    for each in replaced:
        live = each.live
        says = f"uid {live.uid if live else ''} is live, uid {each.resource.uid} was applied"
        yield finding("MW-013", facts, evidence=[Evidence(where=str(each.resource.key), says=says)], about=live)
    for each in placed:
        if each.live is not None and each.live.state == "absent":
            says = f"listed by {each.work.name}, not there"
            yield finding("MW-104", facts, evidence=[Evidence(where=str(each.live.key), says=says)], about=each.live)
    for live in facts.terminating:
        says = f"deleted {live.deleting}, waits for {', '.join(live.finalizers) or 'nothing'}"
        yield finding("MW-114", facts, evidence=[Evidence(where=str(live.key), says=says)], about=live)
    mine = {each.name for each in facts.gathered.applied}
    shared = [line for line in facts.lines if len(line.owners) > 1 and set(line.owners) - mine]
    if shared:
        evidence = [Evidence(where=str(line.key), says=f"owned by {', '.join(line.owners)}") for line in shared]
        yield finding("MW-110", facts, evidence=evidence)


def _changes(facts: Facts) -> Iterator[Finding]:
    for line in facts.lines if facts.wish.compare else ():
        for live in line.lives:
            if line.wanted is None or not live.content or line.strategy in {"ReadOnly", "CreateOnly"}:
                continue
            found = differences(line.wanted, live.content)
            if found:
                shown = [f"{each.path}: wanted {each.wanted}, found {each.found}" for each in found[:_SHOWN]]
                more = [f"and {len(found) - _SHOWN} more fields"] if len(found) > _SHOWN else []
                evidence = [Evidence(where=str(line.key), says=text) for text in (*shown, *more)]
                yield finding("MW-112", facts, evidence=evidence, about=live)


def _nested(facts: Facts, nested: NestedWork) -> Iterator[Finding]:
    """Yield what is wrong in works within this work, at every level."""
    place = f"ManifestWork/{nested.namespace}/{nested.name}"
    evidence = []
    about: Live | None = next((each for each in facts.gathered.lives if each.key.name == nested.name), None)
    applied = nested.status.condition("Applied") if nested.status else None
    if applied and applied.status == "False":
        evidence.append(Evidence(where=place, says=f"{applied}: {applied.message}"))
    if not nested.applied:
        evidence.append(Evidence(where=place, says=f"no AppliedManifestWork for it on {nested.cluster}"))
    for line in relations.nested_lines(nested):
        evidence += [
            Evidence(where=f"{place} → {line.key}", says=f"{each}: {each.message}")
            for each in line.conditions
            if each.type == "Applied" and each.status == "False"
        ]
        if line.is_applied and line.is_live is False:
            evidence.append(Evidence(where=f"{place} → {line.key}", says="applied, but not there"))
    if evidence:
        yield finding("MW-113", facts, evidence=evidence, about=about)
    for inner in nested.nested:
        yield from _nested(facts, inner)
