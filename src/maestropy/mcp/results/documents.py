"""Show one document, such as the row of a work, as paths and values. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from maestropy.diagnose.redaction.redact import Redactor
from maestropy.mcp.answers import Result

_AT_ONCE: Final = 15
_MOST_VALUES: Final = 2_000
_LEFT_OUT: Final = "managedFields"


def of_document(document: Mapping[str, Any], *, about: Mapping[str, Any]) -> Result:
    """Return a document without secrets, leaf by leaf; the order is the document's."""
    leaves: list[tuple[str, Any]] = []
    is_cut = False
    for leaf in _leaves("", Redactor().document(document)):
        if len(leaves) >= _MOST_VALUES:
            is_cut = True
            break
        leaves.append(leaf)
    items = [dict(leaves[start : start + _AT_ONCE]) for start in range(0, len(leaves), _AT_ONCE)]
    unknown = [f"values after the first {_MOST_VALUES} of this document"] if is_cut else []
    return Result(head={**about, "values": len(leaves)}, items=items, unknown=unknown)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            if key != _LEFT_OUT:
                yield from _leaves(f"{path}.{key}" if path else str(key), item)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(f"{path}[{number}]", item)
    else:
        yield path, value
