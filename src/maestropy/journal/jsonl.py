"""Write a record as one JSON line, for collectors that index fields instead of text.

Pure: a record in, text out. Keys come in a stable order: ts, level, v, caller, msg, err, then the fields, at top level.
"""

import time
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Final

import orjson

from maestropy.journal import chain, gotext
from maestropy.journal.record import Record

_OWN: Final = frozenset({"ts", "level", "v", "caller", "msg", "err"})


def line(record: Record) -> str:
    """Return `record` as a line, with its newline."""
    second, micros = divmod(round(record.stamp * 1e6), 1_000_000)
    err = record.err
    trouble = "" if err is None else f',"err":{_string(err)}'
    return (
        f'{{"ts":"{_second(second)}.{micros:06d}Z","level":"{record.severity}","v":{record.v},'
        f'"caller":{_constant(record.caller)},"msg":{_constant(record.message)}'
        f"{trouble}{record.bound}{pairs(record.fields)}}}\n"
    )


def pairs(fields: Mapping[str, object]) -> str:
    """Return `,"key":value` for every field, in their order."""
    if type(fields) is dict and fields and _OWN.isdisjoint(fields):
        try:
            return f",{orjson.dumps(fields)[1:-1].decode()}"
        except TypeError:
            pass  # something that JSON does not know: one by one
    return "".join([_key(key) + _value(value) for key, value in fields.items()])


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, BaseException):
        return _string(chain.describe(value))
    if isinstance(value, timedelta):
        return _string(gotext.duration(value))
    if isinstance(value, bytes):
        return _string(value.decode("utf-8", "replace"))
    return gotext.json_text(value)


def _string(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except TypeError:  # a lone surrogate: no JSON text can hold it
        return gotext.json_text(text)


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    # A field that has the name of one of our own keys gets an underscore, so that no key occurs twice.
    return f",{_string('_' + key if key in _OWN else key)}:"


_constant = lru_cache(maxsize=1024)(_string)


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
