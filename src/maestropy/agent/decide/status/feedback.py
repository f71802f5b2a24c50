"""Read the feedback values of one object.

A rule that fails affects only itself: the other values are reported, and the condition `StatusFeedbackSynced` has the
errors.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from maestropy.agent.decide import manifest_identity
from maestropy.agent.decide.status import well_known_status
from maestropy.agent.expressions import go_values, jsonpath, jsonpath_syntax
from maestropy.agent.expressions.budget import Budget, BudgetExceeded, spend_value
from maestropy.wire.json_types import Object
from maestropy.wire.works import options, status

DEFAULT_JSON_RAW_MAX_BYTES = 1024 * 1024
_MESSAGE_MAX = 32_768
"""Characters that Kubernetes allows in the message of a condition."""
_SHORT = 256
"""Characters of a path that is cached among many others, and of a name in an error."""
_NAMES_SHOWN = 10

INTEGER = "Integer"
STRING = "String"
BOOLEAN = "Boolean"
JSON_RAW = "JsonRaw"

NO_RULES = "NoStatusFeedbackSynced"
SYNCED = "StatusFeedbackSynced"
FAILED = "StatusFeedbackSyncFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFeedback:
    """The values and their condition."""

    values: tuple[status.FeedbackValue, ...]
    condition: status.Condition


class _FeedbackError(Exception):
    """One value could not be read; the text goes into the condition."""


def read(
    rules: Sequence[options.FeedbackRule], live: Object, *, json_raw_max_bytes: int, budget: Budget
) -> StatusFeedback:
    """Return the values of the feedback rules."""
    values: list[status.FeedbackValue] = []
    problems: list[str] = []
    over_limit: dict[str, list[str]] = {}
    spent = ""
    for rule in rules:
        for name, path in _rule_paths(rule, live, problems=problems):
            if spent:
                over_limit[spent].append(name)
                continue
            try:
                value = _value(path, live, name=name, json_raw_max_bytes=json_raw_max_bytes, budget=budget)
            except BudgetExceeded as error:
                over_limit.setdefault(str(error), []).append(name)
                spent = str(error) if budget.steps_left <= 0 else ""
            except _FeedbackError as problem:
                problems.append(str(problem))
            else:
                values += [value] if value is not None else []
    problems += (f"failed to find value for {_shown(names)} with error: {error}" for error, names in over_limit.items())
    return StatusFeedback(values=tuple(values), condition=_condition(rules, problems))


def _shown(names: Sequence[str]) -> str:
    """Return the first names, and how many follow."""
    shown = ", ".join(name[:_SHORT] for name in names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown


def denied(rules: Sequence[options.FeedbackRule], *, problem: str) -> StatusFeedback:
    """Return no values, with the reason, for an object that may not be read."""
    return StatusFeedback(values=(), condition=_condition(rules, [problem]))


def aggregated(problems: Iterable[str]) -> str:
    """Join errors as Kubernetes aggregates do: duplicates removed, in brackets if there are several."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _condition(rules: Sequence[options.FeedbackRule], problems: Sequence[str]) -> status.Condition:
    kind = status.STATUS_FEEDBACK_SYNCED
    if not rules:
        return status.Condition(type=kind, status=status.TRUE, reason=NO_RULES)
    if not problems:
        return status.Condition(type=kind, status=status.TRUE, reason=SYNCED)
    message = f"Sync status feedback failed with error {aggregated(problems)}"
    return status.Condition(type=kind, status=status.FALSE, reason=FAILED, message=message[:_MESSAGE_MAX])


def _rule_paths(rule: options.FeedbackRule, live: Object, *, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and paths of a rule; a rule of an unknown type has none."""
    kind = manifest_identity.gvk_of(live)
    if rule.type == options.WELL_KNOWN_STATUS:
        known = well_known_status.STATUSES.get(kind, ())
        if not known:
            problems.append(f"cannot find the wellknown statuses for resource with gvk {kind}")
        yield from ((path.name, path.path) for path in known)
    elif rule.type == options.JSON_PATHS:
        for path in rule.json_paths:
            if path.version and path.version != kind.version:
                problems.append(f"version set in the path {path.name} is not matched for the related resource")
            else:
                yield path.name, path.path


def _value(
    path: str, live: Object, *, name: str, json_raw_max_bytes: int, budget: Budget
) -> status.FeedbackValue | None:
    selected = _selected(path, live, name=name, budget=budget)
    if selected is None:
        return None
    if isinstance(selected, str):
        return status.FeedbackValue(name=name, type=STRING, value=budget.keep(selected, name=name))
    if isinstance(selected, int):
        budget.keep("", name=name)
        return status.FeedbackValue(name=name, type=BOOLEAN if isinstance(selected, bool) else INTEGER, value=selected)
    with budget.expression() as own_budget:
        spend_value(selected, own_budget)
    text = go_values.json_text_within(selected, max_bytes=json_raw_max_bytes)
    if text is None:
        raise _FeedbackError(
            f"the length of returned json raw string for name {name} is larger than the maximum length "
            f"{json_raw_max_bytes}"
        )
    return status.FeedbackValue(name=name, type=JSON_RAW, value=budget.keep(text, name=name))


def _selected(path: str, live: Object, *, name: str, budget: Budget) -> object:
    """Return the value that a path selects: a list if there are several, None if there is none."""
    with budget.expression() as own_budget:
        own_budget.spend(len(path))
        try:
            template = (_parsed_short if len(path) <= _SHORT else jsonpath_syntax.parse_path)(path)
        except jsonpath_syntax.JsonPathError as error:
            raise _FeedbackError(f"failed to parse json path {path} of {name} with error: {error}") from error
        try:
            results = jsonpath.find(template, live, budget=own_budget)
        except jsonpath_syntax.JsonPathError as error:
            raise _FeedbackError(f"failed to find value for {name} with error: {error}") from error
    # A path may close its brace and open another: only the first action counts, and then always as a list.
    if not results or not results[0]:
        return None
    first = results[0]
    return first[0] if len(results) == len(first) == 1 else first


@lru_cache(maxsize=1024)
def _parsed_short(path: str) -> jsonpath_syntax.Template:
    return jsonpath_syntax.parse_path(path)
