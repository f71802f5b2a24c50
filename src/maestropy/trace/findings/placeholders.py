"""Put the names that are known into the advice of the catalogue, which has words such as CONSUMER for them. Pure."""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = re.compile(r"\b[A-Z][A-Z_]{3,}\b")


def filled(advice: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the advice with these names, quoted for a shell; a word whose name is not known stays."""
    return tuple(_WORD.sub(lambda word: _name(word[0], names), text) for text in advice)


def _name(word: str, names: Mapping[str, str]) -> str:
    return shlex.quote(names[word]) if names.get(word) else word
