r"""Parse a JSONPath template of the Kubernetes dialect into steps. `jsonpath` evaluates them.

    template = { text | "{" action "}" }                      text outside braces stands for itself
    action   = { blank | "@" | "$" | step }                   "@" and "$" name the current value and may be left out
    step     = "." key                                        a member; "\" keeps the next character, as in .a\.b
             | ".*"                                           every member or item
             | ".." [ key ]                                   everything below, or every `key` below
             | "['" key { "." key } "']"                      members: a dot inside still separates
             | "[" int "]"  |  "[*]"                          an item (negative: from the end), every item
             | "[" [int] ":" [int] [ ":" [int] ] "]"          a slice with a step
             | "[" choice "," choice { "," choice } "]"       several keys, indexes or slices
             | "[?(" action [ operator action ] ")]"          items that have something, or for which it compares
             | "'" text "'"  |  '"' text '"'                  a string, with the escapes of Go
             | number | "true" | "false"
             | word                                           "range" and "end"; any other word fails when evaluated
    operator = "==" | "!=" | "<" | "<=" | ">" | ">="          others are parsed, and rejected when evaluated
    key      = characters other than blank . , [ ] $ @ { }

The path of a rule is an action without its braces; `parse_path` adds them.
"""

import math
import re
from dataclasses import dataclass

MAX_LENGTH = 4 * 1024
"""Characters of a template. Paths written by hand stay under a hundred."""
MAX_NESTING = 16
"""Nesting depth of filters and unions."""

_INTEGER_MAX_LENGTH = 18
_KEY = re.compile(r"(?:\\.|[^ \t\r\n.,\[\]$@{}\\])*\\?", re.DOTALL)
_IDENTIFIER = re.compile(r"[^ \t\r\n.,\[\]$@{}]+")
_NUMBER = re.compile(r"[+-]?[\d.]*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=~]+)(.+)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|\\")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JsonPathError(Exception):
    """The path cannot be parsed or evaluated; the text says why."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Identifier:
    """`range`, `end`, or an unknown identifier."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """A member."""

    name: str


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Every member or item."""


@dataclass(frozen=True, slots=True)
class Recursive:
    """A value and everything below it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Items of a list; an index is a slice of one."""

    start: int | None
    stop: int | None
    step: int | None
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """What any of the choices selects."""

    choices: "tuple[Action, ...]"


@dataclass(frozen=True, slots=True)
class Filter:
    """Items for which the comparison holds; without operator, those that have what `left` selects."""

    left: "Action"
    operator: str = ""
    right: "Action" = ()


Step = Literal | Identifier | Field | Wildcard | Recursive | Slice | Union | Filter
Action = tuple[Step, ...]
Template = tuple[Action, ...]
"""Text outside braces is an action of one literal."""


def parse_path(path: str) -> Template:
    """Parse the path of a rule, which has no braces."""
    return parse(f"{{{path}}}")


def parse(template: str) -> Template:
    """Parse a template."""
    if len(template) > MAX_LENGTH:
        raise JsonPathError(f"path has {len(template)} characters, more than the {MAX_LENGTH} allowed")
    return _parse(template, nesting=0)


def _parse(template: str, *, nesting: int) -> Template:
    if nesting > MAX_NESTING:
        raise JsonPathError(f"filters and unions are nested more than {MAX_NESTING} deep")
    actions: list[Action] = []
    position = 0
    while position < len(template):
        brace = template.find("{", position)
        text = template[position:] if brace < 0 else template[position:brace]
        if text:
            actions.append((Literal(text),))
        if brace < 0:
            break
        reader = _ActionReader(template, position=brace + 1, nesting=nesting)
        actions.append(reader.read())
        position = reader.position
    return tuple(actions)


def _parse_inner(action: str, *, nesting: int) -> Action:
    """Parse the inside of a filter or union; only its first action counts."""
    return _parse(f"{{{action}}}", nesting=nesting + 1)[0]


