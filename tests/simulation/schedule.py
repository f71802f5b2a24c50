"""A schedule: who takes part, what is asked for, what goes wrong, and when. Drawn from a seed, and nothing else.

A step is complete in itself (a crash says when the victim comes back), so any of them can be left out and what remains
is still a schedule: that is what shrinking does.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

SECONDS = 15.0
"""How long things are asked for and go wrong."""


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


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    dice = random.Random(seed)
    servers = tuple(f"server-{number}" for number in range(dice.choice((1, 2, 2, 3))))
    consumers = tuple(f"c{number}" for number in range(dice.choice((1, 1, 2))))
    sources = tuple(f"source-{number}" for number in range(dice.choice((1, 2))))
    bundles = tuple(
        (f"b{number}", dice.choice(sources), dice.choice(consumers)) for number in range(dice.choice((1, 2, 3)))
    )
    cast = Schedule(seed=seed, servers=servers, consumers=consumers, sources=sources, bundles=bundles, steps=())
    wishes = [step for name, _, _ in bundles for step in _wishes(dice, name)]
    troubles = [_trouble(dice, cast) for _ in range(dice.randint(0, 8))]
    steps = sorted([*wishes, *troubles], key=lambda step: step.at)
    return replace(cast, steps=tuple(steps), is_rough=dice.random() < 0.8, uses_mqtt=dice.random() < 0.4)


def _wishes(dice: random.Random, bundle: str) -> list[Step]:
    """What is asked of one bundle: a creation, and then anything."""
    at = dice.uniform(0.0, 3.0)
    steps = [Step(at=at, kind="create", who=bundle, number=_shape(dice))]
    for _ in range(dice.randint(0, 6)):
        # Often right behind one another: that is where races are.
        at += dice.choice((dice.uniform(0.0, 0.05), dice.uniform(0.0, 1.0), dice.uniform(0.0, 4.0)))
        if at > SECONDS:
            break
        kind = dice.choice(("update", "update", "update", "race", "stale update", "delete", "delete", "delete storm"))
        steps.append(Step(at=at, kind=kind, who=bundle, number=_shape(dice)))
        if kind.startswith("delete") and dice.random() < 0.7:
            at += dice.uniform(0.0, 3.0)
            steps.append(Step(at=at, kind="create", who=bundle, number=_shape(dice)))
    return steps


def _shape(dice: random.Random) -> int:
    """How many objects a bundle has; more than two means that somebody holds them when they go."""
    return dice.choice((1, 1, 2, 2, 3, 4))


def _trouble(dice: random.Random, cast: Schedule) -> Step:
    at = dice.uniform(0.5, SECONDS)
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
