"""Read manifests from dicts, YAML strings, files, or objects of a Kubernetes client.

Pure, except that it reads files.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import yaml

from maestropy.sdk.errors import Invalid
from maestropy.untrusted import files, manifest_text
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import json_values, kubernetes_names

Document = dict[str, Any]


@runtime_checkable
class HasToDict(Protocol):
    """An object of a Kubernetes client."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object as a dict."""


Source = Mapping[str, Any] | HasToDict | str | Path
"""A dict, an object with `to_dict`, a YAML or JSON string, or the `pathlib.Path` of such a file."""

_IRREGULAR = {"Endpoints": "endpoints"}
_LISTS = ("List", "ConfigMapList")
_PATH = re.compile(r"\s*\S*(/\S*|\.(ya?ml|json))\s*")
"""A string that is most likely meant as the path of a file."""


def read(source: Source | Iterable[Source]) -> list[Document]:
    """Return the manifests of a source, in order; a file may hold several, and a List counts as its items."""
    match source:
        case Path():
            return _from_yaml(_text_of(source), origin=str(source), is_file=True)
        case str():
            _check_length(source)
            return _from_yaml(source, origin="the YAML text")
        case Mapping():
            return _flat(dict(source))
        case HasToDict():
            return _flat(_from_object(source))
        case Iterable() if not isinstance(source, bytes):
            return [document for item in source for document in read(item)]
        case _:
            raise Invalid(
                f"a manifest cannot be of type {type(source).__name__}", advice="give a dict, YAML or a pathlib.Path"
            )


def plural(kind: str) -> str:
    """Return the likely plural resource name of a kind, as in `kubectl get <resource>`."""
    name = kind.lower()
    if kind in _IRREGULAR:
        return _IRREGULAR[kind]
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name}s"


def identifier(manifest: Mapping[str, Any], *, resource: str = "") -> dict[str, str]:
    """Return the `resourceIdentifier` of a manifest."""
    group, slash, _ = str(manifest.get("apiVersion") or "").partition("/")
    metadata = manifest.get("metadata") or {}
    fields = {
        "group": group if slash else "",
        "resource": resource or plural(str(manifest.get("kind") or "")),
        "name": str(metadata.get("name") or ""),
        "namespace": str(metadata.get("namespace") or ""),
    }
    return {key: value for key, value in fields.items() if value or key != "namespace"}


def _check_length(text: str) -> None:
    if len(text) > files.MANIFEST_BYTES:
        limit = files.MANIFEST_BYTES // files.MIB
        raise Invalid(f"the YAML text is too large: the limit is {limit} MiB", advice="split it into several works")


def _text_of(path: Path) -> str:
    try:
        return files.read_text(path, most=files.MANIFEST_BYTES)
    except InputRejected as error:
        raise Invalid(str(error), advice="split it into several files") from error
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}", advice="check the path") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not UTF-8 (byte {error.start})", advice="save it as UTF-8") from error


def _from_yaml(text: str, *, origin: str, is_file: bool = False) -> list[Document]:
    try:
        loaded = manifest_text.load_all(text)
        documents = [document for document in loaded if document is not None]
    except InputRejected as error:
        advice = "write out its aliases" if "alias" in str(error) else "split it, or nest it less"
        raise Invalid(f"{origin} is rejected: {error}", advice=advice) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        advice = error.advice if isinstance(error, manifest_text.BadKey) else "correct the YAML"
        raise Invalid(f"{origin}{position}: {error.problem or 'not YAML'}", advice=advice) from error
    except yaml.YAMLError as error:
        raise Invalid(f"{origin}: {str(error).splitlines()[0]}", advice="correct the YAML") from error
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict):
            advice = "a manifest begins with `apiVersion:`"
            if not is_file and _PATH.fullmatch(text):
                advice = f"a string is YAML or JSON; to read a file give pathlib.Path({text.strip()!r})"
            raise Invalid(f"{origin}: document {number} is not an object", advice=advice)
        problems = json_values.problems(document)
        if problems:
            raise Invalid(f"{origin}: {kubernetes_names.join(problems)}", advice="correct the values")
    if not documents:
        raise Invalid(f"{origin} is empty", advice="a manifest begins with `apiVersion:`")
    return [manifest for document in documents for manifest in _flat(document)]


def _flat(document: Document) -> list[Document]:
    if document.get("kind") in _LISTS and isinstance(document.get("items"), list):
        for index, item in enumerate(document["items"]):
            if not isinstance(item, Mapping):
                raise Invalid(f"items[{index}] of the {document['kind']} is not an object", advice="give a manifest")
        return [dict(item) for item in document["items"]]
    return [document]


def _from_object(source: HasToDict) -> Document:
    # The official Python client uses Python names and keeps the JSON names in attribute_map.
    document = _with_json_names(source) if hasattr(source, "attribute_map") else source.to_dict()
    if not isinstance(document, dict):
        raise Invalid(f"to_dict() of {type(source).__name__} returned no dict")
    return document


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
