"""The Go Maestro and our Go programs around it, in the versions of `go/go.mod`; and the newest Go Maestro there is.

`python peer_build.py` builds them by hand and prints the paths. The module proxy serves old versions only. Whoever has
a newer one puts a git checkout of Maestro, with its program built at its root as its own Makefile does, into the cache:
`upstream/maestro` beside `peers`. It is used as it is for the Go servers of most tests, and never built here.
"""

import dataclasses
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers import go_build

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
    newest: Path
    """The Go Maestro of a checkout in the cache, or else the pinned one."""
    newest_version: str


def programs(say: go_build.Say) -> Programs:
    """Return the programs, building them first if this machine has not yet done so; say which Go Maestro is used."""
    folder = go_build.built(RECIPE, say)
    newest, version = newest_maestro(pinned=folder / "maestro", say=say)
    names = {field.name for field in dataclasses.fields(Programs)} - {"newest", "newest_version"}
    return Programs(newest=newest, newest_version=version, **{name: folder / name for name in names})


def newest_maestro(*, pinned: Path, say: go_build.Say) -> tuple[Path, str]:
    """Return the program of the checkout in the cache with its commit, or else the pinned one with its version."""
    checkout = RECIPE.cache.parent / "upstream" / "maestro"
    program = checkout / "maestro"
    if not checkout.is_dir():
        problem = f"there is no checkout in {checkout}"
    elif not os.access(program, os.X_OK) or not program.is_file():
        problem = f"the checkout in {checkout} has no program; build it there with Maestro's own Makefile"
    elif not (commit := commit_of(checkout)):
        problem = f"the checkout in {checkout} is not a git checkout without changes"
    else:
        say(f"Go servers: Maestro {commit}, the checkout in {checkout}")
        return program, commit
    version = maestro_version()
    say(f"Go servers: the pinned Maestro {version}; {problem}")
    return pinned, version


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout and its date; empty if its files are not those of a commit."""
    git = ["git", "-c", f"safe.directory={checkout}", "-C", str(checkout)]
    commit = subprocess.run(
        [*git, "log", "-1", "--format=%h of %cs", "--abbrev=12"], capture_output=True, text=True, check=False
    )
    changes = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False
    )
    is_whole = commit.returncode == changes.returncode == 0 and not changes.stdout
    return commit.stdout.strip() if is_whole else ""


def maestro_version() -> str:
    """Return the version of the Go Maestro, for reports."""
    return go_build.pinned_version(MODULE, MAESTRO)


if __name__ == "__main__":
    go_build.build_by_hand(programs)
