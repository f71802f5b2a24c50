"""Configuration files in YAML or JSON, read so that every complaint names the key and the remedy.

No complaint quotes a value: any of them may be a secret.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from maestropy.flags import duration
from maestropy.flags.errors import SettingsError

_Value = TypeVar("_Value")


def read(path: Path, *, flag: str, example: str) -> "Section":
    """Return the file that `flag` named; `example` is a line that it could hold."""
    origin = f"{flag}={path}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{origin} cannot be read ({error.strerror}); give the path of the file") from error
    return load(content, origin=origin, example=example)


def load(content: bytes, *, origin: str, example: str) -> "Section":
    """Return the whole file; `origin` names it in complaints, `example` is a line that it could hold."""
    try:
        loaded = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        # Without the parser's own words, and so without the chain: they quote the line, which may hold a token.
        raise SettingsError(f"{origin} is neither YAML nor JSON; check its quotes and indentation") from None
    if loaded is None:
        loaded = {}
    if not isinstance(loaded, dict) or not all(isinstance(name, str) for name in loaded):
        raise SettingsError(f"{origin} holds no settings; write lines such as `{example}`")
    return Section(loaded, origin=origin)


class Section:
    """One level of the file; every reader names its key in complaints."""

    def __init__(self, values: Mapping[str, Any], *, origin: str) -> None:
        self._values = values
        self.origin = origin
        """What names this level in complaints."""

    def unknown(self, known: frozenset[str]) -> list[str]:
        """Return the keys that nobody knows."""
        return sorted(set(self._values) - known)

    def section(self, name: str) -> "Section":
        """Return the keys below `name`."""
        none: Mapping[str, Any] = {}
        values = self._read(name, _mapping, wanted="keys of its own, each on an indented line", default=none)
        return Section(values, origin=f"{self.origin}: {name}")

    def text(self, name: str) -> str:
        """Return a text, empty when it is absent."""
        return self._read(name, _text, wanted="a text in quotes", default="")

    def path(self, name: str) -> Path | None:
        """Return the path of a file."""
        found = self.text(name)
        return Path(found) if found else None

    def data(self, name: str) -> bytes | None:
        """Return what base64 stands for."""
        return self._read(name, _base64, wanted="base64 of the PEM file", default=None)

    def switch(self, name: str) -> bool:
        """Return true or false; false when it is absent."""
        return self._read(name, _boolean, wanted="true or false", default=False)

    def integer(self, name: str, *, default: int, most: int) -> int:
        """Return a whole number from 0 to `most`."""

        def read(value: Any) -> int:
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
                return value
            raise ValueError

        return self._read(name, read, wanted=f"a number from 0 to {most}", default=default)

    def seconds(self, name: str, *, default: float) -> float:
        """Return a length of time."""
        return self._read(name, _seconds, wanted="a duration with its unit, such as 20s", default=default)

    def _read(self, name: str, read: Callable[[Any], _Value], *, wanted: str, default: _Value) -> _Value:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return read(value)
        except ValueError:
            raise SettingsError(f"{self.origin}: {name} cannot be used; write {wanted}") from None


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return value
    raise ValueError


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    raise ValueError


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError


def _base64(value: Any) -> bytes | None:
    try:
        return base64.b64decode("".join(_text(value).split()), validate=True) or None
    except binascii.Error as error:
        raise ValueError from error


def _seconds(value: Any) -> float:
    # Go would take a bare number for nanoseconds, which nobody means.
    length = duration.parse(_text(str(value) if value == 0 else value)).total_seconds()
    if length < 0:
        raise ValueError
    return length
