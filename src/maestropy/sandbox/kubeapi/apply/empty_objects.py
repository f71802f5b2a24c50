"""Build the empty object of a kind: the state with which a new object is compared to find its managed fields.

Kubernetes' Go types always contain struct fields that are not pointers, so no field manager owns these structs
themselves.
"""

import functools
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]


def blank(kind: ServedKind) -> Json:
    """Return an object of this kind with no field set."""
    empty = {} if kind.is_custom else _blank_kind(kind.schema)
    return {**empty, "metadata": {}}


@functools.cache
def _blank_kind(schema: Schema) -> Json:
    empty: Json = {}
    for name, child in schema.fields.items():
        if name in schema.always_written or (name in schema.required and child.type == "object"):
            empty[name] = _blank_kind(child)
        elif name in schema.written_as_null or (name in schema.required and child.type in ("list", "map")):
            empty[name] = None
    return empty
