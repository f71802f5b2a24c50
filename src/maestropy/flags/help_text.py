"""Read the help texts of flags: the string below each field, from the source of the settings class.

A module of its own, because only `--help` needs to parse Python.
"""

import ast
import functools
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path


def help_texts(group: type) -> Mapping[str, str]:
    """Return the help text of each field of `group`, each in one line."""
    return _texts_of_file(str(sys.modules[group.__module__].__file__)).get(group.__name__, {})


@functools.cache
def _texts_of_file(path: str) -> Mapping[str, Mapping[str, str]]:
    """Return class → field → text for a whole file, which is read once."""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse(Path(path).read_bytes()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for statement, following in itertools.pairwise(node.body):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts.setdefault(node.name, {})[name] = " ".join(text.split())
                case _:
                    pass
    return texts
