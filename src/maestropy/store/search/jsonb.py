"""Parse the JSON path dialect of a search: `source='s' and payload->'metadata'->'labels'->>'a'in('x','y')`.

Clients write it without spaces between tokens. Every literal is text, a backslash before a quote keeps the quote
inside the literal, and the error texts with their one-based positions are part of the API. In addition to the Go
server, `column->>'key'` and `column@>'json'` are accepted: labels of consumers need them.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

from maestropy.store.search.columns import Collection, Column, ColumnType, find
from maestropy.store.search.errors import SearchError
from maestropy.store.search.limits import MAX_DEPTH, MAX_JOINS, MAX_LIST, MAX_PATH, MAX_TOKENS
from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Comparator,
    Compare,
    Contains,
    JsonText,
    Like,
    OneOf,
    Predicate,
)

_TOKEN = re.compile(
    r"""
      (?P<space>      \s+ )
    | (?P<quoted>     '(?: [^'\\] | \\' | \\(?!') )*' )
    | (?P<unfinished> '.* )
    | (?P<symbol>     [@<>=-]+ | [(),] )
    | (?P<word>       [^\s',()@<>=-]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_LOGICAL = frozenset({"and", "or", "not"})
_COMPARATORS = {comparator.value: comparator for comparator in Comparator}
_TEXT_COMPARATORS = frozenset({"=", "<>"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def word(self) -> str:
        """The text as a keyword or symbol; empty for literals in quotes."""
        return "" if self.kind in ("quoted", "unfinished") else self.text.lower()


def parse(text: str, *, collection: Collection) -> Predicate:
    """Return the syntax tree of `text`."""
    parser = _Parser(_tokens(text), collection=collection)
    node = parser.any_of()
    extra = parser.peek
    if extra is not None and extra.word == ")":
        _reject("unexpected ')'", at=extra)
    if extra is not None:
        parser.unexpected()
    return node


def _tokens(text: str) -> list[_Token]:
    matches = (match for match in _TOKEN.finditer(text) if match.lastgroup != "space")
    tokens = [
        _Token(kind=str(match.lastgroup), text=match.group(), position=match.start() + 1)
        for match in islice(matches, MAX_TOKENS + 1)
    ]
    if len(tokens) > MAX_TOKENS:
        _reject(f"more than {MAX_TOKENS} words and symbols")
    return tokens


def _reject(problem: str, *, at: _Token | None = None) -> NoReturn:
    location = "" if at is None else f"[{at.position}] error parsing the filter: "
    raise SearchError(f"failed to parse the search query: {location}{problem}")


class _Parser:
    """Recursive descent; AND binds tighter than OR, and NOT stands only before IN."""

    def __init__(self, tokens: list[_Token], *, collection: Collection) -> None:
        self._tokens = tokens
        self._collection = collection
        self._next = 0
        self._depth = 0
        self._joins = 0

    @property
    def peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def unexpected(self) -> NoReturn:
        token = self.peek
        if token is None:
            _reject("EOF encountered while parsing string")
        _reject(f"unexpected token `{token.text}`", at=token)

    def accept(self, *words: str) -> str | None:
        """Take the next token if it is one of these keywords or symbols, and return it in lower case."""
        token = self.peek
        if token is None or not token.word or token.word not in words:
            return None
        if token.word in _LOGICAL:
            self._joins += 1
            if self._joins > MAX_JOINS:
                _reject(f"maximum number of permitted joins ({MAX_JOINS}) exceeded", at=token)
        self._next += 1
        return token.word

    def any_of(self) -> Predicate:
        terms = [self._all_of()]
        while self.accept("or"):
            terms.append(self._all_of())
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def _all_of(self) -> Predicate:
        terms = [self._term()]
        while self.accept("and"):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else AllOf(tuple(terms))

    def _term(self) -> Predicate:
        start = self.peek
        if self.accept("(") is None:
            return self._condition()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            _reject(f"more than {MAX_DEPTH} nested braces", at=start)
        node = self.any_of()
        if self.accept(")") is None:
            if self.peek is None:
                _reject("EOF while searching for closing brace ')'")
            self.unexpected()
        self._depth -= 1
        return node

    def _condition(self) -> Predicate:
        column = self._column()
        keys: list[str] = []
        while arrow := self.accept("->", "->>", "@>"):
            if column.type is not ColumnType.JSONB:
                raise SearchError(f"{column.name} is of type {column.type.value}: {arrow} needs a JSON field")
            literal = self._quoted()
            if arrow == "@>":
                return Contains(column=column, keys=tuple(keys), json=literal)
            keys.append(literal)
            if len(keys) > MAX_PATH:
                raise SearchError(f"the path into {column.name} has more than {MAX_PATH} keys")
            if arrow == "->>":
                return self._comparison(JsonText(column=column, keys=tuple(keys)))
        if keys:
            self.unexpected()
        return self._comparison(column)

    def _column(self) -> Column:
        token = self.peek
        if token is None or token.kind != "word" or _COLUMN.fullmatch(token.text) is None:
            self.unexpected()
        column = find(token.text.split("."), collection=self._collection)
        if column is None:
            names = " ".join(self._collection.columns)
            _reject(f"invalid column name: '{token.text}', valid values are: [{names}]", at=token)
        self._next += 1
        return column

    def _comparison(self, operand: Column | JsonText) -> Predicate:
        comparators = _COMPARATORS.keys() if isinstance(operand, Column) else _TEXT_COMPARATORS
        if symbol := self.accept(*comparators):
            return Compare(operand=operand, comparator=_COMPARATORS[symbol], literal=self._literal())
        if word := self.accept("like", "ilike"):
            return Like(operand=operand, pattern=self._literal(), any_case=word == "ilike")
        negated = self.accept("not") is not None
        if self.accept("in") is None:
            self.unexpected()
        return OneOf(operand=operand, literals=self._list(), negated=negated)

    def _list(self) -> tuple[str, ...]:
        start = self.peek
        if self.accept("(") is None:
            self.unexpected()
        literals = [self._literal()]
        while self.accept(","):
            literals.append(self._literal())
        if self.accept(")") is None:
            self.unexpected()
        if len(literals) > MAX_LIST:
            _reject(f"a list holds more than {MAX_LIST} values", at=start)
        return tuple(literals)

    def _quoted(self) -> str:
        token = self.peek
        if token is None or token.kind != "quoted":
            self.unexpected()
        return self._literal()

    def _literal(self) -> str:
        token = self.peek
        if token is None or token.kind not in ("quoted", "word"):
            self.unexpected()
        self._next += 1
        return token.text[1:-1].replace("\\'", "'") if token.kind == "quoted" else token.text
