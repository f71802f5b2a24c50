"""Where a live object differs from its manifest: only what the manifest asks for counts, defaults of others do not.

Pure. Values of Secrets, and values under names that promise secrets, are never part of a difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.journal.redact import HIDDEN
from maestropy.trace.work.model import Json

_METADATA = ("labels", "annotations")
_ABSENT = "(absent)"
_LONGEST = 120
_SECRET_WORDS = ("password", "passwd", "token", "secret", "credential", "privatekey", "apikey", "dockerconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field."""

    path: str
    wanted: str
    found: str


def differences(manifest: Json, live: Json) -> tuple[Difference, ...]:
    """Return the fields of `manifest` that `live` has otherwise or not at all."""
    is_secret = manifest.get("kind") == "Secret"
    return tuple(
        Difference(
            path=path,
            wanted=_shown(path, wanted, is_secret=is_secret),
            found=_shown(path, found, is_secret=is_secret),
        )
        for path, wanted, found in _compare("", _relevant(manifest), _relevant(live))
    )


def _relevant(document: Json) -> Json:
    kept = {name: value for name, value in document.items() if name not in {"apiVersion", "kind", "metadata", "status"}}
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    return kept


def _compare(path: str, wanted: Any, found: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(wanted, Mapping):
        for name, value in wanted.items():
            inner = found.get(name, _ABSENT) if isinstance(found, Mapping) else _ABSENT
            yield from _compare(f"{path}.{name}" if path else str(name), value, inner)
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _compare_lists(path, wanted, found)
    elif not _is_equal(wanted, found):
        yield path, wanted, found


def _compare_lists(path: str, wanted: list[Any], found: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    if all(isinstance(each, Mapping) and "name" in each for each in [*wanted, *found]):
        by_name = {each["name"]: each for each in found}
        for each in wanted:
            yield from _compare(f"{path}[{each['name']}]", each, by_name.get(each["name"], _ABSENT))
    elif len(wanted) != len(found):
        yield path, wanted, found
    else:
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare(f"{path}[{index}]", one, other)


def _is_equal(wanted: Any, found: Any) -> bool:
    # An API server drops what is empty, and writes quantities in its own way.
    is_nothing = wanted in (None, "", [], {}) and found in (_ABSENT, None, "", [], {})
    return is_nothing or wanted == found or (_quantity(wanted) is not None and _quantity(wanted) == _quantity(found))


def _quantity(value: Any) -> float | None:
    factors = {"m": 0.001, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    unit = next((each for each in sorted(factors, key=len, reverse=True) if text.endswith(each)), "")
    try:
        return float(text.removesuffix(unit)) * factors.get(unit, 1)
    except ValueError:
        return None


def _shown(path: str, value: Any, *, is_secret: bool) -> str:
    if value == _ABSENT:
        return _ABSENT
    plain = path.lower().replace("-", "").replace("_", "")
    if (is_secret and not path.startswith("metadata")) or any(word in plain for word in _SECRET_WORDS):
        return HIDDEN
    text = str(_without_secrets(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if any(word in str(name).lower() for word in _SECRET_WORDS) else _without_secrets(inner)
            for name, inner in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_secrets(each) for each in value]
    return value
