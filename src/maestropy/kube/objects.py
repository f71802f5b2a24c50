"""Read the identity, the version and the deletion mark of Kubernetes objects.

Objects are plain JSON and are never changed in place. Pure.
"""

from collections.abc import Mapping
from typing import Any

from maestropy.kube.errors import MalformedObject

Json = dict[str, Any]


def metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata, empty if there is none."""
    value = manifest.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise MalformedObject("metadata must be an object")
    return value


def uid(manifest: Mapping[str, Any]) -> str:
    """Return the uid, empty before the object exists."""
    return _text(manifest, "uid")


def resource_version(manifest: Mapping[str, Any]) -> str:
    """Return the resource version, empty before the object exists."""
    return _text(manifest, "resourceVersion")


def is_terminating(manifest: Mapping[str, Any]) -> bool:
    """Return whether the object is being deleted and its finalizers still hold it."""
    return bool(metadata(manifest).get("deletionTimestamp"))


def is_same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return whether both are the same incarnation and version of an object."""
    return uid(left) == uid(right) and resource_version(left) == resource_version(right)


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return group and version; the group of `v1` is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def _text(manifest: Mapping[str, Any], name: str) -> str:
    value = metadata(manifest).get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedObject(f"metadata.{name} must be a string")
    return value
