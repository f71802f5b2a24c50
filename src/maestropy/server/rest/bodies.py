"""Read the body of a request: bounded in bytes and in time, then as one of the shapes the API takes.

Shapes are checked here as far as one field alone can be wrong; every refusal names the field.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.requests import Request

from maestropy.server.rest import catalogue, problems

MAX_BYTES: Final = 1024 * 1024
_SECONDS: Final = 30.0

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63
# The words of the reference, which has them from Kubernetes; clients match on them.
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


# The decoder lets through what Python's own decoder of text and its own limit say.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class NewConsumer(msgspec.Struct, frozen=True):
    """The body of a creation; keys we do not know are ignored."""

    id: str | None = None
    name: str | None = None
    labels: dict[str, str] | None = None


class ConsumerPatch(msgspec.Struct, frozen=True):
    """The body of a change: labels, or nothing."""

    labels: dict[str, str] | None = None


_new_consumer = msgspec.json.Decoder(NewConsumer).decode
_consumer_patch = msgspec.json.Decoder(ConsumerPatch).decode


async def new_consumer(request: Request) -> NewConsumer:
    """Return the consumer a request wants to create."""
    raw = await _read(request)
    try:
        wanted = _new_consumer(raw)
    except _UNREADABLE as error:
        raise _malformed(error) from error
    if wanted.id:
        raise problems.Problem(catalogue.VALIDATION, "id must be empty")
    if wanted.name:
        _check_name(wanted.name)
    _check_labels(wanted.labels)
    return wanted


async def consumer_patch(request: Request) -> ConsumerPatch:
    """Return what a request wants to change."""
    raw = await _read(request)
    try:
        wanted = _consumer_patch(raw)
    except _UNREADABLE as error:
        raise _malformed(error) from error
    _check_labels(wanted.labels)
    return wanted


async def _read(request: Request) -> bytes:
    pieces = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for piece in request.stream():
                pieces += piece
                if len(pieces) > MAX_BYTES:
                    reason = f"Unable to read request body: it is larger than {MAX_BYTES} bytes"
                    raise problems.Problem(catalogue.MALFORMED, reason)
    except TimeoutError as error:
        reason = f"Unable to read request body: it did not arrive within {_SECONDS:.0f} seconds"
        raise problems.Problem(catalogue.MALFORMED, reason) from error
    return bytes(pieces)


def _malformed(error: Exception) -> problems.Problem:
    match error:
        case RecursionError():
            detail = "it is nested too deeply"
        case UnicodeDecodeError():
            detail = "it is not UTF-8"
        case _:
            detail = str(error)
    return problems.Problem(catalogue.MALFORMED, f"Invalid request format: {detail}")


def _check_name(name: str) -> None:
    if len(name) > _LABEL_MAX:
        rule = f"must be no more than {_LABEL_MAX} characters"
    elif not _LABEL.fullmatch(name):
        rule = _LABEL_RULE
    else:
        return
    quoted = msgspec.json.encode(problems.shorten(name)).decode()
    reason = f"Unable to create Consumer: consumer.name: Invalid value: {quoted}: {rule}"
    raise problems.Problem(catalogue.VALIDATION, reason)


def _check_labels(labels: Mapping[str, str] | None) -> None:
    for key, value in (labels or {}).items():
        if "\0" in key or "\0" in value:
            shown = problems.shorten(key.replace("\0", "\\u0000"))
            reason = f"labels: '{shown}' holds a NUL character, which cannot be stored; remove it"
            raise problems.Problem(catalogue.VALIDATION, reason)
