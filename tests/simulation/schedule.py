"""Schedules: the actors, their requests, the faults, and when they happen. Drawn from a seed alone.

A step is complete in itself (a crash says when the process is restarted), so steps can be removed and the rest is still
a schedule: shrinking does that.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request or fault."""

    at: float
    kind: str
    who: str = ""
    """The actor: a resource, a server, an agent or a consumer."""
    number: int = 0
    """Seconds, a count or a shape, depending on the kind."""

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.kind:<16} {self.who} {self.number or ''}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One run."""

    seed: int
    servers: tuple[str, ...]
    consumers: tuple[str, ...]
    sources: tuple[str, ...]
    resources: tuple[tuple[str, str, str], ...]
    """Name, source and consumer of each."""
    steps: tuple[Step, ...]
    seconds: float = 15.0
    """How long requests are published and faults happen."""
    is_rough: bool = True
    uses_mqtt: bool = False
    """Whether agents connect to an MQTT broker, and instances share the consumers by a hash ring."""

    def without(self, steps: "tuple[Step, ...]") -> "Schedule":
        """Return the schedule without some steps."""
        gone = set(steps)
        return replace(self, steps=tuple(step for step in self.steps if step not in gone))

    def __str__(self) -> str:
        schedule = f"seed {self.seed}: {len(self.servers)} servers, {len(self.consumers)} agents, "
        schedule += f"{len(self.resources)} resources, {'rough' if self.is_rough else 'calm'} network, "
        schedule += "agents behind an MQTT broker" if self.uses_mqtt else "agents over gRPC"
        return "\n".join([schedule, *(f"  {step}" for step in self.steps)])


@dataclass(frozen=True, kw_only=True)
class _Size:
    """How much happens in a schedule; each choice is equally likely."""

    seconds: float
    servers: tuple[int, ...]
    consumers: tuple[int, ...]
    resources: tuple[int, ...]
    requests: int
    """How many requests, at most, follow the creation of a resource."""
    faults: tuple[int, int]


_SHORT = _Size(seconds=5.0, servers=(1, 1, 2), consumers=(1,), resources=(1, 1, 2), requests=3, faults=(1, 3))
_LONG = _Size(seconds=15.0, servers=(1, 2, 2, 3), consumers=(1, 1, 2), resources=(1, 2, 3), requests=6, faults=(0, 8))
_SHORT_SHARE = 0.75
"""The share of short schedules: many of them find most bugs, long ones find those that need a long history."""


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    dice = random.Random(seed)
    size = _SHORT if dice.random() < _SHORT_SHARE else _LONG
    consumers = tuple(f"c{number}" for number in range(dice.choice(size.consumers)))
    sources = tuple(f"source-{number}" for number in range(dice.choice((1, 2))))
    schedule = Schedule(
        seed=seed,
        servers=tuple(f"server-{number}" for number in range(dice.choice(size.servers))),
        consumers=consumers,
        sources=sources,
        resources=tuple(
            (f"b{number}", dice.choice(sources), dice.choice(consumers))
            for number in range(dice.choice(size.resources))
        ),
        steps=(),
        seconds=size.seconds,
        is_rough=dice.random() < 0.8,
        uses_mqtt=dice.random() < 0.4,
    )
    requests = [step for name, _, _ in schedule.resources for step in _requests(dice, name, size)]
    faults = [_fault(dice, schedule) for _ in range(dice.randint(*size.faults))]
    faults += _upheavals(random.Random(f"{seed}/upheavals"), schedule)
    faults += _pauses(random.Random(f"{seed}/pauses"), schedule)
    return replace(schedule, steps=tuple(sorted([*requests, *faults], key=lambda step: step.at)))


def _requests(dice: random.Random, resource: str, size: _Size) -> list[Step]:
    """Draw the requests for one resource: a creation, and then any kind."""
    at = dice.uniform(0.0, size.seconds / 5)
    steps = [Step(at=at, kind="create", who=resource, number=_shape(dice))]
    for _ in range(dice.randint(0, size.requests)):
        # Often right after one another: that makes races.
        at += dice.choice((dice.uniform(0.0, 0.05), dice.uniform(0.0, 1.0), dice.uniform(0.0, size.seconds / 4)))
        if at > size.seconds:
            break
        kind = dice.choice(("update", "update", "update", "race", "stale update", "delete", "delete", "delete storm"))
        steps.append(Step(at=at, kind=kind, who=resource, number=_shape(dice)))
        if kind.startswith("delete") and dice.random() < 0.7:
            kind = dice.choice(("create", "create again"))
            at += dice.uniform(0.0, size.seconds / 5) if kind == "create" else 0.001
            steps.append(Step(at=at, kind=kind, who=resource, number=_shape(dice)))
    return steps


def _shape(dice: random.Random) -> int:
    """Draw how many objects a resource has; above two, a finalizer holds them when they are deleted."""
    return dice.choice((1, 1, 2, 2, 3, 4))


def _fault(dice: random.Random, schedule: Schedule) -> Step:
    at = dice.uniform(0.5, schedule.seconds)
    kind, whom, longest = dice.choice(_FAULTS)
    return Step(at=at, kind=kind, who=dice.choice(whom(schedule)), number=dice.randint(0, longest))


def _upheavals(dice: random.Random, schedule: Schedule) -> list[Step]:
    """Draw what happens to the database as a whole, to a consumer or to a clock; nothing in most schedules."""
    if dice.random() >= _UPHEAVAL_SHARE:
        return []
    kind, whom, longest = dice.choice(_UPHEAVALS)
    at = dice.uniform(1.0, schedule.seconds)
    return [Step(at=at, kind=kind, who=dice.choice(whom(schedule)), number=dice.randint(0, longest))]


def _pauses(dice: random.Random, schedule: Schedule) -> list[Step]:
    """Draw a pause of the delivery to a consumer; none in most schedules."""
    if dice.random() >= _PAUSE_SHARE:
        return []
    at = dice.uniform(0.0, schedule.seconds)
    return [Step(at=at, kind=PAUSE_KIND, who=dice.choice(schedule.consumers), number=dice.randint(0, 8))]


def _servers(schedule: Schedule) -> tuple[str, ...]:
    return schedule.servers


def _consumers(schedule: Schedule) -> tuple[str, ...]:
    return schedule.consumers


def _database(_schedule: Schedule) -> tuple[str, ...]:
    return ("database",)


def _all_actors(schedule: Schedule) -> tuple[str, ...]:
    return (*schedule.servers, *schedule.sources, *(f"agent-{consumer}" for consumer in schedule.consumers))


_FAULTS: tuple[tuple[str, Callable[[Schedule], tuple[str, ...]], int], ...] = (
    ("kill server", _servers, 4),
    ("kill server", _servers, 0),
    ("stop server", _servers, 4),
    ("kill agent", _consumers, 4),
    ("kill agent", _consumers, 0),
    ("hang up", _all_actors, 0),
    ("cut off", _all_actors, 8),
    ("cut sessions", _servers, 0),
    ("lose database", _servers, 6),
    ("lose notices", _servers, 8),
    ("lose cluster", _consumers, 8),
    ("forget history", _consumers, 0),
    ("fail requests", _consumers, 6),
    ("drift", _consumers, 3),
    ("release", _consumers, 0),
    ("lose broker", _servers, 6),
)

PAUSE_KIND = "pause consumer"
_PAUSE_SHARE = 0.2
_UPHEAVAL_SHARE = 0.3
_UPHEAVALS: tuple[tuple[str, Callable[[Schedule], tuple[str, ...]], int], ...] = (
    ("restore backup", _database, 8),
    ("restore backup", _database, 3),
    ("empty database", _database, 1),
    ("wrong database", _database, 8),
    ("recreate consumer", _consumers, 4),
    ("jump clock", _consumers, 7),
)
UPHEAVAL_KINDS = frozenset(kind for kind, _, _ in _UPHEAVALS)
