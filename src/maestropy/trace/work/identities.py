"""Identities that can be computed without asking anybody: resource ids, applied works' names, times in sequence ids.

Pure. A check compares what somebody stored with what it should be; a difference is a fact to report, not an error,
because raw clients may choose any id.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from maestropy.trace.errors import BadQuestion
from maestropy.trace.work.model import AppliedWork, Row
from maestropy.wire import identity, order
from maestropy.wire.errors import WireError

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
    found = _APPLIED.fullmatch(name)
    return (found[1], found[2]) if found else None


def time_of_sequence(sequence: str) -> datetime:
    """Return the agent's wall clock when it made a sequence id."""
    try:
        found = order.parse(sequence)
    except WireError as error:
        raise BadQuestion(f"--sequence {sequence[:40]!r} is no sequence id; give the decimal number") from error
    return datetime.fromtimestamp(found.time_ms / 1000, tz=UTC)


def check_row(row: Row) -> tuple[Check, ...]:
    """Check what a row says about itself."""
    if not (row.source and row.consumer and row.work_name):
        return ()
    computed = identity.resource_id(row.source, namespace=row.consumer, name=row.work_name)
    if computed == row.id:
        return (Check(what="resource id", is_equal=True, says="matches uuid5 of source/consumer/name"),)
    says = f"is not uuid5 of source/consumer/name ({computed}): the client chose it"
    return (Check(what="resource id", is_equal=False, says=says),)


def check_applied(applied: AppliedWork, *, broker_host: str = "") -> tuple[Check, ...]:
    """Check what an applied work says about itself, and whether it is of the broker given."""
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
