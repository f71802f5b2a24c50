"""Format a walk as text, as JSON model and as Markdown. Pure: returns text and never prints."""

from collections.abc import Iterable, Mapping
from typing import Any

from maestropy.journal import redact
from maestropy.trace import output
from maestropy.trace.hcp.judge import recreation
from maestropy.trace.hcp.model import Fact, HcpVerdict, HopReport, HopState, Walk, since_text
from maestropy.trace.hcp.report import diagram
from maestropy.trace.hcp.report.columns import wrapped_table
from maestropy.trace.markdown_text import code, code_block, escaped, table

_WIDEST_NAME = 46
"""Enough for `bundle` and its ID."""
_SIGNS = {HopState.OK: "ok", HopState.BEHIND: "behind", HopState.BAD: "BAD", HopState.UNKNOWN: "unknown"}


_ORDER = (
    "finalizers may be cleared by hand only once nothing above re-creates, and in this order: "
    f"{' > '.join(recreation.SAFE_ORDER)}; clearing those of an AzureMachine can leak its VM"
)


def model(walk: Walk) -> dict[str, Any]:
    """Return the walk as `-o json` shows it."""
    known = walk.context.known
    body = {
        "identity": {
            "resourceId": str(known.arm) if known.arm else "",
            "clusterServiceId": known.cid,
            "domainPrefix": known.prefix,
            "namespace": known.namespace,
            "controlPlaneNamespace": known.control_plane,
            "consumer": known.consumer,
            "bundleIds": sorted(known.bundle_ids),
        },
        "source": walk.context.snapshot.source,
        "verdict": _verdict_model(walk.verdict),
        "hops": [_hop_model(walk, hop) for hop in walk.hops],
    }
    return dict(redact.fields(body))


def text(walk: Walk, *, details: Iterable[str] = ()) -> str:
    """Return the report for people: the strip of hops, the verdict, and the facts of the hops in `details`."""
    verdict = walk.verdict
    lines = [*_head(walk), "", *strip(walk), ""]
    lines += wrapped_table(
        ((hop.name, _sign(hop), hop.reason) for hop in walk.hops),
        head=("HOP", "STATE", "WHAT IT SAYS"),
        widest_first=_WIDEST_NAME,
    )
    lines += ["", *_verdict_lines(verdict)]
    hop_names = set(details)
    for hop in walk.hops:
        if hop.name in hop_names:
            lines += ["", *hop_lines(walk, hop)]
    return redact.text("\n".join(lines) + "\n")


def single(walk: Walk, names: Iterable[str]) -> str:
    """Return a few hops only, with all their facts, for a single query."""
    hop_names = set(names)
    blocks = ["\n".join(hop_lines(walk, hop)) for hop in walk.hops if hop.name in hop_names]
    return redact.text("\n\n".join(blocks) + "\n")


def hop_lines(walk: Walk, report: HopReport) -> list[str]:
    """Return one hop with its facts and their ages."""
    lines = [
        f"{report.name}: {_sign(report)}{f'  {report.code}' if report.code else ''}  {output.printable(report.reason)}"
    ]
    if report.facts:
        lines += wrapped_table(
            (_fact_cells(walk, fact) for fact in report.facts),
            head=("FACT", "AGE", "SOURCE", "VALUE"),
            widest_first=_WIDEST_NAME,
            group=2,
        )
    return lines + [f"  note  {output.printable(note)}" for note in report.notes]


def markdown(walk: Walk) -> str:
    """Return the report as Markdown, with the flow as a Mermaid picture."""
    verdict = walk.verdict
    title = walk.context.known.arm.name if walk.context.known.arm else walk.context.known.cid
    lines = [f"# HCP {escaped(title)}", "", f"**{_headline(verdict)}**", "", escaped(verdict.reason), ""]
    lines += [*code_block(diagram.mermaid(walk).splitlines(), language="mermaid"), ""]
    rows = ((hop.name, _sign(hop), hop.code, hop.reason) for hop in walk.hops)
    lines += table(("hop", "state", "code", "what it says"), rows)
    for heading, _, entries in diagram.reasons(verdict):
        lines += _markdown_list(heading, map(escaped, entries))
    lines += _markdown_list("By hand", [escaped(_ORDER)] if _is_stuck_deletion(verdict) else [])
    lines += _markdown_list("Next", map(code, verdict.next))
    for hop in walk.hops:
        if hop.facts:
            rows = (_fact_cells(walk, fact) for fact in hop.facts)
            lines += ["", f"## {hop.name}", "", *table(("fact", "age", "source", "value"), rows)]
    return "\n".join(lines) + "\n"


