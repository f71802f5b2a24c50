"""Suggest a command for one that does not exist. Pure."""

import difflib
from collections.abc import Collection, Mapping

_SIMILAR = 0.6
_VERY_SIMILAR = 0.8


def similar(word: str, names: Collection[str]) -> str:
    """Return the name that was probably meant; a typing error seldom concerns the first letter."""
    close = difflib.get_close_matches(word, [name for name in names if name[:1] == word[:1]], n=1, cutoff=_SIMILAR)
    close += difflib.get_close_matches(word, list(names), n=1, cutoff=_VERY_SIMILAR)
    return close[0] if close else ""


def unknown_command(word: str, *, group: str, names: Collection[str], elsewhere: Mapping[str, Collection[str]]) -> str:
    """Return the message about an unknown command of a group; `elsewhere` are the commands of other groups."""
    message = f'Unknown command "{word}".'
    close = similar(word, names)
    exact = [f'"{other} {word}"' for other, commands in elsewhere.items() if word in commands and other != group]
    if not exact and close:
        return f'{message} Did you mean "{close}"?'
    alike = [f'"{other} {name}"' for other, commands in elsewhere.items() if (name := similar(word, commands))]
    if others := exact or alike:
        return f"{message} Did you mean {' or '.join(others)}?"
    return f"{message} Available commands: {', '.join(names)}"
