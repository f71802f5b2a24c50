"""Which patch is it, may it be given like this, and what does it make of an object? Pure."""

from typing import Any

from maestropy.sandbox.kubeapi import patches, problems
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Cause, Problem
from maestropy.sandbox.kubeapi.validation import not_allowed, required

Json = dict[str, Any]
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_OPTIONS = Kind(group="meta.k8s.io", version="v1", kind="PatchOptions", plural="")


def check_options(media: str, *, manager: str, force: bool | None) -> None:
    """Refuse options that do not go with the kind of patch."""
    causes: list[Cause] = []
    if media == APPLY and not manager:
        causes.append(required("fieldManager", "is required for apply patch"))
    if media != APPLY and force is not None:
        causes.append(not_allowed("force", "may not be specified for non-apply patch"))
    if causes:
        raise problems.invalid(_OPTIONS, "", causes)


def patched(kind: Kind, live: Json, media: str, content: Any) -> Any:
    """Return `live` after a patch, or refuse."""
    if media != JSON and not isinstance(content, dict):
        found = "array" if isinstance(content, list) else type(content).__name__
        text = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise problems.bad_request(f"error decoding patch: {text}")
    try:
        if media == JSON:
            return patches.json_patch(live, content)
        if media == MERGE:
            return patches.merge_patch(live, content)
        return patches.strategic_patch(live, content, kind.schema)
    except patches.BadPatch as error:
        raise problems.bad_request(str(error)) from error
    except patches.Unprocessable as error:
        # Which step it was is not said to the client: so it is in Kubernetes.
        text = "the server rejected our request due to an error in our request"
        raise Problem(422, "Invalid", text, details={}) from error
