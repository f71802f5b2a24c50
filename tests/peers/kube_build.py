"""The control plane of Kubernetes, in the versions of `kube/go.mod`: no source of ours, no container, no root.

etcd comes the same way: those that distributions package are often too old for the API server to serve consistent
lists from its cache, as real clusters do. `python kube_build.py` builds by hand and prints the paths.
"""

import platform
from dataclasses import dataclass
from pathlib import Path

from tests.peers import go_build

MODULE = Path(__file__).parent / "kube"
VERSION = go_build.pinned_version(MODULE, "k8s.io/kubernetes")


def version_flags(version: str) -> tuple[str, ...]:
    """Return what makes the programs tell their version; the source does not, Kubernetes' build scripts stamp it."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamped = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
    return ("-ldflags", f"-s -w {stamped}")


RECIPE = go_build.Recipe(
    title=f"Kubernetes {VERSION} (API server, controllers, kubectl) and etcd",
    duration="about ten minutes on two cores, 3 GB of disk for Go's caches",
    module=MODULE,
    packages=("tool",),
    place="kube",
    label=f"{VERSION}-{platform.machine()}-",
    flags=version_flags(VERSION),
    niceness=19,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Paths of the built programs."""

    etcd: Path
    apiserver: Path
    controllers: Path
    kubectl: Path


def control_plane(say: go_build.Say) -> ControlPlane:
    """Return the programs, building them first if this machine has not yet done so."""
    folder = go_build.built(RECIPE, say)
    return ControlPlane(
        # Its module is go.etcd.io/etcd/server, and Go names a program after its folder.
        etcd=folder / "server",
        apiserver=folder / "kube-apiserver",
        controllers=folder / "kube-controller-manager",
        kubectl=folder / "kubectl",
    )


if __name__ == "__main__":
    go_build.build_by_hand(control_plane)
