"""Parse the JSON path dialect of a search: `source='s' and payload->'metadata'->'labels'->>'a'in('x','y')`.

Clients write it without spaces between tokens. Every literal is text, a quote inside a literal is `\\'` or, as in the
tree dialect, `''`, and the error texts with their one-based positions are part of the API; what to write instead stands
behind them. In addition to the Go server, `column->>'key'` and `column@>'json'` are accepted, since labels of consumers
need them, and `not` before a comparison or before LIKE.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

from maestropy.store.search import syntax_remedies
from maestropy.store.search.columns import Collection, Column, ColumnType, find, json_path
from maestropy.store.search.errors import SearchError
from maestropy.store.search.limits import MAX_DEPTH, MAX_JOINS, MAX_LIST, MAX_PATH, MAX_TOKENS
from maestropy.store.search.syntax_remedies import Expected, Mistake
from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Comparator,
    Compare,
    Contains,
    JsonText,
    Like,
    Not,
    OneOf,
    Predicate,
)

_TOKEN = re.compile(
    r"""
      (?P<space>      \s+ )
    | (?P<quoted>     '(?: [^'\\] | '' | \\' | \\(?!') )*' )
    | (?P<unfinished> '.* )
    | (?P<symbol>     [@<>=-]+ | [(),] )
    | (?P<word>       [^\s',()@<>=-]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTE = re.compile(r"\\'|''")
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
        parser.unexpected(Expected.END)
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
    """Recursive descent; NOT binds tighter than AND, and AND tighter than OR."""

    def __init__(self, tokens: list[_Token], *, collection: Collection) -> None:
        self._tokens = tokens
        self._collection = collection
        self._next = 0
        self._depth = 0
        self._joins = 0

    @property
    def peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def unexpected(self, expected: Expected) -> NoReturn:
        token = self.peek
        before = self._tokens[self._next - 1].text if self._next else ""
        text, kind = (token.text, token.kind) if token is not None else ("", "end")
        mistake = Mistake(text=text, kind=kind, before=before, expected=expected)
        remedy = syntax_remedies.remedy(mistake, fields=self._collection.fields())
        if token is None:
            _reject(f"EOF encountered while parsing string; {remedy}")
        _reject(f"unexpected token `{token.text}`; {remedy}", at=token)

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
        if self.accept("not"):
            return Not(self._term())
        if self.accept("(") is None:
            return self._condition()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            _reject(f"more than {MAX_DEPTH} nested braces", at=start)
        node = self.any_of()
        if self.accept(")") is None:
            if self.peek is None:
                _reject("EOF while searching for closing brace ')'")
            self.unexpected(Expected.CLOSING)
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
            self.unexpected(Expected.ARROW)
        return self._comparison(column)

    def _column(self) -> Column:
        token = self.peek
        if token is None or token.kind != "word" or _COLUMN.fullmatch(token.text) is None:
            self.unexpected(Expected.COMPARISON)
        column = find(token.text.split("."), collection=self._collection)
        if column is None:
            names = " ".join(self._collection.columns)
            parts = token.text.split(".")
            path = f"; {json_path(parts, collection=self._collection)}" if len(parts) > 1 else ""
            _reject(f"invalid column name: '{token.text}', valid values are: [{names}]{path}", at=token)
        self._next += 1
        return column

    def _comparison(self, operand: Column | JsonText) -> Predicate:
        comparators = _COMPARATORS.keys() if isinstance(operand, Column) else _TEXT_COMPARATORS
        if symbol := self.accept(*comparators):
            return Compare(operand=operand, comparator=_COMPARATORS[symbol], literal=self._literal())
        negated = self.accept("not") is not None
        if word := self.accept("like", "ilike"):
            like = Like(operand=operand, pattern=self._literal(), any_case=word == "ilike")
            return Not(like) if negated else like
        if self.accept("in") is None:
            is_column = isinstance(operand, Column)
            self.unexpected(Expected.OPERATOR_BESIDE_PATHS if is_column else Expected.PATH_OPERATOR)
        return OneOf(operand=operand, literals=self._list(), negated=negated)

    def _list(self) -> tuple[str, ...]:
        start = self.peek
        if self.accept("(") is None:
            self.unexpected(Expected.LIST)
        literals = [self._literal()]
        while self.accept(","):
            literals.append(self._literal())
        if self.accept(")") is None:
            self.unexpected(Expected.LIST_END)
        if len(literals) > MAX_LIST:
            _reject(f"a list holds more than {MAX_LIST} values", at=start)
        return tuple(literals)

    def _quoted(self) -> str:
        token = self.peek
        if token is None or token.kind != "quoted":
            self.unexpected(Expected.KEY)
        return self._literal()

    def _literal(self) -> str:
        token = self.peek
        # A bare word is a value, as Go clients write null; one in double quotes would be compared with its quotes.
        is_literal = token is not None and (token.kind == "quoted" or (token.kind == "word" and token.text[0] != '"'))
        if token is None or not is_literal:
            self.unexpected(Expected.VALUE)
        self._next += 1
        return _QUOTE.sub("'", token.text[1:-1]) if token.kind == "quoted" else token.text
