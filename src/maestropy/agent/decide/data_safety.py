"""Decide whether a server may change or remove what this agent has applied: never delete on ignorance.

Every AppliedManifestWork records its origin: the database, the incarnation, the version and the publication time of the
spec that was applied last. A server on another database, or on an older copy of the same one, is recognised by
comparing that origin with the origin of an event. The verdict is then `Hold`: nothing is deleted, pruned or overwritten
until the work comes back, a source publishes again, or an operator adopts the database. A server that sends no
identity, such as a Go server, is treated as the Go agent treats it, apart from the limit on orphans. Pure: no I/O, no
clock.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from maestropy.wire import errors, json_types, resync, timestamps
from maestropy.wire.json_types import Object
from maestropy.wire.works import status

ORIGIN = "maestropy/work-origin"
"""Annotation of an AppliedManifestWork with the origin of the applied spec."""
HOLD_CONDITION = status.DATA_SAFETY_HOLD
DEFAULT_LIMIT_PERCENT = 20


class HoldReason(enum.StrEnum):
    """Why works are held; also the reason of the condition and a label of the metric."""

    OTHER_DATABASE = "OtherDatabase"
    UNKNOWN_CONSUMER = "UnknownConsumer"
    TOO_MANY_ORPHANS = "TooManyOrphans"
    OLDER_VERSION = status.OLDER_VERSION
    OLDER_INCARNATION = "OlderIncarnation"
    EVICTION_PENDING = "EvictionPending"
    """Not a hold: a few works that the server does not have, whose objects stay for the grace period only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecOrigin:
    """Where a spec comes from; empty texts are unknown."""

    database: str = ""
    """The identity of the server's database."""
    created: str = ""
    """The creation time of the resource, which tells its incarnations apart; full seconds from a Go server."""
    version: int = 0
    published: str = ""
    """When the source published this version."""
    is_adopted: bool = False
    """Whether an operator has agreed that the database decides about this work."""
    consumer: str = ""
    """The consumer of the agent that applied the spec; agents of several consumers may share a cluster and an ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proceed:
    """The request may be carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing is deleted or overwritten."""

    reason: HoldReason
    message: str


Verdict = Proceed | Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionFacts:
    """What the agent knows when it decides about an AppliedManifestWork without a work."""

    database: str
    """The identity of the database that answered the last spec resync; empty if the server sends none."""
    is_consumer_known: bool
    orphans: int
    """AppliedManifestWorks of this agent without a work."""
    applied_works: int
    """All AppliedManifestWorks of this agent."""
    limit_percent: int = DEFAULT_LIMIT_PERCENT


def spec_verdict(applied: SpecOrigin | None, incoming: SpecOrigin) -> Verdict:
    """Decide whether a spec may replace the applied one."""
    if applied is None:
        return Proceed()
    if _is_other_database(applied.database, incoming.database):
        return _other_database(applied.database, incoming.database)
    if _is_older_incarnation(applied, incoming):
        return _older_incarnation(applied, incoming)
    if is_older_spec(applied, incoming):
        return Hold(
            reason=HoldReason.OLDER_VERSION,
            message=f"version {applied.version} is applied and the database has version {incoming.version}, which was "
            "published earlier; the objects stay as they are until the source publishes again",
        )
    return Proceed()


def is_older_spec(known: SpecOrigin, incoming: SpecOrigin) -> bool:
    """Return whether a spec of the same incarnation is older: by its version, unless it was published later.

    Two specs of one version exist only after a restore: the one that was published earlier is older.
    """
    if compare_creation(known.created, incoming.created) != 0 or incoming.version == 0:
        return False
    if incoming.version == known.version:
        return _is_published_later(known, than=incoming)
    return incoming.version < known.version and not _is_published_later(incoming, than=known)


def compare_creation(known: str, incoming: str) -> int:
    """Return -1 if the incoming incarnation was created earlier, 1 if later, 0 if equal or not known.

    A time in full seconds is compared by its seconds: it may be of the same incarnation.
    """
    try:
        mine, other = timestamps.parse(known), timestamps.parse(incoming)
    except errors.WireError:
        return 0
    if not mine.nanos or not other.nanos:
        return (other.seconds > mine.seconds) - (other.seconds < mine.seconds)
    return (other > mine) - (other < mine)


def deletion_verdict(applied: SpecOrigin | None, incoming: SpecOrigin) -> Verdict:
    """Decide whether a requested deletion may be carried out."""
    if applied is None:
        return Proceed()
    if _is_other_database(applied.database, incoming.database):
        return _other_database(applied.database, incoming.database)
    if _is_older_incarnation(applied, incoming):
        return _older_incarnation(applied, incoming)
    return Proceed()


def object_problem(work_name: str, applied: SpecOrigin | None, incoming: SpecOrigin) -> str:
    """Return why a spec may not change an object that also belongs to the work `work_name`; empty if it may."""
    if applied is None or not _is_other_database(applied.database, incoming.database):
        return ""
    return (
        f"data-safety hold: the object belongs to work {work_name}, which was applied from database "
        f"{applied.database}; this work comes from database {incoming.database}"
    )


def eviction_verdict(applied: SpecOrigin | None, facts: EvictionFacts) -> Verdict:
    """Decide whether an AppliedManifestWork may be evicted whose work the server does not have."""
    if not facts.is_consumer_known:
        return Hold(
            reason=HoldReason.UNKNOWN_CONSUMER,
            message="the server does not have this consumer, so it cannot know its works; if its database is the right "
            "one, creating the consumer lets that database decide about the works (docs/data-safety.md)",
        )
    if applied is not None and _is_other_database(applied.database, facts.database):
        return _other_database(applied.database, facts.database)
    if applied is not None and applied.is_adopted:
        return Proceed()
    if resync.are_too_many_orphans(facts.orphans, facts.applied_works, limit_percent=facts.limit_percent):
        return Hold(
            reason=HoldReason.TOO_MANY_ORPHANS,
            message=f"the server has no work for {facts.orphans} of {facts.applied_works} AppliedManifestWorks; "
            f"that is more than {facts.limit_percent} percent, and more than {resync.ORPHANS_ALWAYS_ALLOWED} or at "
            "least half",
        )
    return Proceed()


def read_origin(applied_work: Object | None) -> SpecOrigin | None:
    """Return the origin that an AppliedManifestWork records; None if it records none, as those of a Go agent."""
    if applied_work is None:
        return None
    text = json_types.text_map_at(applied_work, "metadata", "annotations").get(ORIGIN, "")
    try:
        members = json_types.decode_object(text, label=ORIGIN) if text else {}
        return _origin(members) if members else None
    except errors.WireError:
        # Another writer changed the annotation.
        return None


def recorded(incoming: SpecOrigin, *, previous: SpecOrigin | None) -> SpecOrigin:
    """Return the origin to record for a spec that is applied.

    A Go server sends no identity, and no creation time when it answers a resync: what is recorded stays.
    """
    previous = previous or SpecOrigin()
    return SpecOrigin(
        database=incoming.database or previous.database,
        created=incoming.created or previous.created,
        version=incoming.version,
        published=incoming.published,
        consumer=incoming.consumer,
    )


def is_recorded(to_record: SpecOrigin, *, previous: SpecOrigin | None) -> bool:
    """Return whether an origin need not be written; one that lacks only the consumer is completed with the next spec.

    So an agent that starts after an upgrade does not write to all its AppliedManifestWorks.
    """
    if previous is None:
        return False
    return previous == to_record or (
        not previous.consumer and replace(previous, consumer=to_record.consumer) == to_record
    )


def is_same_spec(applied: SpecOrigin | None, incoming: SpecOrigin) -> bool:
    """Return whether the recorded origin is that of a spec, whoever applied it."""
    return applied is not None and replace(applied, is_adopted=False, consumer="") == incoming


def other_consumer(applied: SpecOrigin | None, *, consumer: str) -> str:
    """Return the consumer whose agent applied a work, if it is not `consumer`; empty if it is or is not recorded."""
    return "" if applied is None or applied.consumer == consumer else applied.consumer


def annotation(origin: SpecOrigin) -> str:
    """Return the value of the annotation."""
    members: dict[str, Any] = {
        "database": origin.database,
        "created": origin.created,
        "version": origin.version,
        "published": origin.published,
        "adopted": origin.is_adopted,
        "consumer": origin.consumer,
    }
    return json_types.encode({name: value for name, value in members.items() if value}).decode()


def held(hold: Hold, *, generation: int) -> status.Condition:
    """Return the condition of a work that is held."""
    return status.Condition(
        type=HOLD_CONDITION,
        status=status.TRUE,
        reason=hold.reason,
        message=hold.message,
        observed_generation=generation,
    )


def without_hold(work_status: status.WorkStatus) -> status.WorkStatus:
    """Return a status without the condition of a hold."""
    conditions = json_types.objects_at(work_status.body, "conditions")
    kept = [condition for condition in conditions if condition.get("type") != HOLD_CONDITION]
    return work_status if len(kept) == len(conditions) else status.WorkStatus({**work_status.body, "conditions": kept})


def _origin(members: Mapping[str, Any]) -> SpecOrigin:
    return SpecOrigin(
        database=json_types.text_at(members, "database"),
        created=json_types.text_at(members, "created"),
        version=json_types.integer_at(members, "version"),
        published=json_types.text_at(members, "published"),
        is_adopted=members.get("adopted") is True,
        consumer=json_types.text_at(members, "consumer"),
    )


def _is_other_database(applied: str, incoming: str) -> bool:
    return bool(applied and incoming and applied != incoming)


def _is_older_incarnation(applied: SpecOrigin, incoming: SpecOrigin) -> bool:
    return compare_creation(applied.created, incoming.created) < 0


def _is_published_later(incoming: SpecOrigin, *, than: SpecOrigin) -> bool:
    try:
        return timestamps.parse(incoming.published) > timestamps.parse(than.published)
    except errors.WireError:
        return False


def _other_database(applied: str, incoming: str) -> Hold:
    return Hold(
        reason=HoldReason.OTHER_DATABASE,
        message=f"the work was applied from database {applied}, the server now uses database {incoming}",
    )


def _older_incarnation(applied: SpecOrigin, incoming: SpecOrigin) -> Hold:
    return Hold(
        reason=HoldReason.OLDER_INCARNATION,
        message=f"the applied work was created at {applied.created}, the one in the database at {incoming.created}; "
        "if the older one is right, run `maestro consumer adopt`, otherwise restore a newer backup",
    )
