"""The Go Maestro and our Go programs around it, in the versions of `go/go.mod`.

`python peer_build.py` builds them by hand and prints the paths.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import go_build

MODULE = Path(__file__).parent / "go"
MAESTRO = "github.com/openshift-online/maestro"
RECIPE = go_build.Recipe(
    title="the Go Maestro and its test programs",
    duration="several minutes",
    module=MODULE,
    packages=("./cmd/...", f"{MAESTRO}/cmd/maestro"),
    place="peers",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of the built programs."""

    maestro: Path
    workclient: Path
    fakeagent: Path
    load: Path
    impatient: Path
    """The Go Maestro, which reconnects at once."""


def programs(say: go_build.Say) -> Programs:
    """Return the programs, building them first if this machine has not yet done so."""
    folder = go_build.built(RECIPE, say)
    return Programs(**{field.name: folder / field.name for field in dataclasses.fields(Programs)})


def maestro_version() -> str:
    """Return the version of the Go Maestro, for reports."""
    return go_build.pinned_version(MODULE, MAESTRO)


if __name__ == "__main__":
    go_build.build_by_hand(programs)
