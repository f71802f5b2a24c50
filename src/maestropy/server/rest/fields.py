"""The `fields` parameter: which keys of an item a list shows.

Pure. It knows the keys that items have and refuses every other; what a key holds is the business of `views`.
"""

from collections.abc import Iterable

from maestropy.server.rest import catalogue, problems

CONSUMER_KEYS = ("created_at", "href", "id", "kind", "labels", "name", "updated_at")
BUNDLE_KEYS = (
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


def chosen(text: str, *, keys: Iterable[str], kind: str) -> frozenset[str]:
    """Return the keys that `text` asks for and the id with them; all keys when it asks for none."""
    known = frozenset(keys)
    wanted = {name.strip() for name in text.split(",")} - {""}
    if not wanted:
        return known
    unknown = sorted(wanted - known)
    if unknown:
        listed = problems.shorten(", ".join(unknown))
        reason = f"The following field(s) doesn't exist in `{kind}`: {listed}"
        raise problems.Problem(catalogue.VALIDATION, reason)
    return frozenset(wanted | {"id"})
