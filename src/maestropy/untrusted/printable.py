"""Escape characters that could drive a terminal, forge a line or reorder text on the screen.

Escaped are all characters that Unicode calls not printable: C0 and C1 controls with ESC, other line separators, and
format characters such as bidirectional overrides. Letters, marks and symbols of every language stay. Pure.
"""

import re
from typing import Final

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SUSPECT: Final = re.compile(r"[^ -~]+")


def escape(text: str) -> str:
    """Return `text` on one line, with every unprintable character as `\\n`, `\\x1b` or `\\u202e`."""
    return text if text.isprintable() else _SUSPECT.sub(_escape_run, text)


def escape_lines(text: str) -> str:
    """Return `text` escaped line by line: newlines and tabs stay."""
    if is_safe(text):
        return text
    return "\n".join("\t".join(map(escape, line.split("\t"))) for line in text.split("\n"))


def is_safe(text: str) -> bool:
    """Return whether `text` may be shown as it is; newlines and tabs are safe."""
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def json_ascii(text: str) -> str:
    """Return JSON text with every unprintable character outside ASCII, and DEL, as `\\uXXXX`; it means the same."""
    return text if is_safe(text) else _SUSPECT.sub(_escape_json_run, text)


def json_codes(text: str) -> str:
    """Return every character as `\\uXXXX`, as JSON writes it."""
    return "".join(map(_json_code, text))


def code(char: str) -> str:
    """Return the escape of one character, as Go and Python write it."""
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_run(run: re.Match[str]) -> str:
    return "".join(char if char.isprintable() else _NAMED.get(char) or code(char) for char in run.group())


def _escape_json_run(run: re.Match[str]) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else _json_code(char) for char in run.group())


def _json_code(char: str) -> str:
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
