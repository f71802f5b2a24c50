"""Cut a CEL expression into tokens."""

import re
from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide.cel.values import INT_MAX, UINT_MAX, CompileError, Uint

MAX_LENGTH = 16 * 1024
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
class Token:
    """One token; `kind` is `name`, `value`, `end`, or the sign itself."""

    kind: str
    value: Any
    position: int


def cut(source: str) -> list[Token]:
    """Return the tokens of an expression, closed by an `end`."""
    if len(source) > MAX_LENGTH:
        problem = f"expression has {len(source)} characters, more than the {MAX_LENGTH} allowed"
        raise CompileError(problem, source=source[:64], position=0)
    tokens: list[Token] = []
    position = 0
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            problem = f"Syntax error: token recognition error at: '{source[position]}'"
            raise CompileError(problem, source=source, position=position)
        if found.lastgroup != "blank":
            tokens.append(_token(found, source))
        position = found.end()
    return [*tokens, Token("end", "<EOF>", len(source))]


def _token(found: re.Match[str], source: str) -> Token:
    text, position = found.group(), found.start()
    match found.lastgroup:
        case "name":
            if text in _LITERALS:
                return Token("value", _LITERALS[text], position)
            return Token("name", text.strip("`"), position)
        case "text":
            return Token("value", _text(text, source=source, position=position), position)
        case "double":
            return Token("value", float(text), position)
        case "int":
            return Token("value", _integer(text, source=source, position=position), position)
        case _:
            return Token(text, text, position)


def _integer(text: str, *, source: str, position: int) -> int:
    digits = text.rstrip("uU")
    is_signed = digits == text
    # The one too many is for -9223372036854775808, whose digits are read before the sign is applied.
    limit = INT_MAX + 1 if is_signed else UINT_MAX
    number = int(digits[:40], 16 if digits.startswith("0x") else 10)
    if len(digits) > 40 or number > limit:
        raise CompileError(f"invalid {'int' if is_signed else 'uint'} literal", source=source, position=position)
    return number if is_signed else Uint(number)


def _text(text: str, *, source: str, position: int) -> str | bytes:
    found = _RAW.fullmatch(text)
    assert found is not None
    prefix, _, inside = found.groups()
    is_bytes, is_raw = "b" in prefix.lower(), "r" in prefix.lower()
    if is_raw or "\\" not in inside:
        return inside.encode() if is_bytes else inside
    try:
        plain = _ESCAPE.sub(lambda escape: _unescaped(escape, is_bytes=is_bytes), inside)
    except ValueError as error:
        raise CompileError(f"Syntax error: {error}", source=source, position=position) from error
    return plain.encode("utf-8", "surrogateescape") if is_bytes else plain


def _unescaped(found: re.Match[str], *, is_bytes: bool) -> str:
    simple, hexadecimal, short, long, octal, _ = found.groups()
    if simple is not None:
        return _ESCAPED.get(simple, simple)
    if hexadecimal is not None or octal is not None:
        code = int(hexadecimal, 16) if hexadecimal is not None else int(octal, 8)
        # In bytes such an escape is one byte, not one character.
        return bytes([code]).decode("utf-8", "surrogateescape") if is_bytes else chr(code)
    code = int(short or long or "110000", 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"unable to unescape string: {found.group()}")
    return chr(code)
