"""Compare a live object with its manifest. Only fields that the manifest sets count, not defaults of others.

Pure. Values of Secrets, and values of fields with secret names, are never part of a difference.
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
    desired: str
    actual: str


def differences(manifest: Json, live: Json) -> tuple[Difference, ...]:
    """Return the fields of `manifest` that `live` does not have or has with another value."""
    is_secret = manifest.get("kind") == "Secret"
    return tuple(
        Difference(
            path=path,
            desired=_shown(path, desired, is_secret=is_secret),
            actual=_shown(path, actual, is_secret=is_secret),
        )
        for path, desired, actual in _compare("", _relevant(manifest), _relevant(live))
    )


def _relevant(document: Json) -> Json:
    kept = {name: value for name, value in document.items() if name not in {"apiVersion", "kind", "metadata", "status"}}
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    return kept


def _compare(path: str, desired: Any, actual: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(desired, Mapping):
        for name, value in desired.items():
            inner = actual.get(name, _ABSENT) if isinstance(actual, Mapping) else _ABSENT
            yield from _compare(f"{path}.{name}" if path else str(name), value, inner)
    elif isinstance(desired, list) and isinstance(actual, list):
        yield from _compare_lists(path, desired, actual)
    elif not _is_equal(desired, actual):
        yield path, desired, actual


def _compare_lists(path: str, desired: list[Any], actual: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    if all(isinstance(item, Mapping) and "name" in item for item in [*desired, *actual]):
        by_name = {item["name"]: item for item in actual}
        for item in desired:
            yield from _compare(f"{path}[{item['name']}]", item, by_name.get(item["name"], _ABSENT))
    elif len(desired) != len(actual):
        yield path, desired, actual
    else:
        for index, (one, other) in enumerate(zip(desired, actual, strict=True)):
            yield from _compare(f"{path}[{index}]", one, other)


def _is_equal(desired: Any, actual: Any) -> bool:
    # An API server drops empty values, and normalises quantities.
    is_nothing = desired in (None, "", [], {}) and actual in (_ABSENT, None, "", [], {})
    return (
        is_nothing or desired == actual or (_quantity(desired) is not None and _quantity(desired) == _quantity(actual))
    )


def _quantity(value: Any) -> float | None:
    factors = {"m": 0.001, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    unit = next((factor for factor in sorted(factors, key=len, reverse=True) if text.endswith(factor)), "")
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
        return [_without_secrets(item) for item in value]
    return value
