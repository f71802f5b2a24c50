"""Follow the logs of server and agents, and keep the newest requests with their nine stages.

The verdicts are those of `trace request`: this module only keeps and orders them.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from maestropy.console import redaction
from maestropy.trace.errors import TraceError
from maestropy.trace.follow import FollowedLogs, Poll, poll_logs
from maestropy.trace.logs.log_streams import request_identity
from maestropy.trace.logs.model import Options, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.report.json_model import stamp, trace_model
from maestropy.trace.stages import STAGES

MOST: Final = 2_000
"""So many requests are kept, the newest."""
_SHOWN: Final = 500
_RETRY_SECONDS: Final = 5.0
_SENT: Final = 9


class RequestFeed:
    """The newest requests that the logs show; empty without logs."""

    def __init__(self, logs: Sequence[Path] = (), *, on_change: Callable[[], None], on_problem: Callable[[str], None]):
        self._logs = tuple(logs)
        self._on_change = on_change
        self._on_problem = on_problem
        self._traces: OrderedDict[str, Trace] = OrderedDict()
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
            name = _name(trace)
            if self._traces.get(name) != trace:
                self._traces[name] = trace
                self._traces.move_to_end(name)
                is_changed = True
        while len(self._traces) > MOST:
            self._traces.popitem(last=False)
        if is_changed:
            self._on_problem("")
            self._on_change()

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
        return [_row(name, trace) for name, trace in found[:_SHOWN]]

    def one(self, name: str) -> dict[str, Any] | None:
        """Return a request in full, as `trace request -o json` has it."""
        trace = self._traces.get(name)
        if trace is None or self._environment is None:
            return None
        model = redaction.anything(trace_model(trace, self._environment))
        titles = [{"n": number, "id": names[0], "title": names[1]} for number, names in STAGES.items()]
        return {"name": name, "titles": titles, **model}

    def delivered(self, resource_id: str, *, version: int) -> float:
        """Return when the server sent the status of a version to subscribers; 0 if no log shows it."""
        moments = [
            trace.moments[_SENT - 1]
            for trace in self._traces.values()
            if trace.key.resource == resource_id and trace.key.version == version
        ]
        return max(moments, default=0.0)


def _name(trace: Trace) -> str:
    return "|".join(request_identity(trace.key))


def _row(name: str, trace: Trace) -> dict[str, Any]:
    key = trace.key
    finding = trace.main_finding
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
