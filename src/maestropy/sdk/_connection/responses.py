"""Check what a REST server sent before anything uses it: the size, the form of objects and lists, redirects.

The address may lead to another service or to a proxy, so nothing of a response is taken for granted. Pure, except that
`read_body` reads a response.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
import msgspec

from maestropy.sdk._connection import error_mapping
from maestropy.sdk.errors import MaestroError, ServerError
from maestropy.untrusted import printable

MOST_BYTES: Final = 256 * 2**20
"""The limit of one response; a page of 400 usual resource bundles has some megabytes."""
_OWN_CODE: Final = re.compile("maestro-[0-9]+")
"""The code of an error of Maestro, such as `maestro-7`."""
_OTHER_SERVICE: Final = "check that MAESTRO_API_URL leads to Maestro's REST API"
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(("id", "name", "consumer_name", "kind", "created_at", "updated_at", "deleted_at"), (str, "text")),
    **dict.fromkeys(("labels", "metadata", "status", "delete_option", "executor"), (dict, "an object")),
    **dict.fromkeys(("manifests", "manifest_configs", "items"), (list, "a list")),
    **dict.fromkeys(("version", "page", "size", "total"), (int, "a number")),
}
"""The types of the fields that the client uses; null counts as absent."""
_WITH_ID: Final = frozenset(("Consumer", "ResourceBundle"))
"""The kinds whose objects are used by their ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a response has to be."""

    kind: str = ""
    """The kind of the object, such as `ResourceBundle` or `ConsumerList`; empty: the response has no body."""
    id: str = ""
    """The ID of the object; empty: any."""


NOTHING: Final = Expected()


async def read_body(
    response: httpx.Response,
    *,
    request: error_mapping.Operation,
    most: int = MOST_BYTES,
    advice: str = f"ask for smaller pages, or {_OTHER_SERVICE}",
) -> bytes:
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
                    advice=advice,
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


def checked(value: Any, expected: Expected, *, request: error_mapping.Operation) -> Any:
    """Return the object of a response if it is the expected one; raises ServerError."""
    if isinstance(value, dict) and _is_error(value):
        # A Go server that fails to write an error sends this one with status 200.
        code, reason = str(value["code"]), str(value.get("reason") or "")
        raise error_mapping.from_http(500, code=code, reason=reason, request=request)
    if not expected.kind:
        if value is not None:
            raise _unusable("the response has a body, and Maestro sends none here", request=request)
        return None
    found = _checked_types(value, request=request)
    noun = _noun(expected.kind)
    if found.get("kind") != expected.kind:
        raise _unusable(f"the response is not a {noun}: its kind is {_shown(found.get('kind'))}", request=request)
    if expected.kind.endswith("List"):
        _check_items(found, expected.kind, request=request)
    elif expected.kind in _WITH_ID and not found.get("id"):
        raise _unusable(f"the response is not a {noun}: it has no id", request=request)
    if expected.id and str(found.get("id")).lower() != expected.id.lower():
        raise _unusable(f"the response is another {noun}: {_shown(found.get('id'))}", request=request)
    return found


def missing_items(page: Mapping[str, Any], query: Mapping[str, str]) -> str:
    """Return why a page cannot be complete; empty if it can.

    A page has no objects although the server has some: it announces a next page, or it is the first one and the total
    is not 0. The total behind a token may be older than the page, and an estimate is none.
    """
    if page.get("items"):
        return ""
    if page.get("continue"):
        return "a page without objects announces another page"
    is_first = "continue" not in query and query.get("page", "1") == "1" and query.get("size", "1") != "0"
    total = 0 if page.get("total_is_estimate") else int(page.get("total") or 0)
    return f"it has {total} objects, and the server sends none" if is_first and total > 0 else ""


def error_of(status: int, content: bytes, *, request: error_mapping.Operation, retry_after: str = "") -> MaestroError:
    """Return the error of a failed response; only Maestro's own error has a code."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    code, reason = "", ""
    if isinstance(body, dict):
        code, reason = str(body["code"]) if _is_error(body) else "", str(body.get("reason") or "")
    error = error_mapping.from_http(status, code=code, reason=reason, request=request)
    error.retry_after = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else None
    return error


def _is_error(body: Mapping[str, Any]) -> bool:
    # The error for an unknown path has `type` where all others have `kind`, in Go as here.
    is_error = "Error" in (body.get("kind"), body.get("type"))
    return is_error and isinstance(body.get("code"), str) and _OWN_CODE.fullmatch(body["code"]) is not None


def _check_items(page: Mapping[str, Any], kind: str, *, request: error_mapping.Operation) -> None:
    items = page.get("items")
    if items is None and page.get("total"):
        raise incomplete(f"it has {page['total']} objects, and items is missing", doing=request.doing)
    for index, item in enumerate(items or ()):
        if kind.removesuffix("List") in _WITH_ID and not item.get("id"):
            raise _unusable(f"items[{index}] has no id", request=request)


def _checked_types(value: Any, *, request: error_mapping.Operation, path: str = "") -> dict[str, Any]:
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
        _checked_types(item, request=request, path=f"{path}{'.' * bool(path)}items[{index}]")
    return value


def redirect(
    response: httpx.Response,
    *,
    request: error_mapping.Operation,
    advice: str = "if that address is Maestro's, set it as MAESTRO_API_URL or --rest-url",
) -> ServerError:
    """Return the error of a redirect, which is not followed: a token would go to another server."""
    location = printable.escape(response.headers.get("Location", ""))[:200] or "nowhere"
    return ServerError(
        f"HTTP {response.status_code}: the server redirects to {location}",
        doing=request.doing,
        advice=f"redirects are not followed; {advice}",
        operation_id=request.operation_id,
    )


def incomplete(reason: str, *, doing: str) -> ServerError:
    """Return the error of a list that cannot be read to its end."""
    return ServerError(f"the list is not complete: {reason}", doing=doing, advice=_OTHER_SERVICE)


def unusable(reason: str, *, doing: str, operation_id: str = "") -> ServerError:
    """Return the error of a response that Maestro would not send."""
    return ServerError(reason, doing=doing, advice=_OTHER_SERVICE, operation_id=operation_id)


def _unusable(reason: str, *, request: error_mapping.Operation) -> ServerError:
    return unusable(reason, doing=request.doing, operation_id=request.operation_id)


def _noun(kind: str) -> str:
    """Return a kind in words: `resource bundle` for ResourceBundle."""
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _shown(value: Any) -> str:
    return printable.escape(str(value))[:100] if value else "missing"


def _name(value: Any) -> str:
    names = {str: "text", bool: "a boolean", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")
