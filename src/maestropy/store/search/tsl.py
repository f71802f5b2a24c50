"""Parse the tree dialect (TSL) of a search: `name = 'a' AND (version + 1 > 3 OR deleted_at IS NOT NULL)`.

The grammar, from loosest to tightest: OR, AND, NOT, one comparison, arithmetic. Literals stand on the right side of
a comparison only, and arithmetic begins with a field. The caller has already limited the length of the text.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from maestropy.store.search import syntax_remedies, values
from maestropy.store.search.columns import Collection, Column, ColumnType, json_path, resolve
from maestropy.store.search.errors import SearchError
from maestropy.store.search.limits import MAX_DEPTH, MAX_LIST, MAX_MATH, MAX_TERMS
from maestropy.store.search.syntax_remedies import Expected, Mistake
from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Arithmetic,
    Between,
    Comparator,
    Compare,
    IsNull,
    Like,
    Literal,
    Math,
    Not,
    OneOf,
    Operand,
    Predicate,
)
from maestropy.store.search.tsl_tokens import Token, tokens

_COMPARATORS = {comparator.value: comparator for comparator in Comparator} | {"!=": Comparator.DIFFERENT}
_NO_COLUMN = Column(name="", type=ColumnType.TEXT, sql="NULL")


def parse(text: str, *, collection: Collection) -> Predicate:
    """Return the syntax tree of `text`."""
    parser = _Parser(text, collection=collection)
    node = parser.any_of()
    # A column without an operator fails for the operator, whatever follows it.
    predicate = parser.predicate(node)
    if parser.peek.kind != "end":
        parser.fail(Expected.END)
    if parser.rejected_names:
        raise parser.rejected_names[0]
    return predicate


class _Parser:
    """Recursive descent without backtracking.

    An opening parenthesis may begin a condition or a sum, so the methods return either, and `predicate` requires a
    condition where one is needed. Unknown column names are collected in `rejected_names`: a syntax error is reported
    before an unknown name.
    """

    def __init__(self, text: str, *, collection: Collection) -> None:
        self._text = text
        self._collection = collection
        self._tokens = [*tokens(text), Token("end", "", len(text) + 1)]
        self._next = 0
        self._depth = 0
        self._terms = 0
        self._operators = 0
        self.rejected_names: list[SearchError] = []

    def fail(self, expected: Expected) -> NoReturn:
        """Raise the error about the next token: the text of Go's server first, then the position and the remedy."""
        token = self.peek
        before = self._tokens[self._next - 1].text if self._next else ""
        mistake = Mistake(text=token.text, kind=token.kind, before=before, expected=expected)
        self.fail_with(syntax_remedies.remedy(mistake, fields=self._collection.fields()))

    def fail_with(self, remedy: str) -> NoReturn:
        raise SearchError(f"Failed to parse search query: {self._text} (position {self.peek.position}: {remedy})")

    @property
    def peek(self) -> Token:
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    def accept(self, *words: str) -> str | None:
        """Take the next token if it is one of these keywords or symbols."""
        token = self.peek
        if token.kind in ("keyword", "symbol") and token.text in words:
            self._next += 1
            return token.text
        return None

    def expect(self, word: str, expected: Expected) -> None:
        if self.accept(word) is None:
            self.fail(expected)

    def predicate(self, node: Predicate | Operand) -> Predicate:
        if not isinstance(node, Predicate):
            self.fail(Expected.OPERATOR)
        return node

    def any_of(self) -> Predicate | Operand:
        return self._joined("OR", self._all_of, AnyOf)

    def _all_of(self) -> Predicate | Operand:
        return self._joined("AND", self._negation, AllOf)

    def _joined(
        self,
        word: str,
        part: Callable[[], Predicate | Operand],
        join: Callable[[tuple[Predicate, ...]], Predicate],
    ) -> Predicate | Operand:
        first = part()
        if (self.peek.kind, self.peek.text) != ("keyword", word):
            return first
        terms = [self.predicate(first)]
        while self.accept(word):
            terms.append(self.predicate(part()))
        return join(tuple(terms))

    def _negation(self) -> Predicate | Operand:
        if self.accept("NOT") is None:
            return self._comparison()
        return Not(self.predicate(self._nested(self._negation)))

    def _comparison(self) -> Predicate | Operand:
        operand = self._sum()
        if isinstance(operand, Predicate):
            return operand
        token = self.peek
        if token.text in _COMPARATORS and token.kind == "symbol":
            self._next += 1
            self._count_term()
            return Compare(operand=operand, comparator=_COMPARATORS[token.text], literal=self._literal())
        if self.accept("~=", "~!"):
            raise SearchError("the operators ~= and ~! are not supported; use LIKE or ILIKE with % and _")
        if self.accept("IS"):
            self._count_term()
            return self._is(operand)
        negated = self.accept("NOT") is not None
        word = self.accept("LIKE", "ILIKE", "BETWEEN", "IN")
        if word is None:
            if negated:
                self.fail(Expected.OPERATOR)
            return operand
        self._count_term()
        return self._worded(word, operand, negated=negated)

    def _is(self, operand: Operand) -> Predicate:
        negated = self.accept("NOT") is not None
        if self.accept("NULL"):
            return IsNull(operand=operand, negated=negated)
        comparator = Comparator.DIFFERENT if negated else Comparator.EQUAL
        return Compare(operand=operand, comparator=comparator, literal=self._literal())

    def _worded(self, word: str, operand: Operand, *, negated: bool) -> Predicate:
        if word == "BETWEEN":
            low = self._literal()
            self.expect("AND", Expected.BETWEEN)
            return Between(operand=operand, low=low, high=self._literal(), negated=negated)
        if word == "IN":
            return OneOf(operand=operand, literals=self._list(), negated=negated)
        if self.peek.kind != "string":
            self.fail(Expected.VALUE)
        pattern = str(self._literal())
        like = Like(operand=operand, pattern=pattern, any_case=word == "ILIKE")
        return Not(like) if negated else like

    def _list(self) -> tuple[Literal, ...]:
        self.expect("(", Expected.LIST)
        if self.accept(")"):
            return ()
        literals = [self._literal()]
        while self.accept(","):
            literals.append(self._literal())
        self.expect(")", Expected.LIST_END)
        if len(literals) > MAX_LIST:
            raise SearchError(f"a list of the search holds more than {MAX_LIST} values")
        return tuple(literals)

    def _literal(self) -> Literal:
        sign = self.accept("+", "-") or ""
        token = self.peek
        if token.kind not in ("number", "string") or (sign and token.kind == "string"):
            self.fail(Expected.VALUE)
        self._next += 1
        if token.kind == "number":
            return values.number(sign + token.text)
        return token.text[1:-1].replace("''", "'")

    def _sum(self, *, leading: bool = True) -> Predicate | Operand:
        node = self._product(leading=leading)
        while not isinstance(node, Predicate) and (sign := self.accept("+", "-")):
            node = self._math(sign, left=node, right=self._product(leading=False))
        return node

    def _product(self, *, leading: bool) -> Predicate | Operand:
        node = self._atom(leading=leading)
        while not isinstance(node, Predicate) and (sign := self.accept("*", "/", "%")):
            node = self._math(sign, left=node, right=self._atom(leading=False))
        return node

    def _math(self, sign: str, *, left: Operand, right: Predicate | Operand) -> Math:
        self._operators += 1
        if self._operators > MAX_MATH:
            raise SearchError(f"the search holds more than {MAX_MATH} arithmetic operators")
        if isinstance(right, Predicate):
            self.fail(Expected.VALUE)
        return Math(operator=Arithmetic(sign), left=left, right=right)

    def _atom(self, *, leading: bool) -> Predicate | Operand:
        if self.accept("("):
            node = self._nested(self.any_of)
            self.expect(")", Expected.CLOSING if isinstance(node, Predicate) else Expected.OPERATOR)
            return node
        if self.peek.kind in ("word", "quoted"):
            return self._column()
        if leading or self.peek.kind == "string":
            self.fail(Expected.COMPARISON if leading else Expected.VALUE)
        number = self._literal()
        if not isinstance(number, Decimal):
            self.fail(Expected.VALUE)
        return number

    def _column(self) -> Operand:
        parts = [self._identifier()]
        while self.accept("."):
            parts.append(self._identifier())
        if len(parts) > 3:
            self.fail_with(json_path(parts, collection=self._collection))
        try:
            return resolve(parts, collection=self._collection)
        except SearchError as error:
            self.rejected_names.append(error)
            return _NO_COLUMN

    def _identifier(self) -> str:
        token = self.peek
        if token.kind not in ("quoted", "word"):
            self.fail(Expected.COMPARISON)
        self._next += 1
        return token.text[1:-1] if token.kind == "quoted" else token.text

    def _nested(self, part: Callable[[], Predicate | Operand]) -> Predicate | Operand:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SearchError(f"the search is nested more than {MAX_DEPTH} deep")
        node = part()
        self._depth -= 1
        return node

    def _count_term(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise SearchError(f"the search holds more than {MAX_TERMS} comparisons")
