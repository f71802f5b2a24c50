"""Build the discovery documents, in the unaggregated and the aggregated form. Pure."""

from collections.abc import Iterable
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.24",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_SUBRESOURCE_VERBS = ("get", "patch", "update")
AGGREGATED = "apidiscovery.k8s.io"


def core_versions(url: str) -> Json:
    """Return the document of `/api`."""
    address = url.removeprefix("http://")
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(kinds: Iterable[ServedKind]) -> Json:
    """Return the document of `/apis`."""
    names = dict.fromkeys(kind.group for kind in kinds if kind.group)
    groups = [group(name, kinds) for name in names]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_bare(document) for document in groups if document]}


def _bare(document: Json) -> Json:
    return {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}


def group(name: str, kinds: Iterable[ServedKind]) -> Json | None:
    """Return the document of `/apis/<group>`; None for an unknown group."""
    versions = _versions(name, kinds)
    if not versions:
        return None
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def _versions(name: str, kinds: Iterable[ServedKind]) -> list[str]:
    versions = {kind.version for kind in kinds if kind.group == name}
    return sorted(versions, key=_priority, reverse=True)


def _priority(version: str) -> tuple[int, int, int]:
    """Return the sort key of Kubernetes' version priority: stable, beta, alpha; higher numbers first."""
    stage = 0 if "alpha" in version else 1 if "beta" in version else 2
    digits = "".join(sign if sign.isdigit() else " " for sign in version).split()
    numbers = [int(digit) for digit in digits] + [0, 0]
    return stage, numbers[0], numbers[1]


def resource_list(group_name: str, version: str, kinds: Iterable[ServedKind]) -> Json | None:
    """Return the document of `/apis/<group>/<version>`; None for an unknown version."""
    chosen = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    if not chosen:
        return None
    resources: list[Json] = []
    for kind in sorted(chosen, key=lambda kind: kind.plural):
        entry: Json = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        resources.append(entry)
        resources.extend(_subresources(kind))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group_name}/{version}" if group_name else version,
        "resources": resources,
    }


def _subresources(kind: ServedKind) -> Iterable[Json]:
    base = {"singularName": "", "namespaced": kind.namespaced}
    if kind.has_status:
        yield {"name": f"{kind.plural}/status", **base, "kind": kind.kind, "verbs": list(_SUBRESOURCE_VERBS)}
    if kind.scale:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": list(_SUBRESOURCE_VERBS)}
        yield {"name": f"{kind.plural}/scale", **base, **scale}
    if kind.resource == ("", "namespaces"):
        yield {"name": "namespaces/finalize", **base, "kind": "Namespace", "verbs": ["update"]}
    if kind.resource == ("", "serviceaccounts"):
        token = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"]}
        yield {"name": "serviceaccounts/token", **base, **token}


def aggregated(kinds: Iterable[ServedKind], *, core: bool, api: str) -> Json:
    """Return the aggregated document of `/api` or `/apis` in the requested version."""
    served = list(kinds)
    names = [""] if core else list(dict.fromkeys(kind.group for kind in served if kind.group))
    items = []
    for name in names:
        versions = [
            {"version": version, "resources": _aggregated_resources(name, version, served), "freshness": "Current"}
            for version in _versions(name, served)
        ]
        items.append({"metadata": {"creationTimestamp": None} | ({"name": name} if name else {}), "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/{api}", "metadata": {}, "items": items}


def _aggregated_resources(group_name: str, version: str, kinds: list[ServedKind]) -> list[Json]:
    chosen = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    return [_aggregated_resource(kind) for kind in sorted(chosen, key=lambda kind: kind.plural)]


def _aggregated_resource(kind: ServedKind) -> Json:
    own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    scope = "Namespaced" if kind.namespaced else "Cluster"
    entry: Json = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": scope,
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    below = [
        {
            "subresource": subresource["name"].partition("/")[2],
            "responseKind": {
                **own,
                **{key: subresource[key] for key in ("group", "version", "kind") if key in subresource},
            },
            "verbs": subresource["verbs"],
        }
        for subresource in _subresources(kind)
    ]
    return entry | ({"subresources": below} if below else {})
