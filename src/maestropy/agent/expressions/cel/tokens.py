"""Split a CEL expression into tokens."""

import re
from dataclasses import dataclass
from typing import Any

from maestropy.agent.expressions.cel.values import INT_MAX, UINT_MAX, CelUint, CompileError

MAX_LENGTH = 4 * 1024
"""Characters of an expression."""

RESERVED = frozenset(
    """as break const continue else for function if import let loop package namespace return var void while""".split()  # noqa: SIM905  # a list of words reads best as one
)
_LITERALS = {"true": True, "false": False, "null": None}

_TOKEN = re.compile(
    r"""
      (?P<blank>   [ \t\r\n\f]+ | //[^\n]* )
    | (?P<text>    [bB]?[rR]?(?:\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
                   | \"(?:\\.|[^\\\"\n\r])*\" | '(?:\\.|[^\\'\n\r])*') )
    | (?P<double>  (?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ )
    | (?P<int>     (?:0x[0-9a-fA-F]+|[0-9]+)[uU]? )
    | (?P<name>    [_a-zA-Z][_a-zA-Z0-9]* | `[_a-zA-Z0-9./\- ]+` )
    | (?P<sign>    \.\? | \[\? | \{\? | && | \|\| | == | != | <= | >= | [-+*/%<>!?:.,()\[\]{}] )
    """,
    re.VERBOSE | re.DOTALL,
)
_RAW = re.compile(r"([bB]?[rR]?)(\"{3}|'{3}|\"|')(.*)\2", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))|\\(.?)",
    re.DOTALL,
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class CelToken:
    """One token; `kind` is `name`, `value`, `end`, or the sign itself."""

    kind: str
    value: Any
    position: int


def tokenize(source: str) -> list[CelToken]:
    """Return the tokens of an expression, closed by an `end`."""
    if len(source) > MAX_LENGTH:
        problem = f"expression has {len(source)} characters, more than the {MAX_LENGTH} allowed"
        raise CompileError(problem, source=source[:64], position=0)
    tokens: list[CelToken] = []
    position = 0
    while position < len(source):
        matched = _TOKEN.match(source, position)
        if matched is None:
            problem = f"Syntax error: token recognition error at: '{source[position]}'"
            raise CompileError(problem, source=source, position=position)
        if matched.lastgroup != "blank":
            tokens.append(_token(matched, source))
        position = matched.end()
    return [*tokens, CelToken("end", "<EOF>", len(source))]


def _token(matched: re.Match[str], source: str) -> CelToken:
    text, position = matched.group(), matched.start()
    match matched.lastgroup:
        case "name":
            if text in _LITERALS:
                return CelToken("value", _LITERALS[text], position)
            return CelToken("name", text.strip("`"), position)
        case "text":
            return CelToken("value", _text(text, source=source, position=position), position)
        case "double":
            return CelToken("value", float(text), position)
        case "int":
            return CelToken("value", _integer(text, source=source, position=position), position)
        case _:
            return CelToken(text, text, position)


def _integer(text: str, *, source: str, position: int) -> int:
    digits = text.rstrip("uU")
    is_signed = digits == text
    # One more than INT_MAX, for -9223372036854775808: its digits are read before the sign is applied.
    limit = INT_MAX + 1 if is_signed else UINT_MAX
    number = int(digits[:40], 16 if digits.startswith("0x") else 10)
    if len(digits) > 40 or number > limit:
        raise CompileError(f"invalid {'int' if is_signed else 'uint'} literal", source=source, position=position)
    return number if is_signed else CelUint(number)


def _text(text: str, *, source: str, position: int) -> str | bytes:
    matched = _RAW.fullmatch(text)
    assert matched is not None
    prefix, _, inside = matched.groups()
    is_bytes, is_raw = "b" in prefix.lower(), "r" in prefix.lower()
    if is_raw or "\\" not in inside:
        return inside.encode() if is_bytes else inside
    try:
        plain = _ESCAPE.sub(lambda escape: _unescaped(escape, is_bytes=is_bytes), inside)
    except ValueError as error:
        raise CompileError(f"Syntax error: {error}", source=source, position=position) from error
    return plain.encode("utf-8", "surrogateescape") if is_bytes else plain


def _unescaped(escape: re.Match[str], *, is_bytes: bool) -> str:
    simple, hexadecimal, short, long, octal, _ = escape.groups()
    if simple is not None:
        return _ESCAPED.get(simple, simple)
    if hexadecimal is not None or octal is not None:
        code = int(hexadecimal, 16) if hexadecimal is not None else int(octal, 8)
        # In bytes such an escape is one byte, not one character.
        return bytes([code]).decode("utf-8", "surrogateescape") if is_bytes else chr(code)
    code = int(short or long or "110000", 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"unable to unescape string: {escape.group()}")
    return chr(code)