class _ActionReader:
    """Parses one action, from behind its opening brace to behind its closing one."""

    def __init__(self, text: str, *, position: int, nesting: int) -> None:
        self.text = text
        self.position = position
        self._nesting = nesting
        self._steps: list[Step] = []

    def read(self) -> Action:
        while not self.text.startswith("}", self.position):
            self._read_step()
        self.position += 1
        return tuple(self._steps)

    def _read_step(self) -> None:
        first = self.text[self.position : self.position + 1]
        if self.text.startswith("[?(", self.position):
            self._steps.append(self._filter())
        elif self.text.startswith("..", self.position):
            self._recursive()
        elif first in ("", "\r", "\n"):
            raise JsonPathError("unclosed action")
        elif first in " @$":
            self.position += 1
        elif first == "[":
            self._brackets()
        elif first in "\"'":
            self._steps.append(Literal(self._quoted(first)))
        elif first == ".":
            self.position += 1
            self._key()
        elif first in "+-" or first.isdecimal():
            self._steps.append(Literal(self._number()))
        elif first == "_" or first.isalpha():
            self._identifier()
        else:
            quoted = f" '{first}'" if first.isprintable() else ""
            raise JsonPathError(f"unrecognized character in action: U+{ord(first):04X}{quoted}")

    def _take(self, pattern: re.Pattern[str]) -> str:
        matched = pattern.match(self.text, self.position)
        taken = matched.group() if matched else ""
        self.position += len(taken)
        return taken

    def _key(self) -> None:
        name = self._take(_KEY)
        self._steps.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _identifier(self) -> None:
        name = self._take(_IDENTIFIER)
        self._steps.append(Literal(name == "true") if name in ("true", "false") else Identifier(name))

    def _recursive(self) -> None:
        if self._steps and isinstance(self._steps[-1], Recursive):
            raise JsonPathError("invalid multiple recursive descent")
        self.position += 2
        self._steps.append(Recursive())
        following = self.text[self.position : self.position + 1]
        if following == "_" or following.isalpha() or following.isdecimal():
            self._key()

    def _number(self) -> int | float:
        text = self._take(_NUMBER)
        if _INTEGER.fullmatch(text) and len(text) <= _INTEGER_MAX_LENGTH:
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        raise JsonPathError(f"cannot parse number {text}")

    def _quoted(self, quote: str) -> str:
        end = self.position + 1
        while True:
            end = self.text.find(quote, end)
            newline = self.text.find("\n", self.position, end if end >= 0 else None)
            if end < 0 or newline >= 0:
                raise JsonPathError("unterminated quoted string")
            if self.text[end - 1] != "\\":
                break
            end += 1
        raw = self.text[self.position : end + 1]
        self.position = end + 1
        return _unquoted(raw)

    def _brackets(self) -> None:
        end = self.text.find("]", self.position)
        if end < 0 or "\n" in self.text[self.position : end]:
            raise JsonPathError("unterminated array")
        inside = self.text[self.position + 1 : end]
        self.position = end + 1
        if inside == "*":
            self._steps.append(Slice(None, None, None))
        elif "," in inside:
            choices = (f"[{choice.strip(' ')}]" for choice in inside.split(","))
            self._steps.append(Union(tuple(_parse_inner(choice, nesting=self._nesting) for choice in choices)))
        elif re.fullmatch(r"'[^']*'", inside):
            self._steps.extend(_parse_inner(f".{inside[1:-1]}", nesting=self._nesting))
        else:
            self._steps.append(_slice(inside))

    def _filter(self) -> Filter:
        self.position += len("[?(")
        end = self._end_of_filter()
        inside = self.text[self.position : end]
        self.position = end + 1
        if not self.text.startswith("]", self.position):
            raise JsonPathError("unclosed array expect ]")
        self.position += 1
        comparison = _COMPARISON.fullmatch(inside)
        if comparison is None:
            return Filter(_parse_inner(inside, nesting=self._nesting))
        left, operator, right = comparison.groups()
        return Filter(_parse_inner(left, nesting=self._nesting), operator, _parse_inner(right, nesting=self._nesting))

    def _end_of_filter(self) -> int:
        quote = ""
        for position in range(self.position, len(self.text)):
            character = self.text[position]
            if character == "\n":
                break
            if quote:
                if character == quote and self.text[position - 1] != "\\":
                    quote = ""
            elif character in "\"'":
                quote = character
            elif character == ")":
                return position
        raise JsonPathError("unterminated filter")


def _slice(text: str) -> Slice:
    matched = _SLICE.fullmatch(text)
    if matched is None:
        raise JsonPathError(f"invalid array index {text}")
    start, stop, step = (_bound(part) for part in matched.groups())
    if matched[2] is None:
        return Slice(start or 0, None, step, is_index=True)
    return Slice(start, stop, step)


def _bound(part: str | None) -> int | None:
    digits = (part or "").removeprefix(":")
    if not digits:
        return None
    if digits == "-" or len(digits) > _INTEGER_MAX_LENGTH:
        raise JsonPathError(f"array index {digits} is not a number")
    return int(digits)


def _unquoted(raw: str) -> str:
    inside = raw[1:-1]
    return _ESCAPE.sub(_unescaped, inside) if "\\" in inside else inside


def _unescaped(escape: re.Match[str]) -> str:
    simple, *coded = escape.groups()
    if simple is not None:
        return _ESCAPED.get(simple, simple)
    for digits, base in zip(coded, (16, 16, 16, 8), strict=True):
        if digits is not None and int(digits, base) <= 0x10FFFF:
            return chr(int(digits, base))
    raise JsonPathError(f"unquote string {escape.string[:64]!r} error invalid syntax")
