"""What of upstream is on this machine: a checkout of Maestro in the cache, its test programs, and Helm for its charts.

Nothing of the checkout is fetched, built or changed here. Whoever has one puts it into the cache as
`upstream/maestro`, with its program at its root, and its test programs (`e2e.test`, …) into `upstream/suites`.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.peers import go_build, peer_build

HELM = go_build.Recipe(
    title="Helm",
    duration="about two minutes",
    module=Path(__file__).parent / "helm",
    packages=("tool",),
    place="helm",
)
HELM_VERSION = go_build.pinned_version(HELM.module, "helm.sh/helm/v3")
TOOLS = ("ip", "unshare", "nsenter", "chroot", "mount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A checkout that can be tested with."""

    checkout: Path
    maestro: Path
    commit: str
    suites: Path

    def suite(self, name: str) -> Path:
        """Return the test program of a suite."""
        path = self.suites / f"{name}.test"
        if not os.access(path, os.X_OK):
            raise go_build.Unavailable(f"the test program {path} is absent: build it from the checkout's test/{name}")
        return path


def home() -> Path:
    """Return the folder in the cache."""
    return peer_build.RECIPE.cache.parent / "upstream"


def upstream() -> Upstream:
    """Return what is here; raises `Unavailable` with what is missing."""
    checkout = home() / "maestro"
    maestro = checkout / "maestro"
    if not checkout.is_dir():
        raise go_build.Unavailable(f"there is no checkout of Maestro in {checkout}")
    if not (commit := peer_build.commit_of(checkout)):
        raise go_build.Unavailable(f"the checkout in {checkout} is not a git checkout without changes")
    if not os.access(maestro, os.X_OK):
        raise go_build.Unavailable(f"the checkout in {checkout} has no program: build it with Maestro's own Makefile")
    return Upstream(checkout=checkout, maestro=maestro, commit=commit, suites=home() / "suites")


def check_machine() -> None:
    """Raise `Unavailable` where pods cannot be given networks and files of their own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise go_build.Unavailable("pods get networks of their own, which needs Linux and root")
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        raise go_build.Unavailable(f"pods get networks of their own, which needs {', '.join(missing)}")
