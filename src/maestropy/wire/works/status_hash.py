"""Compute the status hash of a work, equal to the hash of the Go agent and server.

An agent sends it with every status update; in a status resync the hashes of both sides are compared to find missed
updates. It is the SHA-256 of the work's status as Go writes it: keys sorted at every level, no whitespace, `<`, `>` and
`&` escaped, and numbers as they were received.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from maestropy.wire import errors, json_types

EMPTY_STATUS = "3a4ba43801251ccdf889a3154674d23a35ab996aacfc00de92e61dbb2f5cf189"
"""The hash of a status without conditions and manifests."""

NO_STATUS = hashlib.sha256(b"").hexdigest()
"""What a server sends for a resource without status: it matches no status, so the agent sends its status."""

_encoder = msgspec.json.Encoder(order="sorted")
# Keeps the digits of floats as received; an integer has only one notation.
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=lambda digits: msgspec.Raw(digits.encode()))

_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def hash_of_data(data: bytes) -> str:
    """Return the hash of the data of a status event, without the bundle that the server adds to it."""
    if not data:
        return hash_of_status({})
    try:
        body = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.MalformedMessage(
            f"failed to unmarshal event data: {json_types.decode_problem(error, data)}"
        ) from error
    status = {name: value for name, value in body.items() if name not in ("manifestBundle", "resourceStatus")}
    if body.get("resourceStatus"):
        status["resourceStatus"] = {"manifests": body["resourceStatus"]}
    return hash_of_status(status)


def hash_of_status(status: Mapping[str, Any]) -> str:
    """Return the hash of a work's `status` object."""
    return hash_and_size(status)[0]


def hash_and_size(status: Mapping[str, Any]) -> tuple[str, int]:
    """Return the hash of a work's `status` object, and how many bytes were hashed."""
    plain = dict(status)
    conditions = plain.pop("conditions", None)
    if conditions:
        plain["conditions"] = _plain_conditions(conditions)
    resources = plain.pop("resourceStatus", None)
    plain["resourceStatus"] = {}
    if isinstance(resources, Mapping) and resources.get("manifests"):
        plain["resourceStatus"] = {**resources, "manifests": _plain_manifests(resources["manifests"])}
    text = canonical(plain)
    return hashlib.sha256(text).hexdigest(), len(text)


def _plain_conditions(conditions: object) -> object:
    """Omit an observedGeneration of 0, as Go does."""
    if not isinstance(conditions, list):
        return conditions
    return [
        {name: value for name, value in condition.items() if name != "observedGeneration"}
        if isinstance(condition, Mapping) and condition.get("observedGeneration") == 0
        else condition
        for condition in conditions
    ]


def _plain_manifests(manifests: object) -> object:
    """Add an empty statusFeedback, which Go always writes."""
    if not isinstance(manifests, list):
        return manifests
    return [
        {"statusFeedback": {}, **manifest, "conditions": _plain_conditions(manifest.get("conditions"))}
        if isinstance(manifest, Mapping)
        else manifest
        for manifest in manifests
    ]


def escaped_length(text: str | bytes) -> int:
    """Return the length of a string, or of encoded JSON, as Go writes it; much faster than writing it."""
    encoded = _encoder.encode(text) if isinstance(text, str) else text
    length = len(encoded)
    # Deleting is one pass for the three characters, and looking for them is nearly free.
    if any(character in encoded for character in (b"<", b">", b"&")):
        length += 5 * (len(encoded) - len(encoded.translate(None, b"<>&")))
    if not encoded.isascii():
        length += 3 * sum(encoded.count(separator) for separator in ("\u2028".encode(), "\u2029".encode()))
    return length


def canonical(value: object) -> bytes:
    """Return a JSON value as Go writes it."""
    return _escaped(_encoder.encode(value))


def canonical_within(value: object, *, max_bytes: int) -> bytes | None:
    """Return a JSON value as Go writes it; None, without writing it, if it takes more bytes."""
    encoded = _encoder.encode(value)
    return None if escaped_length(encoded) > max_bytes else _escaped(encoded)


def _escaped(text: bytes) -> bytes:
    # These characters occur only in strings, so replacing bytes is safe.
    for plain, escaped in _ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text
