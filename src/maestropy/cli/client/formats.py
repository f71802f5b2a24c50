"""Parse the value of `-o`, and render objects by JSONPath templates and custom columns. Pure.

The JSONPath dialect is that of kubectl: `{.items[*].metadata.name}`. A template without braces is a path.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from maestropy.cli.errors import CommandError, UsageError

Kind = Literal["table", "wide", "json", "yaml", "name", "jsonpath", "custom-columns"]
PLAIN: tuple[Kind, ...] = ("table", "wide", "json", "yaml", "name")
TEMPLATES: tuple[Kind, ...] = ("jsonpath", "custom-columns")

MISSING = "<none>"
_STEPS = 50_000_000
"""What one template may cost: about a minute, and more than enough for ten thousand works."""


@dataclass(frozen=True, slots=True)
class Format:
    """An output format; `template` belongs to `jsonpath` and `custom-columns`."""

    kind: Kind
    template: str = ""

    @property
    def is_table(self) -> bool:
        """Whether it is a table with the usual columns."""
        return self.kind in ("table", "wide")


TABLE = Format("table")


def parse(text: str) -> Format:
    """Parse the value of `-o`; raises UsageError."""
    for plain in PLAIN:
        if text == plain:
            return Format(plain)
    name, equals, template = text.partition("=")
    for kind in TEMPLATES:
        if name == kind:
            if not (equals and template.strip()):
                raise UsageError(f"-o {kind} needs a template: {_EXAMPLES[kind]}")
            _check(Format(kind, template))
            return Format(kind, template)
    raise UsageError(f"-o {text}: the output format is one of {', '.join((*PLAIN, 'jsonpath=…', 'custom-columns=…'))}")


_EXAMPLES: Mapping[str, str] = {
    "jsonpath": "-o jsonpath='{.items[*].metadata.name}'",
    "custom-columns": "-o custom-columns=NAME:.metadata.name,CONSUMER:.consumer_name",
}


def _convert(_: object, tokens: Sequence[Token]) -> Format:
    return parse(tokens[0].value)


OutputFlag = Annotated[
    Format,
    Parameter(
        name=("-o", "--output"),
        help="The output format: table, wide, json, yaml, name (IDs only), jsonpath=TEMPLATE, or "
        "custom-columns=HEAD:PATH,HEAD:PATH.",
        converter=_convert,
        n_tokens=1,
        accepts_keys=False,
        show_default=lambda chosen: chosen.kind,
    ),
]
NoHeaders = Annotated[bool, Parameter(help="Print tables without their heads.", negative=())]


def _check(chosen: Format) -> None:
    """Raise UsageError for a template that cannot be parsed, before anything is sent to a server."""
    paths = [chosen.template] if chosen.kind == "jsonpath" else [path for _, path in columns(chosen.template)]
    for path in paths:
        _compiled(path)


def columns(template: str) -> list[tuple[str, str]]:
    """Return head and path of each custom column."""
    pairs = []
    for column in _split(template):
        head, colon, path = column.partition(":")
        if not (head.strip() and colon and path.strip()):
            raise UsageError(f"custom column {column!r}: write it as HEAD:PATH, such as NAME:.metadata.name")
        pairs.append((head.strip(), path.strip()))
    return pairs


def _split(template: str) -> list[str]:
    """Split at commas that are not inside brackets, so that a filter or union stays whole."""
    parts, depth = [""], 0
    for character in template:
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _compiled(path: str) -> Callable[[Any], list[list[Any]]]:
    from maestropy.agent.expressions import budget, jsonpath, jsonpath_syntax

    try:
        if "{" in path:
            template = jsonpath_syntax.parse(path)
        else:
            template = jsonpath_syntax.parse_path(path if path[0] in ".[$@" else f".{path}")
    except jsonpath_syntax.JsonPathError as error:
        raise UsageError(f"JSONPath {path}: {error}") from error

    def select(root: Any) -> list[list[Any]]:
        try:
            return jsonpath.find(template, root, budget=budget.Budget(_STEPS))
        except (jsonpath_syntax.JsonPathError, budget.BudgetExceeded) as error:
            raise CommandError(f"JSONPath {path}: {error}") from error

    return select


def by_jsonpath(template: str, root: Any) -> str:
    """Return what a template selects from an object, as kubectl prints it."""
    return "".join(" ".join(map(_text, values)) for values in _compiled(template)(root))


def by_columns(template: str, items: Sequence[Any]) -> list[list[str]]:
    """Return the lines of a table with custom columns, its heads first."""
    pairs = columns(template)
    selects = [_compiled(path) for _, path in pairs]
    return [[head for head, _ in pairs], *([_cell(select(item)) for select in selects] for item in items)]


def _cell(results: list[list[Any]]) -> str:
    values = [value for selected in results for value in selected if value is not None]
    return ",".join(map(_text, values)) if values else MISSING


def _text(value: Any) -> str:
    from maestropy.agent.expressions import go_values

    return go_values.json_text(value) if isinstance(value, Mapping | list) else go_values.rendering(value)
