"""Decide which server instance handles the status updates of which consumer.

Every instance computes the same table from the list of ready instances. It is the bounded-load consistent hashing of
Go Maestro with the same parameters, so Python and Go instances can share consumers. The caller supplies the ready
instances.
"""

import math
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

PARTITIONS = 7
REPLICAS = 20
LOAD = 1.25


@dataclass(frozen=True, slots=True)
class Ring:
    """A table from partitions to instances."""

    owners: tuple[str, ...]
    """The instance of each partition; empty when no instance is ready."""

    def owner(self, consumer: str) -> str | None:
        """Return the instance that handles `consumer`."""
        if not self.owners:
            return None
        return self.owners[xxh64(consumer.encode()) % len(self.owners)]


def build(
    instances: Iterable[str], *, partitions: int = PARTITIONS, replicas: int = REPLICAS, load: float = LOAD
) -> Ring:
    """Distribute the partitions over the ready instances."""
    members = sorted(set(instances))
    if not members:
        return Ring(())
    points = {xxh64(f"{member}{index}".encode()): member for member in members for index in range(replicas)}
    positions = sorted(points)
    # With more instances than partitions the average is 0; then an instance gets at most one partition.
    limit = max(1, math.ceil(partitions // len(members) * load))
    loads: Counter[str] = Counter()
    owners = []
    for partition in range(partitions):
        start = bisect_left(positions, xxh64(struct.pack("<Q", partition)))
        owner = _first_with_room((points[position] for position in positions[start:] + positions[:start]), loads, limit)
        loads[owner] += 1
        owners.append(owner)
    return Ring(tuple(owners))


def _first_with_room(candidates: Iterable[str], loads: Counter[str], limit: int) -> str:
    """Return the first instance on the ring with room, or the least loaded one if the load factor leaves none."""
    members = dict.fromkeys(candidates)
    for member in members:
        if loads[member] < limit:
            return member
    return min(members, key=lambda member: loads[member])


_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 0xFFFFFFFFFFFFFFFF


def xxh64(data: bytes) -> int:
    """Return XXH64 with seed 0; plain Python is fast enough for names."""
    length = len(data)
    end_of_stripes = length - length % 32
    total = _stripes(data[:end_of_stripes]) if end_of_stripes else _P5
    total = (total + length) & _MASK
    tail = data[end_of_stripes:]
    while len(tail) >= 8:
        total = _rotate(total ^ _round(0, int.from_bytes(tail[:8], "little")), 27) * _P1 + _P4 & _MASK
        tail = tail[8:]
    if len(tail) >= 4:
        total = _rotate(total ^ int.from_bytes(tail[:4], "little") * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        tail = tail[4:]
    for byte in tail:
        total = _rotate(total ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _stripes(data: bytes) -> int:
    lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
    for words in struct.iter_unpack("<4Q", data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    total = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        total = (total ^ _round(0, lane)) * _P1 + _P4 & _MASK
    return total


def _round(lane: int, word: int) -> int:
    return _rotate(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
