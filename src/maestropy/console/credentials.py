"""Find credentials in manifests and feedback by their position, their name and their format. Pure.

`maestropy.journal.redact` is for logs, where `token: expired` is the cause of an error. In a manifest it is a token:
here in doubt a value is hidden. Formats and random texts are those of `maestropy.diagnose.redaction.detectors`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from maestropy.diagnose.redaction import detectors
from maestropy.journal import redact, secret_names
from maestropy.journal.redact import HIDDEN

_DEEPEST: Final = 64
_VARIABLES: Final = frozenset({"env", "envvars", "environment", "environmentvariables"})
_REFERENCES: Final = frozenset(
    {"name", "namespace", "kind", "apiVersion", "apiGroup", "group", "path", "secretName", "fieldPath", "type"}
)
"""Members that name where a credential is, and hold none."""
_KEPT: Final = frozenset({"apiVersion", "kind", "name", "namespace", "uid", "image"}) | redact.IDENTIFIERS
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_DATA: Final = frozenset({"data", "stringData"})
_LINE: Final = re.compile(r"""^(\s*(?:-\s+|export\s+|//\S*:)?["']?)([\w.-]+)(["']?\s*[:=]\s*)(\S.*)$""")
_FLOW: Final = re.compile(r"""([{,]\s*["']?)([\w.-]{1,64})(["']?\s*:\s*)([^,}\s][^,}]*)""")
_VALUE_OF_VARIABLE: Final = re.compile(r"^(\s*-?\s*value:\s*)\S.*$")
_NETRC: Final = re.compile(r"(\bmachine\s+\S+.{0,256}?\bpassword\s+)\S+", re.DOTALL)
_USER_AT_HOST: Final = re.compile(r"(\b[\w.-]{1,64}:)[^\s:@/]{1,256}(?=@(?:tcp|unix|[\w.-]+[:/(]))")
_SECRET: Final = re.compile(r"""^\s*(?:-\s+)?["']?kind["']?\s*:\s*["']?Secret(?:List)?["']?\s*,?\s*$""", re.MULTILINE)
_BLOCK: Final = re.compile(r"[|>][-+\d]*")


def manifest(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without credentials; keys and structure stay."""
    return _mapping(value, depth=0)


def named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that have names, such as feedback, without credentials."""
    return {key: _item(key, value, depth=1) for key, value in values.items()}


def _mapping(value: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        return {}
    if value.get("kind") in ("Secret", "SecretList"):
        return _secret(value, depth=depth)
    return {key: _item(str(key), item, depth=depth + 1) for key, item in value.items()}


def _secret(value: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
    """Return a Secret with names only: labels and annotations of one may repeat its values."""
    shown: dict[str, Any] = {}
    for key, item in value.items():
        if key == "metadata" and isinstance(item, Mapping):
            shown[key] = {
                name: _hide(part) if name in ("annotations", "labels") else _item(name, part, depth=depth + 1)
                for name, part in item.items()
            }
        elif key == "items" and isinstance(item, list):
            shown[key] = [
                _secret(one, depth=depth + 1) if isinstance(one, Mapping) and depth < _DEEPEST else HIDDEN
                for one in item
            ]
        else:
            shown[key] = _hide(item) if key in _DATA else _item(key, item, depth=depth + 1)
    return shown


def _item(key: str, item: Any, *, depth: int) -> Any:
    if isinstance(item, Mapping):
        return _member(key, item, depth=depth)
    if isinstance(item, list | tuple):
        if depth > _DEEPEST:
            return []
        return _arguments([_item(key, entry, depth=depth + 1) for entry in item])
    if not isinstance(item, str) or not item or item == HIDDEN:
        return item
    if key == _LAST_APPLIED or (secret_names.is_secret_in_manifest(key) and key not in redact.IDENTIFIERS):
        return HIDDEN
    return item if key in _KEPT else text(item, depth=depth)


def _member(key: str, item: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
    if "name" in item and ("value" in item or "valueFrom" in item):
        return {n: _hide(part) if n == "value" else _item(n, part, depth=depth + 1) for n, part in item.items()}
    if secret_names.plain(key) in _VARIABLES:
        return {name: _below_secret(part, depth) for name, part in item.items()}
    if secret_names.is_secret_in_manifest(key):
        return dict(_below_secret(item, depth))
    return _mapping(item, depth=depth)


def _below_secret(part: Any, depth: int) -> Any:
    """Hide a value of a mapping whose name says that it holds credentials; what it refers to stays."""
    if depth > _DEEPEST:
        return {}
    if isinstance(part, Mapping):
        return {
            name: item if name in _REFERENCES and isinstance(item, str) else _below_secret(item, depth + 1)
            for name, item in part.items()
        }
    if isinstance(part, list):
        return [_below_secret(one, depth + 1) if isinstance(one, Mapping) else _hide(one) for one in part]
    return _hide(part)


def _arguments(items: Sequence[Any]) -> list[Any]:
    """Hide the item after `--token`."""
    shown: list[Any] = []
    is_next = False
    for item in items:
        is_text = isinstance(item, str)
        is_flag = is_text and item.startswith("-") and "=" not in item and " " not in item
        shown.append(HIDDEN if is_next and is_text and not is_flag else item)
        is_next = is_flag and secret_names.is_secret_in_manifest(item)
    return shown


def text(value: str, *, depth: int = 0) -> str:
    """Return a text of a manifest without credentials; it may be a document of its own."""
    if value[:1] in ("{", "["):
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError:
            pass
        else:
            cleaned = _item("", parsed, depth=depth + 1)
            return value if cleaned == parsed else orjson.dumps(cleaned).decode()
    if _SECRET.search(value):
        return HIDDEN
    value = _NETRC.sub(rf"\1{HIDDEN}", value)
    value = _USER_AT_HOST.sub(rf"\1{HIDDEN}", value)
    value = _FLOW.sub(_hide_named, value)
    return detectors.clean(_lines(value))


def _lines(value: str) -> str:
    """Hide what follows a name of a credential on its line, and the block below it."""
    shown: list[str] = []
    block: int | None = None
    was_name = False
    for line in value.split("\n"):
        indent = len(line) - len(line.lstrip())
        if block is not None and (not line.strip() or indent > block):
            shown.append(line[:indent] + HIDDEN if line.strip() else line)
            continue
        block = None
        if was_name and (found := _VALUE_OF_VARIABLE.match(line)):
            line = found[1] + HIDDEN  # noqa: PLW2901 - the line that is shown
        elif (found := _LINE.match(line)) and secret_names.is_secret_in_manifest(found[2]):
            if _BLOCK.fullmatch(found[4]):
                block = indent
            else:
                line = found[1] + found[2] + found[3] + HIDDEN  # noqa: PLW2901 - the line that is shown
        was_name = line.lstrip().removeprefix("- ").startswith("name:")
        shown.append(line)
    return "\n".join(shown)


def _hide_named(found: re.Match[str]) -> str:
    return found[1] + found[2] + found[3] + HIDDEN if secret_names.is_secret_in_manifest(found[2]) else found[0]


def _hide(value: Any) -> Any:
    """Hide a value, of a mapping each one; that it is empty or not set stays visible."""
    if isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    return value if value is None or value == "" or isinstance(value, bool) else HIDDEN
