"""What does an object look like that holds nothing? The state ownership of a new object is counted from.

Fields that are structs, not pointers to structs, are always there in Kubernetes' own types; nobody comes to own them by
writing something inside.
"""

import functools
from typing import Any

from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]


def blank(kind: Kind) -> Json:
    """Return an object of this kind in which nothing is set."""
    empty = {} if kind.custom else _blank_kind(kind.schema)
    return {**empty, "metadata": {}}


@functools.cache
def _blank_kind(schema: Schema) -> Json:
    made: Json = {}
    for name, child in schema.fields.items():
        if name in schema.always_there or (name in schema.required and child.type == "object"):
            made[name] = _blank_kind(child)
        elif name in schema.written_as_null or (name in schema.required and child.type in ("list", "map")):
            made[name] = None
    return made
