"""A certain verdict is not contradicted by lines that come later, nor by logs that were not given.

Recorded logs are cut at random moments, all at the same time (somebody traces during an incident) or each file for
itself (rotated, ended or collected too early), and judged again. One request and all requests must agree every time.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.trace.logs import tracing
from maestropy.trace.logs.log_records import APPLIED, APPLIED_AND_GONE, RecordKind
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from tests import trace_incidents, trace_mutations
from tests.trace_mutations import Logs, between
from tests.unit.trace.logs import mutated_incidents

CUTS = 5
SETS = ("b/snap-apidown", "cb4/snap-back", "everything at -v=2", "two servers", "resync storm")
Key = tuple[str, str, int, int]


def logs_of(name: str, incidents: Path) -> Logs:
    made = {mutation.name: mutation.made for mutation in mutated_incidents.MUTATIONS}
    return made[name](incidents) if name in made else trace_mutations.read(incidents / name)


def times(lines: list[str]) -> list[str]:
    return sorted({line[6:21] for line in lines if trace_mutations.moment(line)})


def key(trace: Trace) -> Key:
    version = 0 if trace.key.action == "delete" else trace.key.version
    return trace.key.resource, trace.key.action, trace.key.incarnation, version


def judged(logs: Logs, folder: Path) -> dict[Key, Trace]:
    traces, _ = trace_incidents.traces_of(
        trace_mutations.write({name: lines for name, lines in logs.items() if lines}, folder)
    )
    assert len({key(trace) for trace in traces}) == len(traces)
    return {key(trace): trace for trace in traces}


def is_certain(trace: Trace) -> bool:
    return trace.verdict in (RequestVerdict.COMPLETE, RequestVerdict.FAILED) and trace.confidence == "certain"


def has_success_after(trace: Trace, moment: float) -> bool:
    """Say whether a record after `moment` shows that the request ended well after all."""
    return any(
        record.at >= moment and (record.kind is RecordKind.APPLIED or record.detail in (APPLIED, APPLIED_AND_GONE))
        for record in trace.timeline
    )


def check_agreement(traces: dict[Key, Trace], folder: Path, random_: random.Random) -> None:
    """One request, searched for in the files, is judged as among all requests."""
    if not traces:
        return
    resource = random_.choice(sorted({trace.key.resource for trace in traces.values()}))
    tracer = tracing.RequestTracer([str(folder)], options=Options(), now=trace_incidents.NOW, whole=0)
    alone = tracer.judge(tracer.find([resource]), frozenset({resource}), [resource]).traces
    among_all = [trace for trace in traces.values() if trace.key.resource == resource]
    assert sorted(map(conclusion, alone)) == sorted(map(conclusion, among_all)), folder


def conclusion(trace: Trace) -> tuple[float, str, str, int, str]:
    main = trace.main_finding.code if trace.main_finding else ""
    return trace.start, trace.key.action, str(trace.verdict), trace.failed_stage or 0, main


@pytest.mark.parametrize("name", SETS)
def test_later_lines_contradict_no_certain_verdict(name: str, incidents: Path, tmp_path: Path) -> None:
    logs, random_ = logs_of(name, incidents), random.Random(name)
    cuts = sorted(random_.sample(times([line for lines in logs.values() for line in lines]), CUTS))
    before: dict[Key, tuple[Trace, float]] = {}
    for number, cut in enumerate([*cuts, "9"]):
        part = {file: between(lines, until=cut) for file, lines in logs.items()}
        now = judged(part, tmp_path / str(number))
        check_agreement(now, tmp_path / str(number), random_)
        end = max((trace.timeline[-1].at for trace in now.values() if trace.timeline), default=0.0)
        for one, (earlier, seen_until) in before.items():
            later = now[one]
            is_kept = later.verdict is earlier.verdict or later.verdict is RequestVerdict.SUPERSEDED
            is_overcome = earlier.verdict is RequestVerdict.FAILED and has_success_after(later, seen_until)
            assert is_kept or is_overcome, (cut, earlier, later)
        before |= {one: (trace, end) for one, trace in now.items() if is_certain(trace)}


def partial(logs: Logs, random_: random.Random) -> Iterator[Logs]:
    for _ in range(CUTS):
        part = {}
        for file, lines in logs.items():
            cut = random_.choice(times(lines))
            part[file] = random_.choice((lines, between(lines, until=cut), between(lines, since=cut)))
        yield part


@pytest.mark.parametrize("name", SETS)
def test_logs_that_are_not_given_contradict_no_certain_verdict(name: str, incidents: Path, tmp_path: Path) -> None:
    logs, random_ = logs_of(name, incidents), random.Random(name)
    whole = judged(logs, tmp_path / "whole")
    for number, part in enumerate(partial(logs, random_)):
        folder = tmp_path / str(number)
        now = judged(part, folder)
        check_agreement(now, folder, random_)
        for one, trace in now.items():
            is_known = one in whole or trace.key.action == "unknown" or not trace.key.version
            assert is_known, ("no such request", trace)
            if one in whole and is_certain(trace):
                assert trace.verdict is whole[one].verdict, (part.keys(), trace, whole[one])
