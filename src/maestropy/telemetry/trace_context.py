"""Tell which trace a request belongs to. Pure.

A request passes processes, a database and Go programs that know nothing of OpenTelemetry, but all of them pass the
operation ID on. So the trace follows from it: an operation ID in the form of a W3C `traceparent` names its trace, every
other one is hashed. A request without one is known by its resource and version. Spans that happen once have hashed IDs
too, so that another process names them as parents without having heard of them.
"""

import hashlib
import re
from typing import NamedTuple

_TRACE_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 1
_LENGTH_LIMIT = 256
_OPERATION = "operation\0"


class SpanContext(NamedTuple):
    """A span as other spans name it."""

    trace_id: int
    span_id: int
    is_sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"


def parse(text: str) -> SpanContext | None:
    """Read a `traceparent`; None if it is none. Versions after 00 may have more fields."""
    if len(text) > _LENGTH_LIMIT:
        return None
    match = _TRACE_PARENT.fullmatch(text)
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    trace_id, span_id = int(match[2], 16), int(match[3], 16)
    if not trace_id or not span_id:
        return None
    return SpanContext(trace_id, span_id, bool(int(match[4], 16) & _SAMPLED))


def of_request(operation_id: str, resource_id: str, version: int) -> SpanContext:
    """Return the trace of a request, and the span that published it; span ID 0 if nothing names that span."""
    named = parse(operation_id) if operation_id.startswith("00-") else None
    if named is not None:
        return named
    seed = _OPERATION + operation_id if operation_id else f"resource\0{resource_id}\0{version}"
    return SpanContext(_hashed(seed, 16), 0)


def is_above(operation_id: str, limit: int) -> bool:
    """Return whether the low 64 bits of the trace of an operation ID are certainly not below `limit`.

    Nearly every request is not sampled, and then nothing else about its trace is needed. False: ask `of_request`.
    """
    if operation_id.startswith("00-"):
        return False
    digest = hashlib.blake2b((_OPERATION + operation_id).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[8:], "big") >= limit


def span_id(trace_id: int, *parts: str | int) -> int:
    """Return the ID of a span that happens once in its trace."""
    return _hashed("\0".join((f"{trace_id:032x}", *map(str, parts))), 8)


def spec_commit_id(trace_id: int, resource_id: str, version: int) -> int:
    """Return the ID of the span that stored a version of a resource; agents name it behind Go servers too."""
    return span_id(trace_id, "commit spec", resource_id, version)


def _hashed(seed: str, size: int) -> int:
    digest = hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=size).digest()
    return int.from_bytes(digest, "big") or 1
