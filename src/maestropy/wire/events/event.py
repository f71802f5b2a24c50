"""Define the CloudEvent and parse its type.

The bindings (gRPC, MQTT, JSON) convert it to messages and back. Its data stays the received JSON bytes, so that a
server forwards manifests without parsing them. An event type is `<data type>.<subresource>.<action>`; spec events go
from a source to an agent, status events from an agent to a source.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from maestropy.wire import errors, timestamps

Attribute = bool | int | str | bytes | timestamps.Timestamp
"""The value of an extension attribute."""

MANIFEST_BUNDLES = "io.open-cluster-management.works.v1alpha1.manifestbundles"
"""The only data type that Maestro supports."""

HEARTBEAT = "io.open-cluster-management.cloudevents.heartbeat"
JSON_CONTENT_TYPE = "application/json"
SPEC_VERSION = "1.0"
SPEC_VERSIONS = (SPEC_VERSION, "0.3")
"""The versions that are accepted; only the first is sent."""

# Extension attributes; CloudEvents requires lower case.
CLUSTER_NAME = "clustername"
ORIGINAL_SOURCE = "originalsource"
RESOURCE_ID = "resourceid"
RESOURCE_VERSION = "resourceversion"
DELETION_TIMESTAMP = "deletiontimestamp"
METADATA = "metadata"
SEQUENCE_ID = "sequenceid"
STATUS_HASH = "statushash"
LOG_TRACING = "logtracing"

# Our own extension attributes, from a server to its agents; Go peers ignore them.
DATABASE_ID = "databaseid"
"""The identity of the server's database."""
CREATED_AT = "createdat"
"""The exact creation time of the resource, which tells its incarnations apart; `metadata` has full seconds."""
RELEASED = "released"
"""The last status of a work that an operator has released: its objects stay on the cluster."""
ORPHAN = "orphan"
"""The delete request is for a work that the server does not have; no source requested it."""
UNKNOWN_CONSUMER = "unknownconsumer"
"""The server does not have the consumer of the agent."""
DATABASE_TIME = "databasetime"
"""The time of the database; the server rejects sequence IDs that are far ahead of it."""
ADOPTED_HOLD = "adoptedhold"
"""The ID of the data-safety hold that an operator has ended."""
STORED_HOLD = "storedhold"
"""The server shows a data-safety hold of this agent; the agent tells it when that is over."""

RESYNC_ID = "resyncid"
"""The ID of the spec resync request that a resync response answers, or another ID if it answers none."""

TRACE_PARENT = "traceparent"
"""The span that sent the event, as CloudEvents' extension for distributed tracing defines it."""

OPERATION_ID_KEY = "logging.open-cluster-management.io/op-id"
"""The key of the operation ID inside `logtracing`."""

CONTEXT_ATTRIBUTES = frozenset(
    ("specversion", "id", "source", "type", "time", "datacontenttype", "subject", "dataschema", "data", "data_base64")
)
"""The context attributes and data members of CloudEvents; an extension cannot have such a name."""

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)

MAX_NAME_LENGTH = 253
"""The maximum length of a Kubernetes name."""

MAX_TYPE_LENGTH = 512
"""Long enough for any group, version, resource and action."""

_EXTENSION_NAME = re.compile(r"[A-Za-z0-9]+", re.ASCII)


class EventAction(enum.StrEnum):
    """The last part of an event type."""

    CREATE_REQUEST = "create_request"
    UPDATE_REQUEST = "update_request"
    DELETE_REQUEST = "delete_request"
    RESYNC_REQUEST = "resync_request"
    RESYNC_RESPONSE = "resync_response"
    WATCH_REQUEST = "watch_request"


class Subresource(enum.StrEnum):
    """The part of a resource that an event is about."""

    SPEC = "spec"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class CloudEventType:
    """`<data type>.<subresource>.<action>`, where the data type is `<group>.<version>.<resource>`."""

    data_type: str
    subresource: Subresource
    action: str

    def __str__(self) -> str:
        return f"{self.data_type}.{self.subresource}.{self.action}"


