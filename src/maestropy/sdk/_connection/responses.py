"""Check what a REST server sent before anything uses it: the size, the form of objects and lists, redirects.

The address may lead to another service or to a proxy, so nothing of a response is taken for granted. Pure, except that
`read_body` reads a response.
"""

from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec

from maestropy.sdk._connection import error_mapping
from maestropy.sdk.errors import ServerError
from maestropy.untrusted import printable

MOST_BYTES: Final = 256 * 2**20
"""The limit of one response; a page of 400 usual resource bundles has some megabytes."""
_OTHER_SERVICE: Final = "check that MAESTRO_API_URL leads to Maestro's REST API"
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(("id", "name", "consumer_name", "kind", "created_at", "updated_at", "deleted_at"), (str, "text")),
    **dict.fromkeys(("labels", "metadata", "status", "delete_option", "executor"), (dict, "an object")),
    **dict.fromkeys(("manifests", "manifest_configs", "items"), (list, "a list")),
    **dict.fromkeys(("version", "page", "size", "total"), (int, "a number")),
}
"""The types of the fields that the client uses; null counts as absent."""


async def read_body(response: httpx.Response, *, request: error_mapping.Operation, most: int = MOST_BYTES) -> bytes:
    """Return the body of a response, up to the limit."""
    chunks, size = [], 0
    try:
        async for chunk in response.aiter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                raise ServerError(
                    f"the response has more than {most / 2**20:g} MiB, which is the limit",
                    doing=request.doing,
                    advice=f"ask for smaller pages, or {_OTHER_SERVICE}",
                    operation_id=request.operation_id,
                )
    except httpx.DecodingError as error:
        raise _unusable(f"the response cannot be decompressed: {error}", request=request) from error
    return b"".join(chunks)


def decode(body: bytes, *, request: error_mapping.Operation) -> Any:
    """Return the JSON of a body, None for an empty one."""
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unusable("the response is not JSON", request=request) from error


def checked_object(value: Any, *, request: error_mapping.Operation, path: str = "") -> dict[str, Any]:
    """Return an object of the API; raises ServerError with the field whose type is wrong."""
    if not isinstance(value, dict):
        kind = "empty" if value is None and not path else f"{_name(value)}, not an object"
        raise _unusable(f"{path or 'the response'} is {kind}", request=request)
    for name, (kind_of_field, words) in _TYPES.items():
        member = value.get(name)
        if member is None:
            continue
        is_number_by_chance = isinstance(member, bool) and kind_of_field is int
        if not isinstance(member, kind_of_field) or is_number_by_chance:
            raise _unusable(f"{path}{'.' * bool(path)}{name} is {_name(member)}, not {words}", request=request)
    for index, item in enumerate(value.get("items") or ()):
        checked_object(item, request=request, path=f"{path}{'.' * bool(path)}items[{index}]")
    return value


def redirect(response: httpx.Response, *, request: error_mapping.Operation) -> ServerError:
    """Return the error of a redirect, which is not followed: a token would go to another server."""
    location = printable.escape(response.headers.get("Location", ""))[:200] or "nowhere"
    return ServerError(
        f"HTTP {response.status_code}: the server redirects to {location}",
        doing=request.doing,
        advice="redirects are not followed; if that address is Maestro's, set it as MAESTRO_API_URL or --rest-url",
        operation_id=request.operation_id,
    )


def incomplete(reason: str, *, doing: str) -> ServerError:
    """Return the error of a list that cannot be read to its end."""
    return ServerError(f"the list is not complete: {reason}", doing=doing, advice=_OTHER_SERVICE)


def _unusable(reason: str, *, request: error_mapping.Operation) -> ServerError:
    return ServerError(reason, doing=request.doing, advice=_OTHER_SERVICE, operation_id=request.operation_id)


def _name(value: Any) -> str:
    names = {str: "text", bool: "a boolean", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")
