"""Compute and check identities offline: resource IDs, names of applied works, times in sequence IDs.

Pure. A check compares a stored value with the computed one. A difference is a fact to report, not an error, because a
raw client may choose any ID.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from maestropy.trace.errors import InvalidArguments
from maestropy.trace.work.model import AppliedWork, TracedResource
from maestropy.wire import ordering
from maestropy.wire.errors import WireError
from maestropy.wire.works import resource_id

NO_ADDRESS = hashlib.sha256(b"").hexdigest()
"""The hub hash of every agent on Pub/Sub, which has no broker address."""
_APPLIED = re.compile(r"([0-9a-f]{64})-(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison."""

    what: str
    is_equal: bool
    says: str


def hub_hash(broker_host: str) -> str:
    """Return the hub hash of a broker's address: `host:port` exactly as the agent is configured."""
    return hashlib.sha256(broker_host.encode()).hexdigest()


def split_applied_work_name(name: str) -> tuple[str, str] | None:
    """Return hub hash and work name, if a name has that form."""
    match = _APPLIED.fullmatch(name)
    return (match[1], match[2]) if match else None


def time_of_sequence(sequence: str) -> datetime:
    """Return the agent's wall clock when it made a sequence id."""
    try:
        parsed = ordering.parse(sequence)
    except WireError as error:
        raise InvalidArguments(f"--sequence {sequence[:40]!r} is not a sequence ID; give the decimal number") from error
    return datetime.fromtimestamp(parsed.time_ms / 1000, tz=UTC)


def check_row(row: TracedResource) -> tuple[Check, ...]:
    """Check the identity of a row."""
    if not (row.source and row.consumer and row.work_name):
        return ()
    computed = resource_id.resource_id(row.source, namespace=row.consumer, name=row.work_name)
    if computed == row.id:
        return (Check(what="resource id", is_equal=True, says="matches uuid5 of source/consumer/name"),)
    says = f"is not uuid5 of source/consumer/name ({computed}): the client chose it"
    return (Check(what="resource id", is_equal=False, says=says),)


def check_applied(applied: AppliedWork, *, broker_host: str = "") -> tuple[Check, ...]:
    """Check the identity of an applied work, and whether it belongs to the given broker."""
    parts = split_applied_work_name(applied.name)
    is_named_so = parts == (applied.hub_hash, applied.work_name)
    checks = [
        Check(
            what="applied work's name",
            is_equal=is_named_so,
            says="is its hub hash and its work's name" if is_named_so else "is not its hub hash and its work's name",
        )
    ]
    if applied.hub_hash == NO_ADDRESS:
        checks.append(Check(what="hub hash", is_equal=True, says="is that of an empty address: an agent on Pub/Sub"))
    if broker_host:
        is_its = hub_hash(broker_host) == applied.hub_hash
        says = f"is {'' if is_its else 'not '}sha256 of {broker_host}"
        checks.append(Check(what="hub hash", is_equal=is_its, says=says))
    return tuple(checks)
