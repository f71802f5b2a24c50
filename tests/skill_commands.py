"""The commands of the skills, with what their placeholders stand for filled in."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

SKILLS = Path(__file__).parents[1] / "src" / "maestropy" / "skills"
_BLOCK = re.compile(r"^ *```bash\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def commands(skill: str) -> list[str]:
    """Return every line of the fenced blocks of a skill."""
    text = (SKILLS / skill / "SKILL.md").read_text(encoding="utf-8")
    return [line.strip() for block in _BLOCK.findall(text) for line in block.splitlines() if line.strip()]


def filled(command: str, words: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command; a placeholder is a word in capitals, or what follows an equals sign."""
    program, *parts = shlex.split(command)
    assert program == "maestro", command
    found = []
    for part in parts:
        name, equals, value = part.partition("=")
        found.append(f"{name}={words.get(value, value)}" if equals else words.get(part, part))
    left = [part for part in found if re.fullmatch(r"(?:--[a-z-]+=)?[A-Z][A-Z_/]+", part)]
    assert not left, f"{command}: {left} stands for nothing"
    return found
