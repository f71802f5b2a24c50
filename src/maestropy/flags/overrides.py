"""Override the defaults of settings with the flags of a command line. Pure.

Each value is checked alone; the owner of the settings checks whether they fit together.
"""

from collections.abc import Mapping
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from maestropy.flags.declaration import Flag
from maestropy.flags.errors import SettingsError


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_Settings = TypeVar("_Settings", bound=_Dataclass)


def override(defaults: _Settings, texts: Mapping[str, str], *, flags: Mapping[str, Flag], command: str) -> _Settings:
    """Return `defaults` overridden by `texts`, which maps flags such as `--client-id` to their values."""
    groups: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        flag = flags.get(name)
        if flag is None:
            raise SettingsError(f"{name} is not a flag of the {command}; see `maestro {command} --help`")
        groups.setdefault(flag.group, {})[flag.attribute] = flag.read(text)
    changes: dict[str, Any] = {group: replace(getattr(defaults, group), **values) for group, values in groups.items()}
    return replace(defaults, **changes)
