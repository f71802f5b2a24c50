"""Keep Kubernetes objects packed as bytes to save memory.

The version stays readable without unpacking, because it is read much more often than the content.
"""

from typing import NamedTuple

from maestropy.kube import freshness
from maestropy.kube.objects import Json
from maestropy.kube.watch_changes import ObjectVersion
from maestropy.wire import packed_json


class PackedObject(NamedTuple):
    """One object and its version."""

    version: ObjectVersion
    body: bytes

    def unpack(self) -> Json:
        """Return a new copy of the object."""
        return packed_json.unpack(self.body)


def pack(obj: Json) -> PackedObject:
    """Pack an object."""
    return PackedObject(freshness.version_of(obj), packed_json.pack(obj))
