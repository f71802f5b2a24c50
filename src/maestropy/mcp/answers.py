"""Write the answer of a tool: JSON of bounded size, with a cursor for the rest. Pure.

A tool returns a `Result`: a head and items, in the order of importance. As many items are shown as fit; the rest is
behind a cursor. An item that alone is too large is shortened, and says so.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from maestropy.mcp import texts
from maestropy.mcp.texts import Ours

MOST_TOKENS: Final = 3_800
"""Of one answer; the promise is 4,000, and the estimate is on the safe side already."""
_RUN: Final = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[^\sA-Za-z0-9]")
_LETTERS_PER_TOKEN: Final = 4
_DIGITS_PER_TOKEN: Final = 3
_MOST_UNKNOWN: Final = 12
_STEPS: Final = ((400, 12), (200, 8), (120, 5), (80, 3), (40, 2), (20, 1))
"""How an item that is too large is shortened: characters of a text, entries of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool found, before it is written; texts that are not `Ours` are marked as data."""

    head: Mapping[str, Any]
    """What the whole answer says: verdict, summary, counts."""
    items: Sequence[Mapping[str, Any]] = ()
    """The details, the most important first."""
    unknown: Sequence[str] = ()
    """What nothing is said about, and why; one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an assistant gets."""

    text: str
    """JSON, at most 4,000 tokens."""
    model: Mapping[str, Any] = field(repr=False)
    """The same as a value."""
    is_error: bool = False
    cursor: str = ""
    """Where the rest is; empty if there is no more."""


class ToolError(Exception):
    """A tool cannot answer: why, which may quote others, and what to do, which is a text of this program."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def tokens(text: str) -> int:
    """Return how many tokens a text has at most, for the tokenizers in use: a run of letters or digits is never one."""
    count = 0
    for match in _RUN.finditer(text):
        run = match[0]
        if run.isspace():
            # A blank belongs to the next word; more of them, or a new line, are a token.
            count += run != " "
        elif run.isdigit() and run.isascii():
            count += math.ceil(len(run) / _DIGITS_PER_TOKEN)
        elif run.isascii():
            count += math.ceil(len(run) / _LETTERS_PER_TOKEN) if run.isalpha() else 1
        else:
            count += math.ceil(len(run.encode(errors="replace")) / 2)
    return max(count, math.ceil(len(text) / 3.5))


def written(model: Mapping[str, Any]) -> str:
    """Return a model as JSON on one line."""
    return orjson.dumps(model, option=orjson.OPT_NON_STR_KEYS).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The part of a result that one answer shows."""

    model: dict[str, Any]
    shown: int
    """How many items; those after them are behind the cursor."""


def page(result: Result, *, origin: str, start: int, cursor: str, budget: int = MOST_TOKENS) -> Page:
    """Return the items from `start` on that fit into one answer; `cursor` is named in it if there are more."""
    model: dict[str, Any] = {"notice": Ours(texts.NOTICE), "from": origin}
    if start == 0:
        model |= result.head
        if result.unknown:
            model["unknown"] = [*result.unknown[:_MOST_UNKNOWN]]
        if len(result.unknown) > _MOST_UNKNOWN:
            model["unknownLeftOut"] = len(result.unknown) - _MOST_UNKNOWN
    head = _fitted(texts.safe(model), budget // 2)
    ending = {"items": [], "shown": f"{start} to {len(result.items)} of {len(result.items)}", "cursor": cursor}
    left = budget - tokens(written({**head, **ending}))
    items: list[Any] = []
    for item in result.items[start:]:
        shown = texts.safe(item)
        cost = tokens(written(shown)) + 1
        if cost > left and not items:
            shown = _fitted(shown, left)
            cost = tokens(written(shown)) + 1
        if cost > left:
            break
        left -= cost
        items.append(shown)
    end = start + len(items)
    if result.items:
        head["items"] = items
        head["shown"] = f"{start + 1} to {end} of {len(result.items)}"
    if end < len(result.items):
        head["cursor"] = cursor
    return Page(model=head, shown=len(items))


def _fitted(value: Any, budget: int) -> Any:
    """Return a model that fits, with texts and lists cut as little as possible."""
    for characters, entries in ((0, 0), *_STEPS):
        shown = _cut(value, characters, entries) if characters else value
        if tokens(written(shown)) <= budget:
            return shown
    return {"leftOut": "this part is larger than an answer can be"}


def _cut(value: Any, characters: int, entries: int) -> Any:
    if isinstance(value, str):
        if len(value) <= characters or value == texts.NOTICE:
            return value
        # A text that is cut keeps its mark at the end.
        return value[: characters - 1] + "…" + (texts.END if value.startswith(texts.BEGIN) else "")
    if isinstance(value, Mapping):
        kept = dict(list(value.items())[: max(entries * 4, 8)])
        return {key: _cut(item, characters, entries) for key, item in kept.items()}
    if isinstance(value, list):
        more = [f"{len(value) - entries} more left out"] if len(value) > entries else []
        return [*(_cut(item, characters, entries) for item in value[:entries]), *more]
    return value


def failure(error: ToolError) -> Answer:
    """Return the answer of a tool that failed."""
    model = {"notice": texts.NOTICE, "error": texts.data(str(error), most=1500)}
    if error.remedy:
        model["remedy"] = error.remedy
    return Answer(text=written(model), model=model, is_error=True)
