"""What is written under the fields of an options class: the texts that `--help` shows.

The library of our commands finds them as well, but reads, parses and tokenizes the whole file again for every class in
it, which was a tenth of the time that a page of help took. Here each file is parsed once.
"""

import ast
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from cyclopts import Parameter
from cyclopts.argument import _collection, utils

Texts = dict[str, dict[str, str]]
"""By class and field."""


def adopt() -> None:
    """Let the library ask here."""
    vars(_collection)["extract_docstring_help"] = told


def told(kind: Callable[..., Any]) -> dict[tuple[str, ...], Parameter]:
    """Return the help of each field of a class, its bases' included; of all else what the library says."""
    texts = [_texts_of(base) for base in reversed(kind.__mro__[:-1])] if isinstance(kind, type) else [{}]
    if not all(texts):
        return utils.extract_docstring_help(kind)
    return {(name,): Parameter(help=text) for each in texts for name, text in each.items()}


def _texts_of(kind: type) -> dict[str, str]:
    """Return the texts under the fields of one of our classes; nothing for those of others, and for unusual ones."""
    file = getattr(sys.modules[kind.__module__], "__file__", None)
    if not kind.__module__.startswith("maestropy.") or not file or kind.__qualname__ != kind.__name__:
        return {}
    return _texts(Path(file)).get(kind.__name__, {})


@lru_cache(maxsize=32)
def _texts(file: Path) -> Texts:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError):
        return {}
    return {each.name: _under_fields(each) for each in tree.body if isinstance(each, ast.ClassDef)}


def _under_fields(kind: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, below in zip(kind.body, kind.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            texts[field.target.id] = below.value.value
    return texts
