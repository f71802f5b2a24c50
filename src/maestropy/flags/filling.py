"""Put the texts of a command line into settings. Pure; what fits together is for the settings' owner to check."""

from collections.abc import Mapping
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from maestropy.flags.declaration import Flag
from maestropy.flags.errors import SettingsError


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_Settings = TypeVar("_Settings", bound=_Dataclass)


def fill(defaults: _Settings, texts: Mapping[str, str], *, flags: Mapping[str, Flag], command: str) -> _Settings:
    """Return `defaults` with what `texts` says; it maps flags, such as `--client-id`, to their text."""
    groups: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        flag = flags.get(name)
        if flag is None:
            raise SettingsError(f"{name} is not a flag of the {command}; see `maestro {command} --help`")
        groups.setdefault(flag.group, {})[flag.attribute] = flag.read(text)
    changes: dict[str, Any] = {group: replace(getattr(defaults, group), **values) for group, values in groups.items()}
    return replace(defaults, **changes)
