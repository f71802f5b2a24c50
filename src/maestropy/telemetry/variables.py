"""Check the OTEL_* variables that the SDK would reject, replace by a default or quote in its log. Pure.

The SDK raises for some while it is imported, and samples every request where it cannot read the sampler. Headers carry
tokens, so no message has a value of theirs.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_LIMITS: Final = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
)
_QUEUE, _BATCH = "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
_SIZES: Final = {_QUEUE: 2048, _BATCH: 512, "OTEL_BSP_SCHEDULE_DELAY": 5000, "OTEL_BSP_EXPORT_TIMEOUT": 30000}
"""With the defaults of the SDK."""
_TIMEOUTS: Final = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
_COMPRESSIONS: Final = ("OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION")
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_SAMPLER, _ARGUMENT = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
_RATIOS: Final = ("traceidratio", "parentbased_traceidratio")
_SAMPLERS: Final = ("always_on", "always_off", "parentbased_always_on", "parentbased_always_off", *_RATIOS)
_HEADER: Final = re.compile(r"""[!#-'*+\-.0-9A-Z^-z|~]+[ \t]*=[ !#-+\-.-:<-\[\]-~\t/]*""")
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SHOWN: Final = 64
_SHORTEST_SECRET: Final = 4


def problem(environ: Mapping[str, str]) -> str:
    """Return which variable cannot be used, and the remedy; empty if none is known to be wrong."""
    return next(_problems({name: text.strip() for name, text in environ.items() if text.strip()}), "")


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """Return a message of the SDK without the values of headers."""
    for piece in (piece.strip() for name in _HEADERS for piece in environ.get(name, "").split(",")):
        for secret in (piece, piece.partition("=")[2].strip(), *piece.split()):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
    return text


def _problems(environ: Mapping[str, str]) -> Iterator[str]:
    yield from _sampling(environ)
    yield from _numbers(environ)
    yield from _exporter(environ)


def _numbers(environ: Mapping[str, str]) -> Iterator[str]:
    for name in _LIMITS:
        if name in environ and not _WHOLE.fullmatch(environ[name]):
            yield _wrong(name, environ, "set it to a whole number from 0, or unset it")
    for name in _SIZES:
        if name in environ and not (_WHOLE.fullmatch(environ[name]) and int(environ[name])):
            yield _wrong(name, environ, "set it to a whole number from 1, or unset it")
    queue, batch = (int(environ.get(name, _SIZES[name])) for name in (_QUEUE, _BATCH))
    if batch > queue:
        yield f"{_BATCH} ({batch}) is greater than {_QUEUE} ({queue}); set it to {queue} or less"


def _exporter(environ: Mapping[str, str]) -> Iterator[str]:
    for name in _TIMEOUTS:
        if name in environ and not (_DECIMAL.fullmatch(environ[name]) and float(environ[name]) > 0):
            yield _wrong(name, environ, "set it to a number above 0, or unset it")
    for name in _COMPRESSIONS:
        if environ.get(name, "none").lower() not in ("none", "gzip", "deflate"):
            yield _wrong(name, environ, "set it to gzip, deflate or none")
    for name in _HEADERS:
        pieces = (piece.strip() for piece in environ.get(name, "").split(","))
        if not all(_HEADER.fullmatch(piece) for piece in pieces if piece):
            yield f"{name} is malformed; set it to name=value pairs with commas in between and values URL encoded"


def _sampling(environ: Mapping[str, str]) -> Iterator[str]:
    sampler = environ.get(_SAMPLER, "parentbased_always_on").lower()
    if sampler not in _SAMPLERS:
        yield _wrong(_SAMPLER, environ, f"set it to one of {', '.join(_SAMPLERS)}")
    if sampler in _RATIOS and _ARGUMENT in environ:
        text = environ[_ARGUMENT]
        if not (_DECIMAL.fullmatch(text) and 0 <= float(text) <= 1):
            yield _wrong(_ARGUMENT, environ, "set it to the share of requests to trace, a number from 0 to 1")


def _wrong(name: str, environ: Mapping[str, str], remedy: str) -> str:
    return f"{name}={environ[name][:_SHOWN]} cannot be used; {remedy}"
