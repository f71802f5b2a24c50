"""Convert the literals of a search to SQL parameters of the column type.

A literal of the wrong type is rejected here, so that `version = 'abc'` is an error about `version` and not a server
error. Every value has its SQL cast, so that PostgreSQL never guesses a type.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

import msgspec

from maestropy.store.search.columns import ColumnType
from maestropy.store.search.errors import SearchError, shown
from maestropy.store.search.limits import MAX_DIGITS, MAX_JSON_DEPTH, MAX_PATTERN
from maestropy.store.search.tree import Literal

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRAILING_BACKSLASHES = re.compile(r"\\*\Z")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A parameter and the cast that names its type."""

    parameter: object
    cast: str


def number(text: str) -> Decimal:
    """Return `text` as an exact number; reject other texts and numbers with too many digits."""
    if _NUMBER.fullmatch(text) is None:
        raise SearchError(f"{shown(text)} is not a number")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise SearchError(f"the number {shown(text)} is out of range") from None
    if len(value.as_tuple().digits) > MAX_DIGITS or abs(value.adjusted()) > MAX_DIGITS:
        raise SearchError(f"the number {shown(text)} is out of range: at most {MAX_DIGITS} digits")
    return value


def scalar(literal: Literal, kind: ColumnType, *, field: str) -> Value:
    """Return the parameter for one literal compared with `field`."""
    match kind:
        case ColumnType.TEXT:
            return Value(parameter=_text(literal, field=field), cast="text")
        case ColumnType.BIGINT:
            return _numeric_values([_number(literal, field=field)])[0]
        case ColumnType.TIMESTAMPTZ:
            return Value(parameter=_time(literal, field=field), cast="timestamptz")
        case ColumnType.JSONB:
            return Value(parameter=json_text(literal, field=field), cast="text::jsonb")


def array(literals: Iterable[Literal], kind: ColumnType, *, field: str) -> Value:
    """Return the one array parameter for a list compared with `field`."""
    match kind:
        case ColumnType.TEXT:
            return Value(parameter=[_text(item, field=field) for item in literals], cast="text[]")
        case ColumnType.BIGINT:
            values = _numeric_values([_number(item, field=field) for item in literals])
            cast = values[0].cast if values else "bigint"
            return Value(parameter=[value.parameter for value in values], cast=f"{cast}[]")
        case ColumnType.TIMESTAMPTZ:
            return Value(parameter=[_time(item, field=field) for item in literals], cast="timestamptz[]")
        case ColumnType.JSONB:
            return Value(parameter=[json_text(item, field=field) for item in literals], cast="text[]::jsonb[]")


def pattern(text: str, *, field: str) -> Value:
    """Return the parameter for a LIKE pattern; reject patterns that PostgreSQL would reject."""
    if len(text) > MAX_PATTERN:
        raise SearchError(f"the pattern for {field} is longer than {MAX_PATTERN} characters")
    trailing = _TRAILING_BACKSLASHES.search(text)
    if trailing is not None and len(trailing.group()) % 2:
        raise SearchError(f"the pattern {shown(text)} for {field} ends with a lone backslash; write two")
    return Value(parameter=text, cast="text")


def json_text(literal: Literal, *, field: str) -> str:
    """Return JSON equal to `literal` that PostgreSQL accepts as jsonb."""
    if isinstance(literal, Decimal):
        raise SearchError(f"{field} holds JSON; write the value in single quotes")
    try:
        value = msgspec.json.decode(literal)
    except (msgspec.MsgspecError, RecursionError):
        raise SearchError(f"the value for {field} is not JSON: {shown(literal)}") from None
    _check_json(value, field=field, depth=0)
    # Encoded again, because jsonb rejects some JSON numbers (1e-20000) that a float accepts.
    return msgspec.json.encode(value).decode()


def _check_json(value: object, *, field: str, depth: int) -> None:
    if depth > MAX_JSON_DEPTH:
        raise SearchError(f"the JSON value for {field} is nested more than {MAX_JSON_DEPTH} deep")
    match value:
        case str():
            if "\0" in value:
                raise SearchError(f"the JSON value for {field} holds a NUL character, which is never stored")
        case list():
            for item in value:
                _check_json(item, field=field, depth=depth + 1)
        case dict():
            for key, item in value.items():
                _check_json(key, field=field, depth=depth + 1)
                _check_json(item, field=field, depth=depth + 1)


def _text(literal: Literal, *, field: str) -> str:
    if isinstance(literal, Decimal):
        raise SearchError(f"{field} is text; write the value in single quotes: '{literal}'")
    return literal


def _number(literal: Literal, *, field: str) -> Decimal:
    if isinstance(literal, Decimal):
        return literal
    try:
        return number(literal)
    except SearchError as error:
        raise SearchError(f"{field} is a number: {error.reason}") from None


def _numeric_values(numbers: Sequence[Decimal]) -> list[Value]:
    # bigint where all fit, so that an index on the column stays usable; numeric where not, so that nothing overflows.
    whole = [int(item) for item in numbers if item == item.to_integral_value()]
    if len(whole) == len(numbers) and all(item in _INT64 for item in whole):
        return [Value(parameter=item, cast="bigint") for item in whole]
    return [Value(parameter=item, cast="numeric") for item in numbers]


def _time(literal: Literal, *, field: str) -> datetime:
    try:
        # A bare number could parse as a compact date (20240501), which is never meant.
        written = datetime.fromisoformat(literal if isinstance(literal, str) else "")
        # A time without a zone is UTC, like every time the API prints.
        return written.replace(tzinfo=UTC) if written.tzinfo is None else written.astimezone(UTC)
    except (ValueError, OverflowError):
        raise SearchError(
            f"{field} is a time: {shown(literal)} is not one; write it like '2024-05-01T10:00:00Z'"
        ) from None
