"""Plays the steps of one combination and remembers how each went; the page made of it is another module's."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.peers.matrix import combination
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.matrix_steps import Step
from tests.peers.matrix.rig import Rig

PASSED = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one combination did: per step `passed`, or why the Go programs or the broker cannot do it."""

    players: Combination
    outcomes: Mapping[str, str]
    seconds: float


def play(rig: Rig, steps: Mapping[str, Step]) -> Row:
    """Carry out the steps in order; the first that fails ends it with its name."""
    begun = time.monotonic()
    outcomes: dict[str, str] = {}
    for name, step in steps.items():
        reason = combination.limit_of(name, rig.players)
        if reason is not None:
            outcomes[name] = reason
            continue
        try:
            step(rig)
        except BaseException as error:
            error.add_note(f"in the step {name!r} of {rig.players}; before it: {', '.join(outcomes)}")
            raise
        outcomes[name] = PASSED
        print(f"{time.monotonic() - begun:6.1f} s  {name}")
    return Row(players=rig.players, outcomes=outcomes, seconds=time.monotonic() - begun)
