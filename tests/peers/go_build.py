"""Builds Go programs from published modules once, and finds them again.

A recipe names a module of ours, whose files pin every version, and the packages to build from it; the source comes
from the Go module proxy. The programs live in the user's cache under a key made of every file of that module, of the
compiler and of its flags, so they are built again only when one of these changed. Nothing is started or tested here.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Say = Callable[[str], None]


class Unavailable(Exception):
    """The programs cannot be had on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What to build, and how to speak of it."""

    title: str
    duration: str
    module: Path
    packages: tuple[str, ...]
    place: str
    """The folder in our cache."""
    label: str = ""
    """Stands before the key, for people who look into the cache."""
    flags: tuple[str, ...] = ()
    niceness: int = 10

    @property
    def cache(self) -> Path:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maestropy" / self.place


def built(recipe: Recipe, say: Say) -> Path:
    """Return the folder with the programs, building them first if this machine has not yet done so."""
    go = compiler(recipe)
    folder = recipe.cache / (recipe.label + key(recipe, go))
    if folder.exists():
        # Complete, because builds are renamed whole: nobody waits here for the build of another version.
        return folder
    with only_one_builder(recipe):
        if not folder.exists():
            say(f"building {recipe.title} into {folder} (once; {recipe.duration})")
            begun = time.monotonic()
            build(recipe, go, folder=folder)
            say(f"built {recipe.title} in {time.monotonic() - begun:.0f} s")
    return folder


def compiler(recipe: Recipe) -> str:
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if found is None:
        raise Unavailable(f"Go 1.26 or newer is needed to build {recipe.title}: put `go` on the PATH")
    return found


def key(recipe: Recipe, go: str) -> str:
    digest = hashlib.sha256(subprocess.check_output([go, "version"]))
    for path in sorted(recipe.module.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(recipe.module)).encode() + b"\0" + path.read_bytes())
    digest.update("".join(recipe.flags).encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def only_one_builder(recipe: Recipe) -> Iterator[None]:
    """Let parallel test processes wait for one build instead of racing for it."""
    recipe.cache.mkdir(parents=True, exist_ok=True)
    with (recipe.cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(recipe: Recipe, go: str, *, folder: Path) -> None:
    # Built aside and renamed whole: an interrupted build never looks like a finished one.
    aside = folder.with_name(f"{folder.name}.building")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    half_the_machine = str(max(1, (os.cpu_count() or 2) // 2))
    how = ["-mod=readonly", "-buildvcs=false", "-p", half_the_machine, *recipe.flags]
    command = ["nice", "-n", str(recipe.niceness), go, "build", *how, "-o", f"{aside}/", *recipe.packages]
    outcome = subprocess.run(command, cwd=recipe.module, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        shutil.rmtree(aside, ignore_errors=True)
        told = dict.fromkeys(line for line in outcome.stderr.splitlines() if "downloading" not in line)
        reason = " / ".join(list(told)[:3])
        raise Unavailable(f"{recipe.title} could not be built (it needs the Go module proxy): {reason}")
    aside.rename(folder)


def pinned_version(module: Path, name: str) -> str:
    """Return the version of a dependency that the module's go.mod requires, such as `v1.34.3`."""
    found = re.search(rf"^\s*(?:require )?{re.escape(name)} (v\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert found, f"{module}/go.mod does not require {name}"
    return found[1]


def build_by_hand(programs: Callable[[Say], Any]) -> None:
    """Build from a shell, and print the paths as JSON."""
    try:
        paths = programs(lambda text: print(text, file=sys.stderr))
    except Unavailable as reason:
        sys.exit(str(reason))
    print(json.dumps({name: str(path) for name, path in dataclasses.asdict(paths).items()}, indent=1))
