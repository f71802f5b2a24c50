"""Find fields that a bundle or its options have twice.

JSON readers take the last one, so a check that took the first would be bypassed: a second `executer` of null lets a
work act with all the permissions of the agent. Manifests are not searched. Pure.
"""

import json
import re
from collections import Counter
from typing import Any, Final

import msgspec

from maestropy.wire import errors, kubernetes_names

_OPTIONS: Final = ("manifestConfigs", "deleteOption", "executer")
_FIELDS: Final = tuple(f'"{name}"'.encode() for name in ("manifests", *_OPTIONS))
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Repeated(dict[str, Any]):
    """An object that has a field twice."""

    field = ""


def check(data: bytes, *, has_options: bool) -> None:
    """Raise `InvalidContent` that names the repeated field; `data` is a JSON object of bounded depth."""
    # Nearly all bundles have each name once, so a search of bytes is enough for them.
    if any(data.count(name) > 1 for name in _FIELDS) or _ESCAPED_LETTER.search(data):
        _reject_repeated(_decode(data), path="")
    if not has_options:
        return
    members = _raw_members.decode(data)
    for name in _OPTIONS:
        if name in members:
            _reject_any(_decode(bytes(members[name])), path=name)


def _decode(document: bytes) -> Any:
    # Numbers stay text: the library rejects integers of thousands of digits.
    return json.loads(document, object_pairs_hook=_object, parse_int=str, parse_float=str)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = _Repeated(members)
    repeated.field = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return repeated


def _reject_any(value: Any, *, path: str) -> None:
    """Reject a repeated field at any depth."""
    _reject_repeated(value, path=path)
    if isinstance(value, dict):
        for name, member in value.items():
            _reject_any(member, path=f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _reject_any(item, path=f"{path}[{index}]")


def _reject_repeated(value: Any, *, path: str) -> None:
    if isinstance(value, _Repeated):
        field = kubernetes_names.quote(f"{path}.{value.field}" if path else value.field)
        raise errors.InvalidContent(f"duplicate field {field}; send it once")
