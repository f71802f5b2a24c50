"""Parse the `fields` parameter: the keys of the items in a list.

Pure. Unknown keys are rejected; `representations` renders the values.
"""

from collections.abc import Iterable

from maestropy.server.api.rest.http import error_catalogue, errors

CONSUMER_KEYS = ("created_at", "href", "id", "kind", "labels", "name", "updated_at")
RESOURCE_BUNDLE_KEYS = (
    "consumer_name",
    "created_at",
    "delete_option",
    "deleted_at",
    "href",
    "id",
    "kind",
    "manifest_configs",
    "manifests",
    "metadata",
    "name",
    "status",
    "updated_at",
    "version",
)

EXECUTOR_KEY = "executor"
"""Only with `include=executor`: Go clients reject a resource bundle with a key that they do not know."""


def included_keys(text: str) -> frozenset[str]:
    """Return all keys of a resource bundle, with those that `include` asks for; others in it are ignored."""
    wanted = {name.strip() for name in text.split(",")}
    return frozenset({*RESOURCE_BUNDLE_KEYS, *({EXECUTOR_KEY} & wanted)})


def selected_keys(text: str, *, keys: Iterable[str], kind: str) -> frozenset[str]:
    """Return the keys in `text` and `id`; all keys if `text` is empty."""
    valid_keys = frozenset(keys)
    selected = {name.strip() for name in text.split(",")} - {""}
    if not selected:
        return valid_keys
    unknown = sorted(selected - valid_keys)
    if unknown:
        listed = errors.shorten(", ".join(unknown))
        reason = f"The following field(s) doesn't exist in `{kind}`: {listed}; fields: {', '.join(sorted(valid_keys))}"
        raise errors.RestError(error_catalogue.VALIDATION, reason)
    return frozenset(selected | {"id"})
