"""Render Go templates, the language of texts in HyperFleet tasks.

Supported: fields (`.a.b`), variables, pipelines, parentheses, `if`, `else if`, `else`, `range`, `with`, `end`,
comments, trim markers, Go's comparison functions, and the functions of HyperFleet. A field that does not exist is an
error, as there. Not supported: `define`, `template`, `block`, `break`, `continue` and methods. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from maestropy.adapter.tasks.language import go_functions
from maestropy.adapter.tasks.language.go_functions import TemplateError, shown

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:\\.|[^"\\])*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<variable>\$\w*(?:\.\w+)*)|(?P<field>\.(?:\w+(?:\.\w+)*)?)|(?P<word>\w+)|(?P<sign>:=|[()|,=]))""",
    re.VERBOSE,
)
_ITERATIONS_MAX = 100_000
_NOT_SUPPORTED = ("define", "template", "block", "break", "continue")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@dataclass(slots=True)
class _Block:
    """An `if`, `range` or `with`, or the template itself."""

    keyword: str
    tokens: tuple[_Token, ...] = ()
    body: "list[str | tuple[_Token, ...] | _Block]" = field(default_factory=list)
    otherwise: "_Block | None" = None


def render(template: str, values: Mapping[str, Any], *, now: str = "") -> str:
    """Return the text of a template; raises TemplateError. `now` is the time as RFC 3339.

    >>> render("{{ .name | upper }}-1", {"name": "abc"})
    'ABC-1'
    """
    if "{{" not in template:
        return template
    run = _TemplateRun(values, now=now)
    return "".join(run.text_of(_parsed(template)))


def check(template: str) -> None:
    """Raise TemplateError for a template that cannot be parsed."""
    if "{{" in template:
        _parsed(template)


@lru_cache(maxsize=256)
def _parsed(template: str) -> _Block:
    root = _Block("template")
    stack = [root]
    position = 0
    for match in _ACTION.finditer(template):
        text = template[position : match.start()]
        _append(stack[-1], text.rstrip() if match[1] else text)
        position = match.end()
        if match[3]:
            position += len(template[position:]) - len(template[position:].lstrip())
        _take(stack, match[2].strip())
    if "{{" in template[position:]:
        raise TemplateError("unclosed action: `{{` has no `}}`")
    _append(stack[-1], template[position:])
    if len(stack) > 1:
        raise TemplateError(f"unexpected EOF: {stack[-1].keyword} has no {{{{ end }}}}")
    return root


def _append(block: _Block, text: str) -> None:
    if text:
        block.body.append(text)


def _take(stack: list[_Block], action: str) -> None:
    """Add one action to the innermost open block."""
    if action.startswith("/*"):
        return
    tokens = tuple(_tokens(action))
    keyword = tokens[0].text if tokens and tokens[0].kind == "word" else ""
    if keyword in _NOT_SUPPORTED:
        raise TemplateError(f"`{keyword}` is not supported; write the text where it is used")
    if keyword in ("if", "range", "with"):
        block = _Block(keyword, tokens[1:])
        stack[-1].body.append(block)
        stack.append(block)
    elif keyword == "else":
        _take_else(stack, tokens)
    elif keyword == "end":
        if len(stack) == 1:
            raise TemplateError("unexpected {{ end }}")
        stack.pop()
    elif tokens:
        stack[-1].body.append(tokens)
    else:
        raise TemplateError("missing value for command")


def _take_else(stack: list[_Block], tokens: tuple[_Token, ...]) -> None:
    if len(stack) == 1 or stack[-1].keyword == "else":
        raise TemplateError("unexpected {{ else }}")
    is_chained = len(tokens) > 1
    if is_chained and tokens[1].text != "if":
        raise TemplateError(f"unexpected {tokens[1].text!r} after else")
    branch = _Block("if" if is_chained else "else", tokens[2:])
    stack[-1].otherwise = branch
    stack[-1] = branch


def _tokens(action: str) -> Iterator[_Token]:
    position = 0
    while position < len(action):
        match = _TOKEN.match(action, position)
        if match is None:
            if not action[position:].strip():
                return
            raise TemplateError(f"unexpected {action[position:].strip()[:20]!r} in command")
        yield _Token(str(match.lastgroup), match[match.lastgroup or 0])
        position = match.end()


