"""Check that a JSON document can be stored in PostgreSQL.

The type jsonb rejects some valid JSON documents (NUL characters, numbers out of range, deep nesting), and one such
document would fail the whole batch it is written with. The checks run on every accepted event, so they search bytes and
parse only suspicious documents.
"""

import re

import msgspec

from maestropy.wire import errors, json_types

MAX_DEPTH = 512
"""More than any manifest needs, and less than the recursion limit of any reader."""

MAX_SCALE = 16383
"""The maximum number of digits after the decimal point in the PostgreSQL type numeric."""

_syntax = msgspec.json.Decoder(msgspec.Raw)

# The shape of a document: digits and signs become 0, brackets become braces, and most other bytes are removed.
_SHAPE = bytes.maketrans(b"[]123456789+-E", b"{}" + b"0" * 11 + b"e")
_NOT_IN_SHAPE = bytes(set(range(256)) - set(b'[]{}0123456789+-eE",:'))
_EXPONENT_SHAPE = b"0e000"
_LONG_NUMBER_SHAPE = b"0" * 200  # a shorter number with an exponent of two digits still fits into a float

# With a literal as first character `re` searches fast; `[eE]` would test every byte.
_EXPONENTS = (re.compile(rb"e[-+0-9][0-9]{2}"), re.compile(rb"E[-+0-9][0-9]{2}"))
_NUMBER_IN_PLACE = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]+(?=[ \t\n\r,\]}]|\Z)")
_BEFORE_NUMBER = b" \t\n\r,:["

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_STRING_OR_NUMBER = re.compile(_STRING + rb"|(-?[0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?", re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_json(data: bytes, *, label: str) -> None:
    """Raise an error unless `data` is one JSON value that can be stored; `label` names it in errors."""
    try:
        _syntax.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_json(error, data, label=label) from error
    check_content(data, label=label)


def check_content(data: bytes, *, label: str) -> None:
    """Raise an error if `data`, which is valid JSON, cannot be stored."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise errors.MalformedMessage(f"failed to unmarshal {label}: byte {error.start} is not UTF-8") from error
    if b"\\" in data and b"\\u0000" in data and _NUL.search(data):
        raise errors.UnstorableContent(f"{label} holds \\u0000 in a string, which cannot be stored; remove it")
    shape = data.translate(_SHAPE, _NOT_IN_SHAPE)
    if not _cannot_be_deep(shape) and _depth(_without_strings(data)) > MAX_DEPTH:
        raise errors.UnstorableContent(f"{label} is nested deeper than {MAX_DEPTH} levels")
    if _may_hold_extreme_number(data, shape) and _holds_extreme_number(data):
        raise errors.UnstorableContent(f"{label} holds a number that is out of range; send it as a string")


def not_json(error: Exception, data: bytes, *, label: str) -> errors.MalformedMessage:
    """Return the error for a document that cannot be parsed."""
    is_deep = isinstance(error, RecursionError)
    reason = f"nested deeper than {MAX_DEPTH} levels" if is_deep else json_types.decode_problem(error, data)
    return errors.MalformedMessage(f"failed to unmarshal {label}: {reason}")


def _cannot_be_deep(shape: bytes) -> bool:
    """Return whether there are too few brackets for deep nesting; brackets inside strings are counted too.

    All brackets that are open at the deepest point are opened before it and closed after it, so either the first half
    opens as many or the second half closes as many.
    """
    half = len(shape) // 2
    return shape.count(b"{", 0, half) <= MAX_DEPTH and shape.count(b"}", half) <= MAX_DEPTH


def _depth(structure: bytes) -> int:
    """Return the nesting depth: how often innermost pairs of brackets can be removed; stop just beyond the limit."""
    brackets = structure.translate(_SHAPE, bytes(set(range(256)) - set(b"[]{}")))
    depth = 0
    while brackets and depth <= MAX_DEPTH:
        brackets = brackets.replace(b"{}", b"")
        depth += 1
    return depth


def _without_strings(data: bytes) -> bytes:
    if b'\\"' in data:
        return _STRINGS.sub(b"", data)
    return b"".join(data.split(b'"')[::2])


def _may_hold_extreme_number(data: bytes, shape: bytes) -> bool:
    if _LONG_NUMBER_SHAPE in shape:
        return True
    return _EXPONENT_SHAPE in shape and any(
        _may_be_in_number(data, match.start()) for exponent in _EXPONENTS for match in exponent.finditer(data)
    )


def _may_be_in_number(data: bytes, exponent: int) -> bool:
    """Return whether the `e` at this offset could be the exponent of a number, and not part of a text."""
    start = exponent
    while start and data[start - 1] in b"0123456789.-":
        start -= 1
    is_apart = start == 0 or data[start - 1] in _BEFORE_NUMBER
    return start < exponent and is_apart and _NUMBER_IN_PLACE.match(data, start) is not None


def _holds_extreme_number(data: bytes) -> bool:
    return any(_is_extreme(match) for match in _STRING_OR_NUMBER.finditer(data) if match[1] is not None)


def _is_extreme(match: re.Match[bytes]) -> bool:
    fraction, exponent = match[2] or b"", match[3] or b"0"
    if len(exponent) > 7:
        return True
    scale = len(fraction) - int(exponent)
    return scale > MAX_SCALE or abs(float(match[0])) == float("inf")
