"""Write and read archives: one tar file, compressed with Zstandard, the manifest first.

Reading trusts nothing: names are checked, links and devices are left out, every size is limited while members are
streamed, and what an archive that was cut short still holds is kept.
"""

import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from maestropy.diagnose import manifest as manifests
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.read.inputs import archives
from maestropy.untrusted.printable import escape

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@=+~-]*(?:/[A-Za-z0-9_][A-Za-z0-9._@=+~-]*){0,5}")
_LONGEST_NAME: Final = 300
_CHUNK: Final = 1 << 20
_LEVEL: Final = 6
_MANIFEST_BYTES: Final = 8 << 20
_MOST_BYTES: Final = 16 << 30
"""What an archive may inflate to, whatever its own size."""
_DAMAGES: Final = (OSError, EOFError, tarfile.TarError, ValueError)
ENDING: Final = ".tar.zst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An archive, unpacked into a folder of this process."""

    path: Path
    folder: Path
    manifest: manifests.Manifest | None
    problems: tuple[str, ...] = ()
    """What could not be read of it, as sentences."""
    is_cut: bool = False
    files: tuple[str, ...] = field(default=(), repr=False)


def write(folder: Path, target: Path, *, manifest: manifests.Manifest, files: Sequence[str]) -> None:
    """Pack the files of a folder; the archive appears under its name only when it is complete."""
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as raw:
            os.fchmod(raw.fileno(), 0o600)
            with (
                archives.zstd().ZstdFile(raw, "wb", level=_LEVEL) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                content = manifests.encode(manifest)
                tar.addfile(_member(manifests.NAME, size=len(content), modified=0), io.BytesIO(content))
                for name in files:
                    with (folder / name).open("rb") as file:
                        stat = os.fstat(file.fileno())
                        tar.addfile(_member(name, size=stat.st_size, modified=int(stat.st_mtime)), file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _member(name: str, *, size: int, modified: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, modified, 0o600
    return info


@contextmanager
def opened(path: Path, *, folder: Path) -> Iterator[Opened]:
    """Unpack an archive into `folder`, which the caller removes; raise InputUnreadable if nothing of it can be read."""
    if not path.exists():
        raise InputUnreadable(f"{path} does not exist; name an archive of `maestro diagnose collect`")
    if path.is_dir():
        raise InputUnreadable(f"{path} is a folder; name an archive of `maestro diagnose collect`")
    reading = _Reading(path, folder)
    reading.read()
    if not reading.files and reading.manifest is None:
        reasons = "; ".join(reading.problems[:3]) or "it holds no files"
        raise InputUnreadable(f"{path} cannot be read: {reasons}; name an archive of `maestro diagnose collect`")
    yield Opened(
        path=path,
        folder=folder,
        manifest=reading.manifest,
        problems=tuple(reading.problems),
        is_cut=reading.is_cut,
        files=tuple(sorted(reading.files)),
    )


class _Reading:
    """Unpacks one archive."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._left = _MOST_BYTES
        self.files: set[str] = set()
        self.problems: list[str] = []
        self.manifest: manifests.Manifest | None = None
        self.is_cut = False

    def read(self) -> None:
        """Read to the end, or as far as it goes."""
        inflation = archives.Inflation(self._path, size=self._path.stat().st_size)
        try:
            for member in archives.tar_members(self._path, inflation=inflation):
                self._take(member)
        except InputUnreadable as error:
            self.problems.append(f"the rest is not read: {error}")
            self.is_cut = True
        except _DAMAGES as error:
            says = escape(" ".join(str(error).split()))[:200] or type(error).__name__
            self.problems.append(f"it is damaged or cut short, and the rest is missing ({says})")
            self.is_cut = True
        if self.manifest is not None and not self.is_cut:
            missing = [name for name in self.manifest.files if name not in self.files]
            if missing:
                shown = ", ".join(escape(name) for name in missing[:3])
                self.problems.append(f"{len(missing)} files of its manifest are missing: {shown}")
                self.is_cut = True

    def _take(self, member: archives.Member | archives.RejectedMember) -> None:
        shown = member.name.removeprefix(escape(f"{self._path.name}/"))
        if isinstance(member, archives.RejectedMember):
            self.problems.append(f"{shown[:80]} is left out: {member.reason}")
        elif not _NAME.fullmatch(shown) or len(shown) > _LONGEST_NAME:
            self.problems.append(f"{shown[:80]} is left out: no name that a collection writes")
        elif shown in self.files or (shown == manifests.NAME and self.manifest is not None):
            self.problems.append(f"{shown} is left out: it is there twice")
        elif shown == manifests.NAME:
            self._take_manifest(member.stream)
        else:
            self._extract(shown, member)

    def _take_manifest(self, stream: IO[bytes]) -> None:
        content = stream.read(_MANIFEST_BYTES + 1)
        if len(content) > _MANIFEST_BYTES:
            self.problems.append(f"{manifests.NAME} has more than {_MANIFEST_BYTES >> 20} MiB, and is not read")
            return
        try:
            self.manifest = manifests.decode(content)
        except (ValueError, RecursionError) as error:
            self.problems.append(escape(str(error))[:300])

    def _extract(self, name: str, member: archives.Member) -> None:
        target = self._folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                # Also of a member that is cut, what was read counts.
                self.files.add(name)
                while chunk := member.stream.read(_CHUNK):
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise InputUnreadable(f"it inflates to more than {_MOST_BYTES >> 30} GiB")
                    file.write(chunk)
            os.utime(target, (member.modified, member.modified))
        except (FileExistsError, NotADirectoryError):
            self.problems.append(f"{name} is left out: another file has the name of its folder")
        except (OverflowError, ValueError):
            self.problems.append(f"{name}: its time of modification is out of range")


def check_installed() -> None:
    """Raise InputUnreadable with the remedy if this installation cannot write archives."""
    archives.zstd()


def discard(folder: Path) -> None:
    """Remove a folder of unpacked or staged files."""
    shutil.rmtree(folder, ignore_errors=True)
