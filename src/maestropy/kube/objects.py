"""What is true of every Kubernetes object: who it is, which version of it this is, and whether it is on its way out.

Objects are plain JSON; nobody here changes one in place. Nothing here talks to an API server.
"""

from collections.abc import Mapping
from typing import Any

from maestropy.kube.errors import Malformed

Json = dict[str, Any]


def metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata, empty if there is none."""
    found = manifest.get("metadata")
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Malformed("metadata must be an object")
    return found


def uid(manifest: Mapping[str, Any]) -> str:
    """Return the uid, empty before the object exists."""
    return _text(manifest, "uid")


def resource_version(manifest: Mapping[str, Any]) -> str:
    """Return the resource version, empty before the object exists."""
    return _text(manifest, "resourceVersion")


def is_terminating(manifest: Mapping[str, Any]) -> bool:
    """Whether somebody deleted the object and its finalizers still hold it."""
    return bool(metadata(manifest).get("deletionTimestamp"))


def is_same(found: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether two sights of an object show the same life and version of it."""
    return uid(found) == uid(known) and resource_version(found) == resource_version(known)


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return group and version; the group of `v1` is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def _text(manifest: Mapping[str, Any], name: str) -> str:
    found = metadata(manifest).get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Malformed(f"metadata.{name} must be a string")
    return found
