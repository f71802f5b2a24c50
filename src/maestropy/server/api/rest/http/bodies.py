"""Read and validate the body of a request, with limits on size and time.

Single fields are validated here; every rejection names the field.
"""

import asyncio
import re
import unicodedata
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from starlette.requests import Request

from maestropy.server.api.rest.http import asked_actions, error_catalogue, errors

MAX_BYTES: Final = 1024 * 1024
_SECONDS: Final = 30.0

REASON_MAX: Final = 500
_UNPRINTABLE: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of Unicode: control, format (also the direction of a text), surrogates, line and paragraph separators."""

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63
# The text of the Go server, from Kubernetes; clients match it.
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


# msgspec does not wrap the errors of the UTF-8 decoder and of the recursion limit.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class NewConsumer(msgspec.Struct, frozen=True):
    """The body of a create request; unknown keys are ignored."""

    id: str | None = None
    name: str | None = None
    labels: dict[str, str] | None = None


class ConsumerPatch(msgspec.Struct, frozen=True):
    """The body of a patch request: labels, or nothing."""

    labels: dict[str, str] | None = None


class ActionBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an operator action: why, and who asks for it."""

    reason: Annotated[str, msgspec.Meta(max_length=REASON_MAX)] = ""
    requested_by: Annotated[str, msgspec.Meta(max_length=253)] = ""


class Adoption(ActionBody, frozen=True, kw_only=True):
    """The body of an adoption: the hold that it ends."""

    hold_id: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class Retirement(ActionBody, frozen=True, kw_only=True):
    """The body of a retirement: what becomes of the works, and the plan that a dry run has shown."""

    works: Literal["release", "delete"]
    plan: Annotated[str, msgspec.Meta(max_length=64)] = ""


class Sweep(ActionBody, frozen=True, kw_only=True):
    """The body of a sweep: which classes of rows (none: all), and the plan that a dry run has shown."""

    classes: list[Literal["hold", "pause", "agent", "event", "status-event"]] = []
    plan: Annotated[str, msgspec.Meta(max_length=64)] = ""


_action = msgspec.json.Decoder(ActionBody).decode
_retirement = msgspec.json.Decoder(Retirement).decode
_sweep = msgspec.json.Decoder(Sweep).decode
_adoption = msgspec.json.Decoder(Adoption).decode
_new_consumer = msgspec.json.Decoder(NewConsumer).decode
_consumer_patch = msgspec.json.Decoder(ConsumerPatch).decode


_Body = TypeVar("_Body", bound=ActionBody)


async def new_consumer(request: Request) -> NewConsumer:
    """Return the consumer in the body of a create request."""
    raw = await _read(request)
    try:
        body = _new_consumer(raw)
    except _UNREADABLE as error:
        raise _malformed(error) from error
    if body.id:
        raise errors.RestError(error_catalogue.VALIDATION, "id must be empty")
    if body.name:
        _check_name(body.name)
        asked_actions.note(request, consumer=body.name)
    _check_labels(body.labels)
    return body


async def consumer_patch(request: Request) -> ConsumerPatch:
    """Return the patch in the body of a request."""
    raw = await _read(request)
    try:
        body = _consumer_patch(raw)
    except _UNREADABLE as error:
        raise _malformed(error) from error
    _check_labels(body.labels)
    return body


async def adoption(request: Request) -> Adoption:
    """Return the adoption in the body of a request."""
    body = await _decoded(request, _adoption)
    _check_text("hold_id", body.hold_id)
    return body


async def action(request: Request) -> ActionBody:
    """Return the body of an operator action."""
    return await _decoded(request, _action)


async def retirement(request: Request) -> Retirement:
    """Return the body of a retirement."""
    return await _decoded(request, _retirement)


async def sweep(request: Request) -> Sweep:
    """Return the body of a sweep."""
    return await _decoded(request, _sweep)


async def _decoded(request: Request, decode: Callable[[bytes], _Body]) -> _Body:
    raw = await _read(request)
    try:
        body = decode(raw)
    except _UNREADABLE as error:
        raise _malformed(error) from error
    _check_text("reason", body.reason)
    _check_text("requested_by", body.requested_by)
    asked_actions.note(request, requested_by=body.requested_by)
    return body


def _check_text(field: str, text: str) -> None:
    """Reject what would change the lines that operators read: it is shown in terminals, logs and web pages."""
    if any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        reason = f"{field} has control or formatting characters; write it as one line of plain text"
        raise errors.RestError(error_catalogue.VALIDATION, reason)


async def _read(request: Request) -> bytes:
    _check_content_type(request.headers.get("content-type", ""))
    content = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BYTES:
                    reason = f"Unable to read request body: it is larger than {MAX_BYTES} bytes"
                    raise errors.RestError(error_catalogue.MALFORMED, reason)
    except TimeoutError as error:
        reason = f"Unable to read request body: it did not arrive within {_SECONDS:.0f} seconds"
        raise errors.RestError(error_catalogue.MALFORMED, reason) from error
    return bytes(content)


def _check_content_type(header: str) -> None:
    """Reject bodies that a web page of another origin could send without asking: a form, plain text, no type."""
    media_type = header.partition(";")[0].strip().lower()
    if media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json")):
        return
    reason = f"{error_catalogue.MALFORMED.reason}: send it with the header Content-Type: application/json"
    raise errors.RestError(error_catalogue.MALFORMED, reason, status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def _malformed(error: Exception) -> errors.RestError:
    match error:
        case RecursionError():
            detail = "it is nested too deeply"
        case UnicodeDecodeError():
            detail = "it is not UTF-8"
        case _:
            detail = str(error)
    return errors.RestError(error_catalogue.MALFORMED, f"Invalid request format: {detail}")


def _check_name(name: str) -> None:
    if len(name) > _LABEL_MAX:
        rule = f"must be no more than {_LABEL_MAX} characters"
    elif not _LABEL.fullmatch(name):
        rule = _LABEL_RULE
    else:
        return
    quoted = msgspec.json.encode(errors.shorten(name)).decode()
    reason = f"Unable to create Consumer: consumer.name: Invalid value: {quoted}: {rule}"
    raise errors.RestError(error_catalogue.VALIDATION, reason)


def _check_labels(labels: Mapping[str, str] | None) -> None:
    for key, value in (labels or {}).items():
        if "\0" in key or "\0" in value:
            shown = errors.shorten(key.replace("\0", "\\u0000"))
            reason = f"labels: '{shown}' holds a NUL character, which cannot be stored; remove it"
            raise errors.RestError(error_catalogue.VALIDATION, reason)
