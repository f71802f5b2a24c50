"""Which values does a work want to know of an object, and could they be read?

A rule that cannot be followed spoils nothing but itself: the good values are reported, and the condition
`StatusFeedbackSynced` carries what went wrong.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from maestropy.agent.decide import gotext, identity, jsonpath, pathsyntax, wellknown
from maestropy.wire import options, status
from maestropy.wire.jsontypes import Object

DEFAULT_JSON_RAW_MAX_BYTES = 1024 * 1024

INTEGER = "Integer"
STRING = "String"
BOOLEAN = "Boolean"
JSON_RAW = "JsonRaw"

NO_RULES = "NoStatusFeedbackSynced"
SYNCED = "StatusFeedbackSynced"
FAILED = "StatusFeedbackSyncFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What was read, and how it went."""

    values: tuple[status.FeedbackValue, ...]
    condition: status.Condition


class _FeedbackError(Exception):
    """One value could not be read; the text goes into the condition."""


def read(rules: Sequence[options.FeedbackRule], live: Object, *, json_raw_max_bytes: int) -> Feedback:
    """Return the values that `rules` ask for."""
    values: list[status.FeedbackValue] = []
    problems: list[str] = []
    for rule in rules:
        for name, path in _paths(rule, live, problems=problems):
            try:
                value = _value(path, live, name=name, json_raw_max_bytes=json_raw_max_bytes)
            except _FeedbackError as problem:
                problems.append(str(problem))
            else:
                values += [value] if value is not None else []
    return Feedback(values=tuple(values), condition=_condition(rules, problems))


def aggregated(problems: Iterable[str]) -> str:
    """Return several problems in one text: each once, in brackets if there are more."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _condition(rules: Sequence[options.FeedbackRule], problems: Sequence[str]) -> status.Condition:
    kind = status.STATUS_FEEDBACK_SYNCED
    if not rules:
        return status.Condition(type=kind, status=status.TRUE, reason=NO_RULES)
    if not problems:
        return status.Condition(type=kind, status=status.TRUE, reason=SYNCED)
    message = f"Sync status feedback failed with error {aggregated(problems)}"
    return status.Condition(type=kind, status=status.FALSE, reason=FAILED, message=message)


def _paths(rule: options.FeedbackRule, live: Object, *, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and paths of a rule; a rule of an unknown type asks for nothing."""
    kind = identity.kind_of(live)
    if rule.type == options.WELL_KNOWN_STATUS:
        known = wellknown.STATUSES.get(kind, ())
        if not known:
            problems.append(f"cannot find the wellknown statuses for resource with gvk {kind}")
        yield from ((path.name, path.path) for path in known)
    elif rule.type == options.JSON_PATHS:
        for path in rule.json_paths:
            if path.version and path.version != kind.version:
                problems.append(f"version set in the path {path.name} is not matched for the related resource")
            else:
                yield path.name, path.path


def _value(path: str, live: Object, *, name: str, json_raw_max_bytes: int) -> status.FeedbackValue | None:
    found = _found(path, live, name=name)
    if found is None:
        return None
    if isinstance(found, bool):
        return status.FeedbackValue(name=name, type=BOOLEAN, value=found)
    if isinstance(found, int):
        return status.FeedbackValue(name=name, type=INTEGER, value=found)
    if isinstance(found, str):
        return status.FeedbackValue(name=name, type=STRING, value=found)
    text = gotext.json_text(found)
    if len(text.encode()) > json_raw_max_bytes:
        raise _FeedbackError(
            f"the length of returned json raw string for name {name} is larger than the maximum length "
            f"{json_raw_max_bytes}"
        )
    return status.FeedbackValue(name=name, type=JSON_RAW, value=text)


def _found(path: str, live: Object, *, name: str) -> object:
    """Return the one value a path selects, the list of them if there are several, None if there is none."""
    try:
        template = _parsed(path)
    except pathsyntax.JsonPathError as error:
        raise _FeedbackError(f"failed to parse json path {path} of {name} with error: {error}") from error
    try:
        results = jsonpath.find(template, live)
    except pathsyntax.JsonPathError as error:
        raise _FeedbackError(f"failed to find value for {name} with error: {error}") from error
    # A path may close its brace and open another: only the first action counts, and then always as a list.
    if not results or not results[0]:
        return None
    first = results[0]
    return first[0] if len(results) == len(first) == 1 else first


@lru_cache(maxsize=1024)
def _parsed(path: str) -> pathsyntax.Template:
    return pathsyntax.parse_path(path)
