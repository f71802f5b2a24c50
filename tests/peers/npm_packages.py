"""Packages of npm that only tests use: taken once, kept in the cache, never part of the project."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

_SECONDS = 120


def installed(package: str) -> Path | None:
    """Return where a package is installed with its dependencies; None if it is not in the cache and npm cannot get it.

    No script of a package is run while it is installed.
    """
    kept = _cache() / f"{package.replace('/', '+')}+installed"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        part = kept.with_suffix(f".{os.getpid()}")
        part.mkdir(parents=True)
        command = [
            npm,
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(part),
            package,
        ]
        done = subprocess.run(command, capture_output=True, check=False, timeout=2 * _SECONDS, cwd=part)
        if done.returncode != 0:
            shutil.rmtree(part)
            return None
        part.replace(kept)
    return kept / "node_modules"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maestropy" / "peers" / "npm"


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
