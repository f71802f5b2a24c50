"""Builds the Go Maestro and our Go programs once, and finds them again.

The versions are those of `go/go.mod`, the source comes from the Go module proxy. The binaries live in the user's cache
under a key made of every file in `go/` and of the compiler, so they are built again only when one of these changed.
This module starts nothing and tests nothing; `python peer_build.py` builds by hand and prints the paths.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MODULE = Path(__file__).parent / "go"
MAESTRO = "github.com/openshift-online/maestro/cmd/maestro"


class Unavailable(Exception):
    """The peers cannot be had on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of the built programs."""

    maestro: Path
    workclient: Path
    fakeagent: Path
    load: Path


def programs(say: Callable[[str], None]) -> Programs:
    """Return the programs, building them first if this machine has not yet done so."""
    go = compiler()
    folder = cache() / key(go)
    with only_one_builder():
        if not folder.exists():
            say(f"building the Go Maestro and its test programs into {folder} (once; several minutes)")
            build(go, folder)
    return Programs(**{field.name: folder / field.name for field in dataclasses.fields(Programs)})


def compiler() -> str:
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if found is None:
        raise Unavailable("the peers need Go 1.25 or newer to build the Go Maestro: put `go` on the PATH")
    return found


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pymaestro" / "peers"


def key(go: str) -> str:
    digest = hashlib.sha256(subprocess.check_output([go, "version"]))
    for path in sorted(MODULE.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(MODULE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def only_one_builder() -> Iterator[None]:
    """Let parallel test processes wait for one build instead of racing for it."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(go: str, folder: Path) -> None:
    # Built aside and renamed whole: an interrupted build never looks like a finished one.
    aside = folder.with_suffix(".building")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    half_the_machine = str(max(1, (os.cpu_count() or 2) // 2))
    command = [go, "build", "-mod=readonly", "-p", half_the_machine, "-o", f"{aside}/", "./cmd/...", MAESTRO]
    outcome = subprocess.run(["nice", "-n", "10", *command], cwd=MODULE, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        shutil.rmtree(aside, ignore_errors=True)
        told = [line for line in outcome.stderr.splitlines() if "downloading" not in line]
        raise Unavailable("the Go Maestro could not be built (it needs the Go module proxy): " + " / ".join(told[:3]))
    aside.rename(folder)


if __name__ == "__main__":
    try:
        built = programs(lambda text: print(text, file=sys.stderr))
    except Unavailable as reason:
        sys.exit(str(reason))
    print(json.dumps({name: str(path) for name, path in dataclasses.asdict(built).items()}, indent=1))
