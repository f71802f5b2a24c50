"""Take manifests in whatever form a program has them: dicts, YAML text or files, objects of a Kubernetes client.

Pure but for reading the files it is given.
"""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import yaml

from maestropy.sdk.errors import Invalid

Document = dict[str, Any]


@runtime_checkable
class HasToDict(Protocol):
    """An object of some Kubernetes client."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON would be read."""


Source = Mapping[str, Any] | HasToDict | str | Path
"""A dict, an object with `to_dict`, YAML or JSON text, or the path of such a file."""

_IRREGULAR = {"Endpoints": "endpoints"}
_LISTS = ("List", "ConfigMapList")


def read(source: Source | Iterable[Source]) -> list[Document]:
    """Return the manifests of a source, in order; a file may hold several, and a List counts as its items."""
    match source:
        case Path():
            return _from_yaml(_text_of(source), where=str(source))
        case str():
            return _from_yaml(source, where="the YAML text")
        case Mapping():
            return _flat(dict(source))
        case HasToDict():
            return _flat(_from_object(source))
        case Iterable() if not isinstance(source, bytes):
            return [document for each in source for document in read(each)]
        case _:
            raise Invalid(
                f"a manifest cannot be of type {type(source).__name__}", advice="give a dict, YAML or a file's path"
            )


def plural(kind: str) -> str:
    """Return the resource that objects of `kind` most likely are, as in `kubectl get <resource>`."""
    name = kind.lower()
    if kind in _IRREGULAR:
        return _IRREGULAR[kind]
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name}s"


def identifier(manifest: Mapping[str, Any], *, resource: str = "") -> dict[str, str]:
    """Return the `resourceIdentifier` that names this manifest's object."""
    group, slash, _ = str(manifest.get("apiVersion") or "").partition("/")
    metadata = manifest.get("metadata") or {}
    found = {
        "group": group if slash else "",
        "resource": resource or plural(str(manifest.get("kind") or "")),
        "name": str(metadata.get("name") or ""),
        "namespace": str(metadata.get("namespace") or ""),
    }
    return {key: value for key, value in found.items() if value or key != "namespace"}


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}", advice="check the path") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is no text in UTF-8 (byte {error.start})", advice="save it as UTF-8") from error


def _from_yaml(text: str, *, where: str) -> list[Document]:
    try:
        found = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Invalid(f"{where}{place}: {error.problem or 'no YAML'}", advice="correct the YAML") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Invalid(f"{where}: {str(error).splitlines()[0]}", advice="correct the YAML") from error
    for number, document in enumerate(found, start=1):
        if not isinstance(document, dict):
            raise Invalid(f"{where}: document {number} is no object", advice="a manifest begins with `apiVersion:`")
    if not found:
        raise Invalid(f"{where} is empty", advice="a manifest begins with `apiVersion:`")
    return [manifest for document in found for manifest in _flat(document)]


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is the text it was written as."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _flat(document: Document) -> list[Document]:
    if document.get("kind") in _LISTS and isinstance(document.get("items"), list):
        return [dict(item) for item in document["items"]]
    return [document]


def _from_object(source: HasToDict) -> Document:
    # The official Python client names members as Python does and keeps the real names beside them.
    found = _with_json_names(source) if hasattr(source, "attribute_map") else source.to_dict()
    if not isinstance(found, dict):
        raise Invalid(f"to_dict() of {type(source).__name__} returned no dict")
    return found


def _with_json_names(value: Any) -> Any:
    if hasattr(value, "attribute_map"):
        members = {json_name: getattr(value, name) for name, json_name in value.attribute_map.items()}
        return {name: _with_json_names(member) for name, member in members.items() if member is not None}
    if isinstance(value, Mapping):
        return {key: _with_json_names(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_json_names(member) for member in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return value
