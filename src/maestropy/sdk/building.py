"""How the manifests of a work are to be treated: feedback rules, update strategies, deletion. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from maestropy.sdk import manifests
from maestropy.sdk.errors import Invalid
from maestropy.wire.work import ManifestWork

Strategy = Literal["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]
Propagation = Literal["Foreground", "Orphan", "SelectivelyOrphan"]
Feedback = Mapping[str, str] | Literal["WellKnownStatus"]
"""Names and JSON paths such as `{"status": ".status"}`, or what the agent knows to be of interest for the kind."""

_STRATEGIES = ("Update", "CreateOnly", "ServerSideApply", "ReadOnly")
_POLICIES = ("Foreground", "Orphan", "SelectivelyOrphan")


def settings(
    *, feedback: Feedback | None = None, update_strategy: str | None = None, apply: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return members of one of `manifestConfigs`."""
    found: dict[str, Any] = {}
    if feedback == "WellKnownStatus":
        found["feedbackRules"] = [{"type": "WellKnownStatus"}]
    elif isinstance(feedback, Mapping):
        paths = [{"name": name, "path": _path(path)} for name, path in feedback.items()]
        found["feedbackRules"] = [{"type": "JSONPaths", "jsonPaths": paths}]
    elif feedback is not None:
        raise Invalid(f"feedback is {feedback!r}", advice='give {"status": ".status"} or "WellKnownStatus"')
    if update_strategy is not None:
        found["updateStrategy"] = _strategy(update_strategy, apply or {})
    return found


def configured(found: ManifestWork, who: Mapping[str, str], added: Mapping[str, Any]) -> ManifestWork:
    """Return the work with settings for the object `who` names; its other settings and feedback rules stay."""
    configs = [dict(each) for each in found.spec.get("manifestConfigs") or ()]
    target = next((each for each in configs if _is_same(each.get("resourceIdentifier") or {}, who)), None)
    if target is None:
        target = {"resourceIdentifier": dict(who)}
        configs.append(target)
    for key, value in added.items():
        target[key] = _merged_rules(target.get(key) or [], value) if key == "feedbackRules" else value
    return found.with_spec(manifestConfigs=configs)


def delete_option(
    policy: str, *, orphan: Sequence[Mapping[str, Any]] = (), ttl_seconds: int | None = None
) -> dict[str, Any]:
    """Return a `deleteOption`; `orphan` are the manifests that SelectivelyOrphan leaves behind."""
    if policy not in _POLICIES:
        raise Invalid(f"the delete option {policy!r} does not exist", advice=f"use one of {', '.join(_POLICIES)}")
    if (policy == "SelectivelyOrphan") != bool(orphan):
        raise Invalid(
            "orphan names the objects for SelectivelyOrphan, and for nothing else", advice="give both or none"
        )
    option: dict[str, Any] = {"propagationPolicy": policy}
    if orphan:
        rules = [{"namespace": "", **manifests.identifier(each)} for each in orphan]
        option["selectivelyOrphans"] = {"orphaningRules": rules}
    if ttl_seconds is not None:
        option["ttlSecondsAfterFinished"] = ttl_seconds
    return option


def _strategy(wanted: str, apply: Mapping[str, Any]) -> dict[str, Any]:
    if wanted not in _STRATEGIES:
        known = ", ".join(_STRATEGIES)
        raise Invalid(f"the update strategy {wanted!r} does not exist", advice=f"use one of {known}")
    if apply and wanted != "ServerSideApply":
        raise Invalid(f"{', '.join(apply)} mean nothing to {wanted}", advice="they are for ServerSideApply")
    return {"type": wanted, "serverSideApply": dict(apply)} if apply else {"type": wanted}


def _path(path: str) -> str:
    if not path.startswith((".", "@", "{", "[")):
        raise Invalid(f"the JSON path {path!r} cannot be read", advice=f"begin it with a dot: .{path}")
    return path


def _is_same(found: Mapping[str, str], who: Mapping[str, str]) -> bool:
    return all((found.get(key) or "") == (who.get(key) or "") for key in ("group", "resource", "name", "namespace"))


def _merged_rules(found: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rules = [dict(each) for each in found]
    for new in added:
        same = next((each for each in rules if each.get("type") == new.get("type")), None)
        if same is None:
            rules.append(dict(new))
        elif new.get("jsonPaths"):
            names = {path["name"] for path in new["jsonPaths"]}
            kept = [path for path in same.get("jsonPaths") or () if path.get("name") not in names]
            same["jsonPaths"] = [*kept, *new["jsonPaths"]]
    return rules
