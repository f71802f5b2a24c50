"""Load the schemas of built-in kinds from the table that `_generate` writes."""

import functools
from pathlib import Path
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.schemas.schema import ANY, Schema

_TABLE = Path(__file__).with_name("builtin_types.json")
_SCALARS = {
    "s": Schema(type="string"),
    "i": Schema(type="integer"),
    "n": Schema(type="number"),
    "b": Schema(type="boolean"),
    "is": Schema(type="int-or-string"),
    "q": Schema(type="quantity"),
    "*": ANY,
}


def schema_of(group: str, version: str, kind: str) -> Schema:
    """Return the schema of a built-in kind, or one that accepts anything."""
    types, roots = _load()
    name = roots.get(f"{group}/{version}/{kind}")
    return types[name] if name else ANY


def roots() -> dict[str, str]:
    """Return the name of the type of every built-in kind, by `group/version/kind`."""
    return _load()[1]


def field_names(name: str) -> frozenset[str] | None:
    """Return the JSON names of the fields of a type; None for an unknown type."""
    schema = _load()[0].get(name)
    return frozenset(schema.fields) if schema else None


def metadata() -> Schema:
    """Return the schema of `metadata`, the same for every kind."""
    return _load()[0]["meta.v1.ObjectMeta"]


@functools.cache
def _load() -> tuple[dict[str, Schema], dict[str, str]]:
    table = orjson.loads(_TABLE.read_bytes())
    types = {
        name: Schema(
            type="object",
            name=name,
            required=tuple(entry.get("required", ())),
            is_atomic=entry.get("atomic", False),
            omitted_when_zero=frozenset(entry.get("zero", ())),
            always_written=tuple(entry.get("value", ())),
            written_as_null=tuple(entry.get("null", ())),
        )
        for name, entry in table["types"].items()
    }
    for name, entry in table["types"].items():
        types[name].fields.update({field: _read(part, types) for field, part in entry["fields"].items()})
    return types, table["roots"]


def _read(part: Any, types: dict[str, Schema]) -> Schema:
    if isinstance(part, str):
        return _SCALARS[part] if part in _SCALARS else types[part]
    if "map" in part:
        return Schema(type="map", element=[_read(part["map"], types)], is_atomic=part.get("atomic", False))
    if "granular" in part:
        whole = types[part["granular"]]
        return Schema(type="object", name=whole.name, fields=whole.fields, required=whole.required)
    return Schema(
        type="list",
        element=[_read(part["list"], types)],
        is_atomic=not part.get("keys") and not part.get("set"),
        keys=tuple(part.get("keys", ())),
        is_set=part.get("set", False),
        merge_key=part.get("merge"),
    )
