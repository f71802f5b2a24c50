"""Rewrite a search so that the indexes on labels and work names serve it, without changing its result.

PostgreSQL uses the index on labels for `@>` only, and clients write `->>'key' = 'value'`. Where a rewritten term is
only implied by the written one, both stand. A term is rewritten where true is all that counts: under NOT the difference
between false and unknown decides, so nothing is rewritten there.
"""

import re

import msgspec

from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Comparator,
    Compare,
    Contains,
    ContainsAny,
    JsonText,
    Literal,
    OneOf,
    Predicate,
)

LABELS_PATH = ("metadata", "labels")
NAME_PATH = ("metadata", "name")
PAYLOAD = "resources.payload"

# How `->>` prints a value that is not a string. PostgreSQL prints numbers without an exponent.
_OTHER_VALUE = re.compile(r"true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DOCUMENT = re.compile(r"[\[{].*[\]}]", re.DOTALL)
_MAX_DIGITS = 1000


def indexable(predicate: Predicate) -> Predicate:
    """Return a predicate that is true for the same rows, with terms that an index serves."""
    match predicate:
        case AllOf(terms):
            return AllOf(tuple(indexable(term) for term in terms))
        case AnyOf(terms):
            return AnyOf(tuple(indexable(term) for term in terms))
        case Compare(operand=JsonText() as operand, comparator=Comparator.EQUAL, literal=literal):
            return _label_in(predicate, operand, (literal,))
        case OneOf(operand=JsonText() as operand, literals=literals, negated=False):
            return _label_in(predicate, operand, literals)
        case Contains():
            return _with_implied_terms(predicate)
        case _:
            return predicate


def _label_in(written: Compare | OneOf, operand: JsonText, literals: tuple[Literal, ...]) -> Predicate:
    *path, key = operand.keys
    texts = [literal for literal in literals if isinstance(literal, str)]
    if operand.column.sql != PAYLOAD or tuple(path) != LABELS_PATH or len(texts) < len(literals):
        return written
    # A JSON object prints in one of many spellings, so no containment stands for it.
    if any(_DOCUMENT.fullmatch(text) for text in texts):
        return written
    others = [text for text in texts if len(text) <= _MAX_DIGITS and _OTHER_VALUE.fullmatch(text)]
    encoded_key = msgspec.json.encode(key).decode()
    values = [*(msgspec.json.encode(text).decode() for text in texts), *others]
    documents = tuple(f"{{{encoded_key}:{value}}}" for value in values)
    contained = ContainsAny(column=operand.column, keys=LABELS_PATH, documents=documents)
    # 1 and 1.0 are equal as JSON and different as text.
    return AllOf((contained, written)) if others else contained


def _with_implied_terms(written: Contains) -> Predicate:
    """Add what `payload @> '{"metadata": …}'` says about labels and the name."""
    if written.column.sql != PAYLOAD or written.keys not in ((), NAME_PATH[:1]):
        return written
    document = _decode(written.json)
    metadata = document if written.keys else document.get("metadata")
    if not isinstance(metadata, dict):
        return written
    terms: list[Predicate] = []
    labels, name = metadata.get("labels"), metadata.get("name")
    if isinstance(labels, dict) and labels:
        encoded = msgspec.json.encode(labels).decode()
        terms.append(ContainsAny(column=written.column, keys=LABELS_PATH, documents=(encoded,)))
    if isinstance(name, str):
        operand = JsonText(column=written.column, keys=NAME_PATH)
        terms.append(Compare(operand=operand, comparator=Comparator.EQUAL, literal=name))
    return AllOf((*terms, written)) if terms else written


def _decode(text: str) -> dict[str, object]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        # The emitter rejects it with a reason.
        return {}
    return document if isinstance(document, dict) else {}
