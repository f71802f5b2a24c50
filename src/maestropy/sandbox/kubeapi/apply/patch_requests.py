"""Check the options of a patch request and apply its patch to an object. Pure."""

from typing import Any

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.apply import patches
from maestropy.sandbox.kubeapi.errors import Cause, StatusError
from maestropy.sandbox.kubeapi.rules.validation import forbidden, required
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_OPTIONS = ServedKind(group="meta.k8s.io", version="v1", kind="PatchOptions", plural="")


def check_options(media: str, *, manager: str, force: bool | None) -> None:
    """Reject options that the patch type does not support."""
    causes: list[Cause] = []
    if media == APPLY and not manager:
        causes.append(required("fieldManager", "is required for apply patch"))
    if media != APPLY and force is not None:
        causes.append(forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        raise errors.invalid(_OPTIONS, "", causes)


def patched(kind: ServedKind, live: Json, media: str, content: Any) -> Any:
    """Return `live` after a patch, or raise the error of the patch."""
    if media != JSON and not isinstance(content, dict):
        type_name = "array" if isinstance(content, list) else type(content).__name__
        text = f"json: cannot unmarshal {type_name} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding patch: {text}")
    try:
        if media == JSON:
            return patches.json_patch(live, content)
        if media == MERGE:
            return patches.merge_patch(live, content)
        return patches.strategic_patch(live, content, kind.schema)
    except patches.BadPatch as error:
        raise errors.bad_request(str(error)) from error
    except patches.Unprocessable as error:
        # Kubernetes does not tell the client which operation failed.
        text = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", text, details={}) from error
