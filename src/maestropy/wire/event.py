"""The CloudEvent value and the grammar of its type.

An `Event` is what all bindings (gRPC, MQTT, stored JSON) turn into and come from. Its data stays the raw JSON bytes
that arrived: nobody on the way needs to parse a manifest.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from maestropy.wire import errors, instant

Attribute = bool | int | str | bytes | instant.Timestamp
"""What an extension attribute may hold."""

MANIFEST_BUNDLES = "io.open-cluster-management.works.v1alpha1.manifestbundles"
"""The one data type Maestro carries."""

HEARTBEAT = "io.open-cluster-management.cloudevents.heartbeat"
JSON_CONTENT = "application/json"
SPEC_VERSION = "1.0"
SPEC_VERSIONS = (SPEC_VERSION, "0.3")
"""Versions that are read; only the first is written."""

# Extension attributes (all lower case, as CloudEvents demands).
CLUSTER_NAME = "clustername"
ORIGINAL_SOURCE = "originalsource"
RESOURCE_ID = "resourceid"
RESOURCE_VERSION = "resourceversion"
DELETION_TIMESTAMP = "deletiontimestamp"
METADATA = "metadata"
SEQUENCE_ID = "sequenceid"
STATUS_HASH = "statushash"
LOG_TRACING = "logtracing"

OPERATION_ID_KEY = "logging.open-cluster-management.io/op-id"
"""The key under which `logtracing` carries the operation id."""

CONTEXT = frozenset(
    ("specversion", "id", "source", "type", "time", "datacontenttype", "subject", "dataschema", "data", "data_base64")
)
"""The attributes that every event has of itself; no extension can have such a name."""

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)

LONGEST_NAME = 253
"""Where the names of Kubernetes end."""

LONGEST_TYPE = 512
"""A group, a version, a resource and an action, each as long as Kubernetes allows names to be."""

_EXTENSION_NAME = re.compile(r"[A-Za-z0-9]+", re.ASCII)


class Action(enum.StrEnum):
    """The last part of an event type."""

    CREATE_REQUEST = "create_request"
    UPDATE_REQUEST = "update_request"
    DELETE_REQUEST = "delete_request"
    RESYNC_REQUEST = "resync_request"
    RESYNC_RESPONSE = "resync_response"
    WATCH_REQUEST = "watch_request"


class Subresource(enum.StrEnum):
    """Which half of a bundle an event speaks of."""

    SPEC = "spec"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class EventType:
    """`<data type>.<subresource>.<action>`, where the data type is `<group>.<version>.<resource>`."""

    data_type: str
    subresource: Subresource
    action: str

    def __str__(self) -> str:
        return f"{self.data_type}.{self.subresource}.{self.action}"


def extension_name(name: str) -> str:
    """Return the name of an extension as all ends write it, in lower case, or refuse it."""
    lower = name.lower()
    if lower in CONTEXT:
        raise errors.Malformed(f"extension name {name[:64]!r} is not allowed: the event has an attribute of that name")
    if _EXTENSION_NAME.fullmatch(name) is None:
        raise errors.Malformed(f"extension name {name[:64]!r} is not allowed: use letters and digits")
    return lower


def check_name(text: str, *, what: str) -> None:
    """Refuse what cannot name a bundle, a cluster or a source: names are keys, and travel in headers and topics."""
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise errors.Malformed(f"{what} must be 1 to {LONGEST_NAME} printable characters")


def parse_type(text: str) -> EventType:
    """Read an event type; the action is not checked, since not every endpoint takes every action."""
    if len(text) > LONGEST_TYPE:  # before the cache, which would keep it
        raise errors.Unsupported(f"unsupported cloudevents type format: longer than {LONGEST_TYPE} characters")
    return _parse_type(text)


@lru_cache(maxsize=256)
def _parse_type(text: str) -> EventType:
    parts = text.split(".")
    if len(parts) < 5:
        raise errors.Unsupported(f"unsupported cloudevents type format: {text[:256]}")
    subresource = parts[-2]
    if subresource not in (Subresource.SPEC, Subresource.STATUS):
        raise errors.Unsupported(f"unsupported subresource {subresource[:64]}")
    return EventType(".".join(parts[:-2]), Subresource(subresource), parts[-1])


def parse_data_type(text: str) -> str:
    """Check a data type `<group>.<version>.<resource>` and return it."""
    if len(text.split(".")) < 3:
        raise errors.Unsupported(f"invalid data type {text[:256]}: expected <group>.<version>.<resource>")
    return text


SPEC_CREATE = f"{MANIFEST_BUNDLES}.spec.create_request"
SPEC_UPDATE = f"{MANIFEST_BUNDLES}.spec.update_request"
SPEC_DELETE = f"{MANIFEST_BUNDLES}.spec.delete_request"
SPEC_RESYNC_REQUEST = f"{MANIFEST_BUNDLES}.spec.resync_request"
SPEC_RESYNC_RESPONSE = f"{MANIFEST_BUNDLES}.spec.resync_response"
STATUS_UPDATE = f"{MANIFEST_BUNDLES}.status.update_request"
STATUS_RESYNC_REQUEST = f"{MANIFEST_BUNDLES}.status.resync_request"
STATUS_RESYNC_RESPONSE = f"{MANIFEST_BUNDLES}.status.resync_response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One CloudEvent."""

    id: str
    source: str
    type: str
    time: instant.Timestamp | None = None
    content_type: str = JSON_CONTENT
    subject: str = ""
    data_schema: str = ""
    extensions: Mapping[str, Attribute] = field(default_factory=dict)
    data: bytes = b""

    def text(self, name: str) -> str:
        """Return the extension `name` as a string; it must be there and must be one."""
        value = self.extensions.get(name)
        if isinstance(value, str):
            return value
        raise _wrong_extension(name, value, expected="a string")

    def optional_text(self, name: str) -> str:
        """Return the extension `name` if it is a string, else an empty string."""
        value = self.extensions.get(name)
        return value if isinstance(value, str) else ""

    def integer(self, name: str) -> int:
        """Return the extension `name` as a 32-bit integer; transports without types send it as text."""
        value = self.extensions.get(name)
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) <= 11:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and INT32_MIN <= value <= INT32_MAX:
            return value
        raise _wrong_extension(name, value, expected="a 32-bit integer")

    def timestamp(self, name: str) -> instant.Timestamp | None:
        """Return the extension `name` as a point in time, or nothing if it is absent."""
        value = self.extensions.get(name)
        if value is None or isinstance(value, instant.Timestamp):
            return value
        if isinstance(value, str):
            try:
                return instant.parse(value)
            except errors.Malformed as error:
                raise _wrong_extension(name, value, expected="a timestamp") from error
        raise _wrong_extension(name, value, expected="a timestamp")


def _wrong_extension(name: str, value: Attribute | None, *, expected: str) -> errors.Malformed:
    problem = "it is missing" if value is None else f"got {type(value).__name__} {str(value)[:64]!r}"
    return errors.Malformed(f"failed to get {name} extension: {problem}; set it to {expected}")
