"""Packages of npm that only tests use: taken once, kept in the cache, never part of the project."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

_SECONDS = 120


def installed(package: str) -> Path | None:
    """Return the `node_modules` with a package and what it needs; None if it is not there and npm cannot get it."""
    cache = _cache()
    kept = cache / f"installed+{package.replace('/', '+')}"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        part.mkdir(parents=True, exist_ok=True)
        flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(part)]
        command = [npm, "install", *flags, package]
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS, cwd=part)
        if done.returncode != 0:
            shutil.rmtree(part)
            return None
        part.replace(kept)
    return kept / "node_modules"


def folder(package: str) -> Path | None:
    """Return where the files of a package are; None if it is not in the cache and npm cannot get it."""
    cache = _cache()
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


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maestropy" / "peers" / "npm"
