"""Advise about manifests that need what the cluster does not have: a kind, a version, a namespace, a right. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from maestropy.trace.findings import apply_errors
from maestropy.trace.work import parse
from maestropy.trace.work.judge.facts import Facts
from maestropy.trace.work.judge.manifest_rows import ManifestRow

_NO_KIND: Final = "MT-405"
_NO_NAMESPACE: Final = "MT-406"
_NO_RIGHTS: Final = "MT-410"
_NAMED: Final = re.compile(r"no matches for kind \"(?P<kind>[^\"]+)\" in version \"(?P<version>[^\"]+)\"")
_NAMESPACE: Final = re.compile(r"namespaces? \"?(?P<name>[^\"\s]+)\"? not found", re.IGNORECASE)


def advice(facts: Facts) -> tuple[str, ...]:
    """Return what to do about each missing kind, namespace and right, once."""
    return tuple(dict.fromkeys(text for text in _texts(facts) if text))


def is_manifest_right(facts: Facts) -> bool:
    """Say whether all that fails is the rights of the executor, so that no change of the manifests helps."""
    codes = {code for _, _, code in _rejections(facts)}
    return codes == {_NO_RIGHTS}


def _rejections(facts: Facts) -> Iterator[tuple[ManifestRow, str, str]]:
    """Yield each manifest that is not applied, with the message and its code."""
    for row in facts.manifest_rows:
        for condition in row.conditions:
            if condition.type == "Applied" and condition.status == "False":
                yield row, condition.message, apply_errors.code_of_apply_error(condition.message)


def _texts(facts: Facts) -> Iterator[str]:
    for row, message, code in _rejections(facts):
        if code == _NO_KIND:
            yield _about_kind(facts, row, message)
        elif code == _NO_NAMESPACE:
            yield _about_namespace(row, message)
        elif code == _NO_RIGHTS:
            yield _about_rights(row)


def _about_rights(row: ManifestRow) -> str:
    key = row.key
    kind = ".".join(filter(None, (key.plural or key.kind, key.group)))
    role = f"a Role in namespace {key.namespace}" if key.namespace else "a ClusterRole"
    return (
        f"The executor of the work may not write {key}: on the cluster, bind {role} with get, create, update, patch "
        f"and delete on {kind} to the service account in spec.executor of the work; the agent tries again by itself."
    )


def _about_kind(facts: Facts, row: ManifestRow, message: str) -> str:
    # The message of our agent names no version.
    named = _NAMED.search(message)
    desired = row.desired or {}
    api_version = named["version"] if named else parse.text(desired.get("apiVersion"))
    kind = named["kind"] if named else row.key.kind
    if not kind or not api_version:
        return ""
    group = api_version.rpartition("/")[0]
    served = [f"{group}/{version}" if group else version for version in facts.data.versions.get((group, kind), ())]
    if served and api_version not in served:
        versions = ", ".join(served)
        return f"The cluster serves {kind} as {versions}, not as {api_version}: change the apiVersion of the manifest."
    # The group of a custom resource has a dot; the others are part of Kubernetes.
    install = "install its CustomResourceDefinition there, or " if "." in group else ""
    return f"The cluster has no kind {kind} in {api_version}: {install}correct apiVersion and kind of the manifest."


def _about_namespace(row: ManifestRow, message: str) -> str:
    named = _NAMESPACE.search(message)
    name = named["name"] if named else row.key.namespace
    return (
        f"The namespace {name} does not exist on the cluster: create it there, or put a manifest of kind Namespace "
        "into the work, before the objects in it; or correct the namespace of the manifest."
    )
