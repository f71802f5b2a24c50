"""Who plays which part in one run of the matrix, and which steps of it the Go programs or a broker cannot do.

This is the only place where a step may be left out, and only with a reason that the report repeats.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

KINDS = ("go", "python")
BROKERS = ("grpc", "mqtt", "pubsub")


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One cell of the matrix."""

    client: str
    server: str
    agent: str
    broker: str

    def __str__(self) -> str:
        return f"{self.client}-client,{self.server}-server,{self.agent}-agent,{self.broker}"


ALL = tuple(
    Combination(client=client, server=server, agent=agent, broker=broker)
    for broker, server, agent, client in itertools.product(BROKERS, KINDS, KINDS, KINDS)
    # Clients never meet the broker: over Pub/Sub one of each kind of server is enough.
    if broker != "pubsub" or client == server
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A step that a Go program or a broker cannot do."""

    step: str
    applies: Callable[[Combination], bool]
    reason: str
    by: str = "Go"


LIMITS = (
    Limit(
        step="agent certificate rotated",
        applies=lambda each: each.broker == "pubsub",
        reason="agents prove themselves by tokens of Google, and the emulator asks for none",
        by="Pub/Sub",
    ),
    Limit(
        step="server certificate replaced",
        applies=lambda each: each.server == "go",
        reason="the Go server reads its certificate once and needs a restart",
    ),
    Limit(
        step="created and deleted at once",
        applies=lambda each: each.agent == "go",
        reason="the Go agent may lose a deletion that comes while it takes up the work, or apply it after the deletion",
    ),
)


def limit_of(step: str, combination: Combination) -> str | None:
    """Return why the combination cannot do the step, or None."""
    limit = next((each for each in LIMITS if each.step == step and each.applies(combination)), None)
    return f"not supported by {limit.by}: {limit.reason}" if limit else None
