"""Generate `builtin_messages.json`, the protobuf field numbers, from Kubernetes' published `generated.proto` files.

    python -m maestropy.sandbox.kubeapi.http._generate_messages <folder with .proto files> ...

kubectl's imperative commands and typed Go clients send built-in kinds as protobuf. The file holds, for every message
that a served kind refers to, the number, name and type of its fields (`[` before the type: repeated, `{`: a map from
strings).
"""

import re
import sys
from pathlib import Path

import orjson

from maestropy.sandbox.kubeapi.schemas import builtin_types

_OUTPUT = Path(__file__).with_name("builtin_messages.json")
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (optional|repeated|map<string,) ?([\w.>]+)>? (\w+) = (\d+)(?: \[.*?\])?;", re.MULTILINE)
_PREFIXES = (".k8s.io.api.", ".k8s.io.apimachinery.pkg.apis.", ".k8s.io.apimachinery.pkg.")
_MARKS = {"optional": "", "repeated": "[", "map<string,": "{"}
_OTHER_ROOTS = ("meta.v1.DeleteOptions", "autoscaling.v1.Scale", "authentication.v1.TokenRequest")


def _short(kind: str, package: str) -> str:
    kind = kind.rstrip(">")
    for prefix in _PREFIXES:
        if kind.startswith(prefix):
            return kind.removeprefix(prefix)
    return kind if kind[0].islower() else f"{package}.{kind}"


def read(folders: list[Path]) -> dict[str, dict[str, str]]:
    """Return all messages in the files below `folders`."""
    messages: dict[str, dict[str, str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("generated.proto")):
            package = f"{path.parent.parent.name}.{path.parent.name}"
            for name, body in _MESSAGE.findall(path.read_text()):
                fields = {
                    number: f"{field}:{_MARKS[mark]}{_short(kind, package)}"
                    for mark, kind, field, number in _FIELD.findall(body)
                }
                messages[f"{package}.{name}"] = fields
    return messages


def reachable(messages: dict[str, dict[str, str]], roots: list[str]) -> dict[str, dict[str, str]]:
    """Return the messages that `roots` refer to, directly or indirectly."""
    kept: dict[str, dict[str, str]] = {}
    waiting = [root for root in roots if root in messages]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept[name] = messages[name]
        kinds = [field.partition(":")[2].lstrip("[{") for field in messages[name].values()]
        waiting.extend(kind for kind in kinds if kind in messages)
    return dict(sorted(kept.items()))


def main(arguments: list[str]) -> None:
    """Write the table."""
    roots = [*builtin_types.roots().values(), *_OTHER_ROOTS]
    messages = reachable(read([Path(folder) for folder in arguments]), roots)
    lines = [f"{orjson.dumps(name).decode()}:{orjson.dumps(fields).decode()}" for name, fields in messages.items()]
    body = ",\n".join(lines)
    _OUTPUT.write_text(f"{{\n{body}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
