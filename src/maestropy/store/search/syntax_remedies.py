"""Say what to write instead of what a parser of `search` did not expect. Pure.

The parsers know what was expected at a token and pass it on; this module knows the mistakes that people make there. It
never decides whether a search is valid.
"""

from dataclasses import dataclass
from enum import Enum, auto, unique

from maestropy.store.search.errors import shown

_PATH_RULE = "end a path into JSON with ->>'key' and a comparison, or with @>'{…}'"
_COLUMN_OPERATORS = "=, <>, <, <=, >, >=, like, ilike, in"
_NAME_QUOTES = '"`[]'
_SIGNS = {
    "==": "write = for equal",
    "&": "write `and`",
    "&&": "write `and`",
    "|": "write `or`",
    "||": "write `or`",
    "->": _PATH_RULE,
    "=>": "write >=",
    "=<": "write <=",
}


@unique
class Expected(Enum):
    """What a parser expected at a token."""

    COMPARISON = auto()
    OPERATOR = auto()
    PATH_OPERATOR = auto()
    """An operator after `->>'key'`."""
    OPERATOR_BESIDE_PATHS = auto()
    """An operator after a column, in a search with JSON paths."""
    ARROW = auto()
    KEY = auto()
    VALUE = auto()
    LIST = auto()
    LIST_END = auto()
    BETWEEN = auto()
    CLOSING = auto()
    END = auto()


_SENTENCES = {
    Expected.OPERATOR: (
        f"after a column write {_COLUMN_OPERATORS}, between, is null, is not null, or not before like, ilike, in and "
        "between"
    ),
    Expected.PATH_OPERATOR: (
        "after ->>'key' write =, <>, like, ilike, in, not like or not in; like '%' finds what has the key, and there "
        "is no order, between or is null"
    ),
    Expected.OPERATOR_BESIDE_PATHS: (
        f"in a search with JSON paths, after a column write {_COLUMN_OPERATORS}, not like or not in"
    ),
    Expected.ARROW: _PATH_RULE,
    Expected.KEY: "write the key of a path, or the JSON after @>, in single quotes",
    Expected.LIST: "write the values in parentheses: in ('a', 'b')",
    Expected.LIST_END: "write a comma between the values, and close the parenthesis",
    Expected.BETWEEN: "write between 1 and 2",
    Expected.END: "join comparisons with `and` or `or`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A token that a parser did not expect; an empty text is the end of the search."""

    text: str
    kind: str
    before: str
    """The text of the token before it; empty if there is none."""
    expected: Expected


def remedy(mistake: Mistake, *, fields: str) -> str:
    """Return what to write instead; `fields` are the columns of the collection, as a list for a sentence."""
    if mistake.kind == "unfinished":
        return "close the single quote; an apostrophe inside a value is written ''"
    if sign := _sign(mistake):
        return sign
    match mistake.expected:
        case Expected.VALUE:
            return _value(mistake)
        case Expected.COMPARISON:
            begin = "a comparison is missing" if not mistake.text else "begin a comparison with a column"
            return f"{begin}, such as name = 'x'; columns: {fields}"
        case Expected.CLOSING:
            return (
                "close the parenthesis"
                if not mistake.text
                else "join comparisons with `and` or `or`, or close the parenthesis"
            )
        case Expected.END if mistake.text == ")":
            return "no parenthesis is open here; leave it out"
        case expected:
            return _SENTENCES[expected]


def _sign(mistake: Mistake) -> str:
    text, pair = mistake.text, mistake.before + mistake.text
    if text.startswith("~") or mistake.before.startswith("~") or pair == "=~":
        return "regular expressions are not supported; use like or ilike with % and _"
    if text.startswith("!"):
        if mistake.expected is Expected.COMPARISON:
            return "write `not`"
        return "write <> for different, and `not` before a comparison or before in and like"
    return _SIGNS.get(text) or _SIGNS.get(pair, "")


def _value(mistake: Mistake) -> str:
    if not mistake.text:
        return "a value is missing: write it in single quotes, or a number"
    if mistake.kind in ("quoted", "word", "keyword", "number"):
        return f"write the value in single quotes: {shown(mistake.text.strip(_NAME_QUOTES))}"
    return "write a value in single quotes, or a number"
