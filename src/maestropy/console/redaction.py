"""Remove secret values before anything leaves for a browser. Pure.

Hidden are the data, labels and annotations of Secrets, what agents report about them, values of environment variables,
and everything that looks like a credential, wherever it stands (`credentials`). Names stay.
"""

from collections.abc import Mapping
from typing import Any, Final

from maestropy.console import credentials
from maestropy.journal import redact
from maestropy.trace.output import yaml_text
from maestropy.untrusted.printable import escape_lines

LONGEST_TEXT: Final = 256 * 1024
"""Characters of one manifest that a page shows."""
_KIND_OF_SECRETS: Final = "Secret"


def document(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource bundle or a manifest without secret values."""
    # One level deeper, because the kind of the outermost object is looked at only within another.
    cleaned = redact.fields({"document": value})["document"]
    return dict(cleaned) if isinstance(cleaned, Mapping) else {}


def manifest_text(manifest: Mapping[str, Any]) -> tuple[str, bool]:
    """Return a manifest as YAML without secret values, and whether its end was cut off."""
    text = escape_lines(yaml_text(document(credentials.manifest(manifest))))
    return text[:LONGEST_TEXT], len(text) > LONGEST_TEXT


def work_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON model of a traced work without secret values."""
    has_secret = any(_is_secret(manifest) for manifest in model["manifests"])
    cleaned: dict[str, Any] = dict(
        redact.fields({**model, "manifests": [_manifest(item) for item in model["manifests"]]})
    )
    if has_secret:
        cleaned["findings"] = [_finding(finding) for finding in cleaned["findings"]]
        if cleaned.get("db") and cleaned["db"].get("status"):
            status = cleaned["db"]["status"]
            status["conditions"] = [_without_message(condition) for condition in status["conditions"]]
    return cleaned


def anything(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return another model, such as that of a request, without what looks like a credential."""
    return dict(redact.fields(model))


def _is_secret(manifest: Mapping[str, Any]) -> bool:
    kind = manifest["gvk"]
    return bool(kind["kind"] == _KIND_OF_SECRETS or kind["resource"] == "secrets")


def _manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    if not _is_secret(manifest):
        return {**manifest, "feedback": credentials.named(manifest["feedback"])}
    return {
        **manifest,
        "feedback": dict.fromkeys(manifest["feedback"], redact.HIDDEN),
        "conditions": [_without_message(condition) for condition in manifest["conditions"]],
    }


def _without_message(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {**condition, "message": redact.HIDDEN if condition["message"] else ""}


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Hide what a cluster said about a Secret, or about the whole work, which repeats the message of one manifest."""
    evidence = [
        {**item, "says": _first_word(item["says"])}
        if item["where"] == "the work" or f"{_KIND_OF_SECRETS}/" in item["where"] or "secrets/" in item["where"]
        else item
        for item in finding["evidence"]
    ]
    return {**finding, "evidence": evidence}


def _first_word(says: str) -> str:
    """Keep `Applied=False` of `Applied=False: message`."""
    condition, colon, _ = says.partition(": ")
    return f"{condition}: {redact.HIDDEN}" if colon else says
