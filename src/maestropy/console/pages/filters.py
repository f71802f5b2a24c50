"""Parse the filter of the works page, and choose and sort rows by it. Pure.

Words are searched in names, IDs, labels, objects and problems. `key:value` narrows by one property, `-` in front
excludes: `web -consumer:cluster1 label:team=a condition:Applied=False age:>1h code:MW-005 is:deleting`.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from maestropy.console.pages import stuck
from maestropy.console.rows import HEALTHY, NOT_READ, WorkRow
from maestropy.trace.findings.codes import CODES

_AGE: Final = re.compile(r"([<>]?)([0-9]{1,6})([smhd])")
_KEY: Final = re.compile(r"[a-z]+")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = 1000
KEYS: Final = (
    *("text", "id", "name", "label", "consumer", "source", "condition", "age", "code", "cause", "severity", "is"),
)
STATES: Final = ("healthy", "broken", "deleting", "stuck", "behind", "unreported", "held", "paused", "away")
_SEVERITIES: Final = {"error": "error", "warn": "warn", "warning": "warn", "info": "info"}
_STATUSES: Final = ("True", "False", "Unknown")
_CODE: Final = re.compile(r"([A-Z]{2})[-_]?([0-9]{3})")
SORTS: Final[Mapping[str, Callable[[WorkRow], object]]] = {
    "severity": lambda row: ({"error": 0, "warn": 1}.get(row.severity, 2), row.code, -row.updated),
    "name": lambda row: (row.name, row.id),
    "consumer": lambda row: (row.consumer, row.name),
    "version": lambda row: (-row.version, row.name),
    "code": lambda row: (row.code, row.name),
    "created": lambda row: -row.created,
    "updated": lambda row: -row.updated,
    "reported": lambda row: -row.reported,
}


class InvalidFilter(Exception):
    """The filter cannot be understood; the message says which part, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a filter."""

    key: str
    value: str
    is_excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a filter needs besides the rows."""

    now: float
    of_sources: Mapping[str, Set[str]]
    """The IDs of the works of each source that the filter names."""
    away: Set[str] = frozenset()
    """The consumers whose agents are not connected."""


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter; raises `InvalidFilter`."""
    if len(text) > _LONGEST:
        raise InvalidFilter(f"the filter has {len(text)} characters; use {_LONGEST} at most")
    try:
        words = shlex.split(text, posix=True)
    except ValueError:
        if text.count('"') % 2:
            raise InvalidFilter('a quote has no end; write it as in label:"team=a b"') from None
        # An apostrophe is searched as it is.
        words = text.split()
    return tuple(_term(word) for word in words if word not in ("", "-"))


def _term(word: str) -> Term:
    is_excluded = word.startswith("-")
    key, colon, value = word.removeprefix("-").partition(":")
    key = key.lower() if key.lower() in KEYS else key
    if not colon or key not in KEYS or not value:
        if colon and key in KEYS:
            raise InvalidFilter(f"{key}: has no value; write {key}:VALUE")
        if colon and value and _KEY.fullmatch(key):
            keys = ", ".join(KEYS)
            raise InvalidFilter(f"{key}: is not known; use one of {keys}, or text:{word} to search for these words")
        return Term(key="text", value=word.removeprefix("-").lower(), is_excluded=is_excluded)
    return Term(key=key, value=_value(key, value), is_excluded=is_excluded)


def _value(key: str, value: str) -> str:
    """Return the value of a key as rows have it; raises `InvalidFilter` for one that no work can have."""
    match key:
        case "text" | "cause":
            return value.lower()
        case "age" if not _AGE.fullmatch(value):
            raise InvalidFilter(f"age:{value} is no age; write age:>30m, age:>2h or age:<7d")
        case "is":
            return _one_of(key, value, {state: state for state in STATES})
        case "severity":
            return _one_of(key, value, _SEVERITIES)
        case "code":
            return _code(value)
        case "condition" if "=" in value:
            kind, _, status = value.partition("=")
            return f"{kind}={_one_of(f'{key}:{kind}=', status, {one.lower(): one for one in _STATUSES})}".lower()
        case "condition":
            return value.lower()
    return value


def _one_of(key: str, value: str, allowed: Mapping[str, str]) -> str:
    if value.lower() not in allowed:
        written = f"{key}{value}" if key.endswith("=") else f"{key}:{value}"
        raise InvalidFilter(f"{written} is not known; use one of {', '.join(dict.fromkeys(allowed.values()))}")
    return allowed[value.lower()]


def _code(value: str) -> str:
    written = _CODE.fullmatch(value.upper())
    code = f"{written[1]}-{written[2]}" if written else ""
    if code not in CODES or not code.startswith("MW-"):
        raise InvalidFilter(f"code:{value} is no verdict on a work; use a code such as MW-005. Explain has all of them")
    return code


def sources(terms: Iterable[Term]) -> set[str]:
    """Return the sources that a filter names."""
    return {term.value for term in terms if term.key == "source"}


def choose(rows: Iterable[WorkRow], terms: Iterable[Term], context: Context) -> list[WorkRow]:
    """Return the rows that match every term."""
    tests = [_test(term, context) for term in terms]
    if not tests:
        return list(rows)
    return [row for row in rows if all(test(row) for test in tests)]


def ordered(rows: list[WorkRow], sort: str) -> list[WorkRow]:
    """Return rows in an order of `SORTS`; a minus in front reverses it."""
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise InvalidFilter(f"sort={name} is not known; use one of {', '.join(SORTS)}")
    key: Callable[[WorkRow], object] = SORTS[name]
    return sorted(rows, key=key, reverse=sort.startswith("-"))  # type: ignore[arg-type]  # tuples and numbers


def _test(term: Term, context: Context) -> Callable[[WorkRow], bool]:
    matches = _matcher(term, context)
    return (lambda row: not matches(row)) if term.is_excluded else matches


def _matcher(term: Term, context: Context) -> Callable[[WorkRow], bool]:  # noqa: C901, PLR0911 - one case per key
    value = term.value
    match term.key:
        case "id":
            return lambda row: row.id == value
        case "name":
            return lambda row: row.name == value
        case "label":
            return (lambda row: value in row.labels) if "=" in value else _has_key(value)
        case "consumer":
            return lambda row: row.consumer == value
        case "source":
            ids = context.of_sources.get(value, frozenset())
            return lambda row: row.id in ids
        case "condition":
            return _has_condition(value)
        case "age":
            return _aged(value, now=context.now)
        case "code":
            return lambda row: row.code == value
        case "cause":
            return lambda row: row.cause == value
        case "severity":
            return lambda row: row.severity == value
        case "is":
            return _state(value, context)
        case _:
            return lambda row: value in row.text


def _has_key(key: str) -> Callable[[WorkRow], bool]:
    return lambda row: any(label.startswith(f"{key}=") for label in row.labels)


def _has_condition(value: str) -> Callable[[WorkRow], bool]:
    """Test for a condition with a status, or with any; conditions are found as people write them."""
    start = value if "=" in value else f"{value}="
    return lambda row: any(
        condition.lower() == start or ("=" not in value and condition.lower().startswith(start))
        for condition in row.conditions
    )


def _aged(text: str, *, now: float) -> Callable[[WorkRow], bool]:
    matched = _AGE.fullmatch(text)
    assert matched
    limit = now - int(matched[2]) * _UNITS[matched[3]]
    if matched[1] == "<":
        return lambda row: row.created > limit
    return lambda row: row.created <= limit


def _state(state: str, context: Context) -> Callable[[WorkRow], bool]:
    tests: Mapping[str, Callable[[WorkRow], bool]] = {
        "healthy": lambda row: row.code == HEALTHY,
        "broken": lambda row: row.code not in (HEALTHY, NOT_READ),
        "deleting": lambda row: bool(row.deleted),
        "stuck": lambda row: stuck.kind_of(row, now=context.now) is not None,
        "behind": lambda row: not row.is_current and not row.deleted,
        "unreported": lambda row: row.observed == 0,
        "held": lambda row: row.code == "MW-122",
        "paused": lambda row: row.code == "MW-123",
        "away": lambda row: row.consumer in context.away,
    }
    return tests[state]
