"""Follow the logs of server and agents, and keep the newest requests with their nine stages.

The verdicts are those of `trace request`, refined with what the picture knows besides the logs: pauses and statuses.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from maestropy.console import redaction
from maestropy.console.picture import Picture
from maestropy.trace.errors import TraceError
from maestropy.trace.follow import FollowedLogs, Poll, poll_logs
from maestropy.trace.logs.judge import pauses, sent_again
from maestropy.trace.logs.log_streams import request_identity
from maestropy.trace.logs.model import SETTLED, Options, RequestVerdict, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.report.json_model import stamp, trace_model
from maestropy.trace.stages import STAGES

MOST: Final = 2_000
"""So many requests are kept, the newest."""
_SHOWN: Final = 500
_RETRY_SECONDS: Final = 5.0
_SENT: Final = 9
_UNSEEN: Final = "unknown"
"""The action of what logs show of a work without any request: a status that came again, for example."""
_APPLIED: Final = "Applied=True"


class RequestFeed:
    """The newest requests that the logs show; empty without logs."""

    def __init__(
        self,
        logs: Sequence[Path] = (),
        *,
        on_change: Callable[[], None],
        on_problem: Callable[[str], None],
        picture: Picture | None = None,
    ) -> None:
        self._logs = tuple(logs)
        self._on_change = on_change
        self._on_problem = on_problem
        self._picture = picture
        """What the requests are refined with; None if their verdicts are final."""
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._received: dict[tuple[str, ...], str] = {}
        """The names of kept requests whose arrival was logged, by work, kind of request and version."""
        self._environment: Environment | None = None

    @property
    def has_logs(self) -> bool:
        """Whether logs are followed."""
        return bool(self._logs)

    @property
    def traces(self) -> list[Trace]:
        """The requests, in the order in which they were last seen."""
        return list(self._traces.values())

    async def run(self) -> None:
        """Follow the logs until cancelled; what cannot be read is tried again."""
        if not self._logs:
            return
        while True:
            try:
                await poll_logs(
                    FollowedLogs(paths=self._logs), Options(), on_poll=self._take, notify=lambda _text: None
                )
            except (TraceError, OSError) as error:
                self._on_problem(str(error))
                await asyncio.sleep(_RETRY_SECONDS)

    def _take(self, poll: Poll) -> bool:
        self.keep(poll.streams.changed(), poll.streams.environment)
        return False

    def keep(self, traces: Iterable[Trace], environment: Environment) -> None:
        """Keep the newest of these requests and of those before; the environment is that of their logs."""
        self._environment = environment
        is_changed = False
        for trace in traces:
            is_changed = self._keep(trace) or is_changed
        while len(self._traces) > MOST:
            name, oldest = self._traces.popitem(last=False)
            if self._received.get(_subject(oldest)) == name:
                del self._received[_subject(oldest)]
        if is_changed:
            self._on_problem("")
            self._on_change()

    def _keep(self, trace: Trace) -> bool:
        """Keep a request, and return whether it is news; a delivery of one that was kept before is no other request."""
        if trace.key.action == _UNSEEN:
            return False
        name, subject = _name(trace), _subject(trace)
        kept = self._received.get(subject, name)
        if trace.moments[0]:
            self._received[subject] = name
        elif kept != name:
            # The records of the request were dropped since: only what completes it says more than they did.
            if trace.verdict not in SETTLED or self._traces[kept].verdict in SETTLED:
                return False
            del self._received[subject], self._traces[kept]
        if self._traces.get(name) == trace:
            return False
        self._traces[name] = trace
        self._traces.move_to_end(name)
        return True

    def listed(self, *, text: str = "", resource_id: str = "") -> list[dict[str, Any]]:
        """Return the newest requests first; those of one work, or whose names contain a text."""
        wanted = text.lower()
        found = [
            (name, trace)
            for name, trace in self._traces.items()
            if (not resource_id or trace.key.resource == resource_id)
            and (not wanted or wanted in "\n".join(map(str, trace.key)).lower())
        ]
        found.sort(key=lambda item: item[1].start, reverse=True)
        return [_row(name, self._refined(trace)) for name, trace in found[:_SHOWN]]

    def one(self, name: str) -> dict[str, Any] | None:
        """Return a request in full, as `trace request -o json` has it."""
        trace = self._traces.get(name)
        if trace is None or self._environment is None:
            return None
        model = redaction.anything(trace_model(self._refined(trace), self._environment))
        titles = [{"n": number, "id": names[0], "title": names[1]} for number, names in STAGES.items()]
        return {"name": name, "titles": titles, **model}

    def _refined(self, trace: Trace) -> Trace:
        return trace if self._picture is None else refined(trace, self._picture)

    def delivered(self, resource_id: str, *, version: int) -> float:
        """Return when the server sent the status of a version to subscribers; 0 if no log shows it."""
        moments = [
            trace.moments[_SENT - 1]
            for trace in self._traces.values()
            if trace.key.resource == resource_id and trace.key.version == version
        ]
        return max(moments, default=0.0)


def refined(trace: Trace, picture: Picture) -> Trace:
    """Return the trace with what the picture knows besides the logs: the work's status, a pause of its consumer."""
    row = picture.works.get(trace.key.resource)
    if sent_again.is_without_request(trace):
        if row is not None and row.observed >= trace.key.version and _APPLIED in row.conditions:
            return sent_again.applied(trace, version=row.observed)
        if trace.verdict is RequestVerdict.INCOMPLETE:
            return sent_again.unknown(trace)
    is_stored = row is None or bool(row.deleted) or row.version >= trace.key.version
    return pauses.refined(trace, pauses.Known(pauses=picture.pauses)) if is_stored else trace


def _subject(trace: Trace) -> tuple[str, ...]:
    key = trace.key
    return key.resource, "delete" if key.action == "delete" else "change", str(key.version)


def _name(trace: Trace) -> str:
    return "|".join(request_identity(trace.key))


def _row(name: str, trace: Trace) -> dict[str, Any]:
    key = trace.key
    again = next((item for item in trace.findings if item.code == sent_again.CODE), None)
    finding = trace.main_finding or again
    return {
        "name": name,
        "resourceId": key.resource,
        "workName": key.work_name,
        "consumer": key.consumer,
        "source": key.source,
        "action": key.action,
        "version": key.version,
        "verdict": trace.verdict.value,
        "failedStage": trace.failed_stage,
        "start": stamp(trace.start),
        "durationMs": round(trace.duration * 1000, 1),
        "stages": [stage.state.value for stage in trace.stages],
        "done": sum(stage.state is StageState.OK for stage in trace.stages),
        "code": finding.code if finding else "",
        "title": finding.entry.title if finding else "",
    }
