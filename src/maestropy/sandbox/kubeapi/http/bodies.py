"""Decode request bodies: JSON, YAML and protobuf."""

from typing import Any

import orjson
import yaml

from maestropy.sandbox.kubeapi.apply import patch_requests
from maestropy.sandbox.kubeapi.errors import StatusError, bad_request
from maestropy.sandbox.kubeapi.http import protobuf

MAX_BODY_BYTES = 3_145_728
_JSON = ("application/json", "", "text/plain")
_YAML = ("application/yaml", "text/yaml")


class _Loader(yaml.SafeLoader):
    """A YAML loader for values that JSON has: a date stays a string."""


_Loader.yaml_implicit_resolvers = {
    sign: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
    for sign, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(content_type: str, body: bytes) -> Any:
    """Return the decoded body."""
    media = content_type.partition(";")[0].strip().lower()
    if len(body) > MAX_BODY_BYTES:
        raise too_large()
    if media in _JSON:
        return _json(body)
    if media in _YAML:
        return _yaml(body)
    if media == protobuf.MEDIA:
        return _protobuf(body)
    listed = "application/json, application/yaml"
    text = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    raise StatusError(415, "UnsupportedMediaType", text)


def read_patch(content_type: str, body: bytes, *, is_custom: bool) -> tuple[str, Any]:
    """Return the media type of a patch and its content."""
    media = content_type.partition(";")[0].strip().lower()
    accepted = (
        [patch_requests.JSON, patch_requests.MERGE, patch_requests.APPLY]
        if is_custom
        else [patch_requests.JSON, patch_requests.MERGE, patch_requests.STRATEGIC, patch_requests.APPLY]
    )
    if media not in accepted:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if len(body) > MAX_BODY_BYTES:
        raise too_large()
    return media, (_yaml(body) if media == patch_requests.APPLY else _json(body))


def too_large() -> StatusError:
    """Return the error for a body that is too large."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY_BYTES}")


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error


def _protobuf(body: bytes) -> Any:
    try:
        return protobuf.read(body)
    except protobuf.BadMessage as error:
        raise bad_request(f"the body cannot be read as protobuf: {error}") from error


def _yaml(body: bytes) -> Any:
    # Most clients send JSON, which is also YAML; the JSON decoder is faster.
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return yaml.load(body, Loader=_Loader)  # noqa: S506 - a safe loader that reads less
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding YAML: {error}") from error
