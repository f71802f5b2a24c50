"""Trace a fleet of this computer and one request of it, for `maestro up --with-traces`. It needs the extra `otel`."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.fleet import Fleet
from maestropy.sandbox.otlp_receiver import OtlpReceiver, ReceivedSpan
from maestropy.sdk.watch_events import EventType
from maestropy.sdk.work import Work
from maestropy.sdk.works import AsyncWorks
from maestropy.telemetry import otel, trace_context, tracing
from maestropy.wire.events import event

_WORK: Final = "traced-hello"
_SECONDS: Final = 30.0
_LAST_SPAN: Final = ("maestro-client", "receive status")
_MANIFEST: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": _WORK, "namespace": "default"},
}


@dataclass(frozen=True, slots=True)
class TracedProcess:
    """Where the spans of server, agents and client go."""

    receiver: OtlpReceiver
    agent_tracer: tracing.Tracer


@contextmanager
def traced() -> Iterator[TracedProcess]:
    """Collect the spans of this process and of servers that it starts, by the OTEL_* variables of its environment."""
    with OtlpReceiver() as receiver:
        # Soon, because a person waits for the trace.
        os.environ.update(
            OTEL_TRACES_EXPORTER="otlp",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        agent_tracer = otel.open_tracer("otlp", service="maestro-agent", environ=os.environ)
        try:
            with otel.application("otlp", service="maestro-client", environ=os.environ):
                yield TracedProcess(receiver, agent_tracer)
        finally:
            agent_tracer.close()


async def trace_one(fleet: Fleet, receiver: OtlpReceiver, *, consumer: str) -> Sequence[ReceivedSpan]:
    """Apply a work, wait until its status is back, delete it, and return the trace of its request."""
    works = fleet.client.works(consumer)
    await works.delete(_WORK, wait=True, timeout=_SECONDS)  # of an earlier run that was killed
    applied = await create_watched(works, Work(_WORK).add(_MANIFEST), seconds=_SECONDS)
    publisher = trace_context.parse(applied.annotations.get(event.OPERATION_ID_KEY, ""))
    if publisher is None:
        raise SandboxError("the request was published without a trace")
    try:
        async with asyncio.timeout(_SECONDS):
            while not _is_complete(spans := receiver.trace(f"{publisher.trace_id:032x}")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # a thread receives the spans
    except TimeoutError as error:
        names = ", ".join(span.name for span in spans) or "none"
        raise SandboxError(f"the trace was not complete in {_SECONDS:g} s; spans: {names}") from error
    await works.delete(_WORK, wait=True, timeout=_SECONDS)
    return spans


async def create_watched(works: AsyncWorks, work: Work, *, seconds: float) -> Work:
    """Create a work and return it when it is available; subscribed before, so that every status has a subscriber."""
    async with asyncio.timeout(seconds), works.watch(bookmarks=True) as changes:
        async for change in changes:
            if change.type is EventType.SYNCED:
                await works.create(work)
            elif change.work.name == work.name and change.work.is_true("Available"):
                return change.work
    raise SandboxError(f"the watch ended before work {work.name} was available")


def _is_complete(spans: Sequence[ReceivedSpan]) -> bool:
    """Return whether the client has received the status, and every span has its parent."""
    known = {span.span_id for span in spans}
    is_whole = all(not span.parent_id or span.parent_id in known for span in spans)
    return is_whole and _LAST_SPAN in {(span.service, span.name) for span in spans}
