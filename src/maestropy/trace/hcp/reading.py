"""Read documents of strangers: any field may be missing, null, or of another type, and none of it is an error here."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from maestropy.wire import instant
from maestropy.wire.errors import Malformed

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
    """Return the text at `path`, empty if there is none; numbers and booleans are written as JSON writes them."""
    found = at(document, *path)
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, str | int | float) else ""


def number(document: object, *path: str) -> int | None:
    """Return the whole number at `path`, also one written as text."""
    found = at(document, *path)
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    return int(found) if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20 else None


def mapping(document: object, *path: str) -> Json:
    """Return the object at `path`, an empty one if there is none."""
    found = at(document, *path)
    return found if isinstance(found, Mapping) else EMPTY


def objects(document: object, *path: str) -> Sequence[Json]:
    """Return the objects in the list at `path`; whatever else is in it is left out."""
    found = at(document, *path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def moment(document: object, *path: str) -> datetime | None:
    """Return the point in time at `path`."""
    return parse_moment(text(document, *path))


def parse_moment(written: str) -> datetime | None:
    """Return the point in time that `written` names, None if it names none."""
    try:
        return instant.parse(written).to_datetime() if written else None
    except Malformed:
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


def is_going(document: object) -> bool:
    """Whether somebody deleted the object and something still holds it."""
    return bool(text(document, "metadata", "deletionTimestamp"))


def finalizers(document: object) -> str:
    """Return who holds an object that is being deleted, in words."""
    found = at(document, "metadata", "finalizers")
    return (
        ", ".join(each for each in found if isinstance(each, str)) if isinstance(found, list) and found else "nothing"
    )
