"""Look up fields in untrusted documents. A field that is missing, null or of another type is never an error."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from maestropy.wire import timestamps
from maestropy.wire.errors import MalformedMessage

Json = Mapping[str, Any]
EMPTY: Json = {}


def at(document: object, *path: str) -> Any:
    """Return what is at `path`, None if there is nothing."""
    for step in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(step)
    return document


def text(document: object, *path: str) -> str:
    """Return the text at `path`, empty if there is none; numbers and booleans as JSON writes them."""
    value = at(document, *path)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def number(document: object, *path: str) -> int | None:
    """Return the whole number at `path`, also one written as text."""
    value = at(document, *path)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 else None


def mapping(document: object, *path: str) -> Json:
    """Return the object at `path`, or an empty one."""
    value = at(document, *path)
    return value if isinstance(value, Mapping) else EMPTY


def objects(document: object, *path: str) -> Sequence[Json]:
    """Return the objects in the list at `path`; other items are left out."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def moment(document: object, *path: str) -> datetime | None:
    """Return the point in time at `path`."""
    return parse_moment(text(document, *path))


def parse_moment(written: str) -> datetime | None:
    """Return the point in time that `written` names, None if it names none."""
    try:
        return timestamps.parse(written).to_datetime() if written else None
    except MalformedMessage:
        return None


def name(document: object) -> str:
    """Return the name of a Kubernetes object."""
    return text(document, "metadata", "name")


def namespace(document: object) -> str:
    """Return the namespace of a Kubernetes object."""
    return text(document, "metadata", "namespace")


def label(document: object, key: str) -> str:
    """Return one label of a Kubernetes object or a bundle."""
    return text(mapping(document, "metadata", "labels"), key)


def is_deleting(document: object) -> bool:
    """Whether the object has a deletion timestamp."""
    return bool(text(document, "metadata", "deletionTimestamp"))


def finalizers(document: object) -> str:
    """Return the finalizers of an object, as text."""
    names = at(document, "metadata", "finalizers")
    return (
        ", ".join(name for name in names if isinstance(name, str)) if isinstance(names, list) and names else "nothing"
    )
