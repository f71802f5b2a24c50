"""Remove secrets from documents and log lines by construction, before they are written anywhere. Pure.

What is hidden by its position needs no detector: the data of Secrets and ConfigMaps, values of environment variables,
values of annotations (a few of ours stay), values in arguments and commands, and texts in the spec of an object that
are more than one word. `maestropy.journal.redact` hides what its key names, and `detectors` what looks like a secret.
Keys, kinds, names, conditions and structure stay: verdicts rest on them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from maestropy.diagnose.redaction import detectors, named_secrets
from maestropy.journal import redact, secret_names
from maestropy.journal.redact import HIDDEN
from maestropy.wire.events.event import OPERATION_ID_KEY

_DEEPEST: Final = 64
_KEPT_ANNOTATIONS: Final = frozenset(
    {OPERATION_ID_KEY, "maestropy/work-origin", "deployment.kubernetes.io/revision", "kubernetes.io/created-by"}
)
_DATA: Final = frozenset({"data", "stringData", "binaryData"})
_DATA_KINDS: Final = frozenset({"Secret", "ConfigMap"})
_KEPT_FLAGS: Final = frozenset(
    {
        "--consumer-name",
        "--spoke-cluster-name",
        "--workload-source-driver",
        "--cloudevents-client-id",
        "--message-broker-type",
        "--subscription-type",
        "--v",
        "-v",
    }
)
"""Flags of servers and agents whose values say how they are connected, and never hold a secret."""
_HASHES: Final = frozenset({"statushash", "hubHash", "agentID", "uid", "resourceVersion"})
_WORD: Final = re.compile(r"[^\s]{1,253}")
_FLAG: Final = re.compile(r"(--?[A-Za-z][\w.-]*)(=?)")
_IDENTIFIERS: Final = redact.IDENTIFIERS | _HASHES
_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]+-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]+-----")
_VALUE_MAPS: Final = frozenset({"env", "environment", "envVars", "httpHeaders", "volumeAttributes"})
"""Maps from names to values, as kinds of others have them; all values are hidden, as those of a list `env` are."""
_LOGIN: Final = re.compile(r"(?<![^\s/])[^\s/@]*:[^\s/@]*@(?!sha\d)")
"""The user and password of a registry in a reference of an image."""
_LONGEST_BLOCK: Final = 400
"""Lines of a PEM block: after more, the end was lost."""


class Redactor:
    """Hides secrets, and counts what it hid."""

    def __init__(self) -> None:
        self.hidden: Counter[str] = Counter()

    def document(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document of an API or a database without secrets."""
        # Within a field, because the rules about Secrets are for values of log fields.
        before = redact.fields({"document": value})["document"]
        assert isinstance(before, Mapping)
        if before is not value:
            self.hidden["named"] += 1
        return self._mapping(before, depth=0, is_spec=False)

    def text(self, value: str) -> str:
        """Return a text without secrets."""
        return self._counted("detected", value, detectors.clean(value))

    def value(self, line: str) -> str:
        """Return a line without its text, because the line before names it as a secret."""
        return self._counted("detected", line, named_secrets.hide_first(line))

    def _counted(self, reason: str, before: str, after: str) -> str:
        if before != after:
            self.hidden[reason] += 1
        return after

    def _mapping(self, value: Mapping[str, Any], *, depth: int, is_spec: bool) -> dict[str, Any]:
        if depth > _DEEPEST:
            self.hidden["too deep"] += 1
            return {}
        cleaned: dict[str, Any] = {}
        is_object = "kind" in value and "metadata" in value
        for key, item in value.items():
            # Of a short value, the digest that the history keeps gives the value away to everybody who can guess.
            if key == "managedFields" or (key == "digest" and value.get("trace") != "hold"):
                continue
            is_data = key in _DATA and value.get("kind") in _DATA_KINDS
            below_spec = is_spec or (is_object and key not in {"metadata", "status"})
            cleaned[self._key(key)] = (
                self._hide_all("data", item) if is_data else self._item(key, item, depth=depth + 1, is_spec=below_spec)
            )
        if named_secrets.is_named_value(value):
            cleaned["value"] = self._hide("named", value["value"])
        return cleaned

    def _key(self, key: str) -> str:
        # The key of a label or of a map may itself be a secret that somebody put at the wrong place.
        return key if len(key) < 10 else self.text(key)

    def _item(self, key: str, item: Any, *, depth: int, is_spec: bool) -> Any:
        if isinstance(item, Mapping):
            if key == "annotations":
                return {
                    self._key(name): self._leaf(name, value, is_spec=False)
                    if name in _KEPT_ANNOTATIONS
                    else self._hide("annotation", value)
                    for name, value in item.items()
                }
            if key in _VALUE_MAPS:
                return self._hide_all("variable", item)
            if key == "labels":
                return {self._key(name): self._label(name, value) for name, value in item.items()}
            return self._mapping(item, depth=depth, is_spec=is_spec)
        if isinstance(item, list):
            if key in {"args", "command"}:
                return self._arguments(item)
            if key in {"env", "httpHeaders"}:
                return [self._variable(entry, depth=depth) for entry in item]
            return [self._item(key, entry, depth=depth, is_spec=is_spec) for entry in item]
        return self._leaf(key, item, is_spec=is_spec)

    def _leaf(self, key: str, item: Any, *, is_spec: bool) -> Any:
        if not isinstance(item, str) or not item or item == HIDDEN:
            return item
        if key in _IDENTIFIERS and _WORD.fullmatch(item):
            return item
        if key in {"image", "imageID"}:
            item = self._counted("named", item, _LOGIN.sub(f"{HIDDEN}@", item))
        if item[:1] in "{[" and item[: len(HIDDEN)] != HIDDEN:
            return self._json(item)
        if is_spec and secret_names.is_secret_in_manifest(key):
            return self._hide("named", item)
        if is_spec and not _WORD.fullmatch(item):
            return self._hide("text", item)
        return self.text(item)

    def _label(self, name: str, value: Any) -> Any:
        if named_secrets.is_secret_name(name):
            return self._hide("named", value)
        return self._leaf(name, value, is_spec=False)

    def _json(self, item: str) -> str:
        try:
            parsed = orjson.loads(item)
        except orjson.JSONDecodeError:
            return self.text(item)
        if isinstance(parsed, Mapping):
            return orjson.dumps(self._mapping(parsed, depth=1, is_spec=False)).decode()
        return orjson.dumps(self._item("", parsed, depth=1, is_spec=False)).decode()

    def _variable(self, entry: Any, *, depth: int) -> Any:
        if not isinstance(entry, Mapping):
            return self._hide("variable", entry)
        return {
            key: self._hide("variable", value) if key == "value" else self._item(key, value, depth=depth, is_spec=True)
            for key, value in entry.items()
        }

    def _arguments(self, arguments: Sequence[Any]) -> list[Any]:
        """Keep the names of flags and the values of a few, and hide all other words."""
        shown: list[Any] = []
        keeps_next = False
        for number, argument in enumerate(arguments):
            text = argument if isinstance(argument, str) else ""
            flag = _FLAG.match(text)
            is_bare_flag = flag is not None and flag[0] == text and not flag[2]
            if is_bare_flag or (keeps_next and _WORD.fullmatch(text)):
                shown.append(self.text(text))
            elif flag and flag[2]:
                value = text[flag.end() :]
                is_kept = flag[1] in _KEPT_FLAGS and _WORD.fullmatch(value)
                shown.append(flag[0] + (self.text(value) if is_kept else self._hide("argument", value)))
            else:
                # The first word is the program.
                is_program = number == 0 and re.fullmatch(r"[\w./-]{1,64}", text)
                shown.append(self.text(text) if is_program else self._hide("argument", argument))
            keeps_next = bool(flag and flag[1] in _KEPT_FLAGS and not flag[2])
        return shown

    def _hide_all(self, reason: str, item: Any) -> Any:
        if isinstance(item, Mapping):
            return {self._key(key): self._hide(reason, value) for key, value in item.items()}
        return self._hide(reason, item)

    def _hide(self, reason: str, value: Any) -> Any:
        """Hide a value; that it is empty or not set stays visible."""
        if value is None or value == "" or isinstance(value, bool):
            return value
        self.hidden[reason] += 1
        return HIDDEN


class LogRedactor:
    """Removes secrets from the lines of one log, also where a PEM block spans many lines."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._block = 0
        self._is_value = False

    def line(self, line: str) -> str:
        """Return one line, without its end, without secrets; empty for a line within a PEM block."""
        if self._block:
            self._block += 1
            if end := _END.search(line):
                self._block = 0
                return self._redactor.text(line[end.end() :])
            if self._block <= _LONGEST_BLOCK:
                return ""
            self._block = 0
        begin = _BEGIN.search(line)
        if begin and not _END.search(line, begin.end()):
            self._block = 1
        is_value, plain = self._is_value, named_secrets.normalised(line)
        self._is_value = named_secrets.names_value_of_next_line(plain) or (is_value and not plain.strip())
        if is_value:
            line = self._redactor.value(line)
        return self._redactor.text(line)
