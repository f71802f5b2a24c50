"""What does an apply patch make of an object? Reads the wish, merges it, and turns conflicts into refusals. Pure."""

from typing import Any

from maestropy.sandbox.kubeapi import admission, fieldsets, misfits, problems, ssa
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.merging import NotMergeable
from maestropy.sandbox.kubeapi.problems import Cause, Problem

Json = dict[str, Any]


def wish(kind: Kind, sent: Any, *, subresource: str) -> Json:
    """Return the part of an apply patch that this endpoint writes."""
    if not isinstance(sent, dict):
        raise problems.bad_request("an apply patch must be an object")
    group, _, version = str(sent.get("apiVersion", "")).rpartition("/")
    if (sent.get("apiVersion"), sent.get("kind")) != (kind.api_version, kind.kind):
        raise problems.bad_request(f"invalid object type: {group}/{version}, Kind={sent.get('kind', '')}")
    metadata = sent.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise problems.bad_request("metadata must be an object")
    if metadata.get("managedFields"):
        raise problems.bad_request("metadata.managedFields must be nil")
    if subresource == "status":
        chosen = {name: sent[name] for name in ("apiVersion", "kind", "status") if name in sent}
        names = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
        return {**chosen, "metadata": names}
    chosen = {name: value for name, value in sent.items() if name != "status" or not kind.has_status}
    return {**chosen, "metadata": metadata}


def check(kind: Kind, wished: Json) -> None:
    """Refuse a wish that holds what its kind cannot hold."""
    fault = misfits.find(wished, kind.schema)
    if fault:
        raise _untyped(kind, wished, fault)


def _untyped(kind: Kind, wished: Json, fault: str) -> Problem:
    metadata = wished["metadata"]
    what = f"{kind.group}/{kind.version}, Kind={kind.kind}"
    where = f"({metadata.get('namespace', '')}/{metadata.get('name', '')}; {what})"
    return Problem(500, "", f"failed to create typed patch object {where}: {fault}")


def apply(kind: Kind, live: Json, wished: Json, write: ssa.Write) -> Json:
    """Return `live` after the wish is applied, or refuse."""
    try:
        return ssa.apply(live, wished, write)
    except NotMergeable as error:
        raise _untyped(kind, wished, str(error)) from error
    except ssa.Conflicts as conflicts:
        causes = [
            Cause(
                reason="FieldManagerConflict",
                message=f"conflict with {manager.describe()}",
                field=fieldsets.show(path),
            )
            for manager, path in conflicts.found
        ]
        raise problems.apply_conflict(str(conflicts), causes) from conflicts


def read(kind: Kind, applied: Json) -> Json:
    """Return what apply made as an object of its kind; ownership stays as apply wrote it."""
    entries = applied["metadata"].get("managedFields")
    obj = admission.read(kind, applied, validation_mode="Ignore", warnings=[])
    obj["metadata"]["managedFields"] = entries
    return obj
