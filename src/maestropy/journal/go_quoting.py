"""Format values as Go does: quoted strings, JSON, durations.

Tools that read the logs of Maestro parse exactly these forms, so the output equals Go's byte for byte. One exception:
JSON escapes control and format characters beyond ASCII too, which Go writes raw; it means the same to every parser.
The module formats values; it knows nothing of log lines.
"""

import base64
import math
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

import orjson

from maestropy.untrusted import printable

_NAMED_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_HTML: Final = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_NESTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z
_MAX_DEPTH = 64


def quote(text: str) -> str:
    """Return `text` as `strconv.Quote` does."""
    if text.isprintable():
        if "\\" in text:
            text = text.replace("\\", "\\\\")
        if '"' in text:
            text = text.replace('"', '\\"')
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def quote_bytes(data: bytes) -> str:
    """Return `data` as `%+q` does: ASCII only, bytes that are not UTF-8 as `\\x..`."""
    text = data.decode("utf-8", "surrogateescape")
    return '"' + "".join(_escape(char) if char < "\x7f" else _escape_code(ord(char)) for char in text) + '"'


def _escape(char: str) -> str:
    if named := _NAMED_ESCAPES.get(char):
        return named
    return char if char.isprintable() else _escape_code(ord(char))


def _escape_code(code: int) -> str:
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, kept by `surrogateescape`
        return f"\\x{code - 0xDC00:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: object) -> str:
    """Return `value` as `encoding/json` does: sorted keys, no blanks, `<`, `>` and `&` escaped."""
    if type(value) is dict and _PLAIN.issuperset(map(type, value.values())):
        try:
            text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        except TypeError:  # huge integers, lone surrogates, keys that are no strings
            text = orjson.dumps(_portable(value), option=_NESTED).decode()
    else:
        text = orjson.dumps(_portable(value), option=_NESTED).decode()
    if "<" in text or ">" in text or "&" in text or not text.isascii():
        for char, escaped in _HTML:
            text = text.replace(char, escaped)
    return printable.json_ascii(text)


def _portable(value: object, depth: int = 0) -> object:
    """Return `value` converted so that orjson writes it as Go does."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int | float | timedelta):
        return orjson.Fragment(_number_text(value).encode())
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return _portable_container(value, depth)


def _number_text(value: float | timedelta) -> str:
    if isinstance(value, timedelta):
        return str(_nanoseconds(value))
    return float_text(value) if isinstance(value, float) else str(int(value))


def _portable_container(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {_portable_key(key): _portable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_portable(item, depth + 1) for item in value), key=str)
    try:
        return orjson.Fragment(orjson.dumps(value, option=_NESTED))
    except TypeError:
        return str(value)


def _portable_key(key: object) -> object:
    return _portable(key) if isinstance(key, str) else str(key)


def float_text(number: float) -> str:
    """Return `number` as `encoding/json` does; infinity and NaN become null."""
    if not math.isfinite(number):
        return "null"
    if number != 0 and not 1e-6 <= abs(number) < 1e21:
        return repr(number).replace("e-0", "e-")
    return format(Decimal(repr(number)), "f").removesuffix(".0")


def duration(span: timedelta) -> str:
    """Return `span` as `time.Duration` prints itself: `5m13.27s`, `1h0m0s`, `1.5ms`."""
    nanoseconds = _nanoseconds(span)
    sign, remainder = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if remainder == 0:
        return "0s"
    if remainder < 1_000_000_000:
        # A timedelta holds whole microseconds, so the unit ns is never needed.
        size, unit = (1_000, "µs") if remainder < 1_000_000 else (1_000_000, "ms")
        return f"{sign}{_decimal(remainder, size)}{unit}"
    minutes, remainder = divmod(remainder, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(remainder, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _nanoseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    if not part:
        return str(whole)
    return f"{whole}.{part:0{len(str(unit)) - 1}d}".rstrip("0")
