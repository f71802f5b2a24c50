"""A schedule: who takes part, what is asked for, what goes wrong, and when. Drawn from a seed, and nothing else.

A step is complete in itself (a crash says when the victim comes back), so any of them can be left out and what remains
is still a schedule: that is what shrinking does.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that happens."""

    at: float
    kind: str
    who: str = ""
    """Whom it happens to: a bundle, a server, an agent or a consumer."""
    number: int = 0
    """Seconds, a count or a shape; the kind knows."""

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.kind:<16} {self.who} {self.number or ''}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One run."""

    seed: int
    servers: tuple[str, ...]
    consumers: tuple[str, ...]
    sources: tuple[str, ...]
    bundles: tuple[tuple[str, str, str], ...]
    """Name, source and consumer of each."""
    steps: tuple[Step, ...]
    seconds: float = 15.0
    """How long things are asked for and go wrong."""
    is_rough: bool = True
    uses_mqtt: bool = False
    """Whether agents are reached through a broker, which instances share by a hash ring."""

    def without(self, steps: "tuple[Step, ...]") -> "Schedule":
        """Return the schedule that lacks some steps."""
        gone = set(steps)
        return replace(self, steps=tuple(step for step in self.steps if step not in gone))

    def __str__(self) -> str:
        cast = f"seed {self.seed}: {len(self.servers)} servers, {len(self.consumers)} agents, "
        cast += f"{len(self.bundles)} bundles, {'rough' if self.is_rough else 'calm'} network, "
        cast += "agents behind an MQTT broker" if self.uses_mqtt else "agents over gRPC"
        return "\n".join([cast, *(f"  {step}" for step in self.steps)])


@dataclass(frozen=True, kw_only=True)
class _Size:
    """How much may happen in a schedule; where there is a choice, each is as likely as the others."""

    seconds: float
    servers: tuple[int, ...]
    consumers: tuple[int, ...]
    bundles: tuple[int, ...]
    wishes: int
    """How many, at most, follow the creation of a bundle."""
    troubles: tuple[int, int]


_SHORT = _Size(seconds=5.0, servers=(1, 1, 2), consumers=(1,), bundles=(1, 1, 2), wishes=3, troubles=(1, 3))
_LONG = _Size(seconds=15.0, servers=(1, 2, 2, 3), consumers=(1, 1, 2), bundles=(1, 2, 3), wishes=6, troubles=(0, 8))
_SHORT_SHARE = 0.75
"""Of all schedules: breadth is cheap, and what needs many things to happen first is left to the long ones."""


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    dice = random.Random(seed)
    size = _SHORT if dice.random() < _SHORT_SHARE else _LONG
    consumers = tuple(f"c{number}" for number in range(dice.choice(size.consumers)))
    sources = tuple(f"source-{number}" for number in range(dice.choice((1, 2))))
    cast = Schedule(
        seed=seed,
        servers=tuple(f"server-{number}" for number in range(dice.choice(size.servers))),
        consumers=consumers,
        sources=sources,
        bundles=tuple(
            (f"b{number}", dice.choice(sources), dice.choice(consumers)) for number in range(dice.choice(size.bundles))
        ),
        steps=(),
        seconds=size.seconds,
        is_rough=dice.random() < 0.8,
        uses_mqtt=dice.random() < 0.4,
    )
    wishes = [step for name, _, _ in cast.bundles for step in _wishes(dice, name, size)]
    troubles = [_trouble(dice, cast) for _ in range(dice.randint(*size.troubles))]
    return replace(cast, steps=tuple(sorted([*wishes, *troubles], key=lambda step: step.at)))


def _wishes(dice: random.Random, bundle: str, size: _Size) -> list[Step]:
    """What is asked of one bundle: a creation, and then anything."""
    at = dice.uniform(0.0, size.seconds / 5)
    steps = [Step(at=at, kind="create", who=bundle, number=_shape(dice))]
    for _ in range(dice.randint(0, size.wishes)):
        # Often right behind one another: that is where races are.
        at += dice.choice((dice.uniform(0.0, 0.05), dice.uniform(0.0, 1.0), dice.uniform(0.0, size.seconds / 4)))
        if at > size.seconds:
            break
        kind = dice.choice(("update", "update", "update", "race", "stale update", "delete", "delete", "delete storm"))
        steps.append(Step(at=at, kind=kind, who=bundle, number=_shape(dice)))
        if kind.startswith("delete") and dice.random() < 0.7:
            kind = dice.choice(("create", "create again"))
            at += dice.uniform(0.0, size.seconds / 5) if kind == "create" else 0.001
            steps.append(Step(at=at, kind=kind, who=bundle, number=_shape(dice)))
    return steps


def _shape(dice: random.Random) -> int:
    """How many objects a bundle has; more than two means that somebody holds them when they go."""
    return dice.choice((1, 1, 2, 2, 3, 4))


def _trouble(dice: random.Random, cast: Schedule) -> Step:
    at = dice.uniform(0.5, cast.seconds)
    kind, whom, longest = dice.choice(_TROUBLES)
    return Step(at=at, kind=kind, who=dice.choice(whom(cast)), number=dice.randint(0, longest))


def _servers(cast: Schedule) -> tuple[str, ...]:
    return cast.servers


def _consumers(cast: Schedule) -> tuple[str, ...]:
    return cast.consumers


def _everybody(cast: Schedule) -> tuple[str, ...]:
    return (*cast.servers, *cast.sources, *(f"agent-{consumer}" for consumer in cast.consumers))


_TROUBLES: tuple[tuple[str, Callable[[Schedule], tuple[str, ...]], int], ...] = (
    ("kill server", _servers, 4),
    ("kill server", _servers, 0),
    ("stop server", _servers, 4),
    ("kill agent", _consumers, 4),
    ("kill agent", _consumers, 0),
    ("hang up", _everybody, 0),
    ("cut off", _everybody, 8),
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
