"""A question as one SQL statement: constant text from `queries.sql`, and identifiers as parameters.

The same statement goes to a driver, which binds the parameters, and to psql through a pod, which is given them as
literals of a PREPAREd statement (`trace.psql`). Lists of identifiers travel as one JSON parameter.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import assert_never

import orjson

from maestropy.trace.work.question import Question

MOST = 500
"""Rows of a search that is not by id; more cannot be read by a person, so the report asks to narrow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement and its parameters, all of them text."""

    sql: str
    parameters: tuple[str, ...]


def statement(question: Question) -> Statement:
    """Return the statement that answers a question."""
    narrowing = (question.consumer, question.source)
    every = orjson.dumps(question.values).decode()
    match question.entry:
        case "resource-id" | "file":
            return _named("by_id", *narrowing, every)
        case "applied-work":
            return _named("by_applied_work", *narrowing, every)
        case "work-name":
            return _named("by_work_name", *narrowing, every)
        case "name-like":
            return _named("by_name_part", *narrowing, question.values[0])
        case "label":
            return _named("by_label", *narrowing, *question.values)
        case "op-id":
            return _named("by_operation", *narrowing, question.values[0])
        case "manifest":
            manifest = question.manifest
            assert manifest is not None
            kinds = orjson.dumps(manifest.kinds).decode()
            return _named("by_manifest", *narrowing, kinds, manifest.name, manifest.namespace, manifest.group)
        case unreachable:
            assert_never(unreachable)


def _named(name: str, *parameters: str) -> Statement:
    return Statement(sql=_statements()[name], parameters=parameters)


@cache
def _statements() -> Mapping[str, str]:
    """Read the file once: parts and statements by name, parts put in their places."""
    content = files("maestropy.trace.work").joinpath("queries.sql").read_text(encoding="utf-8")
    sections = re.split(r"^-- (part|name): (\w+)\n", content, flags=re.MULTILINE)[1:]
    texts = {name: _without_comments(body) for name, body in zip(sections[1::3], sections[2::3], strict=True)}
    return {name: re.sub(r"<(\w+)>", lambda found: texts[found[1]], body) for name, body in texts.items()}


def _without_comments(body: str) -> str:
    return "\n".join(line for line in body.strip().splitlines() if not line.startswith("--"))
