"""Join the manifests of one work: desired in the database, applied, and live on the cluster. Pure; judges nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from maestropy.trace.work import parse
from maestropy.trace.work.model import (
    AppliedResourceEntry,
    AppliedWork,
    Json,
    LiveObject,
    ManifestReport,
    NestedWork,
    ObjectKey,
    ReportedCondition,
    Status,
    WorkData,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEntry:
    """One manifest as one applied work lists it."""

    work: AppliedWork
    resource: AppliedResourceEntry
    live: LiveObject | None

    @property
    def is_same_object(self) -> bool | None:
        """Whether the live object is the one that was applied; None if unknown."""
        if self.live is None or self.live.state != "present" or not self.live.uid or not self.resource.uid:
            return None
        return self.live.uid == self.resource.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """One manifest: desired, applied and live."""

    key: ObjectKey
    desired: Json | None
    """The manifest; None for an object that is applied but not desired."""
    strategy: str = ""
    entries: tuple[AppliedEntry, ...] = ()
    live_objects: tuple[LiveObject, ...] = ()
    conditions: tuple[ReportedCondition, ...] = ()
    feedback: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_applied(self) -> bool:
        return bool(self.entries)

    @property
    def is_live(self) -> bool | None:
        """Whether the object exists; None if it could not be read."""
        states = {live.state for live in self.live_objects}
        if "present" in states:
            return True
        return False if states == {"absent"} else None

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(owner.name for live in self.live_objects for owner in live.applied_owners))


def rows_of(data: WorkData) -> tuple[ManifestRow, ...]:
    """Return every manifest of a work: the desired ones in their order, then those that are only applied."""
    row = data.row
    return _join(
        row.manifests if row else (),
        applied=data.applied,
        live_objects=data.live_objects,
        status=row.status if row else None,
        plurals=data.plurals,
        configs=row.configs if row else (),
    )


def nested_rows(nested: NestedWork) -> tuple[ManifestRow, ...]:
    """Return every manifest of a work within a work."""
    plurals = {(live.key.group, live.key.kind): live.key.plural for live in nested.live_objects if live.key.kind}
    return _join(
        nested.manifests,
        applied=nested.applied,
        live_objects=nested.live_objects,
        status=nested.status,
        plurals=plurals,
        configs=(),
    )


def _join(
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    live_objects: Sequence[LiveObject],
    status: Status | None,
    plurals: Mapping[tuple[str, str], str],
    configs: Sequence[Json],
) -> tuple[ManifestRow, ...]:
    reported = status.manifests if status else ()
    known = {(report.key.group, report.key.kind): report.key.plural for report in reported if report.key.plural} | dict(
        plurals
    )
    left = [(work, resource) for work in applied for resource in work.resources]
    rows = []
    for manifest in manifests:
        key = parse.manifest_key(manifest)
        key = replace(key, plural=known.get((key.group, key.kind)) or parse.plural_of(key.kind))
        own = [(work, resource) for work, resource in left if _is_same(resource.key, key)]
        left = [entry for entry in left if entry not in own]
        rows.append(
            _row(
                key,
                own,
                live_objects=live_objects,
                report=_report(reported, key),
                desired=manifest,
                strategy=_strategy(configs, key),
            )
        )
    kinds = {(group, plural): kind for (group, kind), plural in known.items()}
    for work, resource in left:
        key = replace(resource.key, kind=kinds.get((resource.group, resource.plural), ""))
        rows.append(_row(key, [(work, resource)], live_objects=live_objects, report=None, desired=None, strategy=""))
    return tuple(rows)


def _row(
    key: ObjectKey,
    own: Iterable[tuple[AppliedWork, AppliedResourceEntry]],
    *,
    live_objects: Sequence[LiveObject],
    report: ManifestReport | None,
    desired: Json | None,
    strategy: str,
) -> ManifestRow:
    own_objects = tuple(live for live in live_objects if _is_same(live.key, key))
    return ManifestRow(
        key=key,
        desired=desired,
        strategy=strategy,
        entries=tuple(
            AppliedEntry(
                work=work,
                resource=resource,
                live=next((live for live in own_objects if live.cluster == work.cluster), None),
            )
            for work, resource in own
        ),
        live_objects=own_objects,
        conditions=report.conditions if report else (),
        feedback=report.feedback if report else {},
    )


def _is_same(one: ObjectKey, other: ObjectKey) -> bool:
    # A manifest may carry a namespace that its cluster-scoped kind does not have.
    return (one.group, one.plural, one.name) == (other.group, other.plural, other.name) and (
        one.namespace == other.namespace or not one.namespace
    )


def _report(reports: Sequence[ManifestReport], key: ObjectKey) -> ManifestReport | None:
    for report in reports:
        if (report.key.group, report.key.kind, report.key.namespace, report.key.name) == (
            key.group,
            key.kind,
            key.namespace,
            key.name,
        ):
            return report
    return None


def _strategy(configs: Sequence[Json], key: ObjectKey) -> str:
    for config in configs:
        which = parse.mapping(config.get("resourceIdentifier"))
        fields = (("group", key.group), ("resource", key.plural), ("namespace", key.namespace), ("name", key.name))
        if all(fnmatchcase(value, parse.text(which.get(name))) for name, value in fields):
            return parse.text(parse.mapping(config.get("updateStrategy")).get("type"))
    return ""
