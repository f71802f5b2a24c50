"""Receive spans over OTLP/HTTP on loopback, and show a trace as a tree: an OpenTelemetry collector for one terminal.

It needs the extra `otel`. A thread serves, so that a busy event loop does not lose spans.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_MAX_BYTES: Final = 64 * 2**20
_MAX_SPANS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span, as a process exported it."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for a root."""
    start_ns: int
    end_ns: int
    links: tuple[tuple[str, str], ...]
    """Trace ID and span ID of each link."""
    attributes: Mapping[str, str]
    error: str
    """Why it failed; empty if it did not."""


class OtlpReceiver:
    """Keeps the spans that processes export to `endpoint`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[ReceivedSpan] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="receive spans", daemon=True)

    @property
    def endpoint(self) -> str:
        """The value of OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def trace(self, trace_id: str) -> list[ReceivedSpan]:
        """Return the spans of one trace so far, in the order of their start."""
        with self._lock:
            found = [span for span in self._spans if span.trace_id == trace_id]
        return sorted(found, key=lambda span: (span.start_ns, span.end_ns))

    def spans(self) -> list[ReceivedSpan]:
        """Return all spans so far."""
        with self._lock:
            return list(self._spans)

    def receive(self, body: bytes) -> None:
        """Keep the spans of an export request; raises `DecodeError`."""
        spans = list(decode(body))
        with self._lock:
            self._spans = (self._spans + spans)[-_MAX_SPANS:]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = self.headers.get("content-length", "")
                if self.path != "/v1/traces" or not size.isdecimal() or int(size) > _MAX_BYTES:
                    self._answer(404 if self.path != "/v1/traces" else 413)
                    return
                try:
                    receiver.receive(self.rfile.read(int(size)))
                except DecodeError:
                    self._answer(400)
                else:
                    self._answer(200)

            def _answer(self, status: int) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Log no request."""

        return Handler


def decode(body: bytes) -> Iterable[ReceivedSpan]:
    """Read an export request of OTLP in protobuf; raises `DecodeError`."""
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(group.resource.attributes).get("service.name", "")
        for scope in group.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    service=service,
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    attributes=_attributes(span.attributes),
                    error=(span.status.message or "error") if span.status.code == span.status.STATUS_CODE_ERROR else "",
                )


def _attributes(pairs: Iterable[Any]) -> dict[str, str]:
    return {pair.key: str(getattr(pair.value, pair.value.WhichOneof("value") or "string_value")) for pair in pairs}


def tree(spans: Sequence[ReceivedSpan]) -> list[str]:
    """Return one trace as lines: each span below its parent, with its process, start and duration."""
    if not spans:
        return []
    known = {span.span_id for span in spans}
    begin = min(span.start_ns for span in spans)
    lines: list[tuple[str, ReceivedSpan]] = []

    def add(parent_id: str, prefix: str) -> None:
        is_root = parent_id == ""
        children = [span for span in spans if (span.parent_id not in known if is_root else span.parent_id == parent_id)]
        for number, span in enumerate(sorted(children, key=lambda span: (span.start_ns, span.end_ns))):
            is_last = number == len(children) - 1
            branch = "" if is_root else "└─ " if is_last else "├─ "
            lines.append((prefix + branch + span.name, span))
            add(span.span_id, prefix if is_root else prefix + ("   " if is_last else "│  "))

    add("", "")
    width = max(len(text) for text, _ in lines)
    services = max(len(span.service) for _, span in lines)
    return [
        f"{text:<{width}}  {span.service:<{services}}  +{(span.start_ns - begin) / 1e6:8.1f} ms"
        f"  {(span.end_ns - span.start_ns) / 1e6:8.1f} ms{f'  {span.error}' if span.error else ''}"
        for text, span in lines
    ]
