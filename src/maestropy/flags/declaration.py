"""Declare command line flags as fields of settings dataclasses: name, type and default.

A flag is declared once, as a field; its help text is the string below the field, which `help_text` reads. The module
knows neither the flags of a program nor types that belong to one program: such a field has its own reader.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from maestropy.flags import duration
from maestropy.flags.errors import SettingsError

# Go's strconv.ParseBool.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def flag(name: str, *, hidden: bool = False, read: Callable[[str], object] | None = None) -> Mapping[str, object]:
    """Return the metadata of a field that the flag `name` sets.

    `read` parses types that are unknown here. Its ValueError is shown to the user without the value of the flag, which
    may be a password.
    """
    return {"flag": name, "hidden": hidden, "read": read}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One command line flag and the field that it sets."""

    name: str
    group: str
    group_kind: type
    attribute: str
    kind: Any
    default: Any
    hidden: bool
    reader: Callable[[str], object] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the flag without a value means true."""
        return bool in (self.kind, *get_args(self.kind))

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values, or nothing when any value is allowed."""
        kinds = (self.kind, *get_args(self.kind))
        return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())

    def read(self, text: str) -> object:
        """Parse `text` as a value of this flag."""
        if not text and NoneType in get_args(self.kind):
            return None
        if self.reader is not None:
            try:
                return self.reader(text)
            except ValueError as error:
                raise SettingsError(f"{self.name} {error}") from None
        if self.choices:
            if text in self.choices:
                return text
            raise SettingsError(f"{self.name}={text}: use one of {', '.join(self.choices)}")
        kinds = [kind for kind in get_args(self.kind) or (self.kind,) if kind is not NoneType]
        if get_origin(self.kind) is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        reader, expected = _READERS[kinds[0]]
        try:
            return reader(text)
        except ValueError:
            raise SettingsError(f"{self.name}={text}: write {expected}") from None

    def shown_default(self) -> str:
        """Return the default as a user would type it."""
        match self.default:
            case None | ():
                return ""
            case bool():
                return str(self.default).lower()
            case timedelta():
                return duration.render(self.default)
            case tuple():
                return ",".join(self.default)
            case _:
                return str(self.default)


def flags_of(settings: type) -> Iterator[Flag]:
    """Yield the flags of every group in `settings`, in the order of their declaration."""
    for group, kind in get_type_hints(settings).items():
        hints = get_type_hints(kind)
        for item in dataclasses.fields(kind):
            if "flag" in item.metadata:
                yield Flag(
                    name=item.metadata["flag"],
                    group=group,
                    group_kind=kind,
                    attribute=item.name,
                    kind=hints[item.name],
                    default=item.default,
                    hidden=item.metadata["hidden"],
                    reader=item.metadata["read"],
                )


def _read_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(text)


def _read_int(text: str) -> int:
    # int() also accepts spaces, underscores and digits of other scripts, which a flag must not.
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise ValueError(text)
    return int(text)


_READERS: dict[type, tuple[Callable[[str], object], str]] = {
    bool: (_read_bool, "true or false"),
    int: (_read_int, "a whole number"),
    float: (float, "a number"),
    timedelta: (duration.parse, "a duration with its unit, such as 500ms, 10s or 2m0s"),
    Path: (Path, "a path"),
    str: (str, "a text"),
}
