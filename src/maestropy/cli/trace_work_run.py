"""Carry out `maestro trace work` once the command line is understood: ask, judge, write the report."""

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from maestropy import __version__
from maestropy.aio.clock import Clock
from maestropy.cli import trace_environment, trace_sides
from maestropy.cli.terminal import Terminal
from maestropy.cli.trace_options import AccessOptions, DepthOptions, OutputOptions
from maestropy.trace.errors import Unreadable
from maestropy.trace.exits import Exit
from maestropy.trace.output import envelope, json_text, yaml_text
from maestropy.trace.work import exports, gather, render, report, zones
from maestropy.trace.work.facts import Wish
from maestropy.trace.work.looking import Depth
from maestropy.trace.work.question import Question
from maestropy.trace.work.report import Report

_MOST_LIVE = 100
"""Works up to which every object is looked at without being told."""


async def check(access: AccessOptions) -> int:
    """Say what a trace needs and what of it is missing."""
    async with AsyncExitStack() as stack:
        completed = trace_environment.complete(access, os.environ)
        opening = trace_sides.Opening(access=completed, consent=Terminal(), stack=stack)
        found = await trace_sides.check(opening)
    for each in found:
        sys.stdout.write(f"{'✓' if each.is_met else '✗'} {each.what}: {each.says}\n")
    is_ready = all(each.is_met for each in found)
    sys.stdout.write("Ready to trace.\n" if is_ready else "Something is missing; see the lines with ✗.\n")
    return 0 if is_ready else int(Exit.NO_ACCESS)


async def trace(
    question: Question,
    access: AccessOptions,
    *,
    depth: DepthOptions,
    output: OutputOptions,
    found: list[str],
) -> int:
    """Trace, write the report, and tell which works were `found`."""
    zone = zones.named(output.tz)
    looks = depth.live if depth.live is not None else len(question.values) <= _MOST_LIVE
    async with AsyncExitStack() as stack:
        completed = trace_environment.complete(access, os.environ)
        opening = trace_sides.Opening(access=completed, consent=Terminal(), stack=stack, is_quiet=output.quiet)
        if completed.name and not output.quiet:
            opening.consent.tell(f"Environment {completed.name} of `maestro config`")
        sides = await trace_sides.open_sides(opening)
        closely = Depth(objects=looks or depth.diff, nested=depth.nested, whole=depth.diff)
        answer = await gather.gather(question, sides, depth=closely)
    now = Clock().now()
    if output.output not in ("json", "yaml"):
        answer = zones.shown_in(answer, zone)
    wish = Wish(broker_host=depth.broker_host, agent_namespace=access.agent_namespace, compare=depth.diff)
    built = report.build(answer, now=now, wish=wish)
    _write(_rendered(built, output, depth=depth, generated_at=report.iso(now) or ""), output.out)
    found += [name for each in built.works if (name := report.resource_id(each.facts))]
    return int(built.exit)


def _rendered(found: Report, output: OutputOptions, *, depth: DepthOptions, generated_at: str) -> str:
    match output.output:
        case "json" | "yaml" as form:
            body = report.model(found)
            whole = envelope(version=__version__, generated_at=generated_at, exit_code=int(found.exit), body=body)
            return json_text(whole) if form == "json" else yaml_text(whole)
        case "md":
            return exports.markdown(found)
        case "html":
            return exports.html(found)
        case "mermaid":
            return exports.mermaid(found)
        case form:
            if output.quiet:
                return render.verdicts(found)
            zone = zones.named(output.tz)
            text = exports.tree(found) if depth.tree else render.text(found, is_wide=form == "wide", zone=zone)
            return text + (exports.feedback(found) if depth.feedback else "")


def _write(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unreadable(f"--out {path} cannot be written ({error.strerror})") from error