def strip(walk: Walk) -> list[str]:
    """Return the hops in a row, as many to a line as fit."""
    lines, line = [], ""
    for hop in walk.hops:
        cell = f"[{hop.name} {_SIGNS[hop.state]}{' ...' if hop.waits else ''}]"
        if line and len(line) + len(cell) > 110:
            lines.append(line)
            line = ""
        line += (" > " if line or lines else "") + cell
    return [*lines, line]


def _head(walk: Walk) -> list[str]:
    known = walk.context.known
    ids = [
        ("HCP", str(known.arm) if known.arm else ""),
        ("Clusters Service id", known.cid),
        ("HostedCluster", f"{known.namespace}/{known.prefix}" if known.namespace and known.prefix else ""),
        ("consumer", known.consumer),
        ("seen", f"{walk.context.snapshot.now:%Y-%m-%dT%H:%M:%SZ} in {walk.context.snapshot.source}"),
    ]
    return [f"{name:<20} {output.printable(value)}" for name, value in ids if value]


def _headline(verdict: HcpVerdict) -> str:
    prefix = "deletion, " if verdict.deleting else ""
    if verdict.state is HopState.OK:
        return f"{prefix}OK"
    return f"{prefix}{_SIGNS[verdict.state]} at {verdict.hop} ({verdict.code})"


def _verdict_lines(verdict: HcpVerdict) -> list[str]:
    lines = [f"VERDICT  {_headline(verdict)}", f"  {output.printable(verdict.reason)}"]
    for _, label, entries in diagram.reasons(verdict):
        lines += [f"  {label:<11}  {output.printable(entry)}" for entry in entries]
    lines += [f"  order        {_ORDER}"] if _is_stuck_deletion(verdict) else []
    return lines + [f"  next         {output.printable(command)}" for command in verdict.next]


def _is_stuck_deletion(verdict: HcpVerdict) -> bool:
    return verdict.deleting and verdict.state is not HopState.OK


def _sign(report: HopReport) -> str:
    return f"{_SIGNS[report.state]}{', waits' if report.waits else ''}"


def _fact_cells(walk: Walk, fact: Fact) -> tuple[str, str, str, str]:
    return fact.name, since_text(walk.context.age(fact.since)) or "-", fact.where, fact.value


def _markdown_list(title: str, entries: Iterable[str]) -> list[str]:
    lines = [f"- {entry}" for entry in entries]
    return ["", f"## {title}", "", *lines] if lines else []


def _hop_model(walk: Walk, report: HopReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "state": report.state.value,
        "code": report.code,
        "reason": report.reason,
        "waits": report.waits,
        "facts": [_fact_model(walk, fact) for fact in report.facts],
        "evidence": output.evidence_model(report.evidence),
        "notes": list(report.notes),
    }


def _fact_model(walk: Walk, fact: Fact) -> dict[str, Any]:
    age = walk.context.age(fact.since)
    return {
        "name": fact.name,
        "value": fact.value,
        "since": f"{fact.since:%Y-%m-%dT%H:%M:%SZ}" if fact.since else None,
        "ageSeconds": int(age.total_seconds()) if age is not None else None,
        "where": fact.where,
    }


def _verdict_model(verdict: HcpVerdict) -> Mapping[str, Any]:
    return {
        "hop": verdict.hop,
        "state": verdict.state.value,
        "code": verdict.code,
        "reason": verdict.reason,
        "deleting": verdict.deleting,
        "evidence": output.evidence_model(verdict.evidence),
        "contradictions": [
            {
                "code": contradiction.code,
                "says": contradiction.says,
                "between": list(contradiction.between),
                "evidence": output.evidence_model(contradiction.evidence),
            }
            for contradiction in verdict.contradictions
        ],
        "recreations": [
            {"who": recreation.who, "what": recreation.what, "because": recreation.because}
            for recreation in verdict.recreations
        ],
        "safeOrder": list(recreation.SAFE_ORDER) if _is_stuck_deletion(verdict) else [],
        "next": list(verdict.next),
    }
