"""Load named statements from the `.sql` files beside this module.

A statement begins with a line `-- name: <name>`; comment lines right below describe it. Statements are constants
of the package: input from outside is always a parameter.
"""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import LiteralString

_MARK = "-- name:"


class Statements(Mapping[str, LiteralString]):
    """The statements of one file, by name."""

    def __init__(self, family: str, text: str) -> None:
        self._family = family
        self._statements = dict(_split(text))

    def __getitem__(self, name: str) -> LiteralString:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


def load(family: str) -> Statements:
    """Return the statements of `queries/<family>.sql`."""
    path = resources.files("maestropy.store") / "queries" / f"{family}.sql"
    return Statements(family, path.read_text(encoding="utf-8"))


def _split(text: str) -> Iterator[tuple[str, LiteralString]]:
    for chunk in text.split(_MARK)[1:]:
        name, _, body = chunk.partition("\n")
        yield name.strip(), body.strip()
