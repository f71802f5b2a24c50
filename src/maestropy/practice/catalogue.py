"""Find the packaged incidents: one document that describes them, and one archive each."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from maestropy.practice.model import Catalogue, Incident
from maestropy.trace.errors import InputUnreadable, NotFound

NAME: Final = "incidents.json"
ENDING: Final = ".tar.zst"
_PLACE: Final = resources.files("maestropy.practice") / "incidents"


@cache
def incidents() -> tuple[Incident, ...]:
    """Return all incidents in their order."""
    try:
        return msgspec.json.decode((_PLACE / NAME).read_bytes(), type=Catalogue).incidents
    except OSError as error:
        raise InputUnreadable(f"the practice incidents are missing in this installation: {error}") from error


def incident(name: str) -> Incident:
    """Return an incident by its id, a number; 2 is 02."""
    found = [each for each in incidents() if name in {each.id, each.id.lstrip("0")}]
    if not found:
        raise NotFound(f"there is no practice incident {name}; see `maestro practice list`")
    return found[0]


@contextmanager
def archive(chosen: Incident) -> Iterator[Path]:
    """Provide the archive as a file of this computer while entered."""
    with resources.as_file(_PLACE / f"{chosen.id}{ENDING}") as path:
        if not path.is_file():
            raise InputUnreadable(f"the archive of {chosen.id} is missing in this installation")
        yield path


def copy(chosen: Incident, target: Path) -> None:
    """Copy an archive to a file, which must not exist."""
    part = target.with_name(f".{target.name}.part")
    try:
        with archive(chosen) as path:
            shutil.copyfile(path, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
