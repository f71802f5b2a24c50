"""Parse the fields of a klog record: ` key="value"`, ` key=<` blocks and ` key=value` after the message.

Text within a value is never a field, whatever it looks like: error messages quote whole log lines. klog writes strings
as Go quotes them, strings of several lines as blocks of indented lines, and everything else as compact JSON or text.
Pure: bytes in, values out.
"""

import re
from typing import Final

import orjson

LONGEST_NUMBER: Final = 19
"""Digits of the largest 64-bit number."""
_GO_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ESCAPES = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_FIELD = re.compile(
    rb"""
    [ \n]([^\s"=<>{}]++)=(?:
      ("(?:[^"\\]++|\\.)*+(?:"|\Z))           # a Go string; the last one of a torn record has no end
    | (<\n(?s:.*?)(?:\n[ ]>|\Z))              # a block: its lines start with a tab, its end with a space
    | ((?:[^\s"]++|"(?:[^"\\]++|\\.)*+(?:"|\Z))*+)  # a number, a word or compact JSON, whose strings may have spaces
    )
    | "(?:[^"\\]++|\\.)*+(?:"|\Z)             # a string without a key: no field starts in it
    """,
    re.VERBOSE | re.DOTALL,
)
"""A block cannot be ended by its own text: klog writes a tab before each line of it."""


class KlogFields:
    """The fields of one klog record, parsed once; their values are decoded on demand."""

    __slots__ = ("_raw",)

    def __init__(self, line: bytes, *, start: int) -> None:
        """Parse the fields after the message, whose opening quote is at `start`."""
        message = _GO_STRING.match(line, start)
        raw: dict[bytes, bytes] = {}
        for key, quoted, block, bare in _FIELD.findall(line, message.end() if message else start):
            if key:
                raw[key] = quoted or block or bare
        self._raw = raw

    def __call__(self, key: str) -> str:
        """Return the decoded value of a key; empty when the record does not have it."""
        value = self._raw.get(key.encode())
        if not value:
            return ""
        if value[:1] == b'"':
            return unquoted(value, 0)
        if value[:2] == b"<\n":
            body = value[2:].removesuffix(b"\n >").decode("utf-8", "replace")
            return "\n".join(line.removeprefix("\t") for line in body.split("\n"))
        return value.decode("utf-8", "replace")

    @property
    def is_empty(self) -> bool:
        return not self._raw

    def raw(self, key: bytes) -> bytes:
        return self._raw.get(key, b"")


def unquoted(line: bytes, at: int) -> str:
    """Return the Go string that starts with the quote at `at`; a truncated one ends at the end of the line."""
    match = _GO_STRING.match(line, at)
    if match is not None:
        try:
            # Nearly all Go strings are JSON strings too, and these are read at once.
            text: str = orjson.loads(match.group())
        except orjson.JSONDecodeError:
            pass
        else:
            return text
    end = match.end() - 1 if match is not None else len(line)
    text = _ESCAPES.sub(_unescaped, line[at + 1 : end].decode("utf-8", "replace"))
    # Half of a surrogate pair is no character, and cannot be written as UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_strings(line: bytes) -> bytes:
    """Return a line without its quoted texts."""
    return _GO_STRING.sub(b"", line)


def number(text: object, default: int) -> int:
    """Return the number that a log shows; `default` for what is none, or is larger than any number of Maestro."""
    digits = str(text)
    is_number = len(digits) <= LONGEST_NUMBER and digits.isascii() and digits.isdecimal()
    return int(digits) if is_number else default


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        value = int(code[1:], 16)
        return chr(value) if value < 0x110000 else "\ufffd"
    return _NAMED.get(code, code)
