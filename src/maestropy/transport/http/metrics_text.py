"""Format metrics in the Prometheus text format, with the names and labels of the Go programs.

The Python client library names every counter `…_total`, adds `…_created` series and writes `le="1.0"`. Dashboards and
alerts use the names and labels of the Go programs, so this module writes those. Pure: families in, text out.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from prometheus_client.core import Metric

PLAIN_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

TENFOLD: Final = (1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1, 10)
"""Buckets of work queues, with the rounding errors of Go: they are part of the labels of existing series."""


def text(families: Iterable[Metric], *, bare_counters: Collection[str]) -> str:
    """Return `families` as text; `bare_counters` are those whose names do not end in `_total`."""
    return "".join([line for family in families for line in _lines(family, bare=family.name in bare_counters)])


def _lines(family: Metric, *, bare: bool) -> list[str]:
    is_counter = family.type == "counter"
    name = f"{family.name}_total" if is_counter and not bare else family.name
    samples = []
    for sample in family.samples:
        if sample.name == f"{family.name}_created":
            continue
        exposed = name if is_counter else sample.name
        samples.append(f"{exposed}{_labels(sample.labels)} {_number(sample.value)}\n")
    if not samples:
        return []  # a family without samples is omitted, as in Go
    shown = family.documentation.replace("\\", "\\\\").replace("\n", "\\n")
    kind = "untyped" if family.type == "unknown" else family.type
    return [f"# HELP {name} {shown}\n", f"# TYPE {name} {kind}\n", *samples]


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{key}="{_escaped(value)}"' for key, value in sorted(labels.items()) if key != "le"]
    if "le" in labels:
        pairs.append(f'le="{labels["le"].removesuffix(".0")}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
