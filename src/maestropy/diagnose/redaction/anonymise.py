"""Replace names and addresses by pseudonyms, consistently in all files of an archive. Pure.

A pseudonym is an HMAC of the name under a key that the archive does not contain: the same name has the same pseudonym
in every file, and in every archive that is collected with the same key. The key file, which the collector keeps, also
has the names; with it, `maestro diagnose reveal` turns a report back. Names are found by their place in documents, and
then replaced wherever they stand: in texts, in file names, and as parts of longer names. Names that are words of log
messages or of Kubernetes stay, because records would not be recognised without them.
"""

import base64
import hashlib
import hmac
import ipaddress
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from maestropy.journal import fields, phrases

_TOKEN: Final = re.compile(
    r"%[0-9A-Fa-f]{2}|\\(?:[bfnrt]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})|(?P<token>[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*)"
)
"""A token, or an escape before one: in a URL, `%27name` is a quoted name."""
_SEPARATORS: Final = re.compile(r"([._-]+)")
_IPV4: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6: Final = re.compile(r"(?<![0-9A-Fa-f:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Fa-f:])")
_USER: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?!sha\d)[A-Za-z0-9][\w.-]{0,253}")
"""A user of a host, or an address of mail."""
_PATH: Final = re.compile(
    r"(?<![\w./:@-])/(?:Users|Volumes|builds?|data|etc|home|mnt|opt|private|root|run|srv|tmp|usr|var|work|workspace)"
    r"(?:/[\w.@+=-]+)+"
)
"""A path of a file system, which names users and machines; those of APIs begin with other words."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_TOKEN: Final = 24
"""Parts of a token whose spans are looked up; longer ones are looked up part by part."""
_SHORTEST: Final = 2
_KEPT: Final = frozenset(
    # Names that everybody has, and words of log formats.
    ["default", "kube-system", "kube-public", "kube-node-lease", "maestro", "maestro-agent", "maestro-db", "local",
     "localhost", "true", "false", "none", "null", "unknown", "normal", "warning", "error", "info", "grpc", "mqtt",
     "pubsub", "http", "https", "json", "yaml", "log", "logs", "configmap", "secret", "deployment", "pod",
     # Keys of documents that a name could be equal to.
     "metadata", "name", "namespace", "namespaces", "labels", "annotations", "items", "kind", "kinds", "id", "uid",
     "spec", "status", "data", "type", "version", "source", "resource", "resources", "group", "groups", "plural",
     "message", "reason", "conditions", "generation", "finalizers", "payload", "manifests", "executor", "events",
     "event", "trace", "consumer", "consumers", "work", "works", "since", "until", "time", "detail", "user", "address",
     "result", "core", "apps", "batch", "v1", "v1alpha1", "v1beta1", "v2", "workload", "hash", "key", "value", "values",
     "host", "hosts", "checks", "outcome", "remedy", "problem"]
)  # fmt: skip
_WORD: Final = re.compile(r"[a-z]+")
_RESERVED: Final = _KEPT | {
    word
    for names in (*vars(fields).values(), *vars(phrases).values())
    if isinstance(names, type)
    for text in vars(names).values()
    if isinstance(text, str)
    for word in (text.lower(), *_WORD.findall(text.lower()))
}
"""Words that are not replaced: a record whose message has a pseudonym would not be recognised."""


class Key(msgspec.Struct, forbid_unknown_fields=True):
    """The key file: what the collector keeps."""

    key: str
    """32 random bytes, hexadecimal."""
    names: dict[str, str] = {}
    """Names by their pseudonyms."""
    version: int = 1


class Pseudonyms:
    """Replaces the names that were added to it."""

    def __init__(self, key: Key) -> None:
        self._secret = bytes.fromhex(key.key)
        self._by_name: dict[str, str] = {name: pseudonym for pseudonym, name in key.names.items()}
        self._cache: dict[str, str] = {}

    @property
    def names(self) -> Mapping[str, str]:
        """All names, by pseudonym."""
        return {pseudonym: name for name, pseudonym in self._by_name.items()}

    def add(self, kind: str, names: Iterable[str]) -> None:
        """Add names of one kind, such as `consumer`."""
        for name in names:
            if len(name) < _SHORTEST or name in self._by_name or name.lower() in _RESERVED:
                continue
            if _UUID.fullmatch(name):
                self._by_name[name] = str(uuid.UUID(bytes=self._digest(name)[:16], version=5))
            elif not name.isdigit():
                short = base64.b32encode(self._digest(name)).decode().lower()[:10]
                self._by_name[name] = f"{kind}-{short}"
        self._cache.clear()

    def text(self, text: str) -> str:
        """Return a text with pseudonyms instead of names and addresses."""
        if "@" in text:
            text = _USER.sub(lambda match: self._word("user", match[0]), text)
        if "/" in text:
            text = _PATH.sub(lambda match: self._word("/path", match[0]), text)
        text = _IPV4.sub(self._ipv4, text)
        text = _IPV6.sub(self._ipv6, text) if text.count(":") > 1 else text
        return _TOKEN.sub(lambda match: self._token(match["token"]) if match["token"] else match[0], text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with pseudonyms, also in keys."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self.value(item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
            case _:
                return value

    def _token(self, token: str) -> str:
        known = self._cache.get(token)
        if known is None:
            known = self._cache[token] = self._by_name.get(token) or self._parts(token)
            if len(self._cache) > 1 << 17:
                self._cache.clear()
        return known

    def _parts(self, token: str) -> str:
        """Replace the longest names within a token, from left to right; names end at dots, dashes and underscores."""
        parts = _SEPARATORS.split(token)
        if len(parts) == 1:
            return token
        shown: list[str] = []
        start = 0
        while start < len(parts):
            for end in range(min(len(parts), start + _LONGEST_TOKEN), start, -1):
                pseudonym = self._by_name.get("".join(parts[start:end]))
                if pseudonym is not None:
                    shown.append(pseudonym)
                    start = end
                    break
            else:
                shown.append(parts[start])
                start += 1
        return "".join(shown)

    def _word(self, kind: str, name: str) -> str:
        return self._address(name, f"{kind}-{base64.b32encode(self._digest(name)).decode().lower()[:10]}")

    def _ipv4(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified:
            return match[0]
        # 240.0.0.0/4 is used by nobody, so a pseudonym cannot be an address of somebody else.
        return self._address(match[0], str(ipaddress.IPv4Address(bytes([240, *self._digest(match[0])[:3]]))))

    def _ipv6(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified:
            return match[0]
        digest = b"\x20\x01\x0d\xb8" + self._digest(str(address))[:12]
        return self._address(match[0], str(ipaddress.IPv6Address(digest)))

    def _address(self, name: str, pseudonym: str) -> str:
        if name in self._by_name.values():
            return name  # it is a pseudonym already
        self._by_name[name] = pseudonym
        return pseudonym

    def _digest(self, name: str) -> bytes:
        return hmac.new(self._secret, name.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def reveal(text: str, key: Key) -> str:
    """Return a text with the names that its pseudonyms stand for."""
    if not key.names:
        return text
    pattern = re.compile("|".join(re.escape(name) for name in sorted(key.names, key=len, reverse=True)))
    return pattern.sub(lambda match: key.names[match[0]], text)


def names_in(document: Any, *, found: dict[str, set[str]]) -> None:
    """Add the names in a document to `found`, by what they name."""
    match document:
        case dict():
            _names_of_mapping(document, found)
            for value in document.values():
                names_in(value, found=found)
        case list():
            for value in document:
                names_in(value, found=found)


_KEYS: Final = {
    "consumer_name": "consumer",
    "clustername": "consumer",
    "consumer": "consumer",
    "source": "source",
    "originalsource": "source",
    "resource_source": "source",
    "namespace": "namespace",
    "manifestWorkName": "work",
    "agentID": "id",
    "id": "id",
    "resource_id": "id",
    "resourceid": "id",
    "nodeName": "node",
    "node": "node",
    "hostname": "host",
    "user": "user",
    "actor": "user",
    "paused_by": "user",
    "requested_by": "user",
    "serviceAccountName": "account",
    "serviceAccount": "account",
}


def _names_of_mapping(document: Mapping[str, Any], found: dict[str, set[str]]) -> None:
    for key, kind in _KEYS.items():
        value = document.get(key)
        if isinstance(value, str) and value:
            found.setdefault(kind, set()).add(value)
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and isinstance(name := metadata.get("name"), str):
        found.setdefault("namespace" if document.get("kind") == "Namespace" else "object", set()).add(name)
    if isinstance(labels := document.get("labels"), dict):
        found.setdefault("label", set()).update(value for value in labels.values() if isinstance(value, str))
    if "resource" in document and isinstance(name := document.get("name"), str):
        found.setdefault("object", set()).add(name)
