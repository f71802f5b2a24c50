"""A walk as text, as the JSON model, as Markdown. Pure: it returns text and never prints."""

from collections.abc import Iterable, Mapping
from typing import Any

from maestropy.journal import redact
from maestropy.trace import output
from maestropy.trace.hcp import picture, recreation
from maestropy.trace.hcp.model import Fact, Report, State, Verdict, Walk, since_text
from maestropy.trace.output import Evidence

_SIGNS = {State.OK: "ok", State.BEHIND: "behind", State.BAD: "BAD", State.UNKNOWN: "unknown"}


_ORDER = (
    "finalizers may be cleared by hand only once nothing above re-creates, and in this order: "
    f"{' > '.join(recreation.SAFE_ORDER)}; clearing those of an AzureMachine can leak its VM"
)


def model(walk: Walk) -> dict[str, Any]:
    """Return the walk as `-o json` shows it."""
    known = walk.scene.known
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
        "source": walk.scene.taken.source,
        "verdict": _verdict_model(walk.verdict),
        "hops": [_hop_model(walk, each) for each in walk.hops],
    }
    return dict(redact.fields(body))


def text(walk: Walk, *, details: Iterable[str] = ()) -> str:
    """Return the report for people: the strip of hops, the verdict, and the facts of the hops in `details`."""
    verdict = walk.verdict
    lines = [*_head(walk), "", *strip(walk), ""]
    lines += output.table(
        ((each.name, _sign(each), each.reason) for each in walk.hops), head=("HOP", "STATE", "WHAT IT SAYS")
    )
    lines += ["", *_verdict_lines(verdict)]
    wanted = set(details)
    for each in walk.hops:
        if each.name in wanted:
            lines += ["", *hop_lines(walk, each)]
    return redact.text("\n".join(lines) + "\n")


def single(walk: Walk, names: Iterable[str]) -> str:
    """Return a few hops only, with all their facts: the answer to one query."""
    wanted = set(names)
    blocks = ["\n".join(hop_lines(walk, each)) for each in walk.hops if each.name in wanted]
    return redact.text("\n\n".join(blocks) + "\n")


def hop_lines(walk: Walk, report: Report) -> list[str]:
    """Return one hop with its facts and their ages."""
    lines = [
        f"{report.name}: {_sign(report)}{f'  {report.code}' if report.code else ''}  {output.printable(report.reason)}"
    ]
    if report.facts:
        lines += output.table(
            (_fact_cells(walk, each) for each in report.facts), head=("FACT", "AGE", "SOURCE", "VALUE")
        )
    return lines + [f"  note  {output.printable(each)}" for each in report.notes]


def markdown(walk: Walk) -> str:
    """Return the report as Markdown, with the flow as a Mermaid picture."""
    verdict = walk.verdict
    title = walk.scene.known.arm.name if walk.scene.known.arm else walk.scene.known.cid
    lines = [f"# HCP {title}", "", f"**{_headline(verdict)}**", "", output.printable(verdict.reason), ""]
    lines += ["```mermaid", *picture.mermaid(walk).splitlines(), "```", ""]
    lines += ["| hop | state | code | what it says |", "|---|---|---|---|"]
    lines += [f"| {each.name} | {_sign(each)} | {each.code} | {_cell(each.reason)} |" for each in walk.hops]
    lines += _markdown_list("Evidence", (f"{each.where}: {each.says}" for each in verdict.evidence))
    lines += _markdown_list("Contradictions", (f"{each.code} {each.says}" for each in verdict.contradictions))
    lines += _markdown_list(
        "Who would re-create what", (f"{each.who}: {each.what}, because {each.because}" for each in verdict.recreations)
    )
    lines += _markdown_list("By hand", [_ORDER] if _is_stuck_deletion(verdict) else [])
    lines += _markdown_list("Next", (f"`{each}`" for each in verdict.next))
    for each in walk.hops:
        if each.facts:
            lines += ["", f"## {each.name}", "", "| fact | age | source | value |", "|---|---|---|---|"]
            lines += [f"| {' | '.join(map(_cell, _fact_cells(walk, fact)))} |" for fact in each.facts]
    return redact.text("\n".join(lines) + "\n")


