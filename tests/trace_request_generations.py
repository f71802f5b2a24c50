"""Log lines of requests in all five generations, derived from the two in `trace_request_logs`.

G0 wrote printf texts behind a glog header, with a prefix of ids and whole events over many lines; G1 the same through
zap, with unusual level names; neither knew "handle …", "… was sent" nor "no clients …". G3 was a week of klog with
values of several lines. G2 and G4 are those of `trace_request_logs`.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from tests import trace_request_logs as logs
from tests.trace_request_logs import LoggedRequest, klog

Lines = Iterator[tuple[str, float, str]]

_LATER_PHRASES = ("handle resource status update", "event was sent", "no clients registered")
_ZAP = re.compile(r"(\S+)\tINFO\t(\S+)\t(.*)", re.DOTALL)


def lines_g1(logged: LoggedRequest) -> Lines:
    """Yield (pod, time, record) as zap wrote the printf phrases of 2024."""
    for pod, at, text in logs.lines_g2(logged):
        if any(each in text for each in _LATER_PHRASES):
            continue
        yield pod, at, text.replace("\tINFO\t", "\tLEVEL(-4)\t").replace(", source=mw-client-example", "")


def lines_g0(logged: LoggedRequest) -> Lines:
    """Yield (pod, time, record) as glog wrote them, with the ids of the request before the text."""
    for number, (pod, at, text) in enumerate(logs.lines_g2(logged)):
        if any(each in text for each in _LATER_PHRASES):
            continue
        found = _ZAP.fullmatch(text)
        if found:
            moment, place, body = found.groups()
            when = datetime.fromisoformat(moment).timestamp()
            body = body.replace("from client", "with grpc server").replace(", source=mw-client-example", "")
            if "Context Attributes" in body:
                body = body.rstrip("\n") + '\nData,\n  {\n    "manifests": []\n  }\n'
            text = klog(when, place, f"[opid=op{number}][accountID=me][tx_id=7] {body}")
        yield pod, at, text


def lines_g3(logged: LoggedRequest) -> Lines:
    """Yield (pod, time, record) of the week in which values had several lines."""
    for pod, at, text in logs.lines_g4(logged):
        if '"receive the event from client"' in text:
            yield pod, at, _in_lines(text, logged, "context", f"spec.{logged.action}_request", version=0)
        elif '"Received event"' in text or '"Sending event"' in text:
            is_status = ".status." in text
            kind = "status.update_request" if is_status else f"spec.{logged.action}_request"
            yield pod, at, _in_lines(text, logged, "event", kind, version=logged.version, status=is_status)
        else:
            text = re.sub(r' op-id="[^"]*"', "", text)
            yield (
                pod,
                at,
                text.replace('"received status update for resource"', '"received action for resource"').replace(
                    " event_server.go:99]", " event_server.go:96]"
                ),
            )


def _in_lines(text: str, logged: LoggedRequest, key: str, kind: str, *, version: int, status: bool = False) -> str:
    head = re.sub(r' (?:op-id|eventID|eventType|eventSource)="[^"]*"', "", text.partition(" extensions=")[0])
    body = logs.block(logged, kind, version=version, status=status).replace("\n", "\n\t")
    return f"{head} {key}=<\n\t{body}\n >"


GENERATIONS: dict[str, Callable[[LoggedRequest], Lines]] = {
    "G0": lines_g0,
    "G1": lines_g1,
    "G2": logs.lines_g2,
    "G3": lines_g3,
    "G4": logs.lines_g4,
}
logs.GENERATIONS.update(GENERATIONS)
