"""What a flag is for: the string under its field, read from the source when someone asks for help.

A module of its own, because a program that only runs needs no parser of Python.
"""

import ast
import functools
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path


def explanations(group: type) -> Mapping[str, str]:
    """Return what the source says under each field of `group`, each text in one line."""
    return _explained(str(sys.modules[group.__module__].__file__)).get(group.__name__, {})


@functools.cache
def _explained(path: str) -> Mapping[str, Mapping[str, str]]:
    """Return class → field → text for a whole file: it is read once, however many groups it holds."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(Path(path).read_bytes()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for statement, following in itertools.pairwise(node.body):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(node.name, {})[name] = " ".join(text.split())
                case _:
                    pass
    return found
