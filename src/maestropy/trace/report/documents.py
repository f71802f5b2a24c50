"""Write many requests as JSON, JSON lines or YAML, request by request. Pure: traces in, pieces of text out.

Of many requests, those that need attention are written in full, and settled ones without stages, status updates and
timeline: a large log has tens of thousands of these. `maestro trace request` shows each of them in full. One that needs
attention is written when it is judged and kept as a compressed line, because its records need several times the memory,
and judging it again takes as long as the first time.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import orjson

from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import SETTLED, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import envelope, json_line, json_text, yaml_text
from maestropy.trace.report import json_model
from maestropy.trace.report.statistics import Statistics

MOST_IN_FULL: Final = 2000
"""Up to so many requests, each is written in full."""
_MOST_IN_BLOCKS: Final = 200
"""Up to so many requests, YAML has a line for each value, which takes ten times as long as a line for each request."""
_LONGEST_SHARED: Final = 32_000
_EMPTY: Final = b""


class PackedLines:
    """Compresses lines that are much alike: each is compressed alone, with what it shares with the first."""

    def __init__(self) -> None:
        self._shared = _EMPTY

    def packed(self, line: str) -> bytes:
        plain = line.encode()
        self._shared = self._shared or plain[-_LONGEST_SHARED:]
        packer = zlib.compressobj(1, wbits=-zlib.MAX_WBITS, zdict=self._shared)
        return packer.compress(plain) + packer.flush()

    def line(self, packed: bytes) -> str:
        return zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=self._shared).decompress(packed).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Requests and the frame around them."""

    traces: Sequence[Trace]
    environment: Environment
    numbers: Statistics
    exit_code: int
    now: float
    is_in_full: bool = False
    """Whether settled requests have their stages too, however many there are."""
    packed: Sequence[bytes] = ()
    """For each request its line of JSON, where it was written before; empty where not."""
    packer: PackedLines = field(default_factory=PackedLines)

    def is_lean(self, trace: Trace) -> bool:
        """Say whether a request is written without its stages."""
        return not self.is_in_full and len(self.traces) > MOST_IN_FULL and trace.verdict in SETTLED

    def request(self, trace: Trace) -> dict[str, Any]:
        """Return one request: in full if it needs attention or there are few, else without its stages."""
        model = json_model.brief_model if self.is_lean(trace) else json_model.trace_model
        return model(trace, self.environment)

    def lines(self) -> Iterator[str]:
        """Yield a line of JSON for each request, without its end."""
        for trace, packed in zip(self.traces, self.packed or repeat(_EMPTY), strict=False):
            yield self.packer.line(packed) if packed else json_line(self.request(trace))

    def frame(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what comes before the requests, and what comes after them."""
        notes = [json_model.finding_model(note, self.environment) for note in tracer.log_findings(self.environment)]
        body = {"inputs": json_model.inputs_model(self.environment)}
        generated_at = json_model.stamp(self.now) or ""
        head = envelope(generated_at=generated_at, exit_code=self.exit_code, body=body)
        code = head.pop("exitCode")
        return head, {"notes": notes, "stats": json_model.statistics_model(self.numbers), "exitCode": code}


def json_indented(document: Document) -> Iterator[str]:
    """Yield one JSON document for people."""
    head, tail = document.frame()
    yield json_text(head).removesuffix("\n}\n") + ',\n  "requests": ['
    separator = "\n    "
    for trace in document.traces:
        yield separator + json_text(document.request(trace)).rstrip("\n").replace("\n", "\n    ")
        separator = ",\n    "
    yield ("\n  " if document.traces else "") + "],\n" + json_text(tail).removeprefix("{\n")


def json_pieces(document: Document) -> Iterator[str]:
    """Yield one JSON document, with a line for each request."""
    head, tail = document.frame()
    yield json_line(head)[:-1] + ',\n"requests":['
    separator = "\n"
    for line in document.lines():
        yield separator + line
        separator = ",\n"
    yield "\n],\n" + json_line(tail)[1:] + "\n"


def json_lines(document: Document) -> Iterator[str]:
    """Yield each request as a line of JSON."""
    for line in document.lines():
        yield line + "\n"


def yaml_pieces(document: Document) -> Iterator[str]:
    """Yield one YAML document; of many requests, each takes one line, in YAML's flow style."""
    head, tail = document.frame()
    yield yaml_text(head)
    yield "requests:\n" if document.traces else "requests: []\n"
    is_in_blocks = len(document.traces) <= _MOST_IN_BLOCKS
    for line in document.lines():
        yield yaml_text([orjson.loads(line)]) if is_in_blocks else f"- {line}\n"
    yield yaml_text(tail)
