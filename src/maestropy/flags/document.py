"""Read configuration files in YAML or JSON; every error names the key and the remedy.

No error quotes a value: any value may be a secret.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from maestropy.flags import duration
from maestropy.flags.errors import SettingsError
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

_Value = TypeVar("_Value")


def read(path: Path, *, flag: str, example: str) -> "Section":
    """Read the file that `flag` names; `example` is a valid line of such a file, for errors."""
    origin = f"{flag}={path}"
    try:
        content = files.read(path, most=files.CONFIG_BYTES)
    except InputRejected as error:
        raise SettingsError(f"{flag}: {error}; give the path of the configuration file") from error
    except OSError as error:
        raise SettingsError(f"{origin} cannot be read ({error.strerror}); give the path of the file") from error
    return load(content, origin=origin, example=example)


def load(content: bytes, *, origin: str, example: str) -> "Section":
    """Parse the content of a file; `origin` names it in errors, `example` is a valid line of such a file."""
    try:
        loaded = yaml_documents.load(content, loader=yaml_documents.UniqueKeysLoader)
    except InputRejected as error:
        raise SettingsError(f"{origin} cannot be used: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError):
        # Without the error of the parser: it quotes the line, which may hold a token.
        raise SettingsError(f"{origin} is neither YAML nor JSON; check its quotes and indentation") from None
    if loaded is None:
        loaded = {}
    if not isinstance(loaded, dict) or not all(isinstance(name, str) for name in loaded):
        raise SettingsError(f"{origin} holds no settings; write lines such as `{example}`")
    return Section(loaded, origin=origin)


class Section:
    """One level of the file; every reader names its key in errors."""

    def __init__(self, values: Mapping[str, Any], *, origin: str) -> None:
        self._values = values
        self.origin = origin
        """The name of this level in errors."""

    @property
    def is_empty(self) -> bool:
        """Whether the level is absent or has no keys."""
        return not self._values

    def has(self, name: str) -> bool:
        """Return whether the level has this key."""
        return name in self._values

    def unknown(self, known: frozenset[str]) -> list[str]:
        """Return the keys that are not in `known`."""
        return sorted(set(self._values) - known)

    def section(self, name: str) -> "Section":
        """Return the keys below `name`."""
        none: Mapping[str, Any] = {}
        values = self._read(name, _mapping, expected="keys of its own, each on an indented line", default=none)
        return Section(values, origin=f"{self.origin}: {name}")

    def text(self, name: str) -> str:
        """Return a text, empty when it is absent."""
        return self._read(name, _text, expected="a text in quotes", default="")

    def path(self, name: str) -> Path | None:
        """Return the path of a file, or None when it is absent."""
        text = self.text(name)
        return Path(text) if text else None

    def data(self, name: str) -> bytes | None:
        """Return decoded base64 data, or None when it is absent."""
        return self._read(name, _base64, expected="base64 of the PEM file", default=None)

    def switch(self, name: str) -> bool:
        """Return true or false; false when it is absent."""
        return self._read(name, _boolean, expected="true or false", default=False)

    def integer(self, name: str, *, default: int, most: int, least: int = 0) -> int:
        """Return a whole number from `least` to `most`."""

        def read(value: Any) -> int:
            if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
                return value
            raise ValueError

        return self._read(name, read, expected=f"a number from {least} to {most}", default=default)

    def seconds(self, name: str, *, default: float) -> float:
        """Return a duration in seconds."""
        return self._read(name, _seconds, expected="a duration with its unit, such as 20s", default=default)

    def _read(self, name: str, read: Callable[[Any], _Value], *, expected: str, default: _Value) -> _Value:
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return read(value)
        except ValueError:
            raise SettingsError(f"{self.origin}: {name} cannot be used; write {expected}") from None


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
    # Go reads a number without unit as nanoseconds, which is never intended, so only 0 is accepted.
    length = duration.parse(_text(str(value) if value == 0 else value)).total_seconds()
    if length < 0:
        raise ValueError
    return length
