"""Select requests by filters or by identifiers, and say with which exit code a trace of them ends. Pure."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from maestropy.trace.errors import Ambiguous, NotFound
from maestropy.trace.logs.model import PROBLEMS, RequestFinding, RequestVerdict, Trace
from maestropy.trace.output import Exit, printable

_LONGEST_WORD: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Which of many requests; what is empty does not filter."""

    verdicts: tuple[str, ...] = ()
    slow: float = 0.0
    """Only those that took at least so many seconds."""
    consumer: str = ""
    source: str = ""
    action: str = ""
    code: str = ""
    since: float = -math.inf
    """Only those that began at this time, in seconds since 1970, or later."""
    until: float = math.inf

    @property
    def is_set(self) -> bool:
        return self != RequestFilter()

    def names(self, trace: Trace) -> bool:
        """Say whether a request is for the consumer and of the source, if they are named."""
        key = trace.key
        return (not self.consumer or key.consumer == self.consumer) and (not self.source or key.source == self.source)

    def matches(self, trace: Trace) -> bool:
        key = trace.key
        return (
            (not self.verdicts or trace.verdict.value in self.verdicts)
            and (not self.slow or trace.duration >= self.slow)
            and self.names(trace)
            and (not self.action or key.action == self.action)
            and (not self.code or any(finding.code == self.code for finding in trace.findings))
            and self.since <= trace.start <= self.until
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuery:
    """The requests to trace, by identifiers."""

    identifiers: tuple[str, ...]
    """All of them; a request matches any of those that are not required."""
    required: tuple[str, ...] = ()
    """Those that a request must match, each."""
    action: str = ""
    version: int = 0
    nth: int | None = None
    at: float | None = None
    """Seconds since 1970: only the request in progress at this time."""
    consumer: str = ""
    """Only the requests of this consumer."""
    resource_id: str = ""
    """The identifier that stands for a resource ID only, even if a work is named like it."""
    needs_lines: bool = False
    """Whether line numbers are needed, which large logs show quickly only for findings."""

    def resources(
        self,
        resources_by_identifier: Mapping[str, set[str]],
        *,
        warn: Callable[[str], None],
        consumers: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> frozenset[str]:
        """Return the requested resources; raise NotFound when there are none, and Ambiguous for too many.

        `consumers` are those of each resource that the logs name.
        """
        if self.consumer:
            resources_by_identifier = self._of_consumer(resources_by_identifier, consumers)
        if self.resource_id in resources_by_identifier.get(self.resource_id, ()):
            resources_by_identifier = {**resources_by_identifier, self.resource_id: {self.resource_id}}
        unknown = [identifier for identifier, resources in resources_by_identifier.items() if not resources]
        if set(unknown) & set(self.required) or len(unknown) == len(resources_by_identifier):
            names = ", ".join(short_word(identifier) for identifier in unknown)
            case = "" if names == names.lower() else " (upper and lower case differ; resource IDs are in lower case)"
            raise NotFound(
                f"{names} is not in these logs; check the identifier{case}, and what the logs cover: "
                "maestro trace logs check\nIf it was sent in that time: Maestro server does not receive the spec "
                "request (maestro trace explain MT-101)"
            )
        for identifier in unknown:
            warn(f"{short_word(identifier)} is not in these logs")
        if self.required and len(self.identifiers) > 1:
            return self._common(resources_by_identifier)
        for identifier, resources in resources_by_identifier.items():
            if len(resources) > 1:
                raise Ambiguous(_several(identifier, resources, consumers))
        return frozenset().union(*resources_by_identifier.values())

    def _common(self, resources_by_identifier: Mapping[str, set[str]]) -> frozenset[str]:
        """Return the resources that all required identifiers and any of the others name; NotFound if there is none."""
        sets = [resources_by_identifier[identifier] for identifier in self.required]
        others = [resources_by_identifier[identifier] for identifier in self._others]
        common = frozenset.intersection(*map(frozenset, (*sets, *([set().union(*others)] if others else []))))
        if not common:
            raise NotFound("no resource matches all identifiers; leave one out")
        return common

    @property
    def _others(self) -> list[str]:
        return [identifier for identifier in self.identifiers if identifier not in self.required]

    def _of_consumer(
        self, resources_by_identifier: Mapping[str, set[str]], consumers: Mapping[str, frozenset[str]]
    ) -> dict[str, set[str]]:
        """Return the resources of each identifier that are of the consumer; raise NotFound when none is."""
        own = {
            identifier: {one for one in resources if self.consumer in consumers.get(one, ())}
            for identifier, resources in resources_by_identifier.items()
        }
        if any(resources_by_identifier.values()) and not any(own.values()):
            found = {one for resources in resources_by_identifier.values() for one in resources}
            others = sorted({consumer for one in found for consumer in consumers.get(one, ())})
            names = ", ".join(map(short_word, others)) or "no consumer that these logs name"
            raise NotFound(f"--consumer: no request of {short_word(self.consumer)} matches; there are some of {names}")
        return own

    def chosen(self, traces: Sequence[Trace]) -> list[Trace]:
        """Return the requests of the requested resources that are asked for; raise NotFound if there is none."""
        traces = self._narrowed(traces)
        traces = [
            trace
            for trace in traces
            if (not self.action or trace.key.action == self.action)
            and (not self.consumer or trace.key.consumer == self.consumer)
            and (not self.version or trace.key.version == self.version)
        ]
        if self.at is not None:
            traces = under_way(traces, self.at)
        if self.nth is not None:
            position = self.nth if self.nth >= 0 else len(traces) + self.nth
            traces = traces[position : position + 1] if 0 <= position < len(traces) else []
        if not traces:
            raise NotFound("the resource is in the logs, but no request of it matches; remove filters")
        return [self._with_op_id_note(trace) for trace in traces]

    def _narrowed(self, traces: Sequence[Trace]) -> Sequence[Trace]:
        """Return the requests that an op-id or event ID is of: others of the same resource are not asked for."""
        named = {
            identifier: [trace for trace in traces if _is_of_request(identifier, trace)]
            for identifier in self.identifiers
        }
        others = self._others
        if others and all(named[identifier] for identifier in others):
            wanted = [trace for identifier in others for trace in named[identifier]]
            traces = [trace for trace in traces if any(trace is one for one in wanted)]
        for own in (named[identifier] for identifier in self.required if named[identifier]):
            traces = [trace for trace in traces if any(trace is one for one in own)]
        return traces

    def _with_op_id_note(self, trace: Trace) -> Trace:
        """Add a note when a delete is traced by its op-id, which only its first record has."""
        if trace.key.action != "delete" or not trace.key.op_id or trace.key.op_id not in self.identifiers:
            return trace
        detail = "its other records were found by the resource ID"
        finding = RequestFinding("MT-008", "certain", detail=detail)
        return replace(trace, findings=(*trace.findings, finding))


def _is_of_request(identifier: str, trace: Trace) -> bool:
    """Say whether an identifier is of this request, and not of its resource: its op-id, or an ID of its events."""
    key = trace.key
    if identifier in (key.op_id, key.cloudevent_id, key.db_event):
        return True
    if identifier in (key.resource, key.work_name):
        return False
    return any(identifier in (record.event, record.cloudevent_id) for record in trace.timeline)


def _several(identifier: str, resources: Collection[str], consumers: Mapping[str, frozenset[str]]) -> str:
    """Return what an identifier stands for, with the consumers, by which works of one name differ."""
    named = {one: ", ".join(sorted(consumers.get(one, ()))) for one in sorted(resources)}
    lines = "".join(
        f"\n  {printable(one)}{f'  consumer {printable(own)}' if own else ''}" for one, own in named.items()
    )
    is_by_consumer = len(set(named.values())) == len(named) and all(named.values())
    how = " with --resource-id" if identifier in resources else ""
    how += " or its consumer with --consumer" if is_by_consumer else ""
    return f"{short_word(identifier)} stands for several resources; name one of them{how}:{lines}"


def short_word(text: str) -> str:
    """Return user input, shortened and printable."""
    return printable(text if len(text) <= _LONGEST_WORD else f"{text[:_LONGEST_WORD]}…")


def under_way(traces: Sequence[Trace], at: float) -> list[Trace]:
    """Return, for each resource, the request in progress at a time; else the last one started before."""
    chosen: dict[str, Trace] = {}
    begun = [trace for trace in traces if trace.start <= at]
    for candidate in sorted(begun, key=lambda trace: (trace.end >= at, trace.start)):
        chosen[candidate.key.resource] = candidate
    return [trace for trace in traces if chosen.get(trace.key.resource) is trace]


def exit_code(traces: Sequence[Trace], *, is_partial: bool = False) -> Exit:
    """Return how a trace ends; without a part of the logs, requests and their ends may be missing."""
    waiting = [trace for trace in traces if trace.verdict is RequestVerdict.PENDING]
    is_lost = any(
        finding.entry.severity == "error" and finding.code == "MT-301"
        for trace in waiting
        for finding in trace.findings
    )
    if is_lost or any(trace.verdict in PROBLEMS for trace in traces):
        return Exit.PROBLEM
    is_unknown = any(trace.verdict is RequestVerdict.UNKNOWN for trace in traces)
    return Exit.INCONCLUSIVE if waiting or is_unknown or is_partial else Exit.HEALTHY
