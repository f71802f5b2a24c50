"""Values out of a klog record: `key="quoted as Go does"`, `key=plain`, `key=<` several lines. Pure."""

import re

_ESCAPES = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def field(line: bytes, key: bytes) -> str:
    """Return the value of ` key="…"` or ` key=…` of a klog record, unquoted; empty when it is not there."""
    at = line.rfind(b" " + key + b"=")
    if at < 0:
        return ""
    at += len(key) + 2
    if line[at : at + 1] == b'"':
        return unquoted(line, at)
    if line[at : at + 2] == b"<\n":
        end = line.find(b"\n >", at)
        body = line[at + 2 : end if end >= 0 else len(line)].decode("utf-8", "replace")
        return "\n".join(part.removeprefix("\t") for part in body.split("\n"))
    end = line.find(b" ", at)
    return line[at : end if end >= 0 else len(line)].decode("utf-8", "replace")


def unquoted(line: bytes, at: int) -> str:
    """Return the Go string that begins with the quote at `at`; one that is cut off ends where the line does."""
    end = at + 1
    while True:
        end = line.find(b'"', end)
        if end < 0:
            end = len(line)
            break
        back = end - 1
        while line[back : back + 1] == b"\\":
            back -= 1
        if (end - 1 - back) % 2 == 0:
            break
        end += 1
    text = line[at + 1 : end].decode("utf-8", "replace")
    return _ESCAPES.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if code[0] in "xuU" and len(code) > 1:
        value = int(code[1:], 16)
        return chr(value) if value < 0x110000 else "\ufffd"
    return _NAMED.get(code, code)


def plain(line: bytes, start: bytes) -> str:
    """Return a value that has no escapes, such as an id."""
    at = line.find(start)
    if at < 0:
        return ""
    at += len(start)
    return line[at : line.find(b'"', at)].decode("utf-8", "replace")
