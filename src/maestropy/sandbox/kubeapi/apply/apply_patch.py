"""Handle an apply patch: read the apply configuration, merge it, and turn conflicts into `StatusError`. Pure."""

from typing import Any

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.apply import field_sets, schema_errors, server_side_apply
from maestropy.sandbox.kubeapi.apply.field_merge import NotMergeable
from maestropy.sandbox.kubeapi.errors import Cause, StatusError
from maestropy.sandbox.kubeapi.rules import admission
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]


def configuration(kind: ServedKind, sent: Any, *, subresource: str) -> Json:
    """Return the part of the apply configuration that this endpoint writes."""
    if not isinstance(sent, dict):
        raise errors.bad_request("an apply patch must be an object")
    group, _, version = str(sent.get("apiVersion", "")).rpartition("/")
    if (sent.get("apiVersion"), sent.get("kind")) != (kind.api_version, kind.kind):
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={sent.get('kind', '')}")
    metadata = sent.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise errors.bad_request("metadata must be an object")
    if metadata.get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    if subresource == "status":
        chosen = {name: sent[name] for name in ("apiVersion", "kind", "status") if name in sent}
        names = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
        return {**chosen, "metadata": names}
    chosen = {name: value for name, value in sent.items() if name != "status" or not kind.has_status}
    return {**chosen, "metadata": metadata}


def check(kind: ServedKind, config: Json) -> None:
    """Reject an apply configuration that does not fit the schema of its kind."""
    fault = schema_errors.find(config, kind.schema)
    if fault:
        raise _untyped(kind, config, fault)


def _untyped(kind: ServedKind, config: Json, fault: str) -> StatusError:
    metadata = config["metadata"]
    gvk = f"{kind.group}/{kind.version}, Kind={kind.kind}"
    object_name = f"({metadata.get('namespace', '')}/{metadata.get('name', '')}; {gvk})"
    return StatusError(500, "", f"failed to create typed patch object {object_name}: {fault}")


def apply(kind: ServedKind, live: Json, config: Json, write: server_side_apply.WriteContext) -> Json:
    """Return `live` after `config` is applied, or raise the conflict."""
    try:
        return server_side_apply.apply(live, config, write)
    except NotMergeable as error:
        raise _untyped(kind, config, str(error)) from error
    except server_side_apply.Conflicts as conflicts:
        causes = [
            Cause(
                reason="FieldManagerConflict",
                message=f"conflict with {manager.describe()}",
                field=field_sets.show(path),
            )
            for manager, path in conflicts.conflicts
        ]
        raise errors.apply_conflict(str(conflicts), causes) from conflicts


def read(kind: ServedKind, applied: Json) -> Json:
    """Decode the merged object as its kind; its managedFields stay as apply wrote them."""
    entries = applied["metadata"].get("managedFields")
    obj = admission.read(kind, applied, validation_mode="Ignore", warnings=[])
    obj["metadata"]["managedFields"] = entries
    return obj
