"""The schema of a kind: its fields, and how its lists and maps merge.

Published built-in schemas and CustomResourceDefinitions are both converted into it. Patching, server-side apply and
pruning read it; validation of values is in `decode` and `crd_schema`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schema:
    """One type. `fields` and `element` are filled after construction where types refer to themselves."""

    type: str = "any"
    """object, map, list, string, integer, number, boolean, int-or-string, quantity or any."""
    name: str = ""
    fields: dict[str, "Schema"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    element: list["Schema"] = field(default_factory=list)
    """The type of all items of a list or of all values of a map; empty means any type."""
    is_atomic: bool = False
    """Whether server-side apply treats the value as one: it has one field manager."""
    keys: tuple[str, ...] = ()
    """The list map keys of an associative list, for server-side apply."""
    is_set: bool = False
    merge_key: str | None = None
    """The patch merge key, for strategic merge patches; an empty string: scalars that merge as a set."""
    preserve_unknown: bool = False
    omitted_when_zero: frozenset[str] = frozenset()
    """Scalar fields that are omitted when they are zero, false or empty."""
    always_written: tuple[str, ...] = ()
    """Struct fields that are written as an empty object when no field in them is set."""
    written_as_null: tuple[str, ...] = ()
    """Times that are written as null when they are not set."""

    def child(self, name: str) -> "Schema":
        """Return the type of the field or map value called `name`."""
        return self.fields.get(name) or self.item

    @property
    def item(self) -> "Schema":
        """Return the type of the items."""
        return self.element[0] if self.element else ANY

    @property
    def is_granular_list(self) -> bool:
        """Whether each item has its own field manager."""
        return self.type == "list" and not self.is_atomic and (self.is_set or bool(self.keys))


ANY = Schema(type="any", preserve_unknown=True)

_SCALARS = ("string", "integer", "number", "boolean")


def from_openapi(definition: Mapping[str, Any]) -> Schema:
    """Return the schema of a structural `openAPIV3Schema` (or a part of one)."""
    if definition.get("x-kubernetes-int-or-string"):
        return Schema(type="int-or-string")
    kind = definition.get("type")
    if kind == "array":
        return _list_of(definition)
    if kind == "object" or "properties" in definition or "additionalProperties" in definition:
        return _object_of(definition)
    return Schema(type=kind) if kind in _SCALARS else ANY


def _list_of(definition: Mapping[str, Any]) -> Schema:
    relationship = definition.get("x-kubernetes-list-type", "atomic")
    return Schema(
        type="list",
        element=[from_openapi(definition.get("items") or {})],
        is_atomic=relationship == "atomic",
        keys=tuple(definition.get("x-kubernetes-list-map-keys") or ()) if relationship == "map" else (),
        is_set=relationship == "set",
    )


def _object_of(definition: Mapping[str, Any]) -> Schema:
    is_atomic = definition.get("x-kubernetes-map-type") == "atomic"
    values = definition.get("additionalProperties")
    preserve = bool(definition.get("x-kubernetes-preserve-unknown-fields"))
    if values:
        element = [from_openapi(values)] if isinstance(values, Mapping) else []
        return Schema(type="map", element=element, is_atomic=is_atomic)
    fields = {name: from_openapi(part) for name, part in (definition.get("properties") or {}).items()}
    return Schema(
        type="object",
        fields=fields,
        required=tuple(definition.get("required") or ()),
        is_atomic=is_atomic,
        preserve_unknown=preserve,
    )