def strip(walk: Walk) -> list[str]:
    """Return the hops in a row, as many to a line as fit."""
    lines, line = [], ""
    for each in walk.hops:
        cell = f"[{each.name} {_SIGNS[each.state]}{' ...' if each.waits else ''}]"
        if line and len(line) + len(cell) > 110:
            lines.append(line)
            line = ""
        line += (" > " if line or lines else "") + cell
    return [*lines, line]


def _head(walk: Walk) -> list[str]:
    known = walk.scene.known
    ids = [
        ("HCP", str(known.arm) if known.arm else ""),
        ("Clusters Service id", known.cid),
        ("HostedCluster", f"{known.namespace}/{known.prefix}" if known.namespace and known.prefix else ""),
        ("consumer", known.consumer),
        ("seen", f"{walk.scene.taken.now:%Y-%m-%dT%H:%M:%SZ} in {walk.scene.taken.source}"),
    ]
    return [f"{name:<20} {output.printable(value)}" for name, value in ids if value]


def _headline(verdict: Verdict) -> str:
    what = "deletion, " if verdict.deleting else ""
    if verdict.state is State.OK:
        return f"{what}OK"
    return f"{what}{_SIGNS[verdict.state]} at {verdict.hop} ({verdict.code})"


def _verdict_lines(verdict: Verdict) -> list[str]:
    lines = [f"VERDICT  {_headline(verdict)}", f"  {output.printable(verdict.reason)}"]
    lines += [f"  evidence     {_evidence(each)}" for each in verdict.evidence]
    lines += [f"  contradicts  {each.code} {output.printable(each.says)}" for each in verdict.contradictions]
    lines += [
        f"  re-creates   {output.printable(f'{each.who}: {each.what}, because {each.because}')}"
        for each in verdict.recreations
    ]
    lines += [f"  order        {_ORDER}"] if _is_stuck_deletion(verdict) else []
    return lines + [f"  next         {output.printable(each)}" for each in verdict.next]


def _is_stuck_deletion(verdict: Verdict) -> bool:
    return verdict.deleting and verdict.state is not State.OK


def _evidence(each: Evidence) -> str:
    return output.printable(f"{each.where}: {each.says}")


def _sign(report: Report) -> str:
    return f"{_SIGNS[report.state]}{', waits' if report.waits else ''}"


def _fact_cells(walk: Walk, fact: Fact) -> tuple[str, str, str, str]:
    return fact.name, since_text(walk.scene.age(fact.since)) or "-", fact.where, fact.value


def _cell(value: str) -> str:
    return output.printable(value).replace("|", "\\|")


def _markdown_list(title: str, entries: Iterable[str]) -> list[str]:
    found = [f"- {output.printable(each)}" for each in entries]
    return ["", f"## {title}", "", *found] if found else []


def _hop_model(walk: Walk, report: Report) -> dict[str, Any]:
    return {
        "name": report.name,
        "state": report.state.value,
        "code": report.code,
        "reason": report.reason,
        "waits": report.waits,
        "facts": [_fact_model(walk, each) for each in report.facts],
        "evidence": _evidence_model(report.evidence),
        "notes": list(report.notes),
    }


def _fact_model(walk: Walk, fact: Fact) -> dict[str, Any]:
    age = walk.scene.age(fact.since)
    return {
        "name": fact.name,
        "value": fact.value,
        "since": f"{fact.since:%Y-%m-%dT%H:%M:%SZ}" if fact.since else None,
        "ageSeconds": int(age.total_seconds()) if age is not None else None,
        "where": fact.where,
    }


def _verdict_model(verdict: Verdict) -> Mapping[str, Any]:
    return {
        "hop": verdict.hop,
        "state": verdict.state.value,
        "code": verdict.code,
        "reason": verdict.reason,
        "deleting": verdict.deleting,
        "evidence": _evidence_model(verdict.evidence),
        "contradictions": [
            {
                "code": each.code,
                "says": each.says,
                "between": list(each.between),
                "evidence": _evidence_model(each.evidence),
            }
            for each in verdict.contradictions
        ],
        "recreations": [{"who": each.who, "what": each.what, "because": each.because} for each in verdict.recreations],
        "safeOrder": list(recreation.SAFE_ORDER) if _is_stuck_deletion(verdict) else [],
        "next": list(verdict.next),
    }


def _evidence_model(evidence: Iterable[Evidence]) -> list[dict[str, str]]:
    return [{"where": each.where, "says": each.says} for each in evidence]
