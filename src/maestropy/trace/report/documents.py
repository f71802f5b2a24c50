"""Write many requests as JSON, JSON lines or YAML, request by request. Pure: traces in, pieces of text out.

Of many requests, those that need attention are written in full, and settled ones without stages, status updates and
timeline: a large log has tens of thousands of these. `maestro trace request` shows each of them in full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import SETTLED, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import envelope, json_line, json_text, yaml_text
from maestropy.trace.report import json_model
from maestropy.trace.report.statistics import Statistics

MOST_IN_FULL: Final = 2000
"""Up to so many requests, each is written in full."""


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

    def is_lean(self, trace: Trace) -> bool:
        """Say whether a request is written without its stages."""
        return not self.is_in_full and len(self.traces) > MOST_IN_FULL and trace.verdict in SETTLED

    def request(self, trace: Trace) -> dict[str, Any]:
        """Return one request: in full if it needs attention or there are few, else without its stages."""
        model = json_model.brief_model if self.is_lean(trace) else json_model.trace_model
        return model(trace, self.environment)

    def frame(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what comes before the requests, and what comes after them."""
        notes = [json_model.finding_model(note, self.environment) for note in tracer.log_findings(self.environment)]
        body = {"inputs": json_model.inputs_model(self.environment)}
        generated_at = json_model.stamp(self.now) or ""
        head = envelope(generated_at=generated_at, exit_code=self.exit_code, body=body)
        code = head.pop("exitCode")
        return head, {"notes": notes, "stats": json_model.statistics_model(self.numbers), "exitCode": code}


def json_indented(document: Document) -> str:
    """Return one JSON document for people."""
    head, tail = document.frame()
    return json_text({**head, "requests": [document.request(trace) for trace in document.traces], **tail})


def json_pieces(document: Document) -> Iterator[str]:
    """Yield one JSON document, with a line for each request."""
    head, tail = document.frame()
    yield json_line(head)[:-1] + ',\n"requests":['
    separator = "\n"
    for trace in document.traces:
        yield separator + json_line(document.request(trace))
        separator = ",\n"
    yield "\n],\n" + json_line(tail)[1:] + "\n"


def json_lines(document: Document) -> Iterator[str]:
    """Yield each request as a line of JSON."""
    for trace in document.traces:
        yield json_line(document.request(trace)) + "\n"


def yaml_pieces(document: Document) -> Iterator[str]:
    """Yield one YAML document; settled requests take one line each, in YAML's flow style."""
    head, tail = document.frame()
    yield yaml_text(head)
    yield "requests:\n" if document.traces else "requests: []\n"
    for trace in document.traces:
        model = document.request(trace)
        if document.is_lean(trace):
            yield f"- {json_line(model)}\n"
        else:
            yield yaml_text([model])
    yield yaml_text(tail)
