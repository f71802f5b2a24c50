"""Results of traces: of a work, of requests in logs, and of a hosted control plane. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from maestropy.console import redaction
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.evidence import EvidenceStore
from maestropy.mcp.results.findings import finding_item, unknown_sides
from maestropy.mcp.texts import Ours, known
from maestropy.trace.hcp.model import HopReport, HopState, Walk
from maestropy.trace.logs.model import Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import Evidence, Exit
from maestropy.trace.report.json_model import trace_model
from maestropy.trace.stages import STAGES
from maestropy.trace.work.report import work_report
from maestropy.trace.work.report.work_report import Traced, WorkReport

_MOST_WORKS: Final = 20
_MOST_RECORDS: Final = 3


def of_work(
    report: WorkReport, store: EvidenceStore, *, located: Mapping[str, Sequence[Evidence]], files: Collection[str]
) -> Result:
    """Return the report of a trace; `located` are lines of an archive by resource ID. ToolError if nothing is found."""
    if report.exit is Exit.NOT_FOUND:
        titles = [finding.title for finding in report.findings] or [traced.verdict.summary for traced in report.works]
        raise ToolError(
            f"{report.result.query.requested} was not found: {'; '.join(titles)}",
            remedy="Check the name and the consumer; call find to search for a part of the name.",
        )
    model = work_report.model(report)
    items: list[dict[str, Any]] = [finding_item(finding, store, files=files) for finding in report.findings]
    items += [
        {"candidate": {**candidate, "evidence": f"row:{candidate['resourceId']}"}} for candidate in model["candidates"]
    ]
    for traced in report.works[:_MOST_WORKS]:
        items += _work(traced, store, located=located, files=files, is_listed=len(report.works) > 1)
    head: dict[str, Any] = {"asked": model["question"]["asked"], "works": len(report.works)}
    if len(report.works) == 1:
        head |= _verdict(report.works[0])
    elif model["candidates"]:
        head["summary"] = Ours("Several works match; trace one of the candidates by its resource ID.")
    elif not report.works:
        head["summary"] = Ours("No work was found; the finding says where it was searched.")
    unknown = unknown_sides(model["sides"])
    if len(report.works) > _MOST_WORKS:
        unknown.append(f"{len(report.works) - _MOST_WORKS} more works match; narrow it to a consumer or one work")
    return Result(head=head, items=items, unknown=unknown)


def _verdict(traced: Traced) -> dict[str, Any]:
    facts, verdict = traced.facts, traced.verdict
    return {
        "work": work_report.work_name(facts),
        "id": work_report.resource_id(facts),
        "consumer": facts.consumer,
        "verdict": Ours(verdict.name),
        "code": Ours(verdict.code),
        "summary": known(verdict.summary),
    }


def _work(
    traced: Traced,
    store: EvidenceStore,
    *,
    located: Mapping[str, Sequence[Evidence]],
    files: Collection[str],
    is_listed: bool,
) -> list[dict[str, Any]]:
    resource_id = work_report.resource_id(traced.facts)
    row = traced.facts.data.row
    lines = [item.where for item in located.get(resource_id, ())]
    ids = [*lines, *([f"row:{resource_id}"] if row is not None else [])]
    items: list[dict[str, Any]] = [{**_verdict(traced), "evidence": ids}] if is_listed else []
    # As the console shows it: what a cluster said about a Secret is hidden.
    model = redaction.work_model(work_report.work_model(traced))
    findings = {id(found): shown for found, shown in zip(traced.verdict.findings, model["findings"], strict=True)}
    for finding in traced.verdict.findings:
        shown = findings[id(finding)]
        evidence = [Evidence(where=item["where"], says=item["says"]) for item in shown["evidence"]]
        item = finding_item(finding, store, files=files)
        item["evidence"] = [*store.items(evidence[:6], files=files), *({"id": line} for line in ids)]
        items.append(item)
    if model["db"]:
        items.append({"database": {**model["db"], "evidence": ids}})
    items += [{"deletion": step} for step in model["deletion"]]
    items += [{"applied": applied} for applied in model["applied"]]
    items += [{"manifest": _without_empty(manifest)} for manifest in model["manifests"]]
    items += [{"nested": nested} for nested in model["nested"]]
    return items


def _without_empty(model: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in model.items() if value not in (None, [], {}, "")}


def of_requests(
    traces: Sequence[Trace],
    environment: Environment,
    store: EvidenceStore,
    *,
    names: Mapping[int, str],
    warnings: Sequence[str],
) -> Result:
    """Return requests with their stages; `names` are the names of log files that can be opened, by their number."""
    items: list[dict[str, Any]] = []
    # The newest first: what is asked is nearly always what happens now.
    for trace in sorted(traces, key=lambda trace: trace.start, reverse=True):
        items += _request(trace, environment, store, names=names)
    counts: dict[str, int] = {}
    for trace in traces:
        counts[trace.verdict.value] = counts.get(trace.verdict.value, 0) + 1
    return Result(
        head={"requests": len(traces), "verdicts": counts}, items=items, unknown=[f"logs: {text}" for text in warnings]
    )


def _request(
    trace: Trace, environment: Environment, store: EvidenceStore, *, names: Mapping[int, str]
) -> list[dict[str, Any]]:
    model = redaction.anything(trace_model(trace, environment))
    files = {environment.writers[number].path: name for number, name in names.items()}
    key = _without_empty(model["key"])
    request = f"{trace.key.action} of version {trace.key.version or 'unknown'}"
    first: dict[str, Any] = {
        "request": key,
        "verdict": Ours(trace.verdict.value),
        "failedStage": trace.failed_stage,
        "start": Ours(model["start"] or ""),
        "durationMs": model["durationMs"],
        "stages": [
            {
                "n": stage["n"],
                "stage": Ours(STAGES[stage["n"]][1]),
                "state": Ours(stage["state"]),
                "first": Ours(stage["first"] or ""),
                "evidence": [_record(item, files, store)["id"] for item in stage["evidence"][:_MOST_RECORDS]],
            }
            for stage in model["stages"]
        ],
    }
    findings = [_finding(finding, request, files, store) for finding in model["findings"]]
    return [first, *findings]


def _finding(
    finding: Mapping[str, Any], request: str, files: Mapping[str, str], store: EvidenceStore
) -> dict[str, Any]:
    return {
        "finding": Ours(finding["code"]),
        "of": Ours(request),
        "severity": Ours(finding["severity"]),
        "confidence": Ours(finding["confidence"]),
        "stage": finding["stage"],
        "title": known(finding["title"]),
        "detail": finding["detail"],
        "cause": known(finding["cause"]),
        "evidence": [_record(item, files, store) for item in finding["evidence"][:6]],
        "do": [known(command) for command in finding["advice"]],
    }


def _record(item: Mapping[str, Any], files: Mapping[str, str], store: EvidenceStore) -> dict[str, str]:
    name = files.get(item["file"])
    if name and item["line"]:
        return {"id": f"{name}:{item['line']}", "says": item["msg"]}
    return {"id": store.seen(f"{item['file']}:{item['line']}", item["msg"]), "says": item["msg"]}


def of_walk(walk: Walk, store: EvidenceStore) -> Result:
    """Return the walk over the hops of a hosted control plane."""
    verdict = walk.verdict
    head = {
        "verdict": Ours(verdict.state.value),
        "hop": Ours(verdict.hop),
        "code": Ours(verdict.code),
        "reason": known(verdict.reason),
        "deleting": verdict.deleting,
        "evidence": store.items(verdict.evidence[:6]),
        "do": [known(command) for command in verdict.next],
    }
    items: list[dict[str, Any]] = [
        {
            "contradiction": Ours(item.code),
            "says": item.says,
            "between": list(item.between),
            "evidence": store.items(item.evidence[:3]),
        }
        for item in verdict.contradictions
    ]
    items += [_hop(hop, store) for hop in walk.hops]
    unknown = [f"hop {hop.name}: {hop.reason}" for hop in walk.hops if hop.state is HopState.UNKNOWN]
    return Result(head=head, items=items, unknown=unknown)


def _hop(hop: HopReport, store: EvidenceStore) -> dict[str, Any]:
    return {
        "hop": Ours(hop.name),
        "state": Ours(hop.state.value),
        "code": Ours(hop.code),
        "reason": known(hop.reason),
        "facts": {fact.name: fact.value for fact in hop.facts[:8]},
        "evidence": store.items(hop.evidence[:3]),
        "notes": list(hop.notes[:3]),
    }
