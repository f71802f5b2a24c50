"""Run `maestro trace work` after its options are parsed: trace with the library, write the report."""

import os
from contextlib import AsyncExitStack

from maestropy.aio.clock import Clock
from maestropy.cli import screen
from maestropy.cli.terminal import Terminal
from maestropy.cli.trace import endings, environment
from maestropy.cli.trace.environment import EnvironmentChoice
from maestropy.cli.trace.work.options import AccessOptions, DepthOptions, OutputOptions
from maestropy.trace import library
from maestropy.trace.access import work_readers
from maestropy.trace.access.options import WorkAccess
from maestropy.trace.exit_codes import Exit
from maestropy.trace.output import document_text
from maestropy.trace.work.query import WorkIdentifier, WorkTraceOptions
from maestropy.trace.work.report import exports, render, time_zones, work_report
from maestropy.trace.work.report.work_report import WorkReport


async def check(options: AccessOptions) -> int:
    """Report what a trace needs and what is missing."""
    async with AsyncExitStack() as stack:
        setup = work_readers.AccessSetup(access=_access(options), confirmer=Terminal(), stack=stack)
        checks = await work_readers.check(setup)
    for prerequisite in checks:
        screen.write(f"{'✓' if prerequisite.is_met else '✗'} {prerequisite.what}: {prerequisite.says}\n")
    is_ready = all(prerequisite.is_met for prerequisite in checks)
    screen.write("Ready to trace.\n" if is_ready else "Something is missing; see the lines with ✗.\n")
    return 0 if is_ready else int(Exit.NO_ACCESS)


async def trace(
    identifier: WorkIdentifier,
    options: AccessOptions,
    *,
    depth: DepthOptions,
    output: OutputOptions,
    resource_ids: list[str],
) -> int:
    """Trace, write the report, and append the traced resource IDs to `resource_ids`."""
    # JSON and YAML keep to UTC.
    zone = time_zones.named(output.tz if output.output not in ("json", "yaml") else "UTC")
    access = _access(options)
    terminal = Terminal()
    if access.environment and not output.quiet:
        terminal.notify(f"Environment {access.environment} of `maestro config`")
    trace_options = WorkTraceOptions(
        live=depth.live,
        nested=depth.nested,
        compare=depth.diff,
        broker_host=depth.broker_host,
        zone=zone,
        is_quiet=output.quiet,
    )
    report = await library.work(access=access, options=trace_options, confirmer=terminal, **identifier)
    generated_at = work_report.iso(Clock().now()) or ""
    endings.write_report(_rendered(report, output, depth=depth, generated_at=generated_at), output.out)
    resource_ids += [name for work in report.works if (name := work_report.resource_id(work.facts))]
    return int(report.exit)


def _access(options: AccessOptions) -> WorkAccess:
    choice = EnvironmentChoice(env=options.env, config=options.config)
    return environment.complete_work_access(options.access, choice, os.environ)


def _rendered(built: WorkReport, output: OutputOptions, *, depth: DepthOptions, generated_at: str) -> str:
    match output.output:
        case "json" | "yaml" as form:
            exit_code = int(built.exit)
            return document_text(work_report.model(built), form=form, generated_at=generated_at, exit_code=exit_code)
        case "md":
            return exports.markdown(built)
        case "html":
            return exports.html(built)
        case "mermaid":
            return exports.mermaid(built)
        case form:
            if output.quiet:
                return render.verdicts(built)
            zone = time_zones.named(output.tz)
            text = exports.tree(built) if depth.tree else render.text(built, is_wide=form == "wide", zone=zone)
            return text + (exports.feedback(built) if depth.feedback else "")
