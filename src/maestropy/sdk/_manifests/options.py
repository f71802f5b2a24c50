"""Build the options of manifests: feedback rules, update strategies, delete options. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from maestropy.sdk._manifests import sources
from maestropy.sdk.errors import Invalid
from maestropy.wire.works.work import ManifestWork

Strategy = Literal["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]
Propagation = Literal["Foreground", "Orphan", "SelectivelyOrphan"]
Feedback = Mapping[str, str] | Literal["WellKnownStatus"]
"""Names and JSON paths such as `{"status": ".status"}`, or the well-known status fields of the kind."""

_STRATEGIES = ("Update", "CreateOnly", "ServerSideApply", "ReadOnly")
_POLICIES = ("Foreground", "Orphan", "SelectivelyOrphan")


def settings(
    *, feedback: Feedback | None = None, update_strategy: str | None = None, apply: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return members of one of `manifestConfigs`."""
    config: dict[str, Any] = {}
    if feedback == "WellKnownStatus":
        config["feedbackRules"] = [{"type": "WellKnownStatus"}]
    elif isinstance(feedback, Mapping):
        paths = [{"name": name, "path": _path(name, path)} for name, path in feedback.items()]
        config["feedbackRules"] = [{"type": "JSONPaths", "jsonPaths": paths}]
    elif feedback is not None:
        raise Invalid(f"feedback is {feedback!r}", advice='give {"status": ".status"} or "WellKnownStatus"')
    if update_strategy is not None:
        config["updateStrategy"] = _strategy(update_strategy, apply or {})
    return config


def configured(work: ManifestWork, identifier: Mapping[str, str], added: Mapping[str, Any]) -> ManifestWork:
    """Return the work with a manifest config for one object; its other settings and feedback rules stay."""
    configs = [dict(config) for config in work.spec.get("manifestConfigs") or ()]
    target = next((config for config in configs if _is_same(config.get("resourceIdentifier") or {}, identifier)), None)
    if target is None:
        target = {"resourceIdentifier": dict(identifier)}
        configs.append(target)
    for key, value in added.items():
        target[key] = _merged_rules(target.get(key) or [], value) if key == "feedbackRules" else value
    return work.with_spec(manifestConfigs=configs)


def delete_option(
    policy: str, *, orphan: Sequence[Mapping[str, Any]] = (), ttl_seconds: int | None = None
) -> dict[str, Any]:
    """Return a `deleteOption`; `orphan` are the manifests that SelectivelyOrphan keeps."""
    if policy not in _POLICIES:
        raise Invalid(f"the delete option {policy!r} does not exist", advice=f"use one of {', '.join(_POLICIES)}")
    if (policy == "SelectivelyOrphan") != bool(orphan):
        raise Invalid("orphan is only for SelectivelyOrphan, which needs it", advice="give both or none")
    option: dict[str, Any] = {"propagationPolicy": policy}
    if orphan:
        rules = [{"namespace": "", **sources.identifier(manifest)} for manifest in orphan]
        option["selectivelyOrphans"] = {"orphaningRules": rules}
    if ttl_seconds is not None:
        option["ttlSecondsAfterFinished"] = ttl_seconds
    return option


def _strategy(strategy: str, apply: Mapping[str, Any]) -> dict[str, Any]:
    if strategy not in _STRATEGIES:
        known = ", ".join(_STRATEGIES)
        raise Invalid(f"the update strategy {strategy!r} does not exist", advice=f"use one of {known}")
    if apply and strategy != "ServerSideApply":
        raise Invalid(f"{', '.join(apply)} do not apply to {strategy}", advice="they are options of ServerSideApply")
    return {"type": strategy, "serverSideApply": dict(apply)} if apply else {"type": strategy}


def _path(name: object, path: object) -> str:
    if not isinstance(name, str) or not isinstance(path, str):
        raise Invalid(f"feedback[{name!r}] is {path!r}", advice='give names and JSON paths: {"status": ".status"}')
    # In a quoted text brackets need no counterpart.
    if not {"'", '"'} & set(path) and any(path.count(left) != path.count(right) for left, right in ("[]", "{}", "()")):
        raise Invalid(
            f"feedback[{name!r}]: the JSON path {path!r} has a bracket without its counterpart",
            advice="write it such as .status or .status.conditions[0].status",
        )
    if not path.startswith((".", "@", "{", "[")):
        raise Invalid(f"the JSON path {path!r} is malformed", advice=f"begin it with a dot: .{path}")
    return path


def _is_same(stored: Mapping[str, str], identifier: Mapping[str, str]) -> bool:
    return all(
        (stored.get(key) or "") == (identifier.get(key) or "") for key in ("group", "resource", "name", "namespace")
    )


def _merged_rules(stored: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rules = [dict(rule) for rule in stored]
    for new in added:
        same = next((rule for rule in rules if rule.get("type") == new.get("type")), None)
        if same is None:
            rules.append(dict(new))
        elif new.get("jsonPaths"):
            names = {path["name"] for path in new["jsonPaths"]}
            kept = [path for path in same.get("jsonPaths") or () if path.get("name") not in names]
            same["jsonPaths"] = [*kept, *new["jsonPaths"]]
    return rules
