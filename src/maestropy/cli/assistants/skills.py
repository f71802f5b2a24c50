"""`maestro skills`: list the skills for assistants that come with this package, and copy them into a folder."""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter

from maestropy.cli import errors, screen

_FRONT: Final = re.compile(r"\A---\nname: (?P<name>[a-z-]+)\ndescription: (?P<description>.+)\n---\n")

app = App(
    name="skills",
    help="List the skills for assistants that come with Maestro, or install them.",
    help_epilogue="""\
Examples:

  maestro skills list
  maestro skills install .claude/skills""",
    help_format="plaintext",
    version_flags=[],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill: its instructions and the pages that they refer to."""

    name: str
    description: str
    files: Mapping[str, bytes]
    """By the path below the folder of the skill."""


def skills() -> list[Skill]:
    """Return the skills of this package, by name."""
    home = files("maestropy") / "skills"
    found = []
    for folder in sorted((item for item in home.iterdir() if item.is_dir()), key=lambda item: item.name):
        contents = dict(_contents(folder))
        front = _FRONT.match(contents["SKILL.md"].decode("utf-8"))
        assert front is not None, f"{folder.name}/SKILL.md has no front matter"
        found.append(Skill(name=front["name"], description=front["description"], files=contents))
    return found


def _contents(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _contents(item, f"{below}{item.name}/")
        elif item.name.endswith(".md"):
            yield f"{below}{item.name}", item.read_bytes()


@app.command(
    name="list",
    help_epilogue="Examples:\n\n  maestro skills list\n  maestro skills list -o json\n\nExit codes: 0 done, 2 usage.",
)
def list_skills(*, output: Annotated[Literal["text", "json"], Parameter(name=("-o", "--output"))] = "text") -> int:
    """List the skills.

    Parameters
    ----------
    output
        The output format.
    """
    if output == "json":
        listed = [{"name": skill.name, "description": skill.description} for skill in skills()]
        screen.write(json.dumps(listed, indent=2) + "\n")
        return 0
    for skill in skills():
        screen.write(f"{skill.name}\n    {skill.description}\n")
    return 0


@app.command(
    name="install",
    usage="maestro skills install DIR [NAME ...] [OPTIONS]",
    help_epilogue="""\
Examples:

  maestro skills install .claude/skills
      all skills, each in a folder of its name
  maestro skills install ~/skills check-agent-health analyze-logs
      two of them
  maestro skills install .claude/skills --force
      again after an upgrade, over files that differ

Exit codes: 0 installed, 1 files that differ are in the way, or cannot be written; nothing is changed then; 2 usage.""",
)
def install(directory: Path, /, *names: str, force: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Copy skills into a folder; files that were changed there are not replaced.

    Parameters
    ----------
    directory
        The folder of skills; it is created if it does not exist.
    names
        Only these skills. [all]
    force
        Replace files that differ.
    """
    chosen = _chosen(names)
    if directory.exists() and not directory.is_dir():
        raise errors.UsageError(f"{directory} is a file; name the folder of the skills")
    wanted = {directory / skill.name / name: content for skill in chosen for name, content in skill.files.items()}
    try:
        states = {path: _state(path, content) for path, content in wanted.items()}
        in_the_way = [path for path, state in states.items() if state == "other"]
        differing = [path for path, state in states.items() if state == "changed"]
        if in_the_way or (differing and not force):
            return _refuse(in_the_way, differing)
        for path, content in wanted.items():
            if states[path] != "same":
                _write(path, content)
    except OSError as error:
        raise errors.CommandError(f"{error.filename or directory} cannot be written: {error.strerror}") from error
    for skill in chosen:
        changed = any(states[directory / skill.name / name] != "same" for name in skill.files)
        screen.write(f"{directory / skill.name}  {'installed' if changed else 'unchanged'}\n")
    return 0


def _chosen(names: tuple[str, ...]) -> list[Skill]:
    known = {skill.name: skill for skill in skills()}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise errors.UsageError(f"there is no skill {unknown}; choose from {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


def _state(path: Path, content: bytes) -> Literal["absent", "same", "changed", "other"]:
    """Return what is at a path: a link, a folder, or a file in place of a folder is never replaced."""
    above = [path.parent, *path.parent.parents]
    if path.is_symlink() or path.is_dir() or any(folder.exists() and not folder.is_dir() for folder in above):
        return "other"
    if not path.exists():
        return "absent"
    return "same" if path.read_bytes() == content else "changed"


def _refuse(in_the_way: list[Path], differing: list[Path]) -> int:
    for path in in_the_way:
        screen.write_error(f"Error: {path} is a link or a folder, or below a file; remove it\n")
    for path in differing:
        screen.write_error(f"Error: {path} differs from the skill of this version\n")
    hint = "" if in_the_way else "; compare the files, and give --force to replace them"
    screen.write_error(f"Nothing was installed{hint}\n")
    return errors.FAILED


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