class _TemplateRun:
    """One rendering: the variables, and the value of `.`."""

    def __init__(self, values: Mapping[str, Any], *, now: str) -> None:
        self._variables: dict[str, Any] = {"$": values}
        self._dot: Any = values
        self._now = now
        self._iterations = 0

    def text_of(self, block: _Block) -> Iterator[str]:
        """Yield the pieces of text of a block."""
        for part in block.body:
            if isinstance(part, str):
                yield part
            elif isinstance(part, _Block):
                yield from self._block(part)
            else:
                yield from self._action(part)

    def _action(self, tokens: tuple[_Token, ...]) -> Iterator[str]:
        if _assigns(tokens):
            self._variables[tokens[0].text] = self._value(tokens[2:])
        else:
            yield shown(self._value(tokens))

    def _block(self, block: _Block) -> Iterator[str]:
        outer_dot, outer_variables = self._dot, self._variables
        self._variables = dict(outer_variables)
        try:
            if block.keyword == "range":
                yield from self._range(block)
            elif block.keyword == "else":
                yield from self.text_of(block)
            else:
                yield from self._choice(block)
        finally:
            self._dot, self._variables = outer_dot, outer_variables

    def _choice(self, block: _Block) -> Iterator[str]:
        tokens = block.tokens
        value = self._value(tokens[2:] if _assigns(tokens) else tokens)
        if _assigns(tokens):
            self._variables[tokens[0].text] = value
        if go_functions.is_true(value):
            self._dot = value if block.keyword == "with" else self._dot
            yield from self.text_of(block)
        elif block.otherwise is not None:
            yield from self._block(block.otherwise)

    def _range(self, block: _Block) -> Iterator[str]:
        names, tokens = _range_variables(block.tokens)
        items = self._value(tokens)
        if not isinstance(items, Mapping | list) and items is not None:
            raise TemplateError(f"range can't iterate over {shown(items)}")
        pairs = sorted(items.items()) if isinstance(items, Mapping) else list(enumerate(items or ()))
        if not pairs and block.otherwise is not None:
            yield from self._block(block.otherwise)
        for key, item in pairs:
            self._iterations += 1
            if self._iterations > _ITERATIONS_MAX:
                raise TemplateError(f"a template may repeat its parts {_ITERATIONS_MAX} times")
            self._dot = item
            self._variables.update(zip(names, (item,) if len(names) == 1 else (key, item), strict=False))
            yield from self.text_of(block)

    def _value(self, tokens: Sequence[_Token]) -> Any:
        if not tokens:
            raise TemplateError("missing value for command")
        value: Any = None
        for number, command in enumerate(_split(tokens)):
            value = self._command(command, piped=[value] if number else [])
        return value

    def _command(self, command: Sequence[_Token], *, piped: list[Any]) -> Any:
        if not command:
            raise TemplateError("missing value for command")
        operands = _operands(command)
        first = operands[0]
        if len(first) == 1 and first[0].kind == "word" and first[0].text not in go_functions.CONSTANTS:
            arguments = [self._operand(operand) for operand in operands[1:]]
            return self._call(first[0].text, [*arguments, *piped])
        if len(operands) > 1 or piped:
            raise TemplateError(f"can't give argument to non-function {first[0].text}")
        return self._operand(first)

    def _call(self, name: str, arguments: list[Any]) -> Any:
        if name == "now" and not arguments:
            return go_functions.moment(self._now)
        if name not in go_functions.FUNCTIONS:
            raise TemplateError(f'function "{name}" not defined')
        try:
            return go_functions.FUNCTIONS[name](*arguments)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise TemplateError(f"error calling {name}: {error}") from error

    def _operand(self, tokens: Sequence[_Token]) -> Any:
        token = tokens[0]
        if token.kind == "sign":
            return self._value(tokens[1:-1])
        match token.kind:
            case "string":
                return go_functions.unquoted(token.text)
            case "number":
                return float(token.text) if "." in token.text else int(token.text)
            case "field":
                return _member(self._dot, token.text[1:].split(".") if len(token.text) > 1 else [])
            case "variable":
                name, *path = token.text.split(".")
                if name not in self._variables:
                    raise TemplateError(f"undefined variable {name!r}")
                return _member(self._variables[name], path)
            case _:
                if token.text in go_functions.CONSTANTS:
                    return go_functions.CONSTANTS[token.text]
                return self._call(token.text, [])


def _assigns(tokens: Sequence[_Token]) -> bool:
    return len(tokens) > 2 and tokens[0].kind == "variable" and tokens[1].text in (":=", "=")


def _range_variables(tokens: tuple[_Token, ...]) -> tuple[list[str], tuple[_Token, ...]]:
    index = next((index for index, token in enumerate(tokens) if token.text == ":="), None)
    if index is None:
        return [], tokens
    return [token.text for token in tokens[:index] if token.kind == "variable"], tokens[index + 1 :]


def _split(tokens: Sequence[_Token]) -> list[list[_Token]]:
    """Split a pipeline at the `|` outside of parentheses."""
    commands: list[list[_Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")") if token.kind == "sign" else 0
        if token.kind == "sign" and token.text == "|" and depth == 0:
            commands.append([])
        else:
            commands[-1].append(token)
    return commands


def _operands(command: Sequence[_Token]) -> list[list[_Token]]:
    """Split a command into operands; one in parentheses stays together."""
    operands: list[list[_Token]] = []
    depth = 0
    for token in command:
        is_sign = token.kind == "sign"
        if depth == 0:
            operands.append([])
        depth += (token.text == "(") - (token.text == ")") if is_sign else 0
        operands[-1].append(token)
    if depth:
        raise TemplateError("unclosed left paren")
    return operands


def _member(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, Mapping):
            raise TemplateError(f"can't evaluate field {name} in {shown(value)}")
        if name not in value:
            raise TemplateError(f'map has no entry for key "{name}"')
        value = value[name]
    return value
