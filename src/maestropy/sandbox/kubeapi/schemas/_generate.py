"""Generate `builtin_types.json` from the published OpenAPI definitions of Kubernetes.

    python -m maestropy.sandbox.kubeapi.schemas._generate <definitions.json> [<folder with Kubernetes' Go types> ...]

The definitions come with the PyPI package kubernetes-validate (`kubernetes-json-schema/<version>-local/
_definitions.json`), which is far too large to depend on. The file holds, for every type that a served kind refers to,
the names and types of its fields and how its lists and maps merge.

The definitions do not specify how Go writes a field that is not set: left out, null, or an empty object. That is read
from the struct tags of the published modules k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and
k8s.io/kube-aggregator of the same release.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.schemas import kinds

_OUTPUT = Path(__file__).with_name("builtin_types.json")
_SCALARS = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
_SPECIAL = {
    "api.resource.Quantity": "q",
    "util.intstr.IntOrString": "is",
    "meta.v1.Time": "s",
    "meta.v1.MicroTime": "s",
    "meta.v1.FieldsV1": "*",
    "runtime.RawExtension": "*",
}
_PREFIXES = (
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.api.",
)


def short(name: str) -> str:
    """Return the name of a definition without its common prefix."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class GoField:
    """One field of a Go struct: its type and the JSON options of its tag."""

    type: str
    omitempty: bool
    omitzero: bool


_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?([*\[\]\w.]+)\s+`json:\"([^\"]*)\"", re.MULTILINE)


def go_structs(folders: Iterable[Path]) -> dict[str, dict[str, GoField]]:
    """Return the fields of every struct in the types files below `folders`, by short name, inlined ones included."""
    structs: dict[str, dict[str, GoField]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("types*.go")):
            bodies = dict(_STRUCT.findall(path.read_text()))
            prefix = f"{path.parent.parent.name}.{path.parent.name}"
            for name in bodies:
                structs[f"{prefix}.{name}"] = dict(_go_fields(name, bodies))
    return structs


def _go_fields(name: str, bodies: dict[str, str]) -> Iterator[tuple[str, GoField]]:
    for _, kind, tag in _FIELD.findall(bodies.get(name, "")):
        written, *options = tag.split(",")
        if "inline" in options:
            yield from _go_fields(kind.rpartition(".")[2], bodies)
        elif written and written != "-":
            yield written, GoField(type=kind, omitempty="omitempty" in options, omitzero="omitzero" in options)


class Extract:
    """Collects the types that the served kinds refer to."""

    def __init__(self, definitions: dict[str, Any], structs: dict[str, dict[str, GoField]]) -> None:
        self._definitions = {short(name): definition for name, definition in definitions.items()}
        self._structs = structs
        self.types: dict[str, Any] = {}

    def root(self, group: str, version: str, kind: str) -> str | None:
        """Collect the type of a kind and return its name."""
        gvk = {"group": group, "version": version, "kind": kind}
        for name, definition in self._definitions.items():
            if gvk in definition.get("x-kubernetes-group-version-kind", ()) and name.endswith(kind):
                self._take(name)
                return name
        return None

    def _take(self, name: str) -> None:
        if name in self.types:
            return
        definition = self._definitions[name]
        entry: dict[str, Any] = {"fields": {}}
        self.types[name] = entry
        if definition.get("required"):
            entry["required"] = sorted(definition["required"])
        if definition.get("x-kubernetes-map-type") == "atomic":
            entry["atomic"] = True
        for field, part in sorted(definition.get("properties", {}).items()):
            entry["fields"][field] = self._part(part)
        entry |= self._unset(name, entry["fields"])

    def _unset(self, name: str, fields: dict[str, Any]) -> dict[str, list[str]]:
        """Return how fields are written that are not set: `zero` left out, `null`, `value` as an empty object."""
        written: dict[str, list[str]] = {}
        for field, go in self._structs.get(name, {}).items():
            part = fields.get(field)
            if go.type.startswith(("*", "[", "map")) or not isinstance(part, str):
                continue
            if go.type.endswith("Time"):
                kind = "" if go.omitzero else "null"
            elif part in ("s", "i", "n", "b"):
                kind = "zero" if go.omitempty else ""
            else:
                kind = "value" if part in self.types or part in self._definitions else ""
            if kind:
                written.setdefault(kind, []).append(field)
        return written

    def _part(self, part: dict[str, Any]) -> Any:
        if "$ref" in part:
            return self._reference(short(part["$ref"].rsplit("/", 1)[1]), part)
        kind = next((name for name in _as_list(part.get("type")) if name != "null"), None)
        if kind == "array":
            return self._list(part)
        if kind == "object":
            values = part.get("additionalProperties")
            entry = {"map": self._part(values) if values else "*"}
            return entry | ({"atomic": True} if part.get("x-kubernetes-map-type") == "atomic" else {})
        return _SCALARS.get(kind or "", "*")

    def _reference(self, name: str, part: dict[str, Any]) -> Any:
        if name in _SPECIAL:
            return _SPECIAL[name]
        if not self._definitions[name].get("properties"):
            return "*"
        self._take(name)
        return {"granular": name} if part.get("x-kubernetes-map-type") == "granular" else name

    def _list(self, part: dict[str, Any]) -> dict[str, Any]:
        entry: dict[str, Any] = {"list": self._part(part["items"])}
        merges = "merge" in part.get("x-kubernetes-patch-strategy", "")
        merge_key = part.get("x-kubernetes-patch-merge-key", "")
        relationship = part.get("x-kubernetes-list-type")
        if relationship == "map":
            entry["keys"] = part["x-kubernetes-list-map-keys"]
        elif relationship == "set" or (relationship is None and merges and not merge_key):
            entry["set"] = True
        elif relationship is None and merges:
            entry["keys"] = [merge_key]
        return entry | ({"merge": merge_key} if merges else {})


def _as_list(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def main(arguments: list[str]) -> None:
    """Write the table."""
    definitions = orjson.loads(Path(arguments[0]).read_bytes())["$defs"]
    extract = Extract(definitions, go_structs(Path(folder) for folder in arguments[1:]))
    roots = {}
    for kind in kinds.builtin():
        name = extract.root(kind.group, kind.version, kind.kind)
        if name:
            roots[f"{kind.group}/{kind.version}/{kind.kind}"] = name
    table = {"roots": roots, "types": dict(sorted(extract.types.items()))}
    # One type a line: small, and a new release of Kubernetes shows as a readable difference.
    lines = [f"{orjson.dumps(name).decode()}:{orjson.dumps(entry).decode()}" for name, entry in table["types"].items()]
    body = ",\n".join(lines)
    _OUTPUT.write_text(f'{{"roots":{orjson.dumps(roots).decode()},\n"types":{{\n{body}\n}}}}\n')


if __name__ == "__main__":
    main(sys.argv[1:])
