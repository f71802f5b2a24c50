"""The fingerprint of a status: equal for equal statuses, whoever computes it.

Agents send it with every report, and a server that compares it with the one it stored knows what it missed. It is the
SHA-256 of the work's status as Go would write it: keys sorted at every level, nothing between tokens, `<`, `>` and `&`
escaped, and numbers as they were written.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from maestropy.wire import errors

EMPTY_STATUS = "3a4ba43801251ccdf889a3154674d23a35ab996aacfc00de92e61dbb2f5cf189"
"""The hash of a status that says nothing yet."""

NO_STATUS = hashlib.sha256(b"").hexdigest()
"""What a server reports for a bundle without any status: it matches no status, so the agent will send its own."""

_encoder = msgspec.json.Encoder(order="sorted")
# Keeps the digits of fractions; integers have only one way to be written.
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=lambda digits: msgspec.Raw(digits.encode()))

_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def hash_of_data(data: bytes) -> str:
    """Return the hash of the data of a status event; what the server adds on the way (the bundle) does not count."""
    if not data:
        return hash_of_status({})
    try:
        body = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Malformed(f"failed to unmarshal event data: {str(error)[:200]}") from error
    status = {name: value for name, value in body.items() if name not in ("manifestBundle", "resourceStatus")}
    if body.get("resourceStatus"):
        status["resourceStatus"] = {"manifests": body["resourceStatus"]}
    return hash_of_status(status)


def hash_of_status(status: Mapping[str, Any]) -> str:
    """Return the hash of a work's `status` object."""
    plain = dict(status)
    conditions = plain.pop("conditions", None)
    if conditions:
        plain["conditions"] = _plain_conditions(conditions)
    resources = plain.pop("resourceStatus", None)
    plain["resourceStatus"] = {}
    if isinstance(resources, Mapping) and resources.get("manifests"):
        plain["resourceStatus"] = {**resources, "manifests": _plain_manifests(resources["manifests"])}
    return hashlib.sha256(canonical(plain)).hexdigest()


def _plain_conditions(conditions: object) -> object:
    """Leave out what Go leaves out: a generation of 0."""
    if not isinstance(conditions, list):
        return conditions
    return [
        {name: value for name, value in condition.items() if name != "observedGeneration"}
        if isinstance(condition, Mapping) and condition.get("observedGeneration") == 0
        else condition
        for condition in conditions
    ]


def _plain_manifests(manifests: object) -> object:
    """Write what Go always writes: the feedback of a manifest, even if there is none."""
    if not isinstance(manifests, list):
        return manifests
    return [
        {"statusFeedback": {}, **manifest, "conditions": _plain_conditions(manifest.get("conditions"))}
        if isinstance(manifest, Mapping)
        else manifest
        for manifest in manifests
    ]


def canonical(value: object) -> bytes:
    """Return a JSON value as Go writes it."""
    text = _encoder.encode(value)
    # Only strings can hold these, so replacing bytes is safe.
    for plain, escaped in _ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text
