"""Read the docstrings under the fields of options classes, which `--help` shows.

cyclopts reads them too, but parses the whole file again for every class in it, which took a tenth of the time of a help
page. This module parses each file once.
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
"""Docstrings by class and field."""


def install() -> None:
    """Make cyclopts use `field_help`."""
    vars(_collection)["extract_docstring_help"] = field_help


def field_help(kind: Callable[..., Any]) -> dict[tuple[str, ...], Parameter]:
    """Return the help of each field of a class and its bases; for other objects, the result of cyclopts."""
    texts = [_texts_of(base) for base in reversed(kind.__mro__[:-1])] if isinstance(kind, type) else [{}]
    if not all(texts):
        return utils.extract_docstring_help(kind)
    return {(name,): Parameter(help=text) for texts_of_class in texts for name, text in texts_of_class.items()}


def _texts_of(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a maestropy class; empty for nested classes and other packages."""
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
    return {node.name: _field_docstrings(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _field_docstrings(kind: ast.ClassDef) -> dict[str, str]:
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
