"""Advisory lock keys, the same as in the Go server, so that both can share a database.

The first key is the FNV-1a hash of an ID, the second that of the kind of lock.
"""

from typing import Final

_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619


def fnv1a(text: str) -> int:
    """Return the 32-bit FNV-1a hash of `text` as the signed integer that PostgreSQL takes."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


RESOURCES: Final = fnv1a("resources")
RESOURCE_STATUS: Final = fnv1a("resource_status")
EVENTS: Final = fnv1a("events")
INSTANCES: Final = fnv1a("instances")
SENDING: Final = fnv1a("maestropy-sending")
"""Not used by Go: one instance at a time sends a resource."""

MIGRATIONS: Final = (fnv1a("migrations"), fnv1a("migrations"))
LIVENESS_CHECK: Final = (fnv1a("maestro-instances-liveness-check"), INSTANCES)
UNDELIVERED_CHECK: Final = (fnv1a("maestro-undelivered-check"), INSTANCES)
STALE_DELETE_CHECK: Final = (fnv1a("maestro-stale-delete-check"), INSTANCES)
HISTORY: Final = (fnv1a("maestropy-history"), INSTANCES)
"""Not used by Go: one instance at a time creates and drops partitions of the history."""
LOST_AGENTS_CHECK: Final = (fnv1a("maestropy-lost-agents-check"), INSTANCES)
"""Not used by Go: one instance at a time records the ends of connections that a killed one did not record."""