def extension_name(name: str) -> str:
    """Return the name of an extension in lower case, or raise `MalformedMessage`."""
    lower = name.lower()
    if lower in CONTEXT_ATTRIBUTES:
        raise errors.MalformedMessage(
            f"extension name {name[:64]!r} is not allowed: the event has an attribute of that name"
        )
    if _EXTENSION_NAME.fullmatch(name) is None:
        raise errors.MalformedMessage(f"extension name {name[:64]!r} is not allowed: use letters and digits")
    return lower


def check_name(text: str, *, label: str) -> None:
    """Reject a name that a resource, a consumer or a source cannot have: names are keys, headers and topic segments."""
    if not text or len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise errors.MalformedMessage(f"{label} must be 1 to {MAX_NAME_LENGTH} printable characters")


def parse_type(text: str) -> CloudEventType:
    """Parse an event type; the caller checks the action, because not every endpoint supports every action."""
    if len(text) > MAX_TYPE_LENGTH:  # checked before the cache, which would keep long texts
        raise errors.UnsupportedEvent(f"unsupported cloudevents type format: longer than {MAX_TYPE_LENGTH} characters")
    return _parse_type(text)


@lru_cache(maxsize=256)
def _parse_type(text: str) -> CloudEventType:
    parts = text.split(".")
    if len(parts) < 5:
        raise errors.UnsupportedEvent(f"unsupported cloudevents type format: {text[:256]}")
    subresource = parts[-2]
    if subresource not in (Subresource.SPEC, Subresource.STATUS):
        raise errors.UnsupportedEvent(f"unsupported subresource {subresource[:64]}")
    return CloudEventType(".".join(parts[:-2]), Subresource(subresource), parts[-1])


def parse_data_type(text: str) -> str:
    """Check a data type `<group>.<version>.<resource>` and return it."""
    if len(text.split(".")) < 3:
        raise errors.UnsupportedEvent(f"invalid data type {text[:256]}: expected <group>.<version>.<resource>")
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
class CloudEvent:
    """One CloudEvent."""

    id: str
    source: str
    type: str
    time: timestamps.Timestamp | None = None
    content_type: str = JSON_CONTENT_TYPE
    subject: str = ""
    data_schema: str = ""
    extensions: Mapping[str, Attribute] = field(default_factory=dict)
    data: bytes = b""

    def text(self, name: str) -> str:
        """Return the extension `name`, which must be present and a string."""
        value = self.extensions.get(name)
        if isinstance(value, str):
            return value
        raise _wrong_extension(name, value, expected="a string")

    def optional_text(self, name: str) -> str:
        """Return the extension `name` if it is a string, else an empty string."""
        value = self.extensions.get(name)
        return value if isinstance(value, str) else ""

    def is_set(self, name: str) -> bool:
        """Return whether the extension `name` is true; MQTT sends booleans as text."""
        return self.extensions.get(name) in (True, "true")

    def integer(self, name: str) -> int:
        """Return the extension `name` as a 32-bit integer; MQTT sends integers as text."""
        value = self.extensions.get(name)
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) <= 11:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and INT32_MIN <= value <= INT32_MAX:
            return value
        raise _wrong_extension(name, value, expected="a 32-bit integer")

    def timestamp(self, name: str) -> timestamps.Timestamp | None:
        """Return the extension `name` as a timestamp, or None if it is absent."""
        value = self.extensions.get(name)
        if value is None or isinstance(value, timestamps.Timestamp):
            return value
        if isinstance(value, str):
            try:
                return timestamps.parse(value)
            except errors.MalformedMessage as error:
                raise _wrong_extension(name, value, expected="a timestamp") from error
        raise _wrong_extension(name, value, expected="a timestamp")


def _wrong_extension(name: str, value: Attribute | None, *, expected: str) -> errors.MalformedMessage:
    problem = "it is missing" if value is None else f"got {type(value).__name__} {str(value)[:64]!r}"
    return errors.MalformedMessage(f"failed to get {name} extension: {problem}; set it to {expected}")
