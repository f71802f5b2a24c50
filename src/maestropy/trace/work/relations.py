"""Join the sides of one work, manifest by manifest: wanted, applied, live. Pure; it judges nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from maestropy.trace.work import reading
from maestropy.trace.work.model import (
    AppliedResource,
    AppliedWork,
    Condition,
    Gathered,
    Json,
    Live,
    ManifestReport,
    NestedWork,
    ObjectKey,
    Status,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One manifest as one applied work lists it."""

    work: AppliedWork
    resource: AppliedResource
    live: Live | None

    @property
    def is_same_object(self) -> bool | None:
        """Whether the live object is the one that was applied; None where it cannot be told."""
        if self.live is None or self.live.state != "present" or not self.live.uid or not self.resource.uid:
            return None
        return self.live.uid == self.resource.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One manifest on all sides."""

    key: ObjectKey
    wanted: Json | None
    """The manifest; None for what is applied but not wanted."""
    strategy: str = ""
    placed: tuple[Placed, ...] = ()
    lives: tuple[Live, ...] = ()
    conditions: tuple[Condition, ...] = ()
    feedback: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_applied(self) -> bool:
        """Whether an applied work lists it."""
        return bool(self.placed)

    @property
    def is_live(self) -> bool | None:
        """Whether it is there; None where nobody could look."""
        states = {each.state for each in self.lives}
        if "present" in states:
            return True
        return False if states == {"absent"} else None

    @property
    def owners(self) -> tuple[str, ...]:
        """The applied works that own it."""
        return tuple(dict.fromkeys(owner.name for live in self.lives for owner in live.applied_owners))


def lines(gathered: Gathered) -> tuple[Line, ...]:
    """Return every manifest of a work: those wanted, in their order, then those that are only applied."""
    row = gathered.row
    return _join(
        row.manifests if row else (),
        applied=gathered.applied,
        lives=gathered.lives,
        status=row.status if row else None,
        plurals=gathered.plurals,
        configs=row.configs if row else (),
    )


def nested_lines(nested: NestedWork) -> tuple[Line, ...]:
    """Return every manifest of a work within a work."""
    plurals = {(live.key.group, live.key.kind): live.key.plural for live in nested.lives if live.key.kind}
    return _join(
        nested.manifests,
        applied=nested.applied,
        lives=nested.lives,
        status=nested.status,
        plurals=plurals,
        configs=(),
    )


def _join(
    manifests: Sequence[Json],
    *,
    applied: Sequence[AppliedWork],
    lives: Sequence[Live],
    status: Status | None,
    plurals: Mapping[tuple[str, str], str],
    configs: Sequence[Json],
) -> tuple[Line, ...]:
    reported = status.manifests if status else ()
    known = {(each.key.group, each.key.kind): each.key.plural for each in reported if each.key.plural} | dict(plurals)
    left = [(work, resource) for work in applied for resource in work.resources]
    found = []
    for manifest in manifests:
        key = reading.manifest_key(manifest)
        key = replace(key, plural=known.get((key.group, key.kind)) or reading.plural_of(key.kind))
        mine = [(work, resource) for work, resource in left if _is_same(resource.key, key)]
        left = [each for each in left if each not in mine]
        found.append(
            _line(
                key, mine, lives=lives, report=_report(reported, key), wanted=manifest, strategy=_strategy(configs, key)
            )
        )
    kinds = {(group, plural): kind for (group, kind), plural in known.items()}
    for work, resource in left:
        key = replace(resource.key, kind=kinds.get((resource.group, resource.plural), ""))
        found.append(_line(key, [(work, resource)], lives=lives, report=None, wanted=None, strategy=""))
    return tuple(found)


def _line(
    key: ObjectKey,
    mine: Iterable[tuple[AppliedWork, AppliedResource]],
    *,
    lives: Sequence[Live],
    report: ManifestReport | None,
    wanted: Json | None,
    strategy: str,
) -> Line:
    seen = tuple(live for live in lives if _is_same(live.key, key))
    return Line(
        key=key,
        wanted=wanted,
        strategy=strategy,
        placed=tuple(
            Placed(
                work=work,
                resource=resource,
                live=next((live for live in seen if live.cluster == work.cluster), None),
            )
            for work, resource in mine
        ),
        lives=seen,
        conditions=report.conditions if report else (),
        feedback=report.feedback if report else {},
    )


def _is_same(one: ObjectKey, other: ObjectKey) -> bool:
    # A manifest may carry a namespace that its cluster-scoped kind does not have.
    return (one.group, one.plural, one.name) == (other.group, other.plural, other.name) and (
        one.namespace == other.namespace or not one.namespace
    )


def _report(reports: Sequence[ManifestReport], key: ObjectKey) -> ManifestReport | None:
    for each in reports:
        if (each.key.group, each.key.kind, each.key.namespace, each.key.name) == (
            key.group,
            key.kind,
            key.namespace,
            key.name,
        ):
            return each
    return None


def _strategy(configs: Sequence[Json], key: ObjectKey) -> str:
    for config in configs:
        which = reading.mapping(config.get("resourceIdentifier"))
        wanted = (("group", key.group), ("resource", key.plural), ("namespace", key.namespace), ("name", key.name))
        if all(fnmatchcase(value, reading.text(which.get(name))) for name, value in wanted):
            return reading.text(reading.mapping(config.get("updateStrategy")).get("type"))
    return ""
