"""Packages of npm that only tests use: taken once, kept in the cache, never part of the project."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

_SECONDS = 120


def folder(package: str) -> Path | None:
    """Return where the files of a package are; None if it is not in the cache and npm cannot get it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maestropy" / "peers" / "npm"
    kept = cache / package.replace("/", "+")
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        cache.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "--silent", package]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS, cwd=cache)
        if done.returncode != 0:
            return None
        packed = cache / done.stdout.split()[-1]
        part = kept.with_suffix(f".{os.getpid()}")
        with tarfile.open(packed) as archive:
            archive.extractall(part, filter="data")
        packed.unlink()
        part.replace(kept)
    return kept / "package"
