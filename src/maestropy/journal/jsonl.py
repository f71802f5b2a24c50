"""Format a log record as one JSON line, for log collectors that index fields.

Pure: a record in, text out. The order of keys is stable: ts, level, v, caller, msg, err, then the fields at top level.
"""

import time
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Final

import orjson

from maestropy.journal import chain, go_quoting
from maestropy.journal.record import Record
from maestropy.untrusted import printable

_RESERVED: Final = frozenset({"ts", "level", "v", "caller", "msg", "err"})


def line(record: Record) -> str:
    """Return `record` as a line, with its newline."""
    second, micros = divmod(round(record.stamp * 1e6), 1_000_000)
    err = record.err
    error = "" if err is None else f',"err":{_string(err)}'
    return (
        f'{{"ts":"{_second(second)}.{micros:06d}Z","level":"{record.severity}","v":{record.v},'
        f'"caller":{_constant(record.caller)},"msg":{_constant(record.message)}'
        f"{error}{record.bound}{pairs(record.fields)}}}\n"
    )


def pairs(fields: Mapping[str, object]) -> str:
    """Return `,"key":value` for every field, in their order."""
    if type(fields) is dict and fields and _RESERVED.isdisjoint(fields):
        try:
            return printable.json_ascii(f",{orjson.dumps(fields)[1:-1].decode()}")
        except TypeError:
            pass  # a value that JSON does not know: format the fields one by one
    return "".join([_key(key) + _value(value) for key, value in fields.items()])


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, BaseException):
        return _string(chain.describe(value))
    if isinstance(value, timedelta):
        return _string(go_quoting.duration(value))
    if isinstance(value, bytes):
        return _string(value.decode("utf-8", "replace"))
    return go_quoting.json_text(value)


def _string(text: str) -> str:
    try:
        return printable.json_ascii(orjson.dumps(text).decode())
    except TypeError:  # a lone surrogate: no JSON text can hold it
        return go_quoting.json_text(text)


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    # A field with a reserved key gets an underscore, so that no key occurs twice.
    return f",{_string('_' + key if key in _RESERVED else key)}:"


_constant = lru_cache(maxsize=1024)(_string)


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
